"""What is rebuilt from GitHub after the ledger was lost, for everything that may be found there."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.events import AttemptCompleted, Event
from mulligan.domain.feedback import Feedback
from mulligan.domain.fold import advance
from mulligan.domain.issue import (
    AuthorisingAct,
    CommentAct,
    ConsoleAct,
    IssueRef,
    LabelAct,
    ReviewAct,
    Stage,
)
from mulligan.domain.outcome import Escalate, Outcome
from mulligan.domain.recorded_effects import NO_EFFECTS, Pushed
from mulligan.domain.restoration import (
    MIRROR_REF,
    AttemptNote,
    FoundEscalation,
    FoundPull,
    FoundWork,
    StatusRecord,
    checksum,
    rebuild,
    record_of,
)
from mulligan.domain.result import WorkerResultMeta, latest_records
from mulligan.domain.status import (
    Handled,
    HandledIds,
    IssueStatus,
    Phase,
    PullStatus,
    Request,
)
from world.stories import attempt, case, published

pytestmark = pytest.mark.pure

REF = IssueRef("octo/calc", 12)
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ASKED = NOW - timedelta(hours=1)
URL = "https://github.com/octo/calc/pull/13"
PULL = FoundPull(13, URL, "headsha", is_own=True, last_review=70)
ESCALATION = FoundEscalation(2, "https://github.com/octo/calc/issues/12#issuecomment-5")
LABELLED = AuthorisingAct(LabelAct(77), "ann", ASKED, trusted=False, actor_id=9)
FAILED = AttemptNote(outcome=Outcome.CHECKS_FAILED, error="It is red.")
GOOD = AttemptNote(outcome=Outcome.SUCCEEDED)
RECORD = StatusRecord(stage=Stage.READY, epoch=2, number=4, act="labeled:77", comment=40, review=50)
FOUND = FoundWork(comment="3", record=RECORD, act=LABELLED, is_labelled=True, last_comment=90)


def told(events: tuple[Event, ...]) -> IssueStatus:
    status = IssueStatus(REF)
    for event in events:
        status = advance(status, event, NOW)
    return status


def status_of(found: FoundWork, *, is_asked: bool = False) -> IssueStatus:
    return told(rebuild(REF, found, NOW, is_asked=is_asked))


def recorded(found: FoundWork = FOUND, **changes: object) -> FoundWork:
    return replace(found, record=RECORD.model_copy(update=changes))


def test_an_issue_without_a_trace_of_mulligan_is_new() -> None:
    assert rebuild(REF, FoundWork(last_comment=90), NOW, is_asked=True) == ()
    assert rebuild(REF, FoundWork(pull=replace(PULL, is_own=False)), NOW, is_asked=True) == ()


def test_what_was_only_answered_is_not_answered_again() -> None:
    status = status_of(FoundWork(answered=41))
    assert (status.epoch, status.labelled) == (0, False)
    assert CommentAct(41) in status.handled
    assert CommentAct(42) not in status.handled


@pytest.mark.parametrize(
    ("found", "stage", "attempts", "due"),
    [
        (FOUND, Stage.READY, 0, None),
        (recorded(due=NOW + timedelta(hours=1)), Stage.READY, 0, NOW + timedelta(hours=1)),
        (recorded(attempts=(FAILED, FAILED)), Stage.READY, 2, NOW),
        (recorded(attempts=(FAILED,), due=ASKED), Stage.READY, 1, ASKED),
        (recorded(attempts=(FAILED,), running=True, stage=Stage.RUNNING), Stage.READY, 2, NOW),
        (recorded(attempts=(FAILED,), stage=Stage.HITL), Stage.HITL, 1, None),
        (recorded(attempts=(FAILED,), stage=Stage.RESOLVED), Stage.RESOLVED, 1, None),
        (
            recorded(replace(FOUND, pull=PULL), attempts=(GOOD,), pull=13, stage=Stage.REVIEW),
            Stage.REVIEW,
            1,
            None,
        ),
        # Killed after the pull request was opened: only GitHub knows of it.
        (
            recorded(replace(FOUND, pull=PULL), running=True, stage=Stage.RUNNING),
            Stage.REVIEW,
            1,
            None,
        ),
        # Killed after the escalation comment was written.
        (
            recorded(replace(FOUND, escalation=ESCALATION), stage=Stage.RUNNING, running=True),
            Stage.HITL,
            1,
            None,
        ),
        # An escalation that was answered before the record was written.
        (
            recorded(replace(FOUND, escalation=replace(ESCALATION, epoch=1)), attempts=(FAILED,)),
            Stage.READY,
            1,
            NOW,
        ),
        # A pull request of somebody else from the same branch does not count.
        (
            recorded(replace(FOUND, pull=replace(PULL, is_own=False)), attempts=(FAILED,)),
            Stage.READY,
            1,
            NOW,
        ),
    ],
)
def test_the_status_continues_where_the_record_ends(
    found: FoundWork, stage: Stage, attempts: int, due: datetime | None
) -> None:
    status = status_of(found)
    assert (status.stage, status.attempt, status.due) == (stage, attempts, due)
    assert status.phase is Phase.IDLE
    running = bool(found.record and found.record.running)
    assert (status.epochs, status.number) == (2, 4 + running)
    assert status.request == Request(str(LabelAct(77)), "ann", 9, ASKED)
    assert status.effects.status_comment == "3"
    assert CommentAct(40) in status.handled
    assert CommentAct(41) not in status.handled
    assert ReviewAct(50) in status.handled
    assert status.restored == "the record in status comment 3"


def test_a_draft_stays_one() -> None:
    found = recorded(
        replace(FOUND, pull=PULL), stage=Stage.HITL, pull=13, draft_of=4, attempts=(FAILED,)
    )
    status = status_of(found)
    assert (status.stage, status.pull.number, status.pull.draft_of) == (Stage.HITL, 13, 4)


def test_what_people_asked_and_what_was_pushed_is_known_again() -> None:
    found = recorded(
        replace(FOUND, pull=PULL),
        stage=Stage.REVIEW,
        pull=13,
        head="abc",
        attempts=(FAILED, GOOD),
        rounds=2,
        ci_attempts=1,
        review_start=2,
        paused_by="ann",
    )
    status = status_of(found)
    assert status.review_start == 2
    assert status.effects.pushed == "abc"
    assert (status.rounds, status.ci_attempts, status.paused_by) == (2, 1, "ann")
    assert (status.labelled, status.is_shown) == (True, True)


@pytest.mark.parametrize("act", ["review:50", "command:2026-01-01", "comment:39"])
def test_a_settled_issue_needs_no_request(act: str) -> None:
    status = status_of(recorded(replace(FOUND, act=None), stage=Stage.HITL, act=act, act_at=ASKED))
    assert (status.stage, status.request.at, str(status.request.act)) == (Stage.HITL, ASKED, act)


def test_a_record_without_a_request_gets_one_of_nobody() -> None:
    status = status_of(recorded(replace(FOUND, act=None), stage=Stage.RESOLVED, act=""))
    assert (status.stage, status.request.at) == (Stage.RESOLVED, NOW)


def test_a_review_that_asked_for_work_is_read_again() -> None:
    found = recorded(replace(FOUND, pull=PULL), act="review:50", pull=13, stage=Stage.RUNNING)
    assert status_of(found).stage is Stage.REVIEW


CONTRADICTIONS: dict[str, tuple[FoundWork, str]] = {
    "edited": (replace(FOUND, record=None, doubt="wes edited the status comment"), "wes edited"),
    "deleted": (replace(FOUND, record=None, comment=""), "no status comment"),
    "old": (replace(FOUND, escalation=replace(ESCALATION, epoch=3)), "is older than"),
    "foreign pull request": (
        recorded(replace(FOUND, pull=replace(PULL, is_own=False)), pull=13),
        "#13, which is not Mulligan's",
    ),
    "other pull request": (recorded(replace(FOUND, pull=PULL), pull=14), "#14"),
    "no pull request": (recorded(pull=13), "#13"),
    "unknown pull request": (
        recorded(replace(FOUND, pull=PULL), stage=Stage.HITL),
        "does not name",
    ),
    "other label": (replace(FOUND, act=replace(LABELLED, act=LabelAct(78))), "does not exist"),
    "no label": (replace(FOUND, act=None), "does not exist"),
    "no comment": (recorded(act="comment:39"), "does not exist"),
    "command line": (recorded(act="command:2026-01-01"), "on the command line"),
    "no request": (recorded(act=""), "on the command line"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_does_not_fit_goes_to_a_person(name: str) -> None:
    found, words = CONTRADICTIONS[name]
    status = status_of(replace(found, is_requested=True))
    assert status.phase is Phase.DECIDED
    assert isinstance(status.decision, Escalate)
    assert words in status.decision.reason
    assert status.epochs > (found.escalation.epoch if found.escalation else 0)
    assert CommentAct(90) in status.handled
    assert status.restored


@pytest.mark.parametrize(
    ("found", "is_asked", "stage", "phase"),
    [
        (FoundWork(is_labelled=True), False, Stage.RESOLVED, Phase.IDLE),
        (FoundWork(is_labelled=True), True, Stage.READY, Phase.DECIDED),
        (FoundWork(is_labelled=True, shown=Stage.RUNNING), False, Stage.READY, Phase.DECIDED),
        (FoundWork(pull=PULL), False, Stage.REVIEW, Phase.DECIDED),
        (FoundWork(escalation=ESCALATION, shown=Stage.HITL), False, Stage.HITL, Phase.IDLE),
        (FoundWork(escalation=ESCALATION, shown=Stage.HITL), True, Stage.READY, Phase.DECIDED),
        (FoundWork(escalation=ESCALATION), False, Stage.RESOLVED, Phase.IDLE),
    ],
)
def test_a_person_is_asked_once_and_only_if_somebody_waits(
    found: FoundWork, stage: Stage, phase: Phase, *, is_asked: bool
) -> None:
    status = status_of(found, is_asked=is_asked)
    assert (status.stage, status.phase) == (stage, phase)


def test_reviews_from_before_the_loss_are_not_answered_by_guess() -> None:
    status = status_of(FoundWork(pull=PULL))
    assert ReviewAct(70) in status.handled
    assert (status.pull.number, status.labelled) == (13, True)


# The copies of attempts on the state ref.

ATTEMPTS = (attempt(3), attempt(4))
NOTES = record_of(case(*ATTEMPTS)).attempts
CHANGED = ATTEMPTS[1].model_copy(update={"error": "Run this instead."})
OLD_NOTES = tuple(note.model_copy(update={"checksum": ""}) for note in NOTES)


@pytest.mark.parametrize(
    ("notes", "mirrored", "are_whole"),
    [
        (NOTES, ATTEMPTS, (True, True)),
        (NOTES, (*ATTEMPTS, attempt(5)), (True, True)),
        (NOTES, ATTEMPTS[:1], (True, False)),
        (NOTES, (), (False, False)),
        (NOTES, (attempt(1), attempt(2)), (False, False)),
        # A record of a version that wrote no checksums.
        (OLD_NOTES, ATTEMPTS, (False, False)),
    ],
)
def test_attempts_on_the_state_ref_count_only_by_their_checksums(
    notes: tuple[AttemptNote, ...],
    mirrored: tuple[WorkerResultMeta, ...],
    are_whole: tuple[bool, bool],
) -> None:
    found = replace(recorded(attempts=notes), mirrored=mirrored)
    events = rebuild(REF, found, NOW, is_asked=False)
    metas = [event.meta for event in events if isinstance(event, AttemptCompleted)]
    assert tuple(not meta.restored for meta in metas) == are_whole
    assert tuple(bool(meta.checks) for meta in metas) == are_whole
    assert [(meta.epoch, meta.attempt, meta.number) for meta in metas] == [(1, 1, 3), (1, 2, 4)]
    assert (MIRROR_REF in told(events).restored) is any(are_whole)
    assert told(events).number == 4


@pytest.mark.parametrize("mirrored", [None, (ATTEMPTS[0], CHANGED), (CHANGED,)])
def test_what_contradicts_the_checksums_goes_to_a_person(
    mirrored: tuple[WorkerResultMeta, ...] | None,
) -> None:
    found = replace(recorded(attempts=NOTES), mirrored=mirrored)
    status = status_of(found, is_asked=True)
    assert isinstance(status.decision, Escalate)
    assert MIRROR_REF in status.decision.reason


def test_the_checksum_is_of_everything_but_the_place_in_the_ledger() -> None:
    meta = attempt(1)
    moved = meta.model_copy(update={"epoch": 3, "attempt": 2, "worker": "elsewhere:1"})
    read = WorkerResultMeta.model_validate_json(moved.model_dump_json())
    assert checksum(read) == checksum(meta)
    for change in ({"number": 2}, {"checks": ()}, {"error": "no"}, {"issue": "octo/calc#1"}):
        assert checksum(meta.model_copy(update=change)) != checksum(meta)


# The record.


def test_the_record_of_a_published_issue() -> None:
    good = attempt(2, Outcome.SUCCEEDED).model_copy(update={"base_sha": "b", "start_sha": "s"})
    found = published(attempt(1, error="x" * 300), good)
    pushed = NO_EFFECTS.plus(Pushed(branch="b", head_sha="abc"))
    status = replace(found.status, pull=PullStatus(URL, 13), effects=pushed, forgotten_epochs=1)
    record = record_of(replace(found, status=status))
    assert (record.stage, record.epoch, record.number, record.pull) == (Stage.REVIEW, 2, 2, 13)
    assert [(note.outcome, len(note.error)) for note in record.attempts] == [
        (Outcome.CHECKS_FAILED, 200),
        (Outcome.SUCCEEDED, 0),
    ]
    assert (record.head, record.start, record.base) == ("abc", "s", "b")
    assert record.settled == record.settled.settled


def test_a_record_that_was_written_again_replaces_the_first() -> None:
    first, second = attempt(1, Outcome.SUCCEEDED), attempt(2)
    lost = attempt(1, Outcome.INTERRUPTED)
    assert latest_records([first, second, lost]) == (lost, second)


def test_the_record_of_a_shutdown_says_that_it_was_one() -> None:
    ended = attempt(1, Outcome.INTERRUPTED).model_copy(update={"failure_reason": "shutdown"})
    (note,) = record_of(case(ended)).attempts
    assert (note.outcome, note.reason) == (Outcome.INTERRUPTED, "shutdown")


def order(verb: Verb, comment: int, *, is_done: bool = False) -> PendingCommand:
    at = CommentAct(comment)
    return PendingCommand(at, verb, "", "ann", NOW, Stage.HITL, is_done=is_done)


CONSOLE = PendingCommand(ConsoleAct("2026"), Verb.SKIP, "", "", NOW, Stage.HITL)


@pytest.mark.parametrize(
    ("pending", "highest"),
    [
        ((), 45),
        ((order(Verb.SKIP, 44),), 43),
        ((order(Verb.SKIP, 44, is_done=True),), 45),
        ((order(Verb.PAUSE, 44), order(Verb.RETRY, 45)), 44),
        ((CONSOLE,), 45),
    ],
)
def test_a_command_counts_as_handled_once_it_is_in_force(
    pending: tuple[PendingCommand, ...], highest: int
) -> None:
    found = case()
    handled = Handled(HandledIds(0, (44, 45)))
    status = replace(found.status, pending=pending, handled=handled)
    assert record_of(replace(found, status=status)).comment == highest


def test_the_request_of_the_epoch_is_in_force() -> None:
    found = case()
    status = replace(
        found.status,
        request=Request(str(CommentAct(45)), "ann"),
        pending=(order(Verb.RETRY, 45),),
        handled=Handled(HandledIds(0, (45,))),
    )
    assert record_of(replace(found, status=status)).comment == 45


def test_a_review_counts_as_handled_once_its_attempt_is_published() -> None:
    found = case()
    handled = Handled(reviews=HandledIds(0, (50, 51)))
    waits = Feedback(at=NOW, received=(50, 51))
    status = replace(found.status, handled=handled, feedback=waits)
    assert record_of(replace(found, status=status)).review == 49
    assert record_of(replace(found, status=replace(status, feedback=None))).review == 51
