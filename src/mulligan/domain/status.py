"""Where an issue stands, folded from its events: never stored by hand. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from mulligan.domain.decision import Decision, Escalate
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
from mulligan.domain.feedback import Conflicted, Feedback, ReviewReceived, joined
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome

SHOWN_STAGE = "shown_stage"
"""The effect that GitHub was told of the stage; it lasts until the stage changes."""


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
    published. `feedback` is what the open pull request `pull_number` brought back, until an attempt
    at it is published; `heard` names all that was acted on, and `rounds` counts the epochs that
    reviews have opened since a person asked.
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
    pull_number: int | None = None
    feedback: Feedback | None = None
    heard: tuple[str, ...] = ()
    rounds: int = 0

    def effect(self, name: str, key: str) -> str | None:
        """Give the remote id of an effect that was done, if it was."""
        return dict(self.effects).get(f"{name}:{key}")

    @property
    def is_shown(self) -> bool:
        """Tell whether GitHub was told of the stage since it changed last."""
        return any(key.startswith(f"{SHOWN_STAGE}:") for key, _ in self.effects)


def advance(status: IssueStatus, event: Event, at: datetime) -> IssueStatus:
    """Fold one event into the status; events that only tell a story change nothing."""
    after = _advance(status, event, at)
    if after.stage is status.stage:
        return after
    lasting = tuple(done for done in after.effects if not done[0].startswith(f"{SHOWN_STAGE}:"))
    return replace(after, effects=lasting)


def _advance(status: IssueStatus, event: Event, at: datetime) -> IssueStatus:
    match event:
        case IssueSeen(title=title, text_sha256=text, act=act):
            return replace(status, title=title, text_sha256=text, text_act=act)
        case Authorised():
            return _new_epoch(replace(status, rounds=0), event)
        case ReviewReceived():
            return _reviewed(status, event)
        case Conflicted():
            return _conflicted(status, event, at)
        case AttemptStarted() | AttemptCompleted() | Decided():
            return _advance_attempt(status, event, at)
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
        outcome=None,
        decision=None,
        reason="",
        due=None,
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
        case Published(pull_request=url, number=number):
            rests = _at_rest(status, Stage.REVIEW)
            return replace(
                rests, pull_request=url, pull_number=number, feedback=None, is_kept=False
            )
        case RetryScheduled(due=due, reason=reason) | Waiting(until=due, reason=reason):
            return replace(_at_rest(status, Stage.READY), due=due, reason=reason)
        case Escalated(reason=reason):
            is_kept = status.is_kept or status.outcome is Outcome.SUCCEEDED
            return replace(_at_rest(status, Stage.HITL), reason=reason, is_kept=is_kept)
        case StoodDown(reason=reason):
            return _done_with(status, reason)
        case Resolved(resolution=reason):
            return replace(_done_with(status, reason), pull_number=None)
        case _:
            return status


def _done_with(status: IssueStatus, reason: str) -> IssueStatus:
    rests = _at_rest(status, Stage.RESOLVED)
    return replace(rests, reason=reason, is_kept=False, feedback=None)


def _reviewed(status: IssueStatus, event: ReviewReceived) -> IssueStatus:
    """Take a review in: the issue is due again, or a person is asked."""
    keys = tuple(f"review:{number}" for number in event.reviews)
    found = Feedback(at=event.at, remarks=event.remarks)
    if event.opens_epoch:
        act = Authorised(
            act=f"review:{max(event.reviews, default=0)}",
            actor=event.author,
            act_at=event.at,
            actor_id=event.author_id,
        )
        rounds = status.rounds + 1
        status = _new_epoch(replace(status, rounds=rounds), act)
    return _due_again(status, keys, found, event.refused)


def _conflicted(status: IssueStatus, event: Conflicted, at: datetime) -> IssueStatus:
    key = f"conflict:{event.base_sha}:{event.head_sha}"
    found = Feedback(at=at, conflict=", ".join(event.files) or "the same lines")
    return _due_again(status, (key,), found)


def _due_again(
    status: IssueStatus, keys: tuple[str, ...], found: Feedback, refused: str = ""
) -> IssueStatus:
    heard, pending = (*status.heard, *keys), joined(status.feedback, found)
    status = replace(
        status, heard=heard, feedback=pending, outcome=None, reason=refused, is_kept=False
    )
    if refused:
        return replace(status, phase=Phase.DECIDED, decision=Escalate(reason=refused))
    return _at_rest(status, Stage.READY)


def _at_rest(status: IssueStatus, stage: Stage) -> IssueStatus:
    """Nothing is left to be done; nor is there anything to wait for, unless the event says so."""
    return replace(status, stage=stage, phase=Phase.IDLE, due=None)
