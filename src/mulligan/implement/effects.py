"""Carry decisions out on GitHub and git; every effect is recorded and can be repeated."""

import hashlib
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
    EffectDone,
    Escalated,
    Published,
    PublishStarted,
    RetryScheduled,
    StoodDown,
    Waiting,
)
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Escalate, Outcome, Retry, StandDown, WaitForBudget
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import DEFERRED, PUSH, PUSHED_WORK, SHOWN_STAGE, IssueStatus
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
from mulligan.implement.prompt.feedback import review_answer, thread_answer
from mulligan.implement.result import (
    base_dropped,
    base_dropped_record,
    lost_record,
    overtaken_record,
)
from mulligan.sandbox.cancellation import sleep_until_cancelled

log = structlog.get_logger()


# The names of the effects that only this module does.
STATUS_COMMENT = "status_comment"
LABEL_COMMENT = "label_comment"
BLOCKED_NOTICE = "held"
ANSWER_EFFECT = "answer"

SINGLE_KEY = "issue"
"""Key for effects that occur at most once per issue."""


def record_effect(
    ref: IssueRef, effect: str, key: str, remote_id: str, context: BotContext
) -> None:
    """Record an effect, unless the ledger has it already."""
    if context.ledger.status(ref).effect(effect, key) != remote_id:
        context.ledger.append(ref, EffectDone(effect=effect, key=key, remote_id=remote_id))


# Labels and the status comment.


def announce_attempt(case: IssueContext, context: BotContext) -> None:
    """Show on GitHub that an attempt runs; if GitHub is unavailable, the attempt goes on."""
    try:
        sync_labels_and_status(case.issue.ref, context)
    except UnavailableError as error:
        log.warning("not_announced", issue=str(case.issue.ref), reason=str(error))


def sync_labels_and_status(ref: IssueRef, context: BotContext) -> None:
    """Make the labels and the status comment match the ledger (SPEC L4, H5).

    Shows nothing if the issue is not found or its repository is archived (SPEC L7). If a newer
    request came while an earlier one was ended, that request opens its epoch and keeps its label
    (SPEC L6). A pending command that asks for new attempts is carried out before anything is shown.
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
                context.tracker.set_stage_labels(ref, stage, labels)
            if not is_theirs or case.status.effect(STATUS_COMMENT, SINGLE_KEY):
                update_status_comment(case, context)
                return
    record_effect(ref, SHOWN_STAGE, SINGLE_KEY, stage, context)


def _is_left_to_others(case: IssueContext, labels: Labels, context: BotContext) -> bool:
    """Tell whether the labels belong to another installation, which settled the request (E4)."""
    status = case.status
    if status.elsewhere or status.stage in {Stage.REVIEW, Stage.HITL}:
        return status.elsewhere
    carried = {name.casefold() for name in case.issue.labels}
    if carried.isdisjoint({labels.review.casefold(), labels.hitl.casefold()}):
        return False
    return settled_elsewhere(case.issue.ref, context) is not None


def update_status_comment(case: IssueContext, context: BotContext) -> None:
    """Write the status comment; if it was edited a moment ago, defer that to the next pass."""
    ref, written = case.issue.ref, context.tracker.update_status(case)
    if written:
        record_effect(ref, STATUS_COMMENT, SINGLE_KEY, written, context)
    record_effect(ref, SHOWN_STAGE, SINGLE_KEY, case.status.stage if written else DEFERRED, context)


def write_deferred_status(ref: IssueRef, context: BotContext) -> None:
    """Write the deferred status comment; leave the labels, which people may have changed since."""
    with suppress(GoneError):
        case = load_context(context.tracker.read(ref), context)
        if not context.tracker.repository(ref.repository).archived:
            update_status_comment(case, context)
            return
    record_effect(ref, SHOWN_STAGE, SINGLE_KEY, context.ledger.status(ref).stage, context)


# Publishing a verified commit.

VERIFIED_BUNDLE = "verified.bundle"

PULL_REQUEST_WAITS = (0.0, 1.0, 2.0)
"""Seconds to wait before each look for the pull request of a branch another one just pushed."""


def ensure_commit_stored(ref: IssueRef, context: BotContext) -> str | None:
    """Store the commit of the last attempt, if it succeeded, where every worker finds it (A15).

    Returns None if the attempt did not succeed, or its commit is lost; a lost commit is recorded
    as an interrupted attempt, or as an infrastructure failure if the base was force-pushed.
    """
    *_, last = context.ledger.history(ref)
    if last.outcome is not Outcome.SUCCEEDED:
        return None
    place = context.artifacts.path(ref, last.number, VERIFIED_BUNDLE)
    if last.head_sha and context.worktrees.ensure_commit(ref, last.head_sha, place):
        context.worktrees.store_commit(ref, last.head_sha, place)
        context.artifacts.share(place)
        return last.head_sha
    # A bundle needs the commit it is based on, which a force-push may have removed elsewhere.
    again = lost_record(last) if base_has_start(ref, last, context) else base_dropped_record(last)
    context.ledger.append(ref, AttemptCompleted(meta=again))
    return None


def has_foreign_push(ref: IssueRef, context: BotContext) -> bool:
    """Tell whether somebody pushed to the pull request while the attempt ran (SPEC P2).

    If so, record the attempt as interrupted: Mulligan does not overwrite other people's commits.
    """
    status, (*_, last) = context.ledger.status(ref), context.ledger.history(ref)
    if status.pull_number is None:
        return False
    tip = context.worktrees.remote_head(ref)
    if tip and (base := status.merged_since.get(tip)):
        # Mulligan merged the base branch and was killed before recording that.
        status = context.ledger.append(ref, BroughtUpToDate(base_sha=base, head_sha=tip))
    if tip in {None, last.head_sha, expected_remote_head(status, last)}:
        return False
    context.ledger.append(ref, AttemptCompleted(meta=overtaken_record(last)))
    return True


def publish(ref: IssueRef, head: str, context: BotContext) -> Escalate | StandDown | None:
    """Push the verified commit and open the pull request; no agent runs, no attempt counts.

    Returns the decision that replaces the publication, if any: `Escalate` if GitHub refuses for
    good (SPEC O5), `StandDown` if the request was withdrawn or is no longer trusted. If a
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
        context.worktrees.push(ref, head, expected_remote_head(case.status, last))
        record_effect(ref, PUSH, ref.branch, head, context)
        opened = context.tracker.open_pull_request(case, base, settings)
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
    fix = "Mend this, then write /mulligan retry; the verified commit is kept."
    return Escalate(reason=f"The verified work could not be published: {error}", fix=fix)


def _note_push(ref: IssueRef, head: str, context: BotContext) -> None:
    """Record a push after which Mulligan was killed; else the push would count as foreign.

    Best effort: records nothing if the branch cannot be read.
    """
    with suppress(WorldError):
        if context.worktrees.remote_head(ref) == head:
            record_effect(ref, PUSH, ref.branch, head, context)


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
    return status.effect(PUSH, status.issue.branch)


def answer_reviews(case: IssueContext, head: str, context: BotContext) -> None:
    """Answer each review comment on a line, and each review that has none, once (SPEC P3)."""
    ref, status, last = case.issue.ref, case.status, case.last
    if status.feedback is None or status.pull_number is None or last is None:
        return
    pulls, number = context.tracker.pulls, status.pull_number
    for thread in status.feedback.threads:
        path = next((each.path for each in status.feedback.remarks if each.thread == thread), "")
        text = thread_answer(ref, head, path, last)
        said = partial(pulls.answer, ref, number, thread, text)
        _answer(ref, f"{thread}:{last.number}", said, context)
    for review, author in status.feedback.reviews.items():
        where = f"{status.pull_request}#pullrequestreview-{review}"
        text = review_answer(head, where, author, last)
        said = partial(pulls.answer_review, ref, number, review, text)
        _answer(ref, f"review:{review}", said, context)


def _answer(ref: IssueRef, key: str, said: Callable[[], str], context: BotContext) -> None:
    """Write an answer, unless it was written already; log a refusal and go on."""
    if context.ledger.status(ref).effect(ANSWER_EFFECT, key):
        return
    try:
        record_effect(ref, ANSWER_EFFECT, key, said(), context)
    except DeniedError as error:
        log.warning("not_answered", issue=str(ref), to=key, reason=str(error))


# Checks before a write, and requests to a person.


def stop_reason(ref: IssueRef, context: BotContext) -> str | None:
    """Check again whether the work may go on (SPEC L5, T1, T2); give the reason if it may not.

    If the text was changed since the request, ask in a comment for the label again.
    """
    if why := withdrawal(ref, context):
        return why
    found = objection(ref, context)
    if found is None:
        return None
    if found.by_edit:
        ask_for_label(ref, context.ledger.status(ref).act, found.reason, context)
    return f"{found.reason}."


def ask_for_label(ref: IssueRef, act: str, reason: str, context: BotContext) -> None:
    """Ask for the label again after a text change, once for each act; best effort (SPEC T2)."""
    if context.ledger.status(ref).effect(LABEL_COMMENT, act):
        return
    try:
        case = load_context(context.tracker.read(ref), context)
        record_effect(
            ref, LABEL_COMMENT, act, context.tracker.ask_for_label(case, act, reason), context
        )
    except WorldError as error:
        log.warning("not_asked", issue=str(ref), reason=str(error))


def report_blocked(ref: IssueRef, reason: str, context: BotContext) -> None:
    """Show on an issue, once for each reason, why it cannot be worked on; no attempt counts."""
    status = context.ledger.status(ref)
    notice = f"{status.epoch}:{hashlib.sha256(reason.encode()).hexdigest()}"
    if status.reason == reason and status.effect(BLOCKED_NOTICE, SINGLE_KEY) == notice:
        return
    if status.reason != reason:
        context.ledger.append(ref, Waiting(until=None, reason=reason))
    sync_labels_and_status(ref, context)
    record_effect(ref, BLOCKED_NOTICE, SINGLE_KEY, notice, context)


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
    """Hand the issue to a person: write the comment first, then set the label (SPEC H1).

    Returns `StandDown` instead if the request was withdrawn, or another installation answers it.
    """
    if why := withdrawal(ref, context) or pull_request_elsewhere(ref, context):
        return StandDown(reason=why)
    escalation = context.policies.in_force(ref.repository).escalation
    no_draft = draft_work(ref, context) if escalation.draft_pr else ""
    if escalation.push_work:
        push_work(ref, context)
    case = replace(load_context(context.tracker.read(ref), context), no_draft=no_draft)
    comment = context.tracker.post_escalation(case, escalation)
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
    trusted, its text was changed (SPEC T1), or the base was force-pushed. Only Mulligan's own open
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
    if status.pull_number is None:
        return False
    pull = context.tracker.pulls.state(ref, status.pull_number)
    if not (status.draft_of and pull.is_open and pull.is_draft):
        return True
    return context.worktrees.remote_head(ref) not in {
        None,
        last.head_sha,
        expected_remote_head(status, last),
    }


def _open_draft(case: IssueContext, last: WorkerResultMeta, head: str, context: BotContext) -> None:
    ref = case.issue.ref
    context.worktrees.push(ref, head, expected_remote_head(case.status, last))
    record_effect(ref, PUSH, ref.branch, head, context)
    opened = context.tracker.open_draft(case, context.worktrees.base_branch(ref.repository))
    if opened.elsewhere:
        return
    shown = (case.status.draft_of, case.status.pull_number)
    if shown != (last.number, opened.number):
        drafted = Drafted(
            pull_request=opened.url, number=opened.number, head_sha=head, attempt=last.number
        )
        context.ledger.append(ref, drafted)


def _delete_unused_branch(ref: IssueRef, context: BotContext) -> None:
    """Delete the pushed branch if it has no pull request; best effort."""
    status = context.ledger.status(ref)
    pushed = status.effect(PUSH, ref.branch)
    if status.pull_number is not None or pushed is None:
        return
    try:
        context.worktrees.delete_branch(ref, {pushed})
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
        pushed = context.worktrees.push_attempt(ref, last.head_sha, last.number)
    except WorldError as error:
        log.warning("work_not_pushed", issue=str(ref), reason=str(error))
        return
    record_effect(ref, PUSHED_WORK, str(last.number), pushed, context)


def _push_refusal(ref: IssueRef, last: WorkerResultMeta, context: BotContext) -> str:
    """Check base, people and text again right before a push; give the reason against it."""
    if not base_has_start(ref, last, context):
        return base_dropped(last)
    wrong = objection(ref, context)
    return f"{wrong.reason}." if wrong else ""
