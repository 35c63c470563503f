"""Fold the events of an issue into its status; no other code creates a status.

A change here needs a new revision in storage/migrations/, even an empty one: migrating a database
folds its stored statuses again. Pure.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import assert_never

from mulligan.domain.attempt import CHANGES_WITHDRAWN
from mulligan.domain.command import OPENING, PendingCommand, Verb
from mulligan.domain.events import (
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
    FixRoundStarted,
    Forgotten,
    HumanResponded,
    IssueSeen,
    LearningsAccepted,
    LearningsDropped,
    ProofFinished,
    Published,
    PublishStarted,
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
from mulligan.domain.feedback import Feedback, merge_feedback
from mulligan.domain.issue import ConsoleAct, ReviewAct, Stage, parse_act
from mulligan.domain.outcome import Escalate, Outcome, StandDown, WaitForPullRequest
from mulligan.domain.recorded_effects import (
    NO_EFFECTS,
    BlockShown,
    CommentsRead,
    Effect,
    Effects,
    InHand,
    PublicationDelayed,
    PullNote,
    Pushed,
    StageShown,
    Topic,
)
from mulligan.domain.status import (
    Conflict,
    FailedHead,
    Handleable,
    Handled,
    IssueStatus,
    Phase,
    PullStatus,
    Request,
    SeenText,
    handled_of,
)
from mulligan.domain.verification import is_unverified


def advance(status: IssueStatus, event: Event, at: datetime) -> IssueStatus:
    """Fold one event into the status; events that are only for the log change nothing."""
    after = _advance(replace(status, known_since=status.known_since or at), event, at)
    if _shown_of(after) == _shown_of(status):
        return after
    return replace(after, effects=after.effects.without(StageShown))


def _shown_of(status: IssueStatus) -> tuple[object, ...]:
    pull = status.pull
    return status.stage, pull.passed, pull.updated_to, status.effects.pull_notes


def _advance(  # noqa: C901 - one flat match
    status: IssueStatus, event: Event, at: datetime
) -> IssueStatus:
    if isinstance(event, Effect):
        return _with_effect(status, event)
    match event:
        case IssueSeen(title=title, text_sha256=text, act=act):
            return replace(status, text=SeenText(title, text, act))
        case Authorised():
            return _new_epoch(replace(status, rounds=0), event)
        case CommandReceived():
            return _take_command(status, event)
        case HumanResponded(key=key):
            left = tuple(each for each in status.pending if str(each.act) != key)
            return replace(status, pending=left)
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
                obstacle=None,
                is_kept=False,
                pull=replace(status.pull, passed=0),
                effects=_started(status),
            )
        case AttemptCompleted(meta=meta):
            # The commit of a kept attempt may turn out to be lost, which changes its outcome.
            is_kept = status.is_kept and meta.outcome is Outcome.SUCCEEDED
            status = replace(status, phase=Phase.COMPLETED, is_kept=is_kept)
            unverified = is_unverified(meta)
            return replace(
                status, outcome=meta.outcome, is_unverified=unverified, reason=meta.error
            )
        case Decided(decision=decision):
            effects = status.effects.without(PublicationDelayed)
            decided = replace(status, phase=Phase.DECIDED, decision=decision, effects=effects)
            return replace(decided, reason=decision.reason)
        case Published(pull_request=url, number=number, left_draft=left_draft):
            return replace(
                _at_rest(status, Stage.REVIEW),
                pull=PullStatus(url, number, left_draft=left_draft),
                feedback=None,
                is_kept=False,
                labelled=True,
            )
        case Drafted(pull_request=url, number=number, attempt=attempt):
            pull = replace(status.pull, url=url, number=number, draft_of=attempt)
            return replace(status, pull=pull)
        case BroughtUpToDate(base_sha=base, head_sha=head):
            pull = replace(status.pull, passed=0, updated_to=base)
            pushed = Pushed(branch=status.issue.branch, head_sha=head)
            return _with_effect(replace(status, pull=pull), pushed)
        case (
            RetryScheduled(due=due, reason=reason, obstacle=obstacle)
            | Waiting(until=due, reason=reason, obstacle=obstacle)
        ):
            is_kept = status.is_kept or isinstance(status.decision, WaitForPullRequest)
            rests = _at_rest(status, Stage.READY)
            return replace(rests, due=due, reason=reason, is_kept=is_kept, obstacle=obstacle)
        case Escalated(reason=reason, comment=comment):
            is_kept = status.is_kept or status.outcome is Outcome.SUCCEEDED
            rests = _at_rest(status, Stage.HITL)
            return replace(rests, reason=reason, is_kept=is_kept, asked_at=comment, labelled=True)
        case StoodDown(reason=reason, keeps_pull=True):
            stage = Stage.HITL if status.pull.draft_of else Stage.REVIEW
            rests = _at_rest(status, stage)
            return replace(rests, reason=reason, is_kept=False, feedback=None, labelled=True)
        case StoodDown(reason=reason, elsewhere=elsewhere):
            # New guidance ends the attempt, but the feedback still needs an answer.
            left = status.feedback if status.has_new_request else None
            aborts = [each for each in status.pending if each.verb is Verb.ABORT]
            rests = _resolve(_with_done(status, aborts), reason)
            return replace(rests, feedback=left, elsewhere=elsewhere)
        case ReviewReceived():
            return _reviewed(status, event)
        case ReviewsWithdrawn():
            return _withdrawn(status, event)
        case Conflicted():
            return _conflicted(status, event, at)
        case CiFailed():
            return _failed_on_github(status, event, at)
        case CiPassed(count=count):
            return replace(status, pull=replace(status.pull, passed=count))
        case Resolved():
            return _resolved(status, event)
        case Forgotten():
            return _forgotten(status, event)
        case Restored():
            return _restored(status, event)
        case WorktreeReset() | AgentStarted() | AgentFinished() | FixRoundStarted():
            return status
        case RetryContextAssembled() | AttemptContextTruncated():
            return status
        case AttemptContextAssembled() | AttemptContextDelivered():
            return status
        case CheckFinished() | CheckSkipped() | BaselineRecorded():
            return status
        case ReviewFinished() | ProofFinished():
            return status
        case PublishStarted() | LearningsAccepted() | LearningsDropped():
            return status
        case _:
            assert_never(event)


def _with_effect(status: IssueStatus, effect: Effect) -> IssueStatus:
    """Add an effect; showing another stage has removed the review or hitl label."""
    if isinstance(effect, CommentsRead):
        return status  # The effect is the repository's, not the issue's.
    removed = isinstance(effect, StageShown) and status.stage not in {Stage.REVIEW, Stage.HITL}
    labelled = status.labelled and not removed
    status = replace(status, effects=status.effects.plus(effect), labelled=labelled)
    if isinstance(effect, BlockShown) and status.stage is Stage.READY:
        # Version 1 recorded an obstacle here only.
        return replace(status, obstacle=effect.obstacle)
    return status


def _new_epoch(status: IssueStatus, event: Authorised) -> IssueStatus:
    return replace(
        status,
        stage=Stage.READY,
        phase=Phase.IDLE,
        epoch=status.epoch + 1,
        attempt=0,
        request=Request(event.act, event.actor, event.actor_id, event.act_at, event.guidance),
        # New guidance requests other work than the verified commit.
        is_kept=status.is_kept and not event.guidance,
        outcome=None,
        is_unverified=False,
        decision=None,
        reason="",
        obstacle=None,
        due=None,
        ci_attempts=0,
        review_start=None,
        elsewhere=False,
        effects=status.effects.without_note(Topic.MEANWHILE),
    )


def _take_command(status: IssueStatus, event: CommandReceived) -> IssueStatus:
    """Add a command to the pending ones, once; a pause begins or ends at once."""
    act = parse_act(event.key)
    if act in status.handled:
        return status
    # An operator's clock may lag behind GitHub's, but the operator knew what the ledger has.
    recorded = status.request.at if isinstance(act, ConsoleAct) else None
    order = PendingCommand(
        act,
        event.command,
        event.text,
        event.actor,
        max(event.at, recorded or event.at),
        status.stage,
        event.actor_id,
    )
    pending = sorted((*status.pending, order), key=lambda each: each.at)
    taken = replace(status, pending=tuple(pending), handled=status.handled.plus(act))
    return _pause_or_stop(taken, order)


def _pause_or_stop(status: IssueStatus, order: PendingCommand) -> IssueStatus:
    """Put the newest pause, end of a pause, skip or abort in force (COMMAND-1)."""
    times = status.commanded
    if order.verb in {Verb.SKIP, Verb.ABORT}:
        newest = max(order.at, times.stopped or order.at)
        return replace(status, commanded=replace(times, stopped=newest))
    if order.verb not in {Verb.PAUSE, Verb.RESUME, *OPENING}:
        return status
    if times.paused is not None and order.at < times.paused:
        return status
    paused_by = order.who if order.verb is Verb.PAUSE else ""
    return replace(status, paused_by=paused_by, commanded=replace(times, paused=order.at))


def _started(status: IssueStatus) -> Effects:
    """Drop what an attempt answers; if a person insisted on it, that holds for its whole epoch."""
    effects, waited = status.effects.without(PullNote), status.effects.last(InHand)
    is_over = waited is not None and waited.act == status.request.act
    return effects.without(InHand) if is_over else effects


def _forgotten(status: IssueStatus, event: Forgotten) -> IssueStatus:
    return IssueStatus(
        status.issue,
        stage=Stage.RESOLVED,
        reason=event.reason,
        number=event.number,
        request=Request(event.act),
        known_since=event.known_since,
        pull=PullStatus(event.pull_request),
        effects=_kept_effects(event.effects),
        forgotten_epochs=event.epochs,
        handled=handled_of(event.heard),
    )


def _restored(status: IssueStatus, event: Restored) -> IssueStatus:
    """Add the facts that the rebuilt events lack; the labels on the issue are Mulligan's own."""
    return replace(
        status,
        restored=event.source,
        number=max(status.number, event.number),
        forgotten_epochs=event.epochs,
        rounds=event.rounds,
        ci_attempts=event.ci_attempts,
        review_start=event.review_start,
        paused_by=event.paused_by,
        effects=_kept_effects(event.effects, status.effects),
        handled=handled_of(event.handled),
        labelled=status.epoch > 0,
    )


def _kept_effects(effects: Iterable[Effect], before: Effects = NO_EFFECTS) -> Effects:
    of_issue = (each for each in effects if not isinstance(each, CommentsRead))
    return reduce(Effects.plus, of_issue, before)


def _resolved(status: IssueStatus, event: Resolved) -> IssueStatus:
    """Resolve the issue; the pull request of a skipped one stays open and is followed."""
    rests = replace(_resolve(status, event.reason), paused_by="")
    if not event.ends_pull:
        # Commands are executed oldest first, so this is the one that resolved the issue.
        return _with_done(rests, [each for each in rests.pending if each.verb is Verb.SKIP][:1])
    pull = replace(rests.pull, number=None, draft_of=0, left_draft="")
    return replace(rests, pull=pull)


def _with_done(status: IssueStatus, done: Collection[PendingCommand]) -> IssueStatus:
    marked = (replace(each, is_done=each.is_done or each in done) for each in status.pending)
    return replace(status, pending=tuple(marked))


def _resolve(status: IssueStatus, reason: str) -> IssueStatus:
    rests = _at_rest(status, Stage.RESOLVED)
    return replace(rests, reason=reason, is_kept=False, feedback=None)


def _reviewed(status: IssueStatus, event: ReviewReceived) -> IssueStatus:
    """Add a review to the feedback: the issue is due again, or is escalated."""
    keys = tuple(map(ReviewAct, event.reviews))
    found = Feedback(at=event.at, remarks=event.remarks, received=event.reviews)
    if event.opens_epoch:
        act = Authorised(
            act=str(ReviewAct(max(event.reviews, default=0))),
            actor=event.author,
            act_at=event.at,
            actor_id=event.author_id,
        )
        rounds = status.rounds + 1
        status = _new_epoch(replace(status, rounds=rounds), act)
    # A review that comes before the answer to an earlier one gets no attempts of its own.
    joins = status.stage is Stage.READY and status.review_start is not None
    if not (event.refused or joins):
        status = replace(status, review_start=status.attempt)
    return _due_again(status, keys, found, event.refused)


def _withdrawn(status: IssueStatus, event: ReviewsWithdrawn) -> IssueStatus:
    """Drop the reviews from the feedback, or decide to stop the work that is only for them."""
    keys = map(ReviewAct, event.reviews)
    status = replace(status, handled=reduce(Handled.plus, keys, status.handled))
    if not event.ends_work:
        left = status.feedback.without(event.reviews) if status.feedback else None
        return replace(status, feedback=left)
    if status.phase is not Phase.IDLE:
        return status  # The attempt, or its publication, ends the work.
    decision = StandDown(reason=CHANGES_WITHDRAWN, keeps_pull=True)
    return replace(status, phase=Phase.DECIDED, decision=decision, reason=decision.reason)


def _conflicted(status: IssueStatus, event: Conflicted, at: datetime) -> IssueStatus:
    key = Conflict(event.base_sha, event.head_sha)
    found = Feedback(at=at, conflict=", ".join(event.files) or "the same lines")
    return _due_again(_without_review(status), (key,), found)


def _failed_on_github(status: IssueStatus, event: CiFailed, at: datetime) -> IssueStatus:
    made = status.ci_attempts + (not event.refused)
    found = Feedback(at=at, checks=event.checks)
    counted, key = replace(status, ci_attempts=made), FailedHead(event.head_sha)
    for_checks = counted if event.refused else _without_review(counted)
    return _due_again(for_checks, (key,), found, event.refused)


def _without_review(status: IssueStatus) -> IssueStatus:
    """Count the next attempts for no review, unless one still waits for its answer."""
    waits = status.feedback is not None and status.feedback.received
    return status if waits else replace(status, review_start=None)


def _due_again(
    status: IssueStatus, keys: tuple[Handleable, ...], found: Feedback, refused: str = ""
) -> IssueStatus:
    status = replace(
        status,
        handled=reduce(Handled.plus, keys, status.handled),
        feedback=merge_feedback(status.feedback, found),
        outcome=None,
        reason=refused,
        is_kept=False,
        pull=replace(status.pull, passed=0),
    )
    if refused:
        return replace(status, phase=Phase.DECIDED, decision=Escalate(reason=refused))
    return _at_rest(status, Stage.READY)


def _at_rest(status: IssueStatus, stage: Stage) -> IssueStatus:
    """Set a stage without a next step, an obstacle, or a time to wait for."""
    return replace(status, stage=stage, phase=Phase.IDLE, due=None, obstacle=None)
