"""What may be used, and what follows when it is used up."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mulligan.config.budget import AllowanceSettings, Budget
from mulligan.domain.attempt import AgentRun, Change, Evidence, TimeLimit, classify, next_round
from mulligan.domain.decision import Escalate, WaitForBudget
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts, FixRound, WorkerResultMeta
from mulligan.domain.spending import Allowance, Spent, spent_by, tightest
from mulligan.retry.budget import allowance_of, used_up
from mulligan.retry.policy import Ended, RetryPolicy, decide
from mulligan.retry.words import error_line
from world.attempts import attempt

pytestmark = pytest.mark.pure


def used(usd: float | None, tokens: int | None = None) -> AgentFacts:
    return AgentFacts(kind="command", cost_usd=usd, input_tokens=tokens, output_tokens=tokens)


def cost(number: int, usd: float | None, tokens: int | None = None) -> WorkerResultMeta:
    meta = attempt(number, Outcome.CHECKS_FAILED)
    return meta.model_copy(update={"agent": used(usd, tokens)})


def budget(
    issue: float | None = None, attempt: float | None = None, tokens: int | None = None
) -> Budget:
    return Budget(
        issue=AllowanceSettings(usd=issue, tokens=tokens), attempt=AllowanceSettings(usd=attempt)
    )


PAST = (cost(1, 0.1, 100), cost(2, 0.2), attempt(3, Outcome.INTERRUPTED))


def test_attempts_add_up_to_the_cent() -> None:
    assert spent_by(PAST) == Spent(0.3, 200)
    assert spent_by([*PAST, attempt(4, Outcome.INTERRUPTED).model_copy(update={"agent": None})])


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (budget(), Allowance()),
        (budget(attempt=2), Allowance(2)),
        (budget(issue=1), Allowance(0.7)),
        (budget(issue=1, attempt=0.5), Allowance(0.5)),
        (budget(issue=1, attempt=0.9), Allowance(0.7)),
        (budget(issue=0.2, tokens=150), Allowance(0, 0)),
        (budget(attempt=1, tokens=500), Allowance(1, 300)),
    ],
)
def test_an_attempt_may_use_what_is_left_of_either_budget(limits: Budget, left: Allowance) -> None:
    allowed = allowance_of(PAST, Evidence(), limits)
    assert (allowed.usd, allowed.tokens) == (
        None if left.usd is None else pytest.approx(left.usd),
        left.tokens,
    )


def test_the_tightest_of_two_allowances_counts() -> None:
    assert tightest(Allowance(1, None), Allowance(None, 5)) == Allowance(1, 5)
    assert tightest(Allowance(1, 9), Allowance(2, 5)) == Allowance(1, 5)


@pytest.mark.parametrize(
    ("limits", "over"),
    [
        (budget(), False),
        (budget(issue=0.31), False),
        (budget(issue=0.3), True),
        (budget(issue=0.2), True),
        (budget(tokens=200), True),
        (budget(tokens=201), False),
        (budget(attempt=0.01), False),
    ],
)
def test_nothing_is_begun_on_an_issue_whose_budget_is_used_up(
    limits: Budget,
    over: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert (used_up(PAST, Evidence(), limits) is not None) is over


def stopped(usd: float) -> AgentRun:
    return AgentRun(-15, timedelta(seconds=1), used(usd, 50), TimeLimit.BUDGET)


def known(limits: Budget, usd: float) -> Evidence:
    ran = Evidence(run=stopped(usd), change=Change("base", None, 0))
    return replace(ran, fault=used_up(PAST, ran, limits))


def test_an_attempt_that_passes_its_own_budget_ran_out_of_time() -> None:
    over = known(budget(issue=9, attempt=0.4), 0.5)
    assert classify(over) is Outcome.AGENT_TIMED_OUT
    told = "The agent was stopped when it had used more than its budget: $0.50 and 100 tokens."
    assert error_line(Outcome.AGENT_TIMED_OUT, over) == told


def test_an_attempt_that_passes_the_issues_budget_costs_none_and_a_person_is_asked() -> None:
    over = known(budget(issue=0.7, attempt=0.4), 0.5)
    assert classify(over) is Outcome.OVER_BUDGET
    assert over.fault
    assert over.fault.reason == (
        "The budget of this issue is used up: $0.80 and 300 tokens of $0.70."
        " Raise budget.issue in mulligan.yml, then put the label on again."
    )
    ended = Ended(Outcome.OVER_BUDGET, over.fault.reason, over.fault.budget)
    assert decide(ended, [], RetryPolicy()) == Escalate(reason=over.fault.reason)


def test_a_budget_that_fills_again_is_waited_for() -> None:
    assert isinstance(decide(Ended(Outcome.OVER_BUDGET), [], RetryPolicy()), WaitForBudget)


def test_fix_rounds_use_the_budget_of_their_attempt_and_of_their_issue() -> None:
    second = next_round(Evidence(run=stopped(0.25)))
    allowed = allowance_of(PAST, second, budget(issue=9, attempt=0.4))
    assert allowed.usd == pytest.approx(0.15)
    assert used_up(PAST, second, budget(issue=0.55))
    assert not used_up(PAST, second, budget(issue=0.56))


def test_fix_rounds_of_earlier_attempts_count() -> None:
    rounds = (FixRound(number=1, usage=used(0.5)), FixRound(number=2))
    meta = cost(1, 0.1).model_copy(update={"fix_rounds": rounds})
    assert spent_by([meta]) == Spent(0.6, 0)


def test_a_limit_of_tokens_is_named_with_that_of_dollars() -> None:
    fault = used_up(PAST, Evidence(), budget(issue=0.3, tokens=10))
    assert fault
    assert "of $0.30 and 10 tokens." in fault.reason
