"""What follows an attempt: a table of every outcome, and walks that must end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.operator import Limits
from mulligan.config.policy import Policy
from mulligan.domain.attempt import SHUTDOWN
from mulligan.domain.events import Decided
from mulligan.domain.outcome import (
    FREE,
    NO_OUTPUT,
    Decision,
    Escalate,
    OpenPullRequest,
    Outcome,
    Retry,
    StandDown,
    WaitForBudget,
    WaitForPullRequest,
)
from mulligan.domain.result import AgentFacts, Rest, RestKind
from mulligan.domain.status import IssueStatus
from mulligan.implement.decide import (
    ClosedByOthers,
    EndedAttempt,
    RetryPolicy,
    count_spent,
    decide,
    epoch_of,
    reconsider,
    round_of,
)
from mulligan.implement.prompt.outcome_text import DIED
from world.attempts import REF, attempt, check, red

pytestmark = pytest.mark.pure

O = Outcome  # noqa: E741 - the table is read by columns
AGENT = (O.CHECKS_FAILED, O.SCOPE_VIOLATION, O.REJECTED, O.AGENT_CRASHED)
"""What the agent does wrong, without a limit of its own."""

DEATH = EndedAttempt(O.INTERRUPTED, DIED)
STOP = EndedAttempt(O.INTERRUPTED, SHUTDOWN)
NINE = datetime(2025, 3, 4, 9, tzinfo=UTC)
FAULT = EndedAttempt(O.INFRASTRUCTURE, "GitHub is away.")
TIMEOUT = EndedAttempt(O.AGENT_TIMED_OUT, "Attempt timed out after 300 seconds.")
SILENT = EndedAttempt(O.ZERO_COMMIT, "The agent changed nothing (zero commits).")
EMPTY = EndedAttempt(
    O.ZERO_DIFF, "The agent made 2 commits, but the files equal the base branch (zero diff)."
)
RED = EndedAttempt(O.CHECKS_FAILED, "Check 'pytest' failed with exit code 1.")

policies = st.builds(
    RetryPolicy,
    max_issue_attempts=st.integers(1, 10),
    max_no_output_attempts=st.integers(1, 10),
    consecutive_timeouts=st.integers(1, 4),
    interruptions=st.integers(0, 4),
    infrastructure_retries=st.integers(0, 6),
)
ends = st.builds(EndedAttempt, st.sampled_from(Outcome), st.sampled_from(["", SHUTDOWN, "Why."]))


def after(*epoch: EndedAttempt, policy: RetryPolicy | None = None) -> Decision:
    return decide(epoch[-1], epoch[:-1], policy or RetryPolicy())


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (O.SUCCEEDED, OpenPullRequest),
        (O.CANCELLED, StandDown),
        (O.OVER_BUDGET, WaitForBudget),
        (O.BLOCKED, Escalate),
        (O.NOTHING_TO_DO, Escalate),
        (O.DENIED, Escalate),
        (O.MISCONFIGURED, Escalate),
    ],
)
@pytest.mark.parametrize("history", [(), (RED,), (RED, RED), (DEATH,) * 9, (FAULT,) * 9])
@pytest.mark.parametrize("attempts", [1, 3])
def test_some_outcomes_decide_alone(
    outcome: Outcome, kind: type[Decision], history: Sequence[EndedAttempt], attempts: int
) -> None:
    policy = RetryPolicy(max_issue_attempts=attempts)
    decision = decide(EndedAttempt(outcome, "Why it ended."), history, policy)
    assert type(decision) is kind
    assert kind is OpenPullRequest or decision.reason == "Why it ended."


def test_the_decision_to_publish_names_the_checks_that_passed() -> None:
    meta = attempt(1, O.SUCCEEDED, "", check("lint", passed=True))
    assert after(EndedAttempt.of(meta)) == OpenPullRequest(reason="The check 'lint' passed.")


def test_a_reason_that_was_not_recorded_is_told_by_the_outcome() -> None:
    assert after(EndedAttempt(O.CANCELLED)) == StandDown(reason="Withdrawn.")
    assert after(EndedAttempt(O.OVER_BUDGET)) == WaitForBudget(reason="Budget used up.")


def resting(kind: RestKind, until: datetime = NINE) -> Rest:
    return Rest(kind=kind, since=NINE, at=NINE, until=until)


@pytest.mark.parametrize("outcome", [O.DENIED, O.MISCONFIGURED, O.INFRASTRUCTURE])
@pytest.mark.parametrize("kind", [kind for kind in RestKind if kind is not RestKind.ASKED])
def test_an_agent_that_fails_on_every_issue_calls_nobody_to_one(
    outcome: Outcome, kind: RestKind
) -> None:
    failed = EndedAttempt(outcome, "The key is refused.", rest=resting(kind))
    reason = "Not caused by this issue. The key is refused."
    for history in ((), (failed,) * 9, (FAULT,) * 9, (RED, RED, RED)):
        wait = Retry(reason=reason, backoff_step=1, not_before=NINE, agent_rests=True)
        assert after(*history, failed) == wait
    crashed = EndedAttempt(O.AGENT_CRASHED, "It crashed.", rest=resting(kind))
    assert isinstance(after(crashed, crashed, crashed), Escalate)


def test_a_failure_on_every_issue_does_not_count_as_one_of_this_one() -> None:
    failed = EndedAttempt(O.INFRASTRUCTURE, rest=resting(RestKind.LIMITED))
    assert after(*(failed,) * 9, FAULT) == after(FAULT)


def test_the_time_that_a_service_named_is_waited_for() -> None:
    until = datetime(2025, 3, 4, 9, tzinfo=UTC)
    usage = AgentFacts(kind="x", rest=resting(RestKind.ASKED, until))
    meta = attempt(1, O.INFRASTRUCTURE).model_copy(update={"agent": usage})
    decision = after(EndedAttempt.of(meta))
    assert isinstance(decision, Retry)
    assert (decision.backoff_step, decision.not_before) == (1, until)


def test_a_fault_around_the_agent_gives_no_further_attempt() -> None:
    used_up = after(RED, RED, FAULT, policy=RetryPolicy(max_issue_attempts=2))
    assert used_up == Escalate(reason="All 2 attempts failed. The last one: GitHub is away.")


@pytest.mark.parametrize("attempts", range(1, 6))
@pytest.mark.parametrize("spent", range(1, 6))
@pytest.mark.parametrize("outcome", sorted({*AGENT, *NO_OUTPUT}))
def test_what_the_agent_did_is_retried_until_the_attempts_are_used_up(
    outcome: Outcome, spent: int, attempts: int
) -> None:
    policy = RetryPolicy(max_issue_attempts=attempts, max_no_output_attempts=attempts)
    decision = after(*[EndedAttempt(outcome, "Why.")] * spent, policy=policy)
    assert isinstance(decision, Retry if spent < attempts else Escalate)
    assert not isinstance(decision, Retry) or decision.backoff_step == 0


@pytest.mark.parametrize(
    ("epoch", "policy", "decision"),
    [
        (
            (RED,),
            RetryPolicy(),
            Retry(reason="Check 'pytest' failed with exit code 1. 2 attempts left."),
        ),
        (
            (RED, SILENT),
            RetryPolicy(),
            Retry(reason="The agent changed nothing (zero commits). 1 attempt left."),
        ),
        (
            (RED, SILENT, RED),
            RetryPolicy(),
            Escalate(
                reason="All 3 attempts failed. The last one: Check 'pytest' failed with exit "
                "code 1."
            ),
        ),
        (
            (RED,),
            RetryPolicy(max_issue_attempts=1),
            Escalate(reason="The only attempt failed: Check 'pytest' failed with exit code 1."),
        ),
        (
            (STOP,),
            RetryPolicy(),
            Retry(reason="Mulligan was shut down during the attempt. 3 attempts left."),
        ),
        (
            (DEATH,),
            RetryPolicy(),
            Retry(reason="Mulligan crashed during the attempt. 3 attempts left."),
        ),
        (
            (EndedAttempt(O.AGENT_TIMED_OUT, "Timed out. Last observed activity: pytest -x"),),
            RetryPolicy(),
            Retry(reason="Timed out. Last observed activity: pytest -x. 2 attempts left."),
        ),
        (
            (FAULT,),
            RetryPolicy(),
            Retry(reason="Not caused by the agent. GitHub is away.", backoff_step=1),
        ),
        (
            (FAULT, FAULT),
            RetryPolicy(infrastructure_retries=1),
            Escalate(reason="The environment failed 2 times. The last failure: GitHub is away."),
        ),
        (
            (FAULT,),
            RetryPolicy(infrastructure_retries=0),
            Escalate(reason="The environment failed 1 time. The last failure: GitHub is away."),
        ),
        (
            (SILENT, EMPTY),
            RetryPolicy(max_no_output_attempts=2),
            Escalate(
                reason="2 attempts changed nothing. "
                "The agent made 2 commits, but the files equal the base branch (zero diff)."
            ),
        ),
        (
            (TIMEOUT, TIMEOUT),
            RetryPolicy(),
            Escalate(reason="2 attempts in a row timed out. Attempt timed out after 300 seconds."),
        ),
    ],
)
def test_decisions_read_well(
    epoch: tuple[EndedAttempt, ...], policy: RetryPolicy, decision: Decision
) -> None:
    assert after(*epoch, policy=policy) == decision


@pytest.mark.parametrize("end", [".", "!", "?", "…", ")"])
def test_a_reason_that_ends_a_sentence_gets_no_full_stop(end: str) -> None:
    decision = after(EndedAttempt(O.CHECKS_FAILED, f"It is red{end}"))
    assert decision == Retry(reason=f"It is red{end} 2 attempts left.")


def test_attempts_on_a_review_share_the_epoch_with_the_one_that_was_published() -> None:
    decision = after(EndedAttempt(O.SUCCEEDED), RED, policy=RetryPolicy(max_issue_attempts=2))
    assert decision == Escalate(
        reason=f"No attempt is left (2 used). The last one failed: {RED.reason}"
    )


EATEN = EndedAttempt(O.OVER_BUDGET, "The budget of the day is used up.", "day", eats_budget=True)
SHARED = replace(EATEN, eats_budget=False)


@pytest.mark.parametrize(
    ("epoch", "asks"),
    [
        ((EATEN,), False),
        ((SHARED, SHARED, SHARED), False),
        ((EATEN, SHARED), False),
        ((EATEN, EATEN), True),
        ((EATEN, SHARED, FAULT, RED, EATEN), True),
    ],
)
def test_an_issue_that_eats_the_day_twice_is_handed_to_a_person(
    epoch: tuple[EndedAttempt, ...],
    asks: bool,  # noqa: FBT001 - a column of the table
) -> None:
    plea = Escalate(
        reason="This issue used up most of budget.day on 2 days. Raise budget.day in mulligan.yml, "
        "or split the issue."
    )
    waits = WaitForBudget(reason="The budget of the day is used up.")
    assert after(*epoch) == (plea if asks else waits)


ROOMY = RetryPolicy(max_issue_attempts=10, max_no_output_attempts=2)


@pytest.mark.parametrize(
    ("epoch", "kind"),
    [
        ((TIMEOUT,), Retry),
        ((TIMEOUT, RED, TIMEOUT), Retry),
        ((TIMEOUT, STOP, TIMEOUT), Escalate),
        ((TIMEOUT, FAULT, DEATH, TIMEOUT), Escalate),
        ((TIMEOUT, STOP), Retry),
        ((SILENT, RED), Retry),
        ((SILENT, RED, EMPTY), Escalate),
        ((SILENT, EMPTY, RED), Retry),
        ((SILENT, FAULT, STOP), Retry),
        ((DEATH,) * 3, Retry),
        ((STOP,) * 50, Retry),
    ],
)
def test_limits_of_their_own(epoch: tuple[EndedAttempt, ...], kind: type[Decision]) -> None:
    assert type(after(*epoch, policy=ROOMY)) is kind


@pytest.mark.parametrize(
    ("epoch", "spent"),
    [
        ((), 0),
        ((RED, TIMEOUT, SILENT), 3),
        ((FAULT, STOP, EndedAttempt(O.DENIED), EndedAttempt(O.CANCELLED)), 0),
        ((DEATH,) * 3, 0),
        ((DEATH,) * 5, 2),
        ((DEATH, STOP) * 4, 1),
        ((EndedAttempt(O.SUCCEEDED), EndedAttempt(O.BLOCKED)), 2),
    ],
)
def test_what_costs_an_attempt(epoch: tuple[EndedAttempt, ...], spent: int) -> None:
    assert count_spent(epoch, RetryPolicy()) == spent


def test_deaths_beyond_their_limit_use_attempts_up() -> None:
    assert isinstance(after(*[DEATH] * 5), Retry)
    used_up = "Mulligan crashed 6 times during this issue, and no attempt is left."
    assert after(*[DEATH] * 6) == Escalate(reason=used_up)


def test_a_limit_lowered_meanwhile_holds_at_once() -> None:
    lowered = RetryPolicy(max_issue_attempts=1)
    assert isinstance(after(RED, RED, FAULT, policy=lowered), Escalate)
    assert isinstance(after(RED, RED, STOP, policy=lowered), Escalate)


def test_each_infrastructure_fault_waits_longer() -> None:
    for count in range(1, 6):
        decision = after(*[FAULT] * count)
        assert isinstance(decision, Retry)
        assert decision.backoff_step == count


@given(ends, st.lists(ends, max_size=30), policies)
def test_a_decision_is_always_made_and_always_the_same(
    last: EndedAttempt, history: list[EndedAttempt], policy: RetryPolicy
) -> None:
    decision = decide(last, history, policy)
    assert decision == decide(last, list(history), policy)
    assert decision.reason


@given(epoch=st.lists(ends, min_size=1, max_size=8), policy=policies)
def test_all_attempts_failed_only_if_all_did(
    epoch: list[EndedAttempt], policy: RetryPolicy
) -> None:
    found = after(*epoch, policy=policy)
    if found.reason.startswith("All "):
        assert O.SUCCEEDED not in {ended.outcome for ended in epoch}
        assert found.reason.startswith(f"All {count_spent(epoch, policy)} attempts failed.")


def test_after_an_attempt_that_succeeded_not_all_failed() -> None:
    merged = EndedAttempt(O.SUCCEEDED, "")
    found = after(merged, EMPTY, RED, policy=RetryPolicy(max_issue_attempts=3))
    assert isinstance(found, Escalate)
    assert found.reason.startswith("No attempt is left (3 used).")


@given(st.lists(ends, min_size=60, max_size=60), policies)
def test_no_path_has_more_attempts_than_allowed(
    walk: list[EndedAttempt], policy: RetryPolicy
) -> None:
    epoch = list[EndedAttempt]()
    for ended in walk:
        epoch.append(ended)
        if not isinstance(decide(ended, epoch[:-1], policy), Retry):
            break
    outcomes = [ended.outcome for ended in epoch]
    stops = sum(ended.outcome is O.INTERRUPTED and not ended.is_death for ended in epoch)
    assert count_spent(epoch, policy) <= policy.max_issue_attempts
    assert sum(outcome not in FREE for outcome in outcomes) <= policy.max_issue_attempts
    assert sum(outcome in NO_OUTPUT for outcome in outcomes) <= policy.max_no_output_attempts
    assert outcomes.count(O.INFRASTRUCTURE) <= policy.infrastructure_retries + 1
    bound = policy.max_issue_attempts + policy.interruptions + policy.infrastructure_retries + 1
    assert len(epoch) - stops <= bound


def test_the_limits_come_from_the_policy_and_the_operator() -> None:
    limits = Limits(consecutive_timeouts=4, interruptions=5, infrastructure_retries=6)
    assert RetryPolicy.of(Policy(max_issue_attempts=7), limits) == RetryPolicy(7, 7, 4, 5, 6)
    policy = Policy(max_issue_attempts=7, max_no_output_attempts=2)
    assert RetryPolicy.of(policy, limits).max_no_output_attempts == 2


def test_an_attempt_is_judged_by_its_record() -> None:
    assert EndedAttempt.of(red(1)) == EndedAttempt(
        O.CHECKS_FAILED, "Check 'pytest' failed with exit code 1."
    )
    day = {"budget": "day", "eats_budget": True}
    assert EndedAttempt.of(red(1).model_copy(update=day)) == EndedAttempt(
        O.CHECKS_FAILED, RED.reason, "day", eats_budget=True
    )


def test_only_the_attempts_of_the_epoch_count() -> None:
    earlier, later = red(1), attempt(2, O.ZERO_COMMIT).model_copy(update={"epoch": 2})
    status = IssueStatus(REF, epoch=2)
    assert epoch_of(status, [earlier, later]) == [EndedAttempt.of(later)]


def test_attempts_for_a_review_do_not_count_those_before_it() -> None:
    history = [red(1), red(2), red(3)]
    ended = [EndedAttempt.of(each) for each in history]
    status = IssueStatus(REF, epoch=1)
    assert round_of(status, history) == ended
    assert round_of(replace(status, review_start=2), history) == ended[2:]
    assert round_of(replace(status, epoch=2), history) == []


def test_an_issue_that_others_close_waits_for_them() -> None:
    waits = Decided(decision=WaitForPullRequest(reason="#8 closes it."))
    assert reconsider(ClosedByOthers("#8 closes it.")) == waits
