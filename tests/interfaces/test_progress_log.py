"""What is told of an issue's life while it happens, event by event."""

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console
from rich.text import Text

from mulligan.domain.command import Verb
from mulligan.domain.events import (
    EVENT_TYPES,
    AgentFinished,
    AgentStarted,
    AttemptCompleted,
    AttemptContextAssembled,
    AttemptContextDelivered,
    AttemptContextTruncated,
    AttemptStarted,
    Authorised,
    BaselineRecorded,
    BroughtUpToDate,
    CheckFinished,
    CheckSkipped,
    CiFailed,
    CiPassed,
    CommandReceived,
    Conflicted,
    Decided,
    Drafted,
    Escalated,
    Event,
    FailedCheck,
    FixRoundStarted,
    HumanResponded,
    IssueSeen,
    LearningsAccepted,
    LearningsDropped,
    ProofFinished,
    Published,
    PublishStarted,
    Resolution,
    Resolved,
    Restored,
    RetryContextAssembled,
    RetryScheduled,
    ReviewFinished,
    ReviewReceived,
    ReviewsWithdrawn,
    StoodDown,
    Waiting,
    WorktreeReset,
)
from mulligan.domain.outcome import (
    Decision,
    Escalate,
    OpenPullRequest,
    Outcome,
    Retry,
    StandDown,
    WaitForBudget,
)
from mulligan.domain.result import (
    AttemptTimes,
    CheckKind,
    CheckResult,
    OnBase,
    Proof,
    ProofState,
    SkippedCheck,
    VerifierOutcome,
)
from mulligan.domain.retention import remnant_of
from mulligan.domain.status import IssueStatus, SeenText
from mulligan.implement.prompt.outcome_text import NO_CHECK
from mulligan.interfaces.cli.work import ProgressLog, event_line
from world.attempts import MESSAGE, REF, TEST_ID, attempt, check, failing_test
from world.effects import EFFECTS

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 4, 12, 30, 5, tzinfo=UTC)
FIRST = IssueStatus(REF, text=SeenText("Mend it"), epoch=1, attempt=1, number=1)
SECOND = replace(FIRST, attempt=2, number=2)
STARTED = AttemptStarted(attempt=4, number=4, worker="w", position=2, most=3)
OLD_STARTED = AttemptStarted(attempt=1, number=1, worker="w")
RESET = WorktreeReset(base_sha="0123456789abcdef", start_sha="0123456789abcdef")


TIMES = AttemptTimes(waited_ms=20_000, agent_ms=10_000, checks_ms=34_000, set_up_reused=True)


def came_to(outcome: Outcome, decision: Decision | None = None) -> IssueStatus:
    return replace(FIRST, outcome=outcome, decision=decision)


def finished(exit_code: int | None = 0, stopped_by: str | None = None) -> AgentFinished:
    return AgentFinished(exit_code=exit_code, stopped_by=stopped_by, duration_ms=61_240)


def assembled(attempts: int) -> RetryContextAssembled:
    return RetryContextAssembled(
        prior_attempts_count=attempts, context_size_bytes=2176, feedback_sources=()
    )


CUT = AttemptContextTruncated(
    budget=1,
    original=2,
    truncated=1,
    sections=("previous_changes", "check [x]"),
    reasons=("6 lines over the budget of 1 bytes", "9 bytes over max_digest_chars (2000)"),
)
PULL = Published(pull_request="https://x.example/pull/[7]", number=7, head_sha="c0ffee")


def marked(mark: str, *, passed: bool = False) -> CheckResult:
    return check("a", passed=passed).model_copy(update={mark: True})


UNVERIFIED = OpenPullRequest(reason=NO_CHECK)


def baseline(result: CheckResult | None) -> BaselineRecorded:
    return BaselineRecorded(key="k", start_sha="c0ffee", name="a", check=result)


SET_UP = marked("is_set_up").model_copy(
    update={"name": "setup", "command": "pip install [all]", "digest": "no network\n[gave up]"}
)


TOLD: list[tuple[IssueStatus, Event, str]] = [
    (
        FIRST,
        HumanResponded(key="comment:1", command=Verb.FIX, actor="ada", answer="It is taken up."),
        "ada: /mulligan fix  It is taken up.",
    ),
    (
        FIRST,
        HumanResponded(key="c", command=Verb.MISTYPED, actor="ada", answer="There is no `x`."),
        "ada: There is no `x`.",
    ),
    (
        FIRST,
        HumanResponded(key="c", command=Verb.SKIP, actor="ada", answer="ada left it out."),
        "ada: /mulligan skip",
    ),
    (
        FIRST,
        HumanResponded(key="c", command=Verb.RETRY, actor="", answer="It is taken up."),
        "operator: /mulligan retry  It is taken up.",
    ),
    (
        FIRST,
        Resolved(
            resolution=Resolution.SKIPPED,
            reason="It was merged.",
            total_attempts=1,
            total_duration_ms=1,
        ),
        "finished: It was merged.",
    ),
    (FIRST, STARTED, "attempt 2 of 3"),
    (FIRST, OLD_STARTED, "attempt 1"),
    (
        SECOND,
        WorktreeReset(base_sha="b", start_sha="0123456789abc"),
        "  worktree reset to the pull request, at 0123456789",
    ),
    (
        SECOND,
        ReviewReceived(reviews=(1,), author="w[b]", at=NOON, remarks=()),
        "changes are requested by w[b]",
    ),
    (SECOND, ReviewsWithdrawn(reviews=(1,)), "a review no longer requests changes"),
    (
        SECOND,
        Conflicted(base_sha="b", head_sha="h"),
        "the pull request has conflicts",
    ),
    (
        SECOND,
        CiFailed(head_sha="h", checks=(FailedCheck(name="[x]"), FailedCheck(name="y"))),
        "fails on GitHub  [x], y",
    ),
    (SECOND, CiPassed(head_sha="h", count=1), "1 check passed on GitHub"),
    (
        SECOND,
        BroughtUpToDate(base_sha="0123456789abcdef", head_sha="h"),
        "the base branch, at 0123456789, is merged into the pull request",
    ),
    (
        SECOND,
        Drafted(pull_request="https://x/pull/3", number=3, head_sha="h", attempt=2),
        "  → draft, not verified: https://x/pull/3",
    ),
    (SECOND, RESET, "  worktree reset to the base branch, at 0123456789"),
    (SECOND, assembled(1), "  the prompt includes 1 earlier attempt (2,176 bytes)"),
    (SECOND, assembled(2), "  the prompt includes 2 earlier attempts (2,176 bytes)"),
    (
        SECOND,
        CUT,
        (
            "  the prompt omits previous changes, 6 lines over the budget of 1 bytes; "
            "check [x], 9 bytes over max_digest_chars (2000)"
        ),
    ),
    (FIRST, finished(), "  agent worked for 1m1s"),
    (
        FIRST,
        AttemptCompleted(
            meta=attempt(1, Outcome.INFRASTRUCTURE).model_copy(update={"set_up": SET_UP})
        ),
        "  ✗ setup (0.0 s): pip install [all]\n│ no network\n│ [gave up]",
    ),
    (
        FIRST,
        AttemptCompleted(meta=attempt(1, Outcome.SUCCEEDED).model_copy(update={"times": TIMES})),
        "  Total time 1m4s: 20s waiting to start, 10s in the agent, 34s in checks",
    ),
    (
        FIRST,
        CheckFinished(
            check=check("a", passed=True).model_copy(update={"runs": 3, "wall_ms": 34_000})
        ),
        "  ✓ a (3 runs, 34.0 s)",
    ),
    (FIRST, finished(3), "  agent worked for 1m1s, exit code 3"),
    (FIRST, finished(-15, "timeout"), "  agent stopped by timeout after 1m1s"),
    (FIRST, CheckFinished(check=check("types", passed=True)), "  ✓ types (0.0 s)"),
    (
        FIRST,
        CheckSkipped(check=SkippedCheck(name="[web]", kind=CheckKind.TEST, command="x")),
        "  – [web] (not run: the change touches none of its paths)",
    ),
    (FIRST, CheckFinished(check=check("[types]")), "  ✗ [types] (0.0 s)"),
    (FIRST, CheckFinished(check=check("a", required=False)), "  ✗ (not required) a (0.0 s)"),
    (
        FIRST,
        CheckFinished(
            check=marked("preexisting").model_copy(
                update={"findings": (), "known": failing_test().findings}
            )
        ),
        f"  ✗ (as before the change) a (0.0 s): {TEST_ID} - {MESSAGE}",
    ),
    (
        FIRST,
        CheckFinished(
            check=check("a").model_copy(
                update={"on_base": OnBase.CANNOT_RUN, "digest": "sh: x: not found\nIt ends"}
            )
        ),
        "  ✗ (cannot run without the change either) a (0.0 s): sh: x: not found",
    ),
    (FIRST, CheckFinished(check=marked("flaky", passed=True)), "  ✓ a (0.0 s), flaky"),
    (FIRST, baseline(check("a")), "  check 'a' fails without the change"),
    (FIRST, baseline(check("a", passed=True)), "  check 'a' passes without the change"),
    (FIRST, baseline(None), "  check 'a' could not run without the change"),
    (FIRST, FixRoundStarted(number=1, most=2, failed=("a",)), "  fix round 1 of 2"),
    (FIRST, ReviewFinished(verdict=VerifierOutcome.PASS), "  the reviewer answered PASS"),
    (
        FIRST,
        ReviewFinished(verdict=VerifierOutcome.HARD_FAIL, feedback="Not\nasked"),
        "  the reviewer answered HARD_FAIL: Not asked",
    ),
    (FIRST, ReviewFinished(verdict=VerifierOutcome.PASS, unreadable="No answer."), "  No answer."),
    (
        FIRST,
        CheckFinished(
            check=check("proof").model_copy(update={"is_proof": True, "digest": "None.\n- a"})
        ),
        "  ✗ None.",
    ),
    (
        FIRST,
        CheckFinished(check=failing_test()),
        f"  ✗ pytest (0.0 s): {TEST_ID} - {MESSAGE}",
    ),
    (
        replace(came_to(Outcome.SUCCEEDED, UNVERIFIED), is_unverified=True),
        Decided(decision=UNVERIFIED),
        "  Not verified: No check is configured: nothing was verified.",
    ),
    (
        came_to(Outcome.SUCCEEDED),
        Decided(decision=OpenPullRequest(reason="No test verified the change.")),
        "  Succeeded: No test verified the change.",
    ),
    (
        came_to(Outcome.CHECKS_FAILED),
        Decided(decision=Retry(reason="Check [a]\nfailed. 2 attempts left.")),
        "  Checks failed → retry: Check [a] failed. 2 attempts left.",
    ),
    (
        came_to(Outcome.ZERO_DIFF),
        Decided(decision=Escalate(reason="All 3 attempts failed.")),
        "  Zero diff → needs human review (HITL): All 3 attempts failed.",
    ),
    (
        came_to(Outcome.CANCELLED),
        Decided(decision=StandDown(reason="Its label was removed.")),
        "  Withdrawn → stopped: Its label was removed.",
    ),
    (
        came_to(Outcome.OVER_BUDGET),
        Decided(decision=WaitForBudget(reason="5 USD spent.")),
        "  Budget used up → waits: 5 USD spent.",
    ),
    (FIRST, Decided(decision=Escalate(reason="Why.")), "  Over → needs human review (HITL): Why."),
    (
        came_to(Outcome.INFRASTRUCTURE, Retry(reason="No disk.", backoff_step=1)),
        RetryScheduled(due=NOON, reason="No disk."),
        "  not before 12:30:05 UTC",
    ),
    (FIRST, Waiting(until=NOON, reason="5 USD spent."), "  not before 2025-03-04 12:30 UTC"),
    (FIRST, PULL, "  → pull request https://x.example/pull/[7]"),
    (FIRST, Escalated(reason="x", comment="https://x.example/1"), "  → https://x.example/1"),
    (FIRST, StoodDown(reason="It was closed."), "  → stopped: It was closed."),
    (FIRST, Restored(source="labels"), "the ledger was lost: restored from labels"),
]
UNTOLD: list[tuple[IssueStatus, Event]] = [
    (FIRST, IssueSeen(title="Mend it")),
    (FIRST, Authorised(act="labeled:1", actor="ann", act_at=NOON)),
    (FIRST, RESET),
    (FIRST, AttemptContextAssembled(manifest={}, manifest_hash="m", inputs_hash="i")),
    (
        FIRST,
        AttemptContextDelivered(delivered_hash="d", manifest_hash="m", prompt_artifact="prompt.md"),
    ),
    (FIRST, AgentStarted(agent="command")),
    (
        FIRST,
        ProofFinished(proof=Proof(state=ProofState.PROVED, tests=("a",), count=1, check="x")),
    ),
    (FIRST, AttemptCompleted(meta=attempt(1, Outcome.SUCCEEDED))),
    *((FIRST, effect) for effect in EFFECTS),
    (FIRST, PublishStarted(head_sha="c0ffee")),
    (came_to(Outcome.CHECKS_FAILED, Retry(reason="x")), RetryScheduled(due=NOON, reason="x")),
    (came_to(Outcome.CANCELLED, StandDown(reason="x")), StoodDown(reason="x")),
    (FIRST, CommandReceived(key="comment:1", command=Verb.RETRY, at=NOON)),
    (FIRST, remnant_of(FIRST, ())),
    (FIRST, LearningsAccepted(facts=())),
    (FIRST, LearningsDropped(facts=("x",))),
]
"""What a line before or after it says already, or nobody needs while waiting."""


@pytest.mark.parametrize(("status", "event", "line"), TOLD, ids=lambda value: type(value).__name__)
def test_an_event_that_a_person_cares_for_is_one_line(
    status: IssueStatus, event: Event, line: str
) -> None:
    told = event_line(status, event)
    assert told
    assert Text.from_markup(told).plain == line


@pytest.mark.parametrize(("status", "event"), UNTOLD, ids=lambda value: type(value).__name__)
def test_the_others_are_passed_over(status: IssueStatus, event: Event) -> None:
    assert event_line(status, event) is None


def test_no_kind_of_event_is_left_out_of_the_tables() -> None:
    shown = {type(event) for _, event, _ in TOLD} | {type(event) for _, event in UNTOLD}
    assert shown == set(EVENT_TYPES)


def told(width: int, *heard: tuple[IssueStatus, Event]) -> list[str]:
    printed = io.StringIO()
    story = ProgressLog(Console(file=printed, width=width, highlight=False))
    for status, event in heard:
        story.on_event(status, event)
    return printed.getvalue().splitlines()


def test_the_lines_of_an_issue_stand_below_its_title() -> None:
    other = replace(FIRST, issue=replace(REF, number=13), text=SeenText("[red]:bug: of\n@zoe"))
    ended, long = RetryScheduled(due=NOON, reason="r"), "Check 'types' failed."
    story = (
        *((FIRST, STARTED), (FIRST, finished()), (other, OLD_STARTED), (FIRST, finished(1))),
        *((other, finished()), (other, ended), (FIRST, Decided(decision=Retry(reason=long)))),
    )
    assert told(60, *story) == [
        "",
        "octo/almanac#12  Mend it",
        "  attempt 2 of 3",
        "    agent worked for 1m1s",
        "",
        "octo/almanac#13  [red]:bug: of @zoe",
        "  attempt 1",
        "  octo/almanac#12    agent worked for 1m1s, exit code 1",
        "  octo/almanac#13    agent worked for 1m1s",
        "",
        "octo/almanac#12  Mend it",
        "    Over → retry: Check 'types' failed.",
    ]


def test_an_issue_of_which_nothing_is_told_has_no_title() -> None:
    assert told(100, *UNTOLD) == []


def test_what_does_not_fit_stands_further_in() -> None:
    retry = Decided(decision=Retry(reason="Check 'types' failed with exit code 1. 2 left."))
    assert told(40, (came_to(Outcome.CHECKS_FAILED), retry))[2:] == [
        "    Checks failed → retry: Check",
        "      'types' failed with exit code 1. 2",
        "      left.",
    ]
