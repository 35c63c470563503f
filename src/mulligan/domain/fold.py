"""Fold the events of an issue into its status; nothing else makes a status.

A change here needs a new revision in storage/migrations/, even an empty one: a database folds its
stored statuses again when it is migrated. Pure.
"""

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from mulligan.domain.command import OPENING, PendingCommand, Verb
from mulligan.domain.events import (
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    BroughtUpToDate,
    CiFailed,
    CiPassed,
    CommandReceived,
    Conflicted,
    Decided,
    Drafted,
    EffectDone,
    Escalated,
    Event,
    Forgotten,
    HumanResponded,
    IssueSeen,
    Published,
    Resolved,
    RetryScheduled,
    Returned,
    ReviewReceived,
    StoodDown,
    Waiting,
)
from mulligan.domain.feedback import Feedback, failed_head_key, merge_feedback
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Escalate, Outcome
from mulligan.domain.status import (
    PUSH,
    SHOWN_STAGE,
    IssueStatus,
    Phase,
    add_handled,
    is_handled,
    trim_effects,
)


def advance(status: IssueStatus, event: Event, at: datetime) -> IssueStatus:
    """Fold one event into the status; events that are only for the log change nothing."""
    after = _advance(replace(status, known_since=status.known_since or at), event, at)
    if _shown_of(after) == _shown_of(status):
        return after
    lasting = tuple(done for done in after.effects if not done[0].startswith(f"{SHOWN_STAGE}:"))
    return replace(after, effects=lasting)


def _shown_of(status: IssueStatus) -> tuple[object, ...]:
    return status.stage, status.ci_passed, status.updated_to


def _advance(status: IssueStatus, event: Event, at: datetime) -> IssueStatus:
    match event:
        case IssueSeen(title=title, text_sha256=text, act=act):
            return replace(status, title=title, text_sha256=text, text_act=act)
        case Authorised():
            return _new_epoch(replace(status, rounds=0), event)
        case AttemptStarted() | AttemptCompleted() | Decided():
            return _advance_attempt(status, event, at)
        case CommandReceived() | HumanResponded():
            return _advance_commands(status, event)
        case ReviewReceived() | Conflicted() | CiFailed() | CiPassed():
            return _advance_returned(status, event, at)
        case EffectDone(effect=effect, key=key, remote_id=remote_id):
            return _with_effect(_labelled_still(status, effect), f"{effect}:{key}", remote_id)
        case Published() | Drafted() | BroughtUpToDate():
            return _advance_proposed(status, event)
        case _:
            return _advance_result(status, event)


def _labelled_still(status: IssueStatus, effect: str) -> IssueStatus:
    """Note that the review or hitl label was removed once another stage is shown."""
    if effect != SHOWN_STAGE or status.stage in {Stage.REVIEW, Stage.HITL}:
        return status
    return replace(status, labelled=False)


def _with_effect(status: IssueStatus, key: str, remote_id: str) -> IssueStatus:
    effects = {name: given for name, given in status.effects if name != key} | {key: remote_id}
    return replace(status, effects=trim_effects(effects))


def _advance_proposed(
    status: IssueStatus, event: Published | Drafted | BroughtUpToDate
) -> IssueStatus:
    match event:
        case Published(pull_request=url, number=number, left_draft=left_draft):
            return replace(
                _at_rest(status, Stage.REVIEW),
                pull_request=url,
                pull_number=number,
                feedback=None,
                is_kept=False,
                ci_passed=0,
                draft_of=0,
                left_draft=left_draft,
                updated_to="",
                labelled=True,
            )
        case Drafted(pull_request=url, number=number, attempt=attempt):
            return replace(status, pull_request=url, pull_number=number, draft_of=attempt)
        case BroughtUpToDate(base_sha=base, head_sha=head):
            pushed = _with_effect(status, f"{PUSH}:{status.issue.branch}", head)
            return replace(pushed, ci_passed=0, updated_to=base)
        case _:
            assert_never(event)


def _advance_commands(status: IssueStatus, event: CommandReceived | HumanResponded) -> IssueStatus:
    match event:
        case CommandReceived():
            return _take_command(status, event)
        case HumanResponded(key=key):
            left = tuple(each for each in status.pending if each.key != key)
            return replace(status, pending=left)
        case _:
            assert_never(event)


def _advance_returned(status: IssueStatus, event: Returned, at: datetime) -> IssueStatus:
    match event:
        case ReviewReceived():
            return _reviewed(status, event)
        case Conflicted():
            return _conflicted(status, event, at)
        case CiFailed():
            return _failed_on_github(status, event, at)
        case CiPassed(count=count):
            return replace(status, ci_passed=count)
        case _:
            assert_never(event)


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
        # New guidance requests other work than the verified commit.
        is_kept=status.is_kept and not event.guidance,
        outcome=None,
        decision=None,
        reason="",
        due=None,
        ci_attempts=0,
        elsewhere=False,
    )


def _take_command(status: IssueStatus, event: CommandReceived) -> IssueStatus:
    """Add a command to the pending ones, once; a pause begins or ends at once."""
    if is_handled(status.heard, event.key):
        return status
    order = PendingCommand(
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
        heard=add_handled(status.heard, event.key),
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
                ci_passed=0,
            )
        case AttemptCompleted(meta=meta):
            return replace(status, phase=Phase.COMPLETED, outcome=meta.outcome, reason=meta.error)
        case Decided(decision=decision):
            return replace(status, phase=Phase.DECIDED, decision=decision, reason=decision.reason)
        case _:
            assert_never(event)


def _advance_result(status: IssueStatus, event: Event) -> IssueStatus:
    match event:
        case RetryScheduled(due=due, reason=reason) | Waiting(until=due, reason=reason):
            return replace(_at_rest(status, Stage.READY), due=due, reason=reason)
        case Escalated(reason=reason, comment=comment):
            is_kept = status.is_kept or status.outcome is Outcome.SUCCEEDED
            rests = _at_rest(status, Stage.HITL)
            return replace(rests, reason=reason, is_kept=is_kept, asked_at=comment, labelled=True)
        case StoodDown(reason=reason, elsewhere=elsewhere):
            # New guidance ends the attempt, but the feedback still needs an answer.
            left = status.feedback if status.is_asked_anew else None
            return replace(_resolve(status, reason), feedback=left, elsewhere=elsewhere)
        case Resolved():
            return _resolved(status, event)
        case Forgotten():
            return _forgotten(status, event)
        case _:
            return status


def _forgotten(status: IssueStatus, event: Forgotten) -> IssueStatus:
    return IssueStatus(
        status.issue,
        stage=Stage.RESOLVED,
        reason=event.reason,
        number=event.number,
        act=event.act,
        known_since=event.known_since,
        pull_request=event.pull_request,
        effects=tuple((each.name, each.remote_id) for each in event.effects),
        forgotten_epochs=event.epochs,
        heard=event.heard,
    )


def _resolved(status: IssueStatus, event: Resolved) -> IssueStatus:
    """Resolve the issue; the pull request of a skipped one stays open and is followed."""
    rests = replace(_resolve(status, event.resolution), paused_by="")
    if not event.ends_pull:
        return rests
    return replace(rests, pull_number=None, draft_of=0, left_draft="")


def _resolve(status: IssueStatus, reason: str) -> IssueStatus:
    rests = _at_rest(status, Stage.RESOLVED)
    return replace(rests, reason=reason, is_kept=False, feedback=None)


def _reviewed(status: IssueStatus, event: ReviewReceived) -> IssueStatus:
    """Add a review to the feedback: the issue is due again, or is escalated."""
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


def _failed_on_github(status: IssueStatus, event: CiFailed, at: datetime) -> IssueStatus:
    made = status.ci_attempts + (not event.refused)
    found = Feedback(at=at, checks=event.checks)
    return _due_again(
        replace(status, ci_attempts=made), (failed_head_key(event.head_sha),), found, event.refused
    )


def _due_again(
    status: IssueStatus, keys: tuple[str, ...], found: Feedback, refused: str = ""
) -> IssueStatus:
    heard, pending = add_handled(status.heard, *keys), merge_feedback(status.feedback, found)
    status = replace(
        status,
        heard=heard,
        feedback=pending,
        outcome=None,
        reason=refused,
        is_kept=False,
        ci_passed=0,
    )
    if refused:
        return replace(status, phase=Phase.DECIDED, decision=Escalate(reason=refused))
    return _at_rest(status, Stage.READY)


def _at_rest(status: IssueStatus, stage: Stage) -> IssueStatus:
    """Set a stage with no step left to do and no time to wait for."""
    return replace(status, stage=stage, phase=Phase.IDLE, due=None)
