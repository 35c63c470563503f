"""What a pass says at its end: what came of each issue, its cost, and what was not verified."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from mulligan.domain.events import AttemptCompleted, AttemptStarted, Event, Published
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import OpenPullRequest, Outcome
from mulligan.domain.recorded_effects import NO_EFFECTS, PublicationDelayed
from mulligan.domain.result import (
    AgentFacts,
    CheckKind,
    CheckResult,
    OnBase,
    Proof,
    ProofState,
    SkippedCheck,
    WorkerResultMeta,
)
from mulligan.domain.status import IssueStatus, Phase, PullStatus, SeenText
from mulligan.implement.prompt.outcome_text import NO_PROOF_TRIED, NO_TEST_PASSED
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.summary import MEANINGS, PassSummary, lines_of, print_exit
from world.attempts import REF, attempt, check, failing_test

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
TIME = "2025-03-04 12:00:00 UTC"
NEW = IssueStatus(REF, text=SeenText("Mend it"), epoch=1, attempt=1, number=1)
PULL = "https://github.com/octo/almanac/pull/13"
COMMENT = "https://github.com/octo/almanac/issues/12#issuecomment-1"
REVIEWED = replace(NEW, stage=Stage.REVIEW, pull=PullStatus(PULL, 13))
ASKED = replace(NEW, stage=Stage.HITL, reason="All 3 attempts failed.", asked_at=COMMENT)
FAILING = NO_EFFECTS.plus(PublicationDelayed(since=NOON, reason="Bad gateway."))


def said(status: IssueStatus, *made: WorkerResultMeta) -> list[str]:
    return [f"{mark}{text}" for mark, text in lines_of(status, made, NOON)]


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (REVIEWED, f" pull request {PULL}"),
        (ASKED, f" needs human review: {COMMENT}"),
        (replace(ASKED, asked_at=""), " needs human review: All 3 attempts failed."),
        (
            replace(NEW, due=NOON + timedelta(minutes=5), reason="No disk."),
            " waiting until 2025-03-04 12:05:00 UTC: No disk.",
        ),
        (replace(NEW, due=NOON, reason="2 attempts left."), " waiting: 2 attempts left."),
        (NEW, " waiting"),
        (replace(NEW, paused_by="ann"), " ann paused it"),
        (replace(NEW, stage=Stage.RESOLVED, reason="Merged."), " done: Merged."),
        (
            replace(NEW, stage=Stage.RUNNING, phase=Phase.ATTEMPTING),
            " not finished; the next run continues it",
        ),
        (
            replace(
                NEW,
                stage=Stage.RUNNING,
                phase=Phase.DECIDED,
                decision=OpenPullRequest(),
                effects=FAILING,
            ),
            f" Publishing has failed since {TIME}, and is repeated: Bad gateway.",
        ),
    ],
)
def test_each_end_is_one_line(status: IssueStatus, line: str) -> None:
    assert said(status) == [line]


def test_a_draft_is_named_as_not_verified() -> None:
    status = replace(ASKED, pull=PullStatus(PULL, 13, draft_of=3))
    assert said(status)[1:] == [f" draft, not verified: {PULL}"]


def succeeded(*checks: CheckResult, proof: Proof | None = None) -> WorkerResultMeta:
    made = attempt(2, Outcome.SUCCEEDED, "", *checks)
    usage = AgentFacts(kind="claude", cost_usd=0.3, input_tokens=1000, output_tokens=234)
    return made.model_copy(update={"agent": usage, "proof": proof})


def test_the_cost_is_that_of_all_attempts() -> None:
    first = attempt(1, Outcome.CHECKS_FAILED, "", failing_test())
    good = succeeded(check(passed=True))
    assert said(REVIEWED, first, good)[1:] == [" 2 attempts, 8m20s, $0.30, 1,234 tokens"]
    assert said(REVIEWED, first)[1:] == [" 1 attempt, 4m10s, cost not reported"]


UNTRIED = Proof(state=ProofState.NOT_TRIED)
WEB = SkippedCheck(name="web", kind=CheckKind.LINT, command="npm run lint")
OLD = failing_test("lint").model_copy(update={"on_base": OnBase.FAILS, "preexisting": True})


@pytest.mark.parametrize(
    ("made", "doubts"),
    [
        (succeeded(), ["No check is configured: nothing was verified."]),
        (
            succeeded(check(passed=True), check("types", required=False)),
            ["The check 'types' failed, but is not required."],
        ),
        (
            succeeded(check(passed=True)).model_copy(update={"skipped_checks": (WEB,)}),
            ["The check 'web' was not run: the change touches none of its paths."],
        ),
        (
            succeeded(check(passed=True), OLD),
            [
                NO_TEST_PASSED,
                "The check 'lint' fails without this change too.",
            ],
        ),
        (
            succeeded(check(passed=True), proof=UNTRIED),
            [NO_PROOF_TRIED],
        ),
        (
            succeeded(check(passed=True), proof=Proof(state=ProofState.NOT_PROVED)),
            ["No test of the change fails without it."],
        ),
        (succeeded(check(passed=True), proof=Proof(state=ProofState.NO_TEST)), []),
    ],
)
def test_what_was_not_verified_is_named(made: WorkerResultMeta, doubts: list[str]) -> None:
    assert said(REVIEWED, made)[2:] == [f"  !{doubt}" for doubt in doubts]


def test_only_an_issue_that_something_came_of_is_listed() -> None:
    summary = PassSummary()
    started = AttemptStarted(attempt=1, number=1, worker="w")
    other = replace(NEW, issue=replace(REF, number=13))
    failed = attempt(1, Outcome.CHECKS_FAILED)
    events: tuple[tuple[IssueStatus, Event], ...] = (
        (other, started),
        (NEW, started),
        (NEW, AttemptCompleted(meta=failed)),
        (NEW, Published(pull_request=PULL, number=13, head_sha="c0ffee")),
    )
    for status, event in events:
        summary.on_event(status, event)
    assert summary.attempts == {REF: {1: failed}}


def test_an_exit_code_has_a_meaning_and_zero_needs_none() -> None:
    printed = io.StringIO()
    console = Console(file=printed, width=100, highlight=False)
    print_exit(console, Exit.DONE)
    print_exit(console, Exit.ESCALATED)
    print_exit(console, Exit.FAILED, "nothing to publish.")
    assert printed.getvalue() == (
        "\nExit code 3: an issue needs human review.\n\nExit code 1: nothing to publish.\n"
    )
    assert MEANINGS.keys() == {*Exit} - {Exit.DONE, Exit.USAGE}
