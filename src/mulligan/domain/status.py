"""Where an issue stands, folded from its events: never stored by hand. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import assert_never

from mulligan.domain.command import OPENING, STOPPING, Order, Verb
from mulligan.domain.decision import Decision
from mulligan.domain.events import (
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    Decided,
    EffectDone,
    Escalated,
    Event,
    IssueSeen,
    Published,
    Resolved,
    RetryScheduled,
    StoodDown,
    Waiting,
)
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.people import CommandReceived, HumanResponded

SHOWN_STAGE = "shown_stage"
"""The effect that GitHub was told of the stage; it lasts until the stage changes."""

PUSHED_WORK = "pushed_work"
"""The effect that the work of an attempt can be fetched, by its number; its ref."""


class Phase(StrEnum):
    """What has to be done next for an issue, whatever was killed (DESIGN 1)."""

    IDLE = "idle"
    ATTEMPTING = "attempting"
    COMPLETED = "completed"
    DECIDED = "decided"


@dataclass(frozen=True, slots=True)
class IssueStatus:
    """Where one issue stands. `attempt` counts within `epoch`, `number` over all epochs.

    `act` names the authorising act of the epoch; `due` is when the next attempt may start;
    `text_sha256` is the text as it was seen last under the act `text_act` (SPEC T2);
    `guidance` is what the person who opened the epoch says is to be done (SPEC C14);
    `effects` maps `<effect>:<key>` to the id or SHA that GitHub or git gave it. `is_kept` tells
    that the last attempt's commit is verified, and waits for a person to mend why it could not be
    published. `pending` are the commands that are still to be answered, `heard` the keys of all;
    `paused_by` names who has it rest, if anybody does. `known_since` is when this ledger heard of
    the issue first.
    """

    issue: IssueRef
    title: str = ""
    stage: Stage = Stage.READY
    phase: Phase = Phase.IDLE
    epoch: int = 0
    attempt: int = 0
    number: int = 0
    act: str = ""
    actor: str = ""
    act_at: datetime | None = None
    outcome: Outcome | None = None
    decision: Decision | None = None
    reason: str = ""
    due: datetime | None = None
    pull_request: str | None = None
    effects: tuple[tuple[str, str], ...] = ()
    started_at: datetime | None = None
    is_kept: bool = False
    actor_id: int | None = None
    text_sha256: str = ""
    text_act: str = ""
    guidance: str = ""
    pending: tuple[Order, ...] = ()
    heard: tuple[str, ...] = ()
    paused_by: str = ""
    known_since: datetime | None = None

    @property
    def by_command(self) -> bool:
        """Tell whether a command opened the epoch, so that no label has to be on."""
        return self.act.startswith(("comment:", "command:"))

    @property
    def ending(self) -> str | None:
        """Say which command ends the work that is going on; None where none does."""
        found = (each for each in self.pending if each.verb in STOPPING and each.key != self.act)
        return next((each.as_withdrawal for each in found), None)

    @property
    def is_asked_anew(self) -> bool:
        """Tell whether a command that is still to be answered asks for new attempts."""
        return any(each.verb in OPENING for each in self.pending)

    @property
    def instance(self) -> str:
        """Name the installation: no other ledger heard of the issue in the same microsecond."""
        told = f"{self.issue} {self.known_since.isoformat() if self.known_since else ''}"
        return sha256(told.encode()).hexdigest()[:12]

    def effect(self, name: str, key: str) -> str | None:
        """Give the remote id of an effect that was done, if it was."""
        return dict(self.effects).get(f"{name}:{key}")

    @property
    def is_shown(self) -> bool:
        """Tell whether GitHub was told of the stage since it changed last."""
        return any(key.startswith(f"{SHOWN_STAGE}:") for key, _ in self.effects)


def advance(status: IssueStatus, event: Event, at: datetime) -> IssueStatus:
    """Fold one event into the status; events that only tell a story change nothing."""
    after = _advance(replace(status, known_since=status.known_since or at), event, at)
    if after.stage is status.stage:
        return after
    lasting = tuple(done for done in after.effects if not done[0].startswith(f"{SHOWN_STAGE}:"))
    return replace(after, effects=lasting)


def _advance(status: IssueStatus, event: Event, at: datetime) -> IssueStatus:
    match event:
        case IssueSeen(title=title, text_sha256=text, act=act):
            return replace(status, title=title, text_sha256=text, text_act=act)
        case Authorised():
            return _new_epoch(status, event)
        case AttemptStarted() | AttemptCompleted() | Decided():
            return _advance_attempt(status, event, at)
        case CommandReceived():
            return _hear(status, event)
        case HumanResponded(key=key):
            left = tuple(each for each in status.pending if each.key != key)
            return replace(status, pending=left)
        case EffectDone(effect=effect, key=key, remote_id=remote_id):
            effects = dict(status.effects) | {f"{effect}:{key}": remote_id}
            return replace(status, effects=tuple(sorted(effects.items())))
        case _:
            return _advance_result(status, event)


def _new_epoch(status: IssueStatus, event: Authorised) -> IssueStatus:
    return replace(
        status,
        stage=Stage.READY,
        phase=Phase.IDLE,
        epoch=status.epoch + 1,
        attempt=0,
        act=event.act,
        actor=event.actor,
        actor_id=event.actor_id,
        act_at=event.act_at,
        guidance=event.guidance,
        # New guidance asks for other work than what was kept.
        is_kept=status.is_kept and not event.guidance,
        outcome=None,
        decision=None,
        reason="",
        due=None,
    )


def _hear(status: IssueStatus, event: CommandReceived) -> IssueStatus:
    """Take a command down, once; a pause holds, and ends, from here on."""
    if event.key in status.heard:
        return status
    order = Order(
        event.key,
        event.command,
        event.text,
        event.actor,
        event.at,
        status.stage,
        event.actor_id,
    )
    paused_by = status.paused_by
    if event.command is Verb.PAUSE:
        paused_by = order.who
    elif event.command is Verb.RESUME or event.command in OPENING:
        paused_by = ""
    return replace(
        status,
        pending=(*status.pending, order),
        heard=(*status.heard, event.key),
        paused_by=paused_by,
    )


def _advance_attempt(
    status: IssueStatus, event: AttemptStarted | AttemptCompleted | Decided, at: datetime
) -> IssueStatus:
    match event:
        case AttemptStarted(attempt=attempt, number=number):
            return replace(
                status,
                stage=Stage.RUNNING,
                phase=Phase.ATTEMPTING,
                attempt=attempt,
                number=number,
                started_at=at,
                due=None,
                reason="",
                is_kept=False,
            )
        case AttemptCompleted(meta=meta):
            return replace(status, phase=Phase.COMPLETED, outcome=meta.outcome, reason=meta.error)
        case Decided(decision=decision):
            return replace(status, phase=Phase.DECIDED, decision=decision, reason=decision.reason)
        case _:
            assert_never(event)


def _advance_result(status: IssueStatus, event: Event) -> IssueStatus:
    match event:
        case Published(pull_request=url):
            return replace(_at_rest(status, Stage.REVIEW), pull_request=url, is_kept=False)
        case RetryScheduled(due=due, reason=reason) | Waiting(until=due, reason=reason):
            return replace(_at_rest(status, Stage.READY), due=due, reason=reason)
        case Escalated(reason=reason):
            is_kept = status.is_kept or status.outcome is Outcome.SUCCEEDED
            return replace(_at_rest(status, Stage.HITL), reason=reason, is_kept=is_kept)
        case StoodDown(reason=reason) | Resolved(resolution=reason):
            return replace(_at_rest(status, Stage.RESOLVED), reason=reason, is_kept=False)
        case _:
            return status


def _at_rest(status: IssueStatus, stage: Stage) -> IssueStatus:
    """Nothing is left to be done; nor is there anything to wait for, unless the event says so."""
    return replace(status, stage=stage, phase=Phase.IDLE, due=None)
