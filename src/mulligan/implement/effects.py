"""Carry decisions out on GitHub and git; every effect is recorded and can be repeated."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from mulligan.config.policy import Labels
from mulligan.domain.errors import (
    DeniedError,
    GoneError,
    MisconfiguredError,
    UnavailableError,
    WorldError,
)
from mulligan.domain.events import (
    AttemptCompleted,
    Authorised,
    BroughtUpToDate,
    Drafted,
    Escalated,
    Published,
    PublishStarted,
    RetryScheduled,
    StoodDown,
    Waiting,
)
from mulligan.domain.issue import Act, IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Escalate, Outcome, Retry, StandDown, WaitForBudget
from mulligan.domain.recorded_effects import (
    Answered,
    Effect,
    LabelRequested,
    Obstacle,
    Pushed,
    StageShown,
    StatusWritten,
    WorkPushed,
    block_shown,
    event_of,
)
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.budget_meter import spent_today
from mulligan.implement.issue_snapshot import (
    base_has_start,
    load_context,
    newer_request,
    objection,
    pull_request_elsewhere,
    settled_elsewhere,
    withdrawal,
)
from mulligan.implement.ports import BotContext
from mulligan.implement.prompt.feedback import review_answer, thread_answer, unchanged_answer
from mulligan.implement.result import (
    base_dropped,
    base_dropped_record,
    lost_record,
    overtaken_record,
)
from mulligan.sandbox.cancellation import sleep_until_cancelled

log = structlog.get_logger()


def record_effect(ref: IssueRef, effect: Effect, context: BotContext) -> None:
    """Record an effect, unless the ledger has it already."""
    if effect not in context.ledger.status(ref).effects.done:
        context.ledger.append(ref, event_of(effect))


# Labels and the status comment.


def announce_attempt(case: IssueContext, context: BotContext) -> None:
    """Show on GitHub that an attempt runs; if GitHub is unavailable, the attempt goes on."""
    try:
        sync_labels_and_status(case.issue.ref, context)
    except UnavailableError as error:
        log.warning("not_announced", issue=str(case.issue.ref), reason=str(error))


def sync_labels_and_status(ref: IssueRef, context: BotContext) -> None:
    """Make the labels and the status comment match the ledger (LABEL-4, STATUS-1).

    Shows nothing if the issue is not found or its repository is archived (LABEL-7). If a newer
    request came while an earlier one was ended, that request opens its epoch and keeps its label
    (LABEL-6). A pending command that asks for new attempts is carried out before anything is shown.
    """
    if context.ledger.status(ref).stage is Stage.RESOLVED:
        if context.ledger.status(ref).is_asked_anew:
            return
        if act := newer_request(ref, context):
            context.ledger.append(ref, Authorised.of(act))
    stage = context.ledger.status(ref).stage
    labels = context.policies.in_force(ref.repository).labels
    with suppress(GoneError):
        case = load_context(context.tracker.read(ref), context)
        if not context.tracker.repository(ref.repository).archived:
            is_theirs = _is_left_to_others(case, labels, context)
            if not is_theirs:
                context.writer.set_stage_labels(ref, stage, labels)
            if not is_theirs or case.status.effects.status_comment:
                update_status_comment(case, context)
                return
    record_effect(ref, StageShown(stage), context)


def _is_left_to_others(case: IssueContext, labels: Labels, context: BotContext) -> bool:
    """Tell whether the labels belong to another installation, which settled it (RECOVERY-3)."""
    status = case.status
    if status.elsewhere or status.stage in {Stage.REVIEW, Stage.HITL}:
        return status.elsewhere
    carried = {name.casefold() for name in case.issue.labels}
    if carried.isdisjoint({labels.review.casefold(), labels.hitl.casefold()}):
        return False
    return settled_elsewhere(case.issue.ref, context) is not None


def update_status_comment(case: IssueContext, context: BotContext) -> None:
    """Write the status comment; if it was edited a moment ago, defer that to the next pass."""
    ref, written = case.issue.ref, context.writer.update_status(case)
    if written:
        record_effect(ref, StatusWritten(written), context)
    record_effect(ref, StageShown(case.status.stage if written else None), context)


def write_deferred_status(ref: IssueRef, context: BotContext) -> None:
    """Write the deferred status comment; leave the labels, which people may have changed since."""
    with suppress(GoneError):
        case = load_context(context.tracker.read(ref), context)
        if not context.tracker.repository(ref.repository).archived:
            update_status_comment(case, context)
            return
    record_effect(ref, StageShown(context.ledger.status(ref).stage), context)


# Publishing a verified commit.

VERIFIED_BUNDLE = "verified.bundle"

PULL_REQUEST_WAITS = (0.0, 1.0, 2.0)
"""Seconds to wait before each look for the pull request of a branch another one just pushed."""


def ensure_commit_stored(ref: IssueRef, context: BotContext) -> str | None:
    """Store the commit of the last attempt, if it succeeded, for every worker (COMMIT-2).

    Returns None if the attempt did not succeed, or its commit is lost; a lost commit is recorded
    as an interrupted attempt, or as an infrastructure failure if the base was force-pushed.
    """
    *_, last = context.ledger.history(ref)
    if last.outcome is not Outcome.SUCCEEDED:
        return None
    place = context.artifacts.path(ref, last.number, VERIFIED_BUNDLE)
    if last.head_sha and context.worktrees.ensure_commit(ref, last.head_sha, place):
        context.git.store_commit(ref, last.head_sha, place)
        context.artifacts.share(place)
        return last.head_sha
    # A bundle needs the commit it is based on, which a force-push may have removed elsewhere.
    again = lost_record(last) if base_has_start(ref, last, context) else base_dropped_record(last)
    context.ledger.append(ref, AttemptCompleted(meta=again))
    return None


def has_foreign_push(ref: IssueRef, context: BotContext) -> bool:
    """Tell whether somebody pushed to the pull request while the attempt ran (PUBLISH-3).

    If so, record the attempt as interrupted: Mulligan does not overwrite other people's commits.
    """
    status, (*_, last) = context.ledger.status(ref), context.ledger.history(ref)
    if status.pull.number is None:
        return False
    tip = context.worktrees.remote_head(ref)
    if tip and (found := status.unrecorded_merge(tip)):
        # Mulligan merged the base branch and was killed before recording that.
        merged = BroughtUpToDate(base_sha=found.base_sha, head_sha=tip)
        status = context.ledger.append(ref, merged)
    if tip in {None, last.head_sha, expected_remote_head(status, last)}:
        return False
    context.ledger.append(ref, AttemptCompleted(meta=overtaken_record(last)))
    return True


def publish(ref: IssueRef, head: str, context: BotContext) -> Escalate | StandDown | None:
    """Push the verified commit and open the pull request; no agent runs, no attempt counts.

    Returns the decision that replaces the publication, if any: `Escalate` if GitHub refuses for
    good (PUBLISH-1), `StandDown` if the request was withdrawn or is no longer trusted. If a
    force-push removed the base of the work, nothing is pushed, the attempt is recorded as one that
    does not count, and the caller must decide again.
    """
    try:
        case = load_context(context.tracker.read(ref), context)
    except GoneError as error:
        return StandDown(reason=str(error))
    base = context.worktrees.base_branch(ref.repository)
    settings = context.policies.in_force(ref.repository).pull_request
    context.ledger.append(ref, PublishStarted(head_sha=head))
    elsewhere = pull_request_elsewhere(ref, context)
    # Check base, people and text last, right before the push.
    *_, last = case.history
    try:
        is_based = base_has_start(ref, last, context)
    except (DeniedError, MisconfiguredError) as error:
        return _unpublished(error)
    if not is_based:
        _note_push(ref, head, context)
        context.ledger.append(ref, AttemptCompleted(meta=base_dropped_record(last)))
        return None
    if why := stop_reason(ref, context) or elsewhere:
        _note_push(ref, head, context)
        return StandDown(reason=why)
    try:
        context.git.push(ref, head, expected_remote_head(case.status, last))
        record_effect(ref, Pushed(ref.branch, head), context)
        opened = context.writer.open_pull_request(case, base, settings)
    except DeniedError as error:
        if why := _taken_elsewhere(case, context):
            return StandDown(reason=why)
        return _unpublished(error)
    if opened.elsewhere:
        return StandDown(reason=f"Another installation of Mulligan has opened {opened.url}")
    answer_reviews(case, head, context)
    published = Published(
        pull_request=opened.url,
        number=opened.number,
        head_sha=head,
        left_draft=opened.left_draft,
    )
    context.ledger.append(ref, published)
    sync_labels_and_status(ref, context)
    return None


def _unpublished(error: WorldError) -> Escalate:
    fix = "Fix this, then write /mulligan retry. Mulligan keeps the verified commit."
    return Escalate(reason=f"Mulligan could not publish the verified work: {error}", fix=fix)


def _note_push(ref: IssueRef, head: str, context: BotContext) -> None:
    """Record a push after which Mulligan was killed; else the push would count as foreign.

    Best effort: records nothing if the branch cannot be read.
    """
    with suppress(WorldError):
        if context.worktrees.remote_head(ref) == head:
            record_effect(ref, Pushed(ref.branch, head), context)


def _taken_elsewhere(case: IssueContext, context: BotContext) -> str | None:
    """Give the reason if another installation took the branch and opened a pull request."""
    ref = case.issue.ref
    if (
        expected_remote_head(case.status, case.last) is not None
        or context.worktrees.remote_head(ref) is None
    ):
        return None
    for wait in PULL_REQUEST_WAITS:
        sleep_until_cancelled(wait)
        if why := pull_request_elsewhere(ref, context):
            return why
    return None


def expected_remote_head(status: IssueStatus, last: WorkerResultMeta | None) -> str | None:
    """Give the commit the remote branch must have: the one worked on, or the last one pushed."""
    if last and last.start_sha != last.base_sha:
        return last.start_sha
    return status.effects.pushed


def answer_reviews(case: IssueContext, head: str, context: BotContext) -> None:
    """Answer each review comment on a line, and each review that has none, once (PR-2)."""
    ref, status, last = case.issue.ref, case.status, case.last
    if status.feedback is None or status.pull.number is None or last is None:
        return
    writer, number = context.writer, status.pull.number
    for thread in status.feedback.threads:
        path = next((each.path for each in status.feedback.remarks if each.thread == thread), "")
        text = thread_answer(ref, head, path, last)
        said = partial(writer.answer_thread, ref, number, thread, text)
        _answer(ref, (thread, last.number), said, context)
    for review, author in status.feedback.reviews.items():
        where = f"{status.pull.url}#pullrequestreview-{review}"
        text = review_answer(head, where, author, last)
        said = partial(writer.answer_review, ref, number, review, text)
        _answer(ref, (review, None), said, context)


def answer_unchanged(case: IssueContext, comment: str, context: BotContext) -> None:
    """Answer each open review on the pull request: no change was made, and why (PR-2).

    `comment` is the address of the escalation comment. The answer to a review as a whole is
    replaced if a later attempt succeeds.
    """
    ref, status = case.issue.ref, case.status
    if status.feedback is None or status.pull.number is None or case.last is None:
        return
    writer, number, made = context.writer, status.pull.number, case.last.number
    text = unchanged_answer(ref, status.reason, comment)
    for thread in status.feedback.threads:
        said = partial(writer.answer_thread, ref, number, thread, text)
        _answer(ref, (thread, made), said, context)
    for review in status.feedback.reviews:
        said = partial(writer.answer_review, ref, number, review, text)
        _answer(ref, (review, made), said, context)


def _answer(
    ref: IssueRef, to: tuple[int, int | None], said: Callable[[], str], context: BotContext
) -> None:
    """Write an answer, unless it was written already; log a refusal and go on."""
    if context.ledger.status(ref).effects.has_answered(*to):
        return
    try:
        record_effect(ref, Answered(*to, said()), context)
    except DeniedError as error:
        log.warning("not_answered", issue=str(ref), to=to[0], reason=str(error))


# Checks before a write, and requests to a person.


def stop_reason(ref: IssueRef, context: BotContext) -> str | None:
    """Check again whether the work may go on (LABEL-5, TRUST-1, TRUST-2); if not, give the reason.

    If the text was changed since the request, ask in a comment for the label again.
    """
    if why := withdrawal(ref, context):
        return why
    found = objection(ref, context)
    if found is None:
        return None
    act = context.ledger.status(ref).request.act
    if found.by_edit and act:
        ask_for_label(ref, act, found.reason, context)
    return f"{found.reason}."


def ask_for_label(ref: IssueRef, act: Act, reason: str, context: BotContext) -> None:
    """Ask for the label again after a text change, once for each act; best effort (TRUST-2)."""
    if context.ledger.status(ref).effects.label_request(act):
        return
    try:
        case = load_context(context.tracker.read(ref), context)
        comment = context.writer.ask_for_label(case, str(act), reason)
        record_effect(ref, LabelRequested(act, comment), context)
    except WorldError as error:
        log.warning("not_asked", issue=str(ref), reason=str(error))


def report_blocked(
    ref: IssueRef, reason: str, context: BotContext, obstacle: Obstacle = Obstacle.ISSUE
) -> None:
    """Show on an issue, once for each reason, why it cannot be worked on; no attempt counts."""
    status = context.ledger.status(ref)
    notice = block_shown(obstacle, status.epoch, reason)
    if status.reason == reason and notice in status.effects.done:
        return
    if status.reason != reason:
        context.ledger.append(ref, Waiting(until=None, reason=reason))
    sync_labels_and_status(ref, context)
    record_effect(ref, notice, context)


# Waits and the end.


def retry(ref: IssueRef, decision: Retry, context: BotContext) -> None:
    """Schedule the next attempt: at once, or after the wait of its backoff step."""
    now, step = context.clock.now(), decision.backoff_step
    due = now + context.clock.backoff(step) if step else now
    context.ledger.append(ref, RetryScheduled(due=due, reason=decision.reason))
    if step:
        sync_labels_and_status(ref, context)


def wait_for_budget(ref: IssueRef, decision: WaitForBudget, context: BotContext) -> None:
    """Wait until midnight UTC; not at all if today's budget has room again."""
    now = context.clock.now().astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    wait_until(ref, midnight if spent_today(ref, context) else now, decision.reason, context)


def wait_until(ref: IssueRef, until: datetime, reason: str, context: BotContext) -> None:
    """Delay the next attempt until a time, and show the reason; no attempt counts."""
    context.ledger.append(ref, Waiting(until=until, reason=reason))
    sync_labels_and_status(ref, context)


def stand_down(ref: IssueRef, decision: StandDown, context: BotContext) -> None:
    """End the work on a withdrawn issue, and remove Mulligan's labels.

    If another installation has settled the request, its labels stay.
    """
    elsewhere = settled_elsewhere(ref, context) is not None
    context.ledger.append(ref, StoodDown(reason=decision.reason, elsewhere=elsewhere))
    sync_labels_and_status(ref, context)


# Escalation, and the unverified work that it shows.


def escalate(ref: IssueRef, decision: Escalate, context: BotContext) -> StandDown | None:
    """Hand the issue to a person: write the comment first, then set the label (ESCALATION-1).

    Returns `StandDown` instead if the request was withdrawn, or another installation answers it.
    """
    if why := withdrawal(ref, context) or pull_request_elsewhere(ref, context):
        return StandDown(reason=why)
    escalation = context.policies.in_force(ref.repository).escalation
    no_draft = draft_work(ref, context) if escalation.draft_pr else ""
    if escalation.push_work:
        push_work(ref, context)
    case = replace(load_context(context.tracker.read(ref), context), no_draft=no_draft)
    comment = context.writer.post_escalation(case, escalation)
    answer_unchanged(case, comment, context)
    context.ledger.append(ref, Escalated(reason=decision.reason, comment=comment))
    sync_labels_and_status(ref, context)
    return None


NOT_VERIFIED = frozenset({Outcome.CHECKS_FAILED, Outcome.REJECTED})
"""Outcomes of a change that passed the guards but not the checks or the reviewer.

The guards do not run on the change of an agent that timed out or gave up.
"""


def draft_work(ref: IssueRef, context: BotContext) -> str:
    """Show the last attempt's change as a draft pull request; give the reason if refused for good.

    Does nothing unless the change passed the guards, and refuses if the request is no longer
    trusted, its text was changed (TRUST-1), or the base was force-pushed. Only Mulligan's own open
    draft is updated, and only if nobody else pushed to it: unverified work never replaces verified
    work.
    """
    last = next(reversed(context.ledger.history(ref)), None)
    if last is None or last.head_sha is None or last.outcome not in NOT_VERIFIED:
        return ""
    try:
        if _is_taken(ref, last, context):
            return ""
        case = load_context(context.tracker.read(ref), context)
        if why := _push_refusal(ref, last, context):
            return why
        _open_draft(case, last, last.head_sha, context)
    except (DeniedError, MisconfiguredError) as error:
        log.warning("not_drafted", issue=str(ref), reason=str(error))
        _delete_unused_branch(ref, context)
        return str(error)
    return ""


def _is_taken(ref: IssueRef, last: WorkerResultMeta, context: BotContext) -> bool:
    """Tell whether there is a pull request that unverified work must not replace."""
    status = context.ledger.status(ref)
    if status.pull.number is None:
        return False
    pull = context.tracker.pulls.state(ref, status.pull.number)
    if not (status.pull.draft_of and pull.is_open and pull.is_draft):
        return True
    return context.worktrees.remote_head(ref) not in {
        None,
        last.head_sha,
        expected_remote_head(status, last),
    }


def _open_draft(case: IssueContext, last: WorkerResultMeta, head: str, context: BotContext) -> None:
    ref = case.issue.ref
    context.git.push(ref, head, expected_remote_head(case.status, last))
    record_effect(ref, Pushed(ref.branch, head), context)
    opened = context.writer.open_draft(case, context.worktrees.base_branch(ref.repository))
    if opened.elsewhere:
        return
    shown = (case.status.pull.draft_of, case.status.pull.number)
    if shown != (last.number, opened.number):
        drafted = Drafted(
            pull_request=opened.url, number=opened.number, head_sha=head, attempt=last.number
        )
        context.ledger.append(ref, drafted)


def _delete_unused_branch(ref: IssueRef, context: BotContext) -> None:
    """Delete the pushed branch if it has no pull request; best effort."""
    status = context.ledger.status(ref)
    pushed = status.effects.pushed
    if status.pull.number is not None or pushed is None:
        return
    try:
        context.git.delete_branch(ref, {pushed})
    except WorldError as error:
        log.warning("branch_left", issue=str(ref), reason=str(error))


def push_work(ref: IssueRef, context: BotContext) -> None:
    """Push the last attempt's change to a ref of its own, for people to inspect; best effort.

    Never push a change that did not pass the guards: it may hold secrets.
    """
    last = next(reversed(context.ledger.history(ref)), None)
    if last is None or last.head_sha is None:
        return
    if last.outcome not in {*NOT_VERIFIED, Outcome.SUCCEEDED}:
        return
    try:
        if why := _push_refusal(ref, last, context):
            log.warning("work_not_pushed", issue=str(ref), reason=why)
            return
        pushed = context.git.push_attempt(ref, last.head_sha, last.number)
    except WorldError as error:
        log.warning("work_not_pushed", issue=str(ref), reason=str(error))
        return
    record_effect(ref, WorkPushed(last.number, pushed), context)


def _push_refusal(ref: IssueRef, last: WorkerResultMeta, context: BotContext) -> str:
    """Check base, people and text again right before a push; give the reason against it."""
    if not base_has_start(ref, last, context):
        return base_dropped(last)
    wrong = objection(ref, context)
    return f"{wrong.reason}." if wrong else ""
