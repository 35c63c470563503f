"""What may be used, and what follows when it is used up."""

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone

import pytest

from mulligan.config.settings import AllowanceSettings, Budget
from mulligan.domain.attempt import AgentRun, AttemptState, Change, TimeLimit, classify, next_round
from mulligan.domain.outcome import Escalate, Outcome, WaitForBudget
from mulligan.domain.result import AgentFacts, FixRound, WorkerResultMeta
from mulligan.domain.spending import UNREPORTED, Allowance, Run, Spent, bounded, spent_by, spent_on
from mulligan.implement.budget_meter import Used, may_go_on, spent_now, used_so_far, used_up
from mulligan.implement.decide import EndedAttempt, RetryPolicy, decide
from mulligan.implement.prompt.outcome_text import error_line
from world.attempts import REF, attempt

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


def test_a_run_uses_the_budget_of_the_day_on_which_it_began_in_utc() -> None:
    evening = datetime(2025, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-2)))
    assert Run(REF, 1, 0, evening).day == date(2025, 3, 2)


@pytest.mark.parametrize(
    ("claim", "bound", "counts"),
    [
        (used(999, 50), Allowance(), (999, 50, 50)),
        (used(999, 50), Allowance(usd=2.5), (2.5, 50, 50)),
        (used(1, 50), Allowance(usd=2.5, tokens=100), (1, 50, 50)),
        (used(1, 500), Allowance(usd=2.5, tokens=600), (1, 500, 100)),
        (used(1, 500), Allowance(tokens=400), (1, 400, 0)),
        (used(999), Allowance(usd=2.5, tokens=400), (2.5, None, None)),
        (used(None, 500), Allowance(usd=2.5, tokens=400), (None, 400, 0)),
        (used(999, 500), Allowance(0.0, 0), (0, 0, 0)),
    ],
)
def test_what_a_run_claims_counts_up_to_a_bound(
    claim: AgentFacts, bound: Allowance, counts: tuple[float | None, int | None, int | None]
) -> None:
    found = bounded(claim, bound)
    assert (found.cost_usd, found.input_tokens, found.output_tokens) == counts
    assert bound.covers(Spent(found.cost_usd or 0, sum(filter(None, counts[1:]))))


def test_the_larger_of_two_limits_is_none_if_one_is() -> None:
    assert Allowance(1, None).at_least(Allowance(2, 5)) == Allowance(2, None)
    assert Allowance(None, 7).at_least(Allowance(2, 5)) == Allowance(None, 7)


DAY = {"o/here": Spent(3.0, 3000), "o/there": Spent(4.0, 4000)}


def so_far(now: Spent = UNREPORTED) -> Used:
    return used_so_far(PAST, now, "o/here", DAY)


def daily(here: float | None = None, day: float | None = None, tokens: int | None = None) -> Budget:
    return Budget(
        repository_day=AllowanceSettings(usd=here), day=AllowanceSettings(usd=day, tokens=tokens)
    )


def test_what_was_used_is_added_up_for_every_budget() -> None:
    now = Spent(0.5, 7)
    assert so_far(now) == Used(now, Spent(0.8, 207), Spent(3.0, 3000), Spent(7.0, 7000))
    assert used_so_far((), UNREPORTED, "o/new", {}) == Used()


@pytest.mark.parametrize(
    ("limits", "now", "goes_on"),
    [
        (budget(), Spent(999, 999), True),
        (budget(attempt=0.5), Spent(0.5), True),
        (budget(attempt=0.5), Spent(0.51), False),
        (budget(issue=0.8), Spent(0.5), True),
        (budget(issue=0.8), Spent(0.51), False),
        (budget(issue=9, tokens=210), Spent(0, 11), False),
        (daily(here=3), UNREPORTED, True),
        (daily(here=2.99), UNREPORTED, False),
        (daily(day=7), UNREPORTED, True),
        (daily(day=6.99), UNREPORTED, False),
        (daily(here=3, tokens=6999), UNREPORTED, False),
    ],
)
def test_a_run_goes_on_while_it_is_within_every_budget(
    limits: Budget,
    now: Spent,
    goes_on: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert may_go_on(so_far(now), limits) is goes_on


@pytest.mark.parametrize(
    ("limits", "whose"),
    [
        (budget(), None),
        (budget(issue=0.31), None),
        (budget(issue=0.3), "issue"),
        (budget(issue=0.2), "issue"),
        (budget(tokens=200), "issue"),
        (budget(tokens=201), None),
        (budget(attempt=0.01), None),
        (daily(here=3.01, day=7.01), None),
        (daily(here=3), "repository_day"),
        (daily(day=7), "day"),
        (daily(here=9, day=9, tokens=7000), "day"),
    ],
)
def test_nothing_is_begun_when_a_budget_is_used_up(limits: Budget, whose: str | None) -> None:
    fault = used_up(so_far(), limits)
    assert (fault.budget if fault else None) == whose


def test_a_run_that_ended_may_have_used_the_last_cent() -> None:
    limits = daily(here=3, day=7)
    assert used_up(so_far(), limits)
    assert used_up(so_far(), limits, ran=True) is None


def test_a_budget_of_the_day_says_when_it_is_there_again() -> None:
    here, everywhere = (used_up(so_far(), limits) for limits in (daily(here=2), daily(day=2)))
    assert here
    assert here.reason == (
        "The budget of this repository for the day is used up: $3.00 and 3,000 tokens of $2.00."
        " The next day begins at midnight UTC; budget.repository_day in mulligan.yml "
        "sets the limit."
    )
    assert everywhere
    assert "The budget of the day is used up: $7.00 and 7,000 tokens" in everywhere.reason


@pytest.mark.parametrize(
    ("limits", "own", "eats"),
    [
        (daily(day=6), Spent(3.0), False),
        (daily(day=6), Spent(3.01), True),
        (daily(day=99, tokens=7000), Spent(0, 3501), True),
        (daily(here=3), Spent(1.6), True),
        (daily(here=3), Spent(1.5), False),
        (budget(issue=0.2), Spent(9.0), False),
    ],
)
def test_an_issue_eats_a_day_that_it_has_used_more_than_half_of(
    limits: Budget,
    own: Spent,
    eats: bool,  # noqa: FBT001 - a column of the table
) -> None:
    fault = used_up(replace(so_far(), own_day=own), limits)
    assert fault
    assert fault.eats_budget is eats


def test_attempts_count_for_the_day_on_which_they_began() -> None:
    day = PAST[0].started_at.date()
    late = PAST[1].model_copy(update={"started_at": PAST[1].started_at + timedelta(days=1)})
    assert spent_on(day, (PAST[0], late)) == Spent(0.1, 200)


def stopped(usd: float) -> AgentRun:
    return AgentRun(-15, timedelta(seconds=1), used(usd, 50), TimeLimit.BUDGET)


def known(limits: Budget, usd: float) -> AttemptState:
    ran = AttemptState(run=stopped(usd), change=Change("base", None, 0))
    used = used_so_far(PAST, spent_now(ran), "o/here", {})
    return replace(ran, fault=used_up(used, limits, ran=True))


def test_an_attempt_that_passes_its_own_budget_ran_out_of_time() -> None:
    over = known(budget(issue=9, attempt=0.4), 0.5)
    assert classify(over) is Outcome.AGENT_TIMED_OUT
    told = "Mulligan stopped the agent because it exceeded its budget: $0.50 and 100 tokens."
    assert error_line(Outcome.AGENT_TIMED_OUT, over) == told


def test_an_attempt_that_passes_the_issues_budget_costs_none_and_a_person_is_asked() -> None:
    over = known(budget(issue=0.7, attempt=0.4), 0.5)
    assert classify(over) is Outcome.OVER_BUDGET
    assert over.fault
    assert over.fault.reason == (
        "The budget of this issue is used up: $0.80 and 300 tokens of $0.70."
        " Raise budget.issue in mulligan.yml, then add the label again."
    )
    ended = EndedAttempt(Outcome.OVER_BUDGET, over.fault.reason, over.fault.budget)
    assert decide(ended, [], RetryPolicy()) == Escalate(reason=over.fault.reason)


def test_a_budget_that_fills_again_is_waited_for() -> None:
    assert isinstance(decide(EndedAttempt(Outcome.OVER_BUDGET), [], RetryPolicy()), WaitForBudget)


def test_fix_rounds_use_the_budget_of_their_attempt_and_of_their_issue() -> None:
    second = spent_now(next_round(AttemptState(run=stopped(0.25))))
    assert not may_go_on(so_far(second.plus(Spent(0.16))), budget(issue=9, attempt=0.4))
    assert used_up(so_far(second), budget(issue=0.55))
    assert not used_up(so_far(second), budget(issue=0.56))


def test_fix_rounds_of_earlier_attempts_count() -> None:
    rounds = (FixRound(number=1, usage=used(0.5)), FixRound(number=2))
    meta = cost(1, 0.1).model_copy(update={"fix_rounds": rounds})
    assert spent_by([meta]) == Spent(0.6)


def test_a_limit_of_tokens_is_named_with_that_of_dollars() -> None:
    fault = used_up(so_far(), budget(issue=0.3, tokens=10))
    assert fault
    assert "of $0.30 and 10 tokens." in fault.reason
