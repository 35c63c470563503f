"""A line of `mulligan debug events`: the same fields for every kind, as the schema says."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from mulligan.domain.command import Verb
from mulligan.domain.events import (
    EVENT_TYPES,
    AgentFinished,
    AgentStarted,
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
    Forgotten,
    HumanResponded,
    IssueSeen,
    LearningsAccepted,
    LearningsDropped,
    NotedFact,
    ProofFinished,
    Published,
    PublishStarted,
    RecordedEvent,
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
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Retry
from mulligan.domain.recorded_effects import (
    EscalationAnswered,
    NotFoundSince,
    PullNote,
    ReviewsSettling,
    StageShown,
    StatusWritten,
    Topic,
)
from mulligan.domain.result import CheckKind, Proof, ProofState, SkippedCheck, VerifierOutcome
from mulligan.interfaces.cli.events import (
    FIELDS,
    event_json,
    event_text,
    name_of,
    schema,
)
from mulligan.interfaces.event_text import sentence_of
from mulligan.text.redact import Redactor
from world.attempts import check
from world.effects import EFFECTS
from world.ledgers import completed, events

pytestmark = pytest.mark.pure

DOCS = Path(__file__).parents[2] / "docs"
REF = IssueRef("acme/tools", 3)
NOON = datetime(2026, 11, 1, 12, 0, 5, tzinfo=UTC)
PASSED = check("pytest", passed=True)
VALID = Draft202012Validator(schema())


def recorded(event: Event, attempt: int | None = 2) -> RecordedEvent:
    return RecordedEvent(seq=17, at=NOON, issue=REF, epoch=1, attempt=attempt, event=event)


@given(events())
def test_every_event_is_as_the_schema_says(event: Event) -> None:
    line = json.loads(event_json(recorded(event), Redactor()))
    assert list(line) == list(FIELDS)
    assert line["name"] == event.kind
    assert "kind" not in line["payload"]
    VALID.validate(line)  # pyright: ignore[reportUnknownMemberType] - it has no types


def test_effects_in_a_payload_are_told_apart_by_their_kind() -> None:
    effects = (StatusWritten(comment=""), EscalationAnswered(comment=""))
    event = Forgotten(reason="", number=0, act="", known_since=None, effects=effects)
    line = json.loads(event_json(recorded(event), Redactor()))
    VALID.validate(line)  # pyright: ignore[reportUnknownMemberType] - it has no types
    line["payload"]["effects"][0]["kind"] = "unknown"
    assert not VALID.is_valid(line)  # pyright: ignore[reportUnknownMemberType] - as above


def test_a_line_holds_no_secret_and_nothing_that_steers() -> None:
    token = "ghp_" + "a1B2" * 9
    line = event_json(
        recorded(IssueSeen(title=f"x {token} hunter2-hunter2\n\x1b[31m\u202e\u2028")),
        (Redactor(("hunter2-hunter2",))),
    )
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["payload"]["title"] == "x [redacted] [redacted]\n\x1b[31m\u202e\u2028"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            completed(REF, 2),
            "attempt_completed  Attempt 2 ended. Checks failed: 1 of 3 checks failed",
        ),
        (
            Decided(decision=Retry(reason="Again.")),
            "decided  Decision: make another attempt. Again.",
        ),
        (
            AgentFinished(exit_code=0, duration_ms=5000),
            "agent_finished  The agent ended with exit code 0 after 5s.",
        ),
        (StoodDown(reason="a\nb"), "stood_down  Mulligan stopped work on the issue. a b"),
        (
            PublishStarted(head_sha="c0ffee" * 6 + "1234"),
            "publish_started  Mulligan pushes the commit c0ffeec0ff.",
        ),
    ],
)
def test_people_read_one_line(event: Event, words: str) -> None:
    assert event_text(recorded(event)) == f"2026-11-01 12:00:05  17  {REF}  attempt 2  {words}"


OPERATOR = CommandReceived(key="command:2026", command=Verb.PAUSE, at=NOON)
FINISHED = AgentFinished(exit_code=None, stopped_by="timeout", duration_ms=65_000)
PROOFS = (
    (
        Proof(state=ProofState.PROVED, tests=("test_a",), count=1, check="tests"),
        "Proved by 'test_a': it fails without the change.",
    ),
    (
        Proof(state=ProofState.PROVED, tests=("a", "b", "c", "d", "e", "f"), count=30, check="x"),
        "Proved by 'a', 'b', 'c', 'd', 'e' and 25 more: they fail without the change.",
    ),
    (
        Proof(state=ProofState.NOT_PROVED, tests=("test_b",), count=1, check="tests"),
        "No test of the change fails without it ('test_b' passed).",
    ),
    (
        Proof(state=ProofState.NOT_PROVED, check="tests"),
        "No test of the change fails without it.",
    ),
    (
        Proof(state=ProofState.NOT_TRIED, check="tests"),
        (
            "Not proved by a test: the tests of the change do not build or start without the rest"
            " of it."
        ),
    ),
    (Proof(state=ProofState.NO_TEST), "The change adds and alters no test."),
)
BASE = BaselineRecorded(key="k", start_sha="s", name="pytest", check=None)
NOTED = NotedFact(text="Use uv.", number=1, noted_at=NOON)
PULL = {"pull_request": "https://x/pull/4", "number": 4, "head_sha": "c0ffee"}

EFFECT_SENTENCES = (
    "GitHub shows the stage review.",
    "Mulligan wrote the status comment.",
    "Mulligan asked for the label again, because the text was changed.",
    "The issue shows why it cannot be worked on.",
    "Mulligan pushed the commit c0ffee.",
    "Mulligan pushed unverified work to refs/mulligan/work/1.",
    "Mulligan merged the base branch, at b.",
    "A merge of the base branch, at b, could not be pushed.",
    "A review waits for further ones until 2026-11-01 12:00:05 UTC.",
    "Somebody edited the text.",
    "Mulligan answered a review.",
    "Mulligan answered a command in a comment.",
    "The comment that asked for human review says who answered.",
    "The comments of the repository were read, up to 81.",
    "GitHub does not find the issue o/r#3.",
    "The publication failed: GitHub is away.",
    "An open pull request of somebody else closes the issue.",
)
SENTENCES: list[tuple[Event, str]] = [
    (IssueSeen(title="Mend it"), "Mulligan read the issue: Mend it"),
    (Authorised(act="labeled:7", actor="ada", act_at=NOON), "ada requested the work."),
    (
        Authorised(act="command:2026", actor="", act_at=NOON, guidance="Be brief."),
        "The operator requested the work, with the instruction: Be brief.",
    ),
    (
        OPERATOR.model_copy(update={"actor": "ada", "text": "later"}),
        "ada gave the command `pause later`.",
    ),
    (OPERATOR, "The operator gave the command `pause`."),
    (
        OPERATOR.model_copy(update={"key": "command:dashboard 2026"}),
        "The operator, on the dashboard, gave the command `pause`.",
    ),
    (
        HumanResponded(key="comment:9", command=Verb.RETRY, answer="New attempts start."),
        "Mulligan carried out `retry`. New attempts start.",
    ),
    (AttemptStarted(attempt=2, number=5, worker="here"), "Attempt 2 started."),
    (
        AttemptStarted(attempt=2, number=5, worker="here", position=1, most=3),
        "Attempt 1 of 3 started.",
    ),
    (WorktreeReset(base_sha="a", start_sha="c" * 40), "The worktree was reset, at cccccccccc."),
    (
        WorktreeReset(base_sha="a", start_sha="c" * 40, recreated=True),
        "The worktree was created again, at cccccccccc.",
    ),
    (
        FixRoundStarted(number=1, most=2, failed=("tests", "lint")),
        "Fix round 1 of 2 started for: tests, lint.",
    ),
    (AgentStarted(agent="claude"), "The agent claude started."),
    (completed(REF, 2), "Attempt 2 ended. Checks failed: 1 of 3 checks failed"),
    (Decided(decision=Retry(reason="Again.")), "Decision: make another attempt. Again."),
    (FINISHED, "The agent was stopped by timeout after 1m5s."),
    (AgentFinished(exit_code=0, duration_ms=5000), "The agent ended with exit code 0 after 5s."),
    (CheckFinished(check=PASSED), "The check 'pytest' passed after 0s."),
    (CheckFinished(check=check("lint")), "The check 'lint' failed after 0s."),
    (
        CheckSkipped(check=SkippedCheck(name="web", kind=CheckKind.TEST, command="npm test")),
        "The check 'web' was not run: the change touches none of its paths.",
    ),
    (BASE, "Without the change, the check 'pytest' could not run."),
    (BASE.model_copy(update={"check": PASSED}), "Without the change, the check 'pytest' passed."),
    (
        ReviewFinished(verdict=VerifierOutcome.HARD_FAIL, feedback="Too clever."),
        "The reviewer answered HARD_FAIL. Too clever.",
    ),
    (ReviewFinished(verdict=None, unreadable="It failed."), "It failed."),
    *((ProofFinished(proof=proof), said) for proof, said in PROOFS),
    (
        RetryContextAssembled(
            prior_attempts_count=1, context_size_bytes=1234, feedback_sources=("outcome",)
        ),
        "The prompt includes 1 earlier attempt, 1,234 bytes.",
    ),
    (
        AttemptContextTruncated(
            budget=1, original=9000, truncated=2000, sections=("previous_changes",), reasons=()
        ),
        "The retry context was cut from 9,000 to 2,000 bytes: previous changes.",
    ),
    (
        AttemptContextAssembled(manifest={}, manifest_hash="h", inputs_hash="i"),
        "The prompt was written, and its hashes were recorded.",
    ),
    (
        AttemptContextDelivered(delivered_hash="d", manifest_hash="h", prompt_artifact="p"),
        "The agent received its prompt.",
    ),
    *zip(EFFECTS, EFFECT_SENTENCES, strict=True),
    (StageShown(stage=None), "The edit of the status comment is delayed."),
    (ReviewsSettling(), "No review waits for further ones."),
    (
        PullNote(topic=Topic.BASE, text=""),
        "The note about the pull request (base) was removed.",
    ),
    (NotFoundSince(what="the issue o/r#3"), "GitHub finds the issue o/r#3."),
    (PublishStarted(head_sha="c" * 40), "Mulligan pushes the commit cccccccccc."),
    (
        RetryScheduled(due=NOON, reason="GitHub was away."),
        "The next attempt may start at 2026-11-01 12:00:05 UTC. GitHub was away.",
    ),
    (
        Waiting(until=NOON, reason="The budget is used up."),
        "The issue waits until 2026-11-01 12:00:05 UTC. The budget is used up.",
    ),
    (Waiting(until=None, reason="No."), "The issue waits for a maintainer. No."),
    (Escalated(reason="It is red.", comment=""), "The issue needs human review. It is red."),
    (StoodDown(reason="It was closed."), "Mulligan stopped work on the issue. It was closed."),
    (Published.model_validate(PULL), "Pull request #4 is open."),
    (
        Drafted.model_validate({**PULL, "attempt": 1}),
        "Pull request #4 is a draft with unverified work.",
    ),
    (
        ReviewReceived(reviews=(5,), author="", at=NOON, remarks=()),
        "A reviewer requested 0 changes on the pull request.",
    ),
    (ReviewsWithdrawn(reviews=(5, 6)), "2 reviews no longer requested changes."),
    (
        StoodDown(reason="The reviewer approved.", keeps_pull=True),
        "The pull request waits for a review. The reviewer approved.",
    ),
    (
        Conflicted(base_sha="b", head_sha="h", files=("a", "b")),
        "The pull request has conflicts with its base branch: a, b.",
    ),
    (
        CiFailed(head_sha="h", checks=(FailedCheck(name="tests"), FailedCheck(name="lint"))),
        "Checks failed on GitHub: tests, lint.",
    ),
    (CiPassed(head_sha="h", count=1), "On GitHub, 1 check passed."),
    (
        BroughtUpToDate(base_sha="c" * 40, head_sha="h"),
        "Mulligan merged the base branch, at cccccccccc, into the pull request.",
    ),
    (LearningsAccepted(facts=(NOTED,)), "Accepted 1 note about the repository."),
    (LearningsDropped(facts=("a", "b")), "Dropped 2 notes about the repository."),
    (
        Resolved(
            resolution=Resolution.MERGED,
            reason="Its pull request was merged.",
            total_attempts=1,
            total_duration_ms=5,
        ),
        "The work has ended. Its pull request was merged.",
    ),
    (
        Forgotten(reason="It was merged.", number=1, act="", known_since=None),
        "Older events were removed. It was merged.",
    ),
    (
        Restored(source=""),
        "The ledger was lost; the status was restored from GitHub.",
    ),
]


@pytest.mark.parametrize(("event", "sentence"), SENTENCES)
def test_every_event_has_its_sentence(event: Event, sentence: str) -> None:
    assert sentence_of(event) == sentence


def test_no_kind_of_event_is_left_out() -> None:
    assert {type(event) for event, _ in SENTENCES} == set(EVENT_TYPES)


def test_an_event_before_any_attempt_names_none() -> None:
    line = event_text(recorded(IssueSeen(title="Mend it"), attempt=None))
    assert line == f"2026-11-01 12:00:05  17  {REF}  issue_seen  Mulligan read the issue: Mend it"


def test_the_page_tells_of_every_event_and_each_of_its_fields() -> None:
    page = (DOCS / "events.md").read_text()
    for kind in EVENT_TYPES:
        assert f"### `{name_of(kind)}`" in page
        for name in set(kind.model_fields) - {"kind"}:
            assert f"| `{name}` |" in page.partition(f"### `{name_of(kind)}`")[2]
