"""Decide how to rebuild the status of an issue from GitHub after the ledger was lost. Pure.

The status comment holds a record of the deciding facts. It counts only if nobody else edited it,
and if the rest of GitHub agrees with it. Otherwise the issue needs human review (RESTORE-1).
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.events import (
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    Decided,
    Drafted,
    Escalated,
    Event,
    Published,
    Restored,
    RetryScheduled,
    StoodDown,
    Waiting,
)
from mulligan.domain.issue import (
    AuthorisingAct,
    CommentAct,
    IssueRef,
    LabelAct,
    ReviewAct,
    Stage,
    UnknownAct,
    parse_act,
)
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Escalate, Outcome, Record
from mulligan.domain.recorded_effects import Effect, Pushed, StageShown, StatusWritten
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import Handled, HandledIds, IssueStatus, Phase

# The record in the status comment.

ERROR_CHARS = 200


class AttemptNote(Record):
    """The result of an attempt, as far as the next decision and the next prompt need it.

    `checksum` is that of its whole record, which the state ref may hold (RESTORE-3).
    """

    outcome: Outcome
    error: str = ""
    reason: str = ""
    eats_budget: bool = False
    checksum: str = ""


class StatusRecord(Record):
    """The facts that decide about an issue, as the status comment holds them (RESTORE-1).

    `epoch` and `number` count over all epochs: `number` the completed attempts, of which `attempts`
    are those of this epoch. `running` is true while another one runs. `comment` and `review` are
    the highest ids that were handled.
    `start` and `base` are the commits that the work at `head` was made on. `state` is the mark of
    the events on the state ref, if the ledger lives there.
    """

    stage: Stage
    epoch: int
    number: int = 0
    act: str = ""
    actor: str = ""
    actor_id: int | None = None
    act_at: datetime | None = None
    attempts: tuple[AttemptNote, ...] = ()
    running: bool = False
    due: datetime | None = None
    pull: int | None = None
    draft_of: int = 0
    head: str = ""
    start: str = ""
    base: str = ""
    rounds: int = 0
    ci_attempts: int = 0
    review_start: int | None = None
    paused_by: str = ""
    elsewhere: bool = False
    comment: int = 0
    review: int = 0
    state: str = ""

    @property
    def settled(self) -> "StatusRecord":
        """Return the part that must be on GitHub before Mulligan acts."""
        passing = {"stage": Stage.READY, "running": False, "due": None, "state": ""}
        passing["review_start"] = None
        return self.model_copy(update=passing)


def record_of(case: IssueContext) -> StatusRecord:
    """Return the facts that decide about an issue, for the status comment."""
    status = case.status
    made = [meta for meta in case.history if meta.epoch == status.epoch]
    good = next((m for m in reversed(case.history) if m.outcome is Outcome.SUCCEEDED), None)
    request, is_running = status.request, status.phase is Phase.ATTEMPTING
    return StatusRecord(
        stage=status.stage,
        epoch=status.epochs,
        number=status.number - is_running,
        act=str(request.act or ""),
        actor=request.actor,
        actor_id=request.actor_id,
        act_at=request.at,
        attempts=tuple(map(_note, made)),
        running=is_running,
        due=status.due,
        pull=status.pull.number,
        draft_of=status.pull.draft_of,
        head=status.effects.pushed or "",
        start=good.start_sha if good else "",
        base=good.base_sha if good else "",
        rounds=status.rounds,
        ci_attempts=status.ci_attempts,
        review_start=status.review_start,
        paused_by=status.paused_by,
        elsewhere=status.elsewhere,
        comment=_highest_comment(status),
        review=_highest_review(status),
        state=case.state_mark,
    )


def _note(meta: WorkerResultMeta) -> AttemptNote:
    error, reason = meta.error[:ERROR_CHARS], meta.failure_reason[:ERROR_CHARS]
    return AttemptNote(
        outcome=meta.outcome,
        error=error,
        reason="" if reason == error else reason,
        eats_budget=meta.eats_budget,
        checksum=checksum(meta),
    )


PLACE = {"epoch", "attempt", "worker"}
"""Fields of an attempt's record that a restoration or a mirror changes."""


def checksum(meta: WorkerResultMeta) -> str:
    """Return the checksum of an attempt's record; fields that a later version adds keep it."""
    values = meta.model_dump(mode="json", exclude_defaults=True, exclude=PLACE)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


def _highest_comment(status: IssueStatus) -> int:
    """Return the highest handled comment below those whose command is not in force yet."""
    waiting = [each.comment for each in status.pending if not _is_in_force(each, status)]
    open_ids = [number for number in waiting if number is not None]
    return min(open_ids) - 1 if open_ids else status.handled.comments.highest


def _is_in_force(order: PendingCommand, status: IssueStatus) -> bool:
    at_once = order.verb in {Verb.PAUSE, Verb.RESUME}
    return order.is_done or at_once or order.act == status.request.act


def _highest_review(status: IssueStatus) -> int:
    """Return the highest handled review below those that an attempt has yet to answer."""
    pending = status.feedback.received if status.feedback else ()
    return min(pending) - 1 if pending else status.handled.reviews.highest


# What is found on GitHub.


@dataclass(frozen=True, slots=True)
class FoundPull:
    """A pull request of the issue's branch; `last_review` is the highest id of its reviews.

    `is_own`: Mulligan's login opened it, from the branch in this repository.
    """

    number: int
    url: str
    head_sha: str
    is_own: bool
    last_review: int = 0


@dataclass(frozen=True, slots=True)
class FoundEscalation:
    """An escalation comment of Mulligan's, with the epoch that it ended."""

    epoch: int
    url: str


@dataclass(frozen=True, slots=True)
class FoundWork:
    """What GitHub tells of Mulligan's earlier work on an issue.

    - `comment` is the id of the status comment, `record` what it holds, and `doubt` why that does
      not count.
    - `pull` is the pull request that the record names, else the open one of the issue's branch.
    - `act` is the act that the record names, read now; without a record the last label.
    - `is_labelled`: Mulligan's login put one of its labels on, at any time.
    - `shown` is the stage whose label is on the issue now; `is_requested`: the ready label is on.
    - `answered` is the last comment with an answer, `last_comment` the last of all.
    - `mirrored` are the records of attempts on the state ref, which anybody with push access can
      write; None if they cannot be read.
    """

    comment: str = ""
    record: StatusRecord | None = None
    doubt: str = ""
    escalation: FoundEscalation | None = None
    act: AuthorisingAct | None = None
    pull: FoundPull | None = None
    is_labelled: bool = False
    shown: Stage | None = None
    is_requested: bool = False
    answered: int = 0
    last_comment: int = 0
    mirrored: tuple[WorkerResultMeta, ...] | None = ()

    @property
    def own_pull(self) -> FoundPull | None:
        """Return the pull request if it is Mulligan's."""
        return self.pull if self.pull and self.pull.is_own else None

    @property
    def is_none(self) -> bool:
        """Return whether Mulligan has never worked on the issue."""
        return not (self.comment or self.escalation or self.is_labelled or self.own_pull)


# The decision.

RESTORED = "Mulligan's ledger was lost. This status was restored from GitHub."

ANSWERS, NOTHING = "Mulligan's answers to commands", "GitHub, where no record counts"

MIRROR_REF = "refs/mulligan/state"

NO_RECORD = "there is no status comment of Mulligan with a record of it"

ACTIVE = frozenset({Stage.READY, Stage.RUNNING})


def rebuild(ref: IssueRef, found: FoundWork, now: datetime, *, is_asked: bool) -> tuple[Event, ...]:
    """Return the events that rebuild the status of an issue; none if Mulligan never worked on it.

    `is_asked`: somebody has just written a command.
    """
    if found.is_none:
        handled = _handled(found.answered)
        return (Restored(source=ANSWERS, handled=handled),) if handled else ()
    if found.record is None:
        return _without_record(found, found.doubt or NO_RECORD, now, is_asked=is_asked)
    if wrong := contradiction(found, found.record):
        return _without_record(found, wrong, now, is_asked=is_asked)
    return _with_record(ref, found, found.record, now)


def contradiction(found: FoundWork, record: StatusRecord) -> str:
    """Return what on GitHub contradicts the record; empty if nothing does."""
    pull, escalated = found.pull, found.escalation
    if found.mirrored is None:
        return f"its attempts on {MIRROR_REF} cannot be read"
    if wrong := _forged(found.mirrored, record):
        return f"attempt {wrong} on {MIRROR_REF} is not the one that the status comment records"
    if escalated and escalated.epoch > record.epoch:
        return f"the record is older than the request for human review at {escalated.url}"
    if record.pull and (pull is None or pull.number != record.pull or not pull.is_own):
        return f"the record names pull request #{record.pull}, which is not Mulligan's"
    if not record.pull and pull and pull.is_own and record.stage not in ACTIVE:
        return f"the record does not name pull request #{pull.number}"
    act = parse_act(record.act) if record.act else None
    if record.stage not in ACTIVE or isinstance(act, ReviewAct):
        return ""
    if isinstance(act, LabelAct | CommentAct):
        is_found = found.act is not None and found.act.act == act
        return "" if is_found else "the request that the record names does not exist"
    return "the work was requested on the command line, which GitHub does not know"


def _forged(mirrored: Iterable[WorkerResultMeta], record: StatusRecord) -> int | None:
    """Return the number of an attempt that the record contradicts; None if there is none."""
    first = record.number - len(record.attempts) + 1
    for meta in mirrored:
        index = meta.number - first
        note = record.attempts[index] if 0 <= index < len(record.attempts) else None
        if note and note.checksum and note.checksum != checksum(meta):
            return meta.number
    return None


def _with_record(
    ref: IssueRef, found: FoundWork, record: StatusRecord, now: datetime
) -> tuple[Event, ...]:
    """Continue from the record; take the requester and later events from GitHub only."""
    attempts = [*record.attempts]
    if record.running:
        attempts.append(AttemptNote(outcome=Outcome.INTERRUPTED, error=RESTORED))
    number = max(record.number + record.running, len(attempts))
    first = number - len(attempts) + 1
    whole = {checksum(meta): meta for meta in found.mirrored or ()}
    made = [
        event
        for index, note in enumerate(attempts)
        for meta in [whole.get(note.checksum) or _meta(ref, record, note, now)]
        for event in _attempt(meta, index + 1, first + index)
    ]
    is_whole = any(note.checksum in whole for note in attempts)
    return (
        _request(found, record, now),
        *made,
        *_proposed(found, record),
        *_stage(found, record, now),
        Restored(
            source=f"the record in status comment {found.comment}"
            + (f" and {MIRROR_REF}" if is_whole else ""),
            number=number,
            epochs=max(0, record.epoch - 1),
            rounds=record.rounds,
            ci_attempts=record.ci_attempts,
            review_start=record.review_start,
            paused_by=record.paused_by,
            handled=_handled(max(record.comment, found.answered), record.review),
            effects=_effects(ref, found, record),
        ),
    )


def _request(found: FoundWork, record: StatusRecord, now: datetime) -> Authorised:
    if found.act is not None and str(found.act.act) == record.act:
        return Authorised.of(found.act)
    act = record.act or str(_nobody(now))
    at = record.act_at or now
    return Authorised(act=act, actor=record.actor, actor_id=record.actor_id, act_at=at)


def _attempt(meta: WorkerResultMeta, attempt: int, number: int) -> Iterator[Event]:
    place = {"epoch": 1, "attempt": attempt, "number": number}
    yield AttemptStarted(attempt=attempt, number=number, worker="")
    yield AttemptCompleted(meta=meta.model_copy(update=place))


def _meta(
    ref: IssueRef, record: StatusRecord, note: AttemptNote, now: datetime
) -> WorkerResultMeta:
    """Return the record of an attempt as far as its note has it."""
    is_good = note.outcome is Outcome.SUCCEEDED
    return WorkerResultMeta(
        issue=str(ref),
        epoch=1,
        attempt=0,
        number=0,
        outcome=note.outcome,
        error=note.error,
        failure_reason=note.reason or note.error,
        eats_budget=note.eats_budget,
        base_sha=record.base,
        start_sha=record.start,
        head_sha=(record.head or None) if is_good else None,
        branch=ref.branch,
        restored=True,
        started_at=now,
        finished_at=now,
    )


def _proposed(found: FoundWork, record: StatusRecord) -> Iterator[Event]:
    pull = found.own_pull
    if pull is None:
        return
    head = record.head or pull.head_sha
    if record.draft_of:
        yield Drafted(
            pull_request=pull.url, number=pull.number, head_sha=head, attempt=record.draft_of
        )
    else:
        yield Published(pull_request=pull.url, number=pull.number, head_sha=head)


def _stage(found: FoundWork, record: StatusRecord, now: datetime) -> Iterator[Event]:
    escalated = found.escalation
    ended = escalated is not None and escalated.epoch == record.epoch
    asks = record.stage is Stage.HITL or (ended and record.stage in ACTIVE)
    if asks:
        yield Escalated(reason=RESTORED, comment=escalated.url if escalated and ended else "")
    elif record.stage is Stage.RESOLVED:
        yield StoodDown(reason=RESTORED, elsewhere=record.elsewhere)
    elif record.stage in ACTIVE and not found.own_pull:
        if record.attempts or record.running:
            yield RetryScheduled(due=record.due or now, reason=RESTORED)
        elif record.due:
            yield Waiting(until=record.due, reason=RESTORED)


def _without_record(
    found: FoundWork, why: str, now: datetime, *, is_asked: bool
) -> tuple[Event, ...]:
    """Leave the issue to a person; ask only if nobody was asked and somebody waits."""
    escalated, pull = found.escalation, found.own_pull
    reason = (
        f"Mulligan's ledger was lost, and this issue cannot be restored from GitHub: {why}. Check "
        "what was done, then write `/mulligan retry` to start again."
    )
    waits = is_asked or found.is_requested or found.shown or pull
    events: list[Event] = [Authorised(act=str(_nobody(now)), actor="", act_at=now)]
    if pull:
        events += [Published(pull_request=pull.url, number=pull.number, head_sha=pull.head_sha)]
    if escalated and found.shown is Stage.HITL and not is_asked:
        events += [Escalated(reason=reason, comment=escalated.url)]
    elif waits:
        events += [Decided(decision=Escalate(reason=reason))]
    else:
        events += [StoodDown(reason=reason)]
    written = (StatusWritten(comment=found.comment),) if found.comment else ()
    restored = Restored(
        source=NOTHING,
        epochs=escalated.epoch if escalated else 0,
        handled=_handled(found.last_comment, pull.last_review if pull else 0),
        effects=written,
    )
    return (*events, restored)


def _nobody(now: datetime) -> UnknownAct:
    """Return an act of no person, so that only a later request counts."""
    return UnknownAct(f"restored:{now.isoformat()}")


def _handled(comment: int, review: int = 0) -> tuple[str, ...]:
    return Handled(HandledIds(comment), HandledIds(review)).marks


def _effects(ref: IssueRef, found: FoundWork, record: StatusRecord) -> tuple[Effect, ...]:
    """Record what GitHub shows, except a stage that the rebuilt one replaces."""
    done: list[Effect] = [StatusWritten(comment=found.comment)]
    if record.head:
        done.append(Pushed(branch=ref.branch, head_sha=record.head))
    ended = found.escalation is not None and found.escalation.epoch == record.epoch
    if record.stage is not Stage.RUNNING and not (record.stage in ACTIVE and ended):
        done.append(StageShown(stage=record.stage))
    return tuple(done)
