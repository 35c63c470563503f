"""What Mulligan does on GitHub. Each effect may happen twice and shows once; each is recorded."""

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
"""The key of what an issue has one of."""


def record_effect(
    ref: IssueRef, effect: str, key: str, remote_id: str, context: BotContext
) -> None:
    """Record an effect, unless the ledger says so already."""
    if context.ledger.status(ref).effect(effect, key) != remote_id:
        context.ledger.append(ref, EffectDone(effect=effect, key=key, remote_id=remote_id))


# Labels and the status comment.


def announce_attempt(case: IssueContext, context: BotContext) -> None:
    """Say on GitHub that an attempt runs; GitHub being away does not stop the attempt."""
    try:
        sync_labels_and_status(case.issue.ref, context)
    except UnavailableError as error:
        log.warning("not_announced", issue=str(case.issue.ref), reason=str(error))


def sync_labels_and_status(ref: IssueRef, context: BotContext) -> None:
    """Make the labels and the status comment say what the ledger says (SPEC L4, H5).

    Where the issue is gone, or its repository archived, nothing can be shown (SPEC L7). A request
    that came while an earlier one was ended keeps its label, and opens its epoch (SPEC L6); a
    command that does so is carried out first.
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
            theirs = _is_left_to_others(case, labels, context)
            if not theirs:
                context.tracker.set_stage_labels(ref, stage, labels)
            if not theirs or case.status.effect(STATUS_COMMENT, SINGLE_KEY):
                update_status_comment(case, context)
                return
    record_effect(ref, SHOWN_STAGE, SINGLE_KEY, stage, context)


def _is_left_to_others(case: IssueContext, labels: Labels, context: BotContext) -> bool:
    """Tell whether the labels show what another installation came to, and are left to it (E4)."""
    status = case.status
    if status.elsewhere or status.stage in {Stage.REVIEW, Stage.HITL}:
        return status.elsewhere
    carried = {name.casefold() for name in case.issue.labels}
    if carried.isdisjoint({labels.review.casefold(), labels.hitl.casefold()}):
        return False
    return settled_elsewhere(case.issue.ref, context) is not None


def update_status_comment(case: IssueContext, context: BotContext) -> None:
    """Write the status comment; where it was written a moment ago, leave that to the next pass."""
    ref, written = case.issue.ref, context.tracker.update_status(case)
    if written:
        record_effect(ref, STATUS_COMMENT, SINGLE_KEY, written, context)
    record_effect(ref, SHOWN_STAGE, SINGLE_KEY, case.status.stage if written else DEFERRED, context)


def write_deferred_status(ref: IssueRef, context: BotContext) -> None:
    """Write the status comment that was put off; the labels were shown, and may be moved since."""
    with suppress(GoneError):
        case = load_context(context.tracker.read(ref), context)
        if not context.tracker.repository(ref.repository).archived:
            update_status_comment(case, context)
            return
    record_effect(ref, SHOWN_STAGE, SINGLE_KEY, context.ledger.status(ref).stage, context)


# Publishing a verified commit.

VERIFIED_BUNDLE = "verified.bundle"

PULL_REQUEST_WAITS = (0.0, 1.0, 2.0)
"""After how many seconds to look for the pull request of a branch that somebody has just pushed."""


def ensure_commit_stored(ref: IssueRef, context: BotContext) -> str | None:
    """Keep the commit of a last attempt that succeeded where any worker finds it (SPEC A15).

    None where there is none. One that is gone makes the attempt count as interrupted.
    """
    *_, last = context.ledger.history(ref)
    if last.outcome is not Outcome.SUCCEEDED:
        return None
    place = context.artifacts.path(ref, last.number, VERIFIED_BUNDLE)
    if last.head_sha and context.worktrees.ensure_commit(ref, last.head_sha, place):
        context.worktrees.store_commit(ref, last.head_sha, place)
        context.artifacts.share(place)
        return last.head_sha
    # A bundle needs the base that it was made on, and so goes with that on another machine.
    again = lost_record(last) if base_has_start(ref, last, context) else base_dropped_record(last)
    context.ledger.append(ref, AttemptCompleted(meta=again))
    return None


def has_foreign_push(ref: IssueRef, context: BotContext) -> bool:
    """Tell whether somebody pushed to the pull request while the attempt ran (SPEC P2).

    Its commit is not forced over theirs: the attempt counts as interrupted.
    """
    status, (*_, last) = context.ledger.status(ref), context.ledger.history(ref)
    if status.pull_number is None:
        return False
    tip = context.worktrees.remote_head(ref)
    if tip and (base := status.merged_since.get(tip)):
        # Whoever merged the base branch was killed before that was on record.
        status = context.ledger.append(ref, BroughtUpToDate(base_sha=base, head_sha=tip))
    if tip in {None, last.head_sha, expected_remote_head(status, last)}:
        return False
    context.ledger.append(ref, AttemptCompleted(meta=overtaken_record(last)))
    return True


def publish(ref: IssueRef, head: str, context: BotContext) -> Escalate | StandDown | None:
    """Push the verified commit and open the pull request; no agent runs, no attempt is spent.

    What GitHub refuses for good comes back as the escalation that follows (SPEC O5), and a
    request that was withdrawn, or is not trusted any more, as the standing down. Where a force-push
    took the base of the work away, nothing is pushed; the attempt is recorded as one that does not
    count, and what follows is to be decided anew.
    """
    try:
        case = load_context(context.tracker.read(ref), context)
    except GoneError as error:
        return StandDown(reason=str(error))
    base = context.worktrees.base_branch(ref.repository)
    settings = context.policies.in_force(ref.repository).pull_request
    context.ledger.append(ref, PublishStarted(head_sha=head))
    elsewhere = pull_request_elsewhere(ref, context)
    # Base, people and text come last, so that nothing happens between them and the push.
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
    """Record a push that Mulligan was killed after, or the branch would pass for somebody else's.

    Best effort: where the branch cannot be read, nothing is recorded.
    """
    with suppress(WorldError):
        if context.worktrees.remote_head(ref) == head:
            record_effect(ref, PUSH, ref.branch, head, context)


def _taken_elsewhere(case: IssueContext, context: BotContext) -> str | None:
    """Tell whether the branch was taken by another installation, which now opens a pull request."""
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
    """Give the commit that the branch has to be at: what was built on, or was pushed last."""
    if last and last.start_sha != last.base_sha:
        return last.start_sha
    return status.effect(PUSH, status.issue.branch)


def answer_reviews(case: IssueContext, head: str, context: BotContext) -> None:
    """Say what became of each comment on a line, and of each review that has none, once (P3)."""
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
    """Answer what was not answered yet; a refusal stops nothing."""
    if context.ledger.status(ref).effect(ANSWER_EFFECT, key):
        return
    try:
        record_effect(ref, ANSWER_EFFECT, key, said(), context)
    except DeniedError as error:
        log.warning("not_answered", issue=str(ref), to=key, reason=str(error))


# Checks before a write, and requests to a person.


def stop_reason(ref: IssueRef, context: BotContext) -> str | None:
    """Ask again whether the work may go on (SPEC L5, T1, T2); give the reason where it may not.

    Where the text is not the one any more that was asked for, a person is told so.
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
    """Have a person look at a text that was changed, once for each act; best effort (SPEC T2)."""
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
    """Say on an issue, once, what keeps its repository from being worked on; nothing is spent."""
    status = context.ledger.status(ref)
    told = f"{status.epoch}:{hashlib.sha256(reason.encode()).hexdigest()}"
    if status.reason == reason and status.effect(BLOCKED_NOTICE, SINGLE_KEY) == told:
        return
    if status.reason != reason:
        context.ledger.append(ref, Waiting(until=None, reason=reason))
    sync_labels_and_status(ref, context)
    record_effect(ref, BLOCKED_NOTICE, SINGLE_KEY, told, context)


# Waits and the end.


def retry(ref: IssueRef, decision: Retry, context: BotContext) -> None:
    """Let the next attempt start: at once, or after its wait."""
    now, step = context.clock.now(), decision.backoff_step
    due = now + context.clock.backoff(step) if step else now
    context.ledger.append(ref, RetryScheduled(due=due, reason=decision.reason))
    if step:
        sync_labels_and_status(ref, context)


def wait_for_budget(ref: IssueRef, decision: WaitForBudget, context: BotContext) -> None:
    """Leave the issue until the next day begins in UTC; or not, where today's budget is there."""
    now = context.clock.now().astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    wait_until(ref, midnight if spent_today(ref, context) else now, decision.reason, context)


def wait_until(ref: IssueRef, until: datetime, reason: str, context: BotContext) -> None:
    """Leave an issue for a while, and say why; nothing is spent."""
    context.ledger.append(ref, Waiting(until=until, reason=reason))
    sync_labels_and_status(ref, context)


def stand_down(ref: IssueRef, decision: StandDown, context: BotContext) -> None:
    """Leave an issue alone that was withdrawn, and take Mulligan's labels off it.

    Where another installation has settled it, the labels are left to that one.
    """
    elsewhere = settled_elsewhere(ref, context) is not None
    context.ledger.append(ref, StoodDown(reason=decision.reason, elsewhere=elsewhere))
    sync_labels_and_status(ref, context)


# Escalation, and the unverified work that it shows.


def escalate(ref: IssueRef, decision: Escalate, context: BotContext) -> StandDown | None:
    """Hand the issue to a person: the comment first, then the label (SPEC H1).

    Nobody is asked about a request that was withdrawn; the standing down comes back.
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
"""Outcomes of work that the guards let pass, and that does not hold.

No guard has looked at what an agent left that ran out of time, or gave up.
"""


def draft_work(ref: IssueRef, context: BotContext) -> str:
    """Show what the last attempt left as a draft; say why not, where that is refused for good.

    Work that no guard let pass stays here, and so does what was asked for by somebody who may not
    any more, or on another text (SPEC T1), or made on what the base branch has no longer. A pull
    request that is no draft of Mulligan's stays as it is, since what was not verified never takes
    the place of what was; so does one that somebody pushed to.
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
    """Tell whether there is a pull request that must not be changed."""
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
    """Remove the branch that no draft came of; best effort."""
    status = context.ledger.status(ref)
    pushed = status.effect(PUSH, ref.branch)
    if status.pull_number is not None or pushed is None:
        return
    try:
        context.worktrees.delete_branch(ref, {pushed})
    except WorldError as error:
        log.warning("branch_left", issue=str(ref), reason=str(error))


def push_work(ref: IssueRef, context: BotContext) -> None:
    """Push what the last attempt left, for people to look at; best effort.

    Never what no guard let pass: it may hold what must not leave this machine.
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
    """Check base, people and text once more, right before a push; say why there may be none."""
    if not base_has_start(ref, last, context):
        return base_dropped(last)
    wrong = objection(ref, context)
    return f"{wrong.reason}." if wrong else ""
