"""Carry decisions out on GitHub and git; every effect is recorded and can be repeated.

An effect first checks whether it was done. If GitHub or git has changed since the decision, it
reports a `Situation`, and decides nothing itself.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

import structlog

from mulligan.config.policy import Labels
from mulligan.domain.absence import (
    HELD_AFTER,
    HELD_INTERVAL,
    TOLD_AFTER,
    absence_reason,
    absent_since,
)
from mulligan.domain.attempt import CHANGES_WITHDRAWN
from mulligan.domain.eligibility import BASE, DEPENDS, IN_HAND, POLICY, Facts
from mulligan.domain.errors import (
    DeniedError,
    GoneError,
    MisconfiguredError,
    RefusedError,
    UnavailableError,
    WorldError,
)
from mulligan.domain.events import (
    BroughtUpToDate,
    Drafted,
    Escalated,
    Published,
    PublishStarted,
    RetryScheduled,
    StoodDown,
    Waiting,
)
from mulligan.domain.feedback import Review
from mulligan.domain.issue import Act, IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.meanwhile import FIX, RETRY, Missed, describe_missed
from mulligan.domain.outcome import (
    Escalate,
    Outcome,
    Retry,
    StandDown,
    WaitForBudget,
    WaitForPullRequest,
)
from mulligan.domain.recorded_effects import (
    BlockShown,
    Effect,
    EscalationAnswered,
    InHand,
    LabelRequested,
    NotFoundSince,
    Obstacle,
    PublicationDelayed,
    PullNote,
    Pushed,
    ReviewAnswered,
    StageShown,
    StatusWritten,
    Topic,
    WorkPushed,
)
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus, Phase
from mulligan.implement.budget_meter import spent_today
from mulligan.implement.decide import (
    Admission,
    AgentUnavailable,
    ChangesWithdrawn,
    Deferral,
    ForeignPush,
    LostWork,
    Obstructed,
    PublicationRefused,
    ShownWork,
    Situation,
    TakenElsewhere,
    Withdrawn,
    decide_on_withdrawal,
    decide_reopening,
    decide_shown_work,
    epoch_of,
    expected_remote_head,
    is_foreign,
)
from mulligan.implement.issue_snapshot import (
    bundle_of,
    check_publication,
    check_shown_work,
    collect_facts,
    find_commit,
    is_taken,
    load_context,
    pull_request_elsewhere,
    read_missed,
    settled_elsewhere,
    withdrawal,
)
from mulligan.implement.ports import Artifacts, Ledger, ReadContext, WriteContext
from mulligan.implement.prompt.review_answers import (
    Diffs,
    ReviewAnswer,
    answers_in_commit,
    answers_unchanged,
)
from mulligan.implement.repository_customs import read_template
from mulligan.sandbox.cancellation import sleep_until_cancelled

log = structlog.get_logger()


def record_effect(ref: IssueRef, effect: Effect, ledger: Ledger) -> None:
    """Record an effect, unless the ledger has it already."""
    if effect not in ledger.status(ref).effects.done:
        ledger.append(ref, effect)


def note_on_pull(ref: IssueRef, topic: Topic, text: str, context: WriteContext) -> None:
    """Have the issue show a sentence about its pull request, once; "" removes it.

    While a step is under way, its end shows the sentence.
    """
    status = context.ledger.status(ref)
    if status.effects.pull_note(topic) != text:
        record_effect(ref, PullNote(topic=topic, text=text), context.ledger)
        if status.phase is Phase.IDLE:
            sync_labels_and_status(ref, context)


def read_withdrawn_reviews(ref: IssueRef, context: WriteContext) -> bool:
    """Read again the reviews that the work is for; return whether none requests changes (PR-2)."""
    status = context.ledger.status(ref)
    if not (status.pull.number and status.feedback and status.feedback.received):
        return False
    reviews = context.tracker.pulls.reviews(ref, status.pull.number)
    return drop_withdrawn_reviews(ref, reviews, context)


def drop_withdrawn_reviews(ref: IssueRef, reviews: Sequence[Review], context: WriteContext) -> bool:
    """Drop reviews that no longer request changes; return whether that ends the work (PR-2)."""
    status = context.ledger.status(ref)
    epoch = epoch_of(status, context.ledger.history(ref))
    found = decide_on_withdrawal(reviews, status, epoch)
    if found is None:
        return False
    context.ledger.append(ref, found)
    log.info("reviews_withdrawn", issue=str(ref), reviews=len(found.reviews))
    if not found.ends_work:
        note_on_pull(ref, Topic.REVIEWS, CHANGES_WITHDRAWN, context)
    return found.ends_work


def delete_branch(ref: IssueRef, own: Collection[str], context: WriteContext) -> None:
    """Delete the issue's branch, unless another open pull request needs it (PR-5).

    GitHub closes a pull request whose head or base is deleted. If the pull requests cannot be read,
    the error keeps the branch.
    """
    number = context.ledger.status(ref).pull.number
    others = [each for each in context.tracker.pulls.of_branch(ref) if each != number]
    if not others:
        context.git.delete_branch(ref, own)
        return
    needed_by = ", ".join(f"`#{each}`" for each in others)
    text = f"The branch `{ref.branch}` stays, because it is the head or base of {needed_by}."
    record_effect(ref, PullNote(topic=Topic.BRANCH, text=text), context.ledger)
    log.warning("branch_not_deleted", issue=str(ref), reason=text)


# Before an attempt.


def record_admission(facts: Facts, admission: Admission, context: WriteContext) -> None:
    """Record an issue's text and request; if a person must act first, show that on the issue."""
    ref, act = facts.issue.ref, facts.act
    if admission.seen:
        context.ledger.append(ref, admission.seen)
    if admission.request:
        context.ledger.append(ref, admission.request)
        if admission.refusal:
            sync_labels_and_status(ref, context)
    if act and admission.rule == IN_HAND:
        record_effect(ref, InHand(act=act.act), context.ledger)
    if admission.rule in {POLICY, DEPENDS, IN_HAND, BASE}:
        report_blocked(ref, admission.refusal, context)
    if act and admission.text_change:
        ask_for_label(ref, act.act, admission.text_change, context)


def defer(ref: IssueRef, cause: Deferral, context: WriteContext) -> None:
    """Show why an attempt cannot start, and when it is tried again; no attempt counts."""
    match cause:
        case Obstructed(obstacle, reason, is_shown):
            if obstacle is Obstacle.DISK:
                log.warning("disk_nearly_full", issue=str(ref), reason=reason)
            elif context.ledger.status(ref).obstacle is not obstacle:
                log.warning("agent_missing", issue=str(ref), reason=reason)
            if not is_shown:
                report_blocked(ref, reason, context, obstacle)
        case WaitForBudget():
            wait_for_budget(ref, cause, context)
        case AgentUnavailable(until, reason):
            wait_until(ref, until, reason, context)
            log.warning("agent_refused", issue=str(ref), reason=reason)
        case _:
            assert_never(cause)


# Labels and the status comment.


def announce_attempt(case: IssueContext, context: WriteContext) -> None:
    """Show on GitHub that an attempt runs; if GitHub is unavailable, the attempt continues."""
    try:
        sync_labels_and_status(case.issue.ref, context)
    except UnavailableError as error:
        log.warning("attempt_not_announced", issue=str(case.issue.ref), reason=str(error))


def sync_labels_and_status(ref: IssueRef, context: WriteContext) -> None:
    """Make the labels and the status comment match the ledger (LABEL-4, STATUS-1).

    Shows nothing if the issue is not found or its repository is archived (LABEL-7).
    """
    stage = context.ledger.status(ref).stage
    labels = context.policies.in_force(ref.repository).labels
    with suppress(GoneError), context.tracker.cached_reads():
        case = _load_to_show(ref, context)
        if not context.tracker.recent_repository(ref.repository).archived:
            comment = case.status.effects.status_comment
            if _is_left_to_others(case, labels, context):
                if comment:
                    update_status_comment(case, context)
                    return
            # A label without a record means that somebody deleted the record (RESTORE-1).
            elif comment or not write_record(ref, context):
                _record_status(case, context.writer.show_stage(case, stage, labels), context)
                _answer_escalation(case, context)
                return
            else:
                context.writer.set_stage_labels(ref, stage, labels)
    record_effect(ref, StageShown(stage=stage), context.ledger)


def _answer_escalation(case: IssueContext, context: WriteContext) -> None:
    """Have the escalation comment say who answered it, once; best effort (ESCALATION-4)."""
    ref, status = case.issue.ref, case.status
    if not status.asked_at or status.is_escalation_answered or status.stage is Stage.HITL:
        return
    try:
        context.writer.answer_escalation(case)
    except DeniedError as error:
        log.warning("escalation_not_marked", issue=str(ref), reason=str(error))
    except WorldError as error:
        log.info("escalation_not_marked_yet", issue=str(ref), reason=str(error))
        return
    record_effect(ref, EscalationAnswered(comment=status.asked_at), context.ledger)


def _load_to_show(ref: IssueRef, context: WriteContext) -> IssueContext:
    """Load an issue for its status comment, with what confirms its events there."""
    case = load_context(context.tracker.read(ref), context)
    return replace(case, state_mark=context.mirror.mark(ref))


def reopen_or_show(ref: IssueRef, context: WriteContext) -> None:
    """Open the epoch of a newer request if the issue is resolved (LABEL-6); show the stage.

    Otherwise, Mulligan would remove the newer request's label together with the ended one's. A
    pending command for new attempts runs before the stage is shown.
    """
    status = context.ledger.status(ref)
    with context.tracker.cached_reads():
        if status.stage is Stage.RESOLVED:
            if status.has_new_request:
                return
            with suppress(GoneError):
                request = decide_reopening(collect_facts(ref, context))
                if request:
                    context.ledger.append(ref, request)
        sync_labels_and_status(ref, context)


def _is_left_to_others(case: IssueContext, labels: Labels, context: WriteContext) -> bool:
    """Return whether the labels belong to another installation, which settled it (RECOVERY-3)."""
    status = case.status
    if status.elsewhere or status.stage in {Stage.REVIEW, Stage.HITL}:
        return status.elsewhere
    carried = {name.casefold() for name in case.issue.labels}
    if carried.isdisjoint({labels.review.casefold(), labels.hitl.casefold()}):
        return False
    return bool(settled_elsewhere(case.issue.ref, context))


def update_status_comment(case: IssueContext, context: WriteContext) -> None:
    """Write the status comment; if it was edited a moment ago, defer that to the next pass."""
    _record_status(case, context.writer.update_status(case), context)


def _record_status(case: IssueContext, written: str | None, context: WriteContext) -> None:
    ref = case.issue.ref
    if written:
        record_effect(ref, StatusWritten(comment=written), context.ledger)
    record_effect(ref, StageShown(stage=case.status.stage if written else None), context.ledger)


def write_record(ref: IssueRef, context: WriteContext) -> bool:
    """Write the status comment, so that the attempt counts if the ledger is lost (RESTORE-2).

    The labels wait for the next attempt. Return whether it was written; not if GitHub denies it.
    """
    with suppress(DeniedError), context.tracker.cached_reads():
        written = context.writer.update_status(_load_to_show(ref, context))
        if written:
            record_effect(ref, StatusWritten(comment=written), context.ledger)
            return True
    return False


def write_deferred_status(ref: IssueRef, context: WriteContext) -> None:
    """Write the deferred status comment; leave the labels, which people may have changed since."""
    with suppress(GoneError):
        case = _load_to_show(ref, context)
        if not context.tracker.repository(ref.repository).archived:
            update_status_comment(case, context)
            return
    record_effect(ref, StageShown(stage=context.ledger.status(ref).stage), context.ledger)


# Publishing a verified commit.

REFUSAL_TIME = timedelta(minutes=5)
"""For how long a publication is refused (403) before the escalation; outages pass sooner."""

TEXT_KEPT = (
    "Mulligan no longer updates the text of the pull request, because somebody edited its part of "
    "the text. This comment has the current state."
)

PULL_REQUEST_WAITS = (0.0, 1.0, 2.0)
"""Seconds to wait before each search for the pull request of another installation's branch."""


def store_commit(ref: IssueRef, attempt: WorkerResultMeta, context: WriteContext) -> str | LostWork:
    """Store the verified commit of an attempt for every worker; give it (COMMIT-2)."""
    bundle = bundle_of(ref, attempt, context.artifacts)
    head = find_commit(ref, attempt, bundle, context.worktrees)
    if isinstance(head, str):
        context.git.store_commit(ref, head, bundle)
        context.artifacts.share(bundle)
    return head


def publish(ref: IssueRef, head: str, context: WriteContext) -> Situation | None:
    """Push the verified commit and open the pull request; report a `Situation` that prevents it.

    No agent runs, and no attempt counts. While it fails, the issue shows why; a refusal may pass,
    so the issue is escalated only if it lasts (PUBLISH-1).
    """
    try:
        return _publish(ref, head, context)
    except RefusedError as error:
        if _delay_publication(ref, str(error), context) >= REFUSAL_TIME:
            return PublicationRefused(str(error))
        raise UnavailableError(str(error)) from error
    except UnavailableError as error:
        _delay_publication(ref, str(error), context)
        raise


def _with_customs(case: IssueContext, context: ReadContext) -> IssueContext:
    """Add what the repository wants of the text of a pull request."""
    repository = case.issue.ref.repository
    policy = context.policies.in_force(repository)
    return replace(case, template=read_template(repository, policy, context.worktrees))


def _delay_publication(ref: IssueRef, reason: str, context: WriteContext) -> timedelta:
    """Record and show why a publication fails; return for how long it has failed."""
    status, now = context.ledger.status(ref), context.clock.now()
    known = status.publication_delay
    if known is None:
        record_effect(ref, PublicationDelayed(since=now, reason=reason), context.ledger)
        with suppress(WorldError):
            sync_labels_and_status(ref, context)
    return now - known.since if known else timedelta()


def _publish(ref: IssueRef, head: str, context: WriteContext) -> Situation | None:
    """Publish in five steps."""
    # 1. Leave a pull request alone to which somebody pushed meanwhile.
    last = context.ledger.history(ref)[-1]
    if context.ledger.status(ref).pull.number is not None:
        tip = context.worktrees.remote_head(ref)
        if is_foreign(tip, _record_merge(ref, tip, context.ledger), last):
            return ForeignPush(last)
    # 2. Read the issue, and record that its publication starts.
    try:
        with context.tracker.cached_reads():
            case = _with_customs(load_context(context.tracker.read(ref), context), context)
            missed = read_missed(case, context)
    except GoneError as error:
        return Withdrawn(str(error))
    base = context.worktrees.base_branch(ref.repository)
    settings = context.policies.in_force(ref.repository).pull_request
    context.ledger.append(ref, PublishStarted(head_sha=head))
    # 3. Check base, people, text and reviews last, right before the push.
    if found := _refusal(ref, head, context):
        return found
    # 4. Push, and open the pull request.
    case = _note_missed(case, missed, RETRY, context)
    try:
        context.git.push(ref, head, expected_remote_head(case.status, last))
        record_effect(ref, Pushed(branch=ref.branch, head_sha=head), context.ledger)
        opened = context.writer.open_pull_request(case, base, settings)
    except DeniedError as error:
        if winner := _find_winner(case, context):
            return winner
        if isinstance(error, RefusedError):
            raise
        return PublicationRefused(str(error))
    if opened.elsewhere:
        return TakenElsewhere(f"Another installation of Mulligan has opened {opened.url}")
    note_on_pull(ref, Topic.TEXT, TEXT_KEPT if opened.is_text_kept else "", context)
    # 5. Answer the reviews, and show the pull request.
    write_answers(case, answers_in_commit(case, head, _diffs(case, context.artifacts)), context)
    published = Published(
        pull_request=opened.url,
        number=opened.number,
        head_sha=head,
        left_draft=opened.left_draft,
    )
    context.ledger.append(ref, published)
    sync_labels_and_status(ref, context)
    return None


def _refusal(ref: IssueRef, head: str, context: WriteContext) -> Situation | None:
    """Check base, people, text and reviews right before the push."""
    found = check_publication(ref, context.ledger.history(ref)[-1], context)
    if found is None and read_withdrawn_reviews(ref, context):
        found = ChangesWithdrawn()
    if isinstance(found, Withdrawn):
        ask_after_edit(ref, found, context)
    if found:
        _note_push(ref, head, context)
    return found


def _note_missed(
    case: IssueContext, missed: Missed | None, command: str, context: WriteContext
) -> IssueContext:
    """Have issue and pull request show what the work does not take into account (PR-9)."""
    ref = case.issue.ref
    note_on_pull(ref, Topic.MEANWHILE, describe_missed(missed, command) if missed else "", context)
    return replace(case, status=context.ledger.status(ref))


def _record_merge(ref: IssueRef, tip: str | None, ledger: Ledger) -> IssueStatus:
    """Record a merge of the base branch after which Mulligan was killed, if that is the tip."""
    status = ledger.status(ref)
    found = status.unrecorded_merge(tip)
    if tip is None or found is None:
        return status
    merged = BroughtUpToDate(base_sha=found.base_sha, head_sha=tip)
    return ledger.append(ref, merged)


def _note_push(ref: IssueRef, head: str, context: WriteContext) -> None:
    """Record a push after which Mulligan was killed; else the push would count as foreign.

    Best effort: records nothing if the branch cannot be read.
    """
    with suppress(WorldError):
        if context.worktrees.remote_head(ref) == head:
            record_effect(ref, Pushed(branch=ref.branch, head_sha=head), context.ledger)


def _find_winner(case: IssueContext, context: WriteContext) -> TakenElsewhere | None:
    """Find the pull request of an installation that took the branch after the last check."""
    ref = case.issue.ref
    if (
        expected_remote_head(case.status, case.last) is not None
        or context.worktrees.remote_head(ref) is None
    ):
        return None
    for wait in PULL_REQUEST_WAITS:
        sleep_until_cancelled(wait)
        if why := pull_request_elsewhere(ref, context):
            return TakenElsewhere(why)
    return None


def _diffs(case: IssueContext, artifacts: Artifacts) -> Diffs:
    """Read the diff of the last attempt, and that of the commit that was reviewed."""
    *earlier, last = case.history
    reviewed = next((each for each in reversed(earlier) if each.outcome is Outcome.SUCCEEDED), None)
    # On other people's commits, the diff of an attempt has only what is new.
    is_rebuilt = last.start_sha == last.base_sha
    if case.status.feedback is None or (is_rebuilt and reviewed is None):
        return Diffs()
    with suppress(WorldError):
        new = _diff_of(last, artifacts)
        before = _diff_of(reviewed, artifacts) if reviewed and is_rebuilt else b""
        return Diffs() if before is None else Diffs(new, before)
    return Diffs()


def _diff_of(meta: WorkerResultMeta, artifacts: Artifacts) -> bytes | None:
    return artifacts.read(meta.diff_artifact) if meta.diff_artifact else None


def write_answers(
    case: IssueContext, answers: Iterable[ReviewAnswer], context: WriteContext
) -> None:
    """Write each answer on the pull request once; log a refusal and continue (PR-2)."""
    ref, pull = case.issue.ref, case.status.pull.number
    for each in answers:
        if not pull or context.ledger.status(ref).effects.has_answered(each.number, each.attempt):
            continue
        write = context.writer.answer_thread if each.on_line else context.writer.answer_review
        try:
            comment = write(ref, pull, each.number, each.text)
            done = ReviewAnswered(number=each.number, attempt=each.attempt, comment=comment)
            record_effect(ref, done, context.ledger)
        except DeniedError as error:
            log.warning("review_not_answered", issue=str(ref), to=each.number, reason=str(error))


# Requests to a person.


def ask_after_edit(ref: IssueRef, found: Withdrawn, context: WriteContext) -> None:
    """Ask for the label again if the text was changed since the request (TRUST-2)."""
    act = context.ledger.status(ref).request.act
    if act and found.text_change:
        ask_for_label(ref, act, found.text_change, context)


def ask_for_label(ref: IssueRef, act: Act, reason: str, context: WriteContext) -> None:
    """Ask for the label again after a text change, once for each act; best effort (TRUST-2)."""
    if context.ledger.status(ref).effects.label_request(act):
        return
    try:
        case = load_context(context.tracker.read(ref), context)
        comment = context.writer.ask_for_label(case, act, reason)
        record_effect(ref, LabelRequested(act=act, comment=comment), context.ledger)
    except WorldError as error:
        log.warning("label_request_not_written", issue=str(ref), reason=str(error))


def report_blocked(
    ref: IssueRef, reason: str, context: WriteContext, obstacle: Obstacle = Obstacle.ISSUE
) -> None:
    """Show on an issue, once for each reason, why it cannot be worked on; no attempt counts."""
    # The ledger redacts what it records, so the text is compared as it is recorded.
    status, reason = context.ledger.status(ref), context.redactor.text(reason)
    shown = BlockShown(obstacle=obstacle, epoch=status.epoch, reason=reason)
    is_recorded = status.obstacle is obstacle and status.reason == reason
    if is_recorded and shown in status.effects.done:
        return
    if not is_recorded:
        context.ledger.append(ref, Waiting(until=None, reason=reason, obstacle=obstacle))
    sync_labels_and_status(ref, context)
    record_effect(ref, shown, context.ledger)


def show_hold(ref: IssueRef, reason: str, context: WriteContext) -> None:
    """Show on a waiting issue that no agent of its repository can start a run (OUTCOME-6)."""
    if context.ledger.status(ref).may_show_hold(context.clock.now()):
        report_blocked(ref, reason, context, Obstacle.ALL_AGENTS)


def end_hold(ref: IssueRef, context: WriteContext) -> None:
    """Queue an issue again that waited for an agent."""
    if context.ledger.status(ref).is_held:
        context.ledger.append(ref, Waiting(until=None, reason=""))
        sync_labels_and_status(ref, context)


# Waits and the end.


def note_absence(ref: IssueRef, what: str, context: WriteContext) -> None:
    """Record what GitHub does not find; show it on a queued issue, and hold it after a day."""
    status, now = context.ledger.status(ref), context.clock.now()
    since = absent_since(status, what) or now
    absence = NotFoundSince(what=what, since=since)
    record_effect(ref, absence, context.ledger)
    is_queued = status.stage is Stage.READY and status.phase is Phase.IDLE
    if now - since < TOLD_AFTER or not is_queued:
        return
    reason = absence_reason(absence)
    # What is not found may be the issue itself.
    with suppress(WorldError):
        report_blocked(ref, reason, context)
    if now - since >= HELD_AFTER:
        log.warning("held", issue=str(ref), reason=reason)
        waiting = Waiting(until=now + HELD_INTERVAL, reason=reason, obstacle=Obstacle.ISSUE)
        context.ledger.append(ref, waiting)


def retry(ref: IssueRef, decision: Retry, context: WriteContext) -> None:
    """Schedule the next attempt: at once, or after its backoff step, and never before its time."""
    now, step = context.clock.now(), decision.backoff_step
    due = max(now + context.clock.backoff(step) if step else now, decision.not_before or now)
    obstacle = Obstacle.ALL_AGENTS if decision.agent_rests else None
    scheduled = RetryScheduled(due=due, reason=decision.reason, obstacle=obstacle)
    context.ledger.append(ref, scheduled)
    if step:
        sync_labels_and_status(ref, context)
    else:
        write_record(ref, context)


def wait_for_budget(ref: IssueRef, decision: WaitForBudget, context: WriteContext) -> None:
    """Wait until midnight UTC; not at all if today's budget has room again."""
    now = context.clock.now().astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    wait_until(ref, midnight if spent_today(ref, context) else now, decision.reason, context)


def wait_for_pull_request(
    ref: IssueRef, decision: WaitForPullRequest, context: WriteContext
) -> None:
    """Wait for somebody's pull request, and show that; the commit is kept (HAND-1)."""
    if act := context.ledger.status(ref).request.act:
        record_effect(ref, InHand(act=act), context.ledger)
    context.ledger.append(ref, Waiting(until=None, reason=decision.reason))
    sync_labels_and_status(ref, context)


def wait_until(ref: IssueRef, until: datetime, reason: str, context: WriteContext) -> None:
    """Delay the next attempt until a time, and show the reason; no attempt counts."""
    context.ledger.append(ref, Waiting(until=until, reason=reason))
    sync_labels_and_status(ref, context)


def stand_down(ref: IssueRef, decision: StandDown, context: WriteContext) -> None:
    """End the work on a withdrawn issue, and remove Mulligan's labels.

    If another installation has settled the request, its labels stay.
    """
    if decision.keeps_pull:
        note_on_pull(ref, Topic.REVIEWS, CHANGES_WITHDRAWN, context)
        context.ledger.append(ref, StoodDown(reason=decision.reason, keeps_pull=True))
        sync_labels_and_status(ref, context)
        return
    elsewhere = bool(settled_elsewhere(ref, context))
    context.ledger.append(ref, StoodDown(reason=decision.reason, elsewhere=elsewhere))
    reopen_or_show(ref, context)


# Escalation, and the unverified work that it shows.


def escalate(
    ref: IssueRef, decision: Escalate, context: WriteContext
) -> Withdrawn | ChangesWithdrawn | TakenElsewhere | None:
    """Hand the issue to a person: write the comment first, then set the label (ESCALATION-1)."""
    if why := withdrawal(ref, context):
        return Withdrawn(why)
    if why := pull_request_elsewhere(ref, context):
        return TakenElsewhere(why)
    if read_withdrawn_reviews(ref, context):
        return ChangesWithdrawn()
    _note_missed_before_escalation(ref, context)
    settings = context.policies.in_force(ref.repository).escalation
    last = next(reversed(context.ledger.history(ref)), None)
    work, no_draft = decide_shown_work(last, settings), ""
    if work and work.in_draft:
        no_draft = draft_work(ref, work, context)
    if work and work.at_ref:
        push_work(ref, work, context)
    case = replace(load_context(context.tracker.read(ref), context), no_draft=no_draft)
    comment = context.writer.post_escalation(case, settings)
    write_answers(case, answers_unchanged(case, comment), context)
    context.ledger.append(ref, Escalated(reason=decision.reason, comment=comment))
    sync_labels_and_status(ref, context)
    return None


def _note_missed_before_escalation(ref: IssueRef, context: WriteContext) -> None:
    """Show what the epoch's last attempt missed; `retry` would only publish verified work."""
    with suppress(DeniedError), context.tracker.cached_reads():
        case = load_context(context.tracker.read(ref), context)
        if case.last and case.last.epoch == case.status.epoch:
            status = case.status
            is_verified = status.is_kept or status.outcome is Outcome.SUCCEEDED
            command = FIX if is_verified else RETRY
            _note_missed(case, read_missed(case, context), command, context)


def draft_work(ref: IssueRef, work: ShownWork, context: WriteContext) -> str:
    """Show unverified work as a draft pull request; report why that is refused, "" if it is not.

    Only Mulligan's own open draft is updated, and only if nobody else pushed to it: unverified work
    never replaces verified work.
    """
    try:
        if is_taken(ref, work.attempt, context):
            return ""
        case = _with_customs(load_context(context.tracker.read(ref), context), context)
        if why := check_shown_work(ref, work.attempt, context):
            return why
        _open_draft(case, work, context)
    except (DeniedError, MisconfiguredError) as error:
        log.warning("draft_not_opened", issue=str(ref), reason=str(error))
        _delete_unused_branch(ref, context)
        return str(error)
    return ""


def _open_draft(case: IssueContext, work: ShownWork, context: WriteContext) -> None:
    ref, number = case.issue.ref, work.attempt.number
    context.git.push(ref, work.head_sha, expected_remote_head(case.status, work.attempt))
    record_effect(ref, Pushed(branch=ref.branch, head_sha=work.head_sha), context.ledger)
    opened = context.writer.open_draft(case, context.worktrees.base_branch(ref.repository))
    if opened.elsewhere:
        return
    note_on_pull(ref, Topic.TEXT, TEXT_KEPT if opened.is_text_kept else "", context)
    shown = (case.status.pull.draft_of, case.status.pull.number)
    if shown != (number, opened.number):
        drafted = Drafted(
            pull_request=opened.url, number=opened.number, head_sha=work.head_sha, attempt=number
        )
        context.ledger.append(ref, drafted)


def _delete_unused_branch(ref: IssueRef, context: WriteContext) -> None:
    """Delete the pushed branch if it has no pull request; best effort."""
    status = context.ledger.status(ref)
    pushed = status.effects.pushed
    if status.pull.number is not None or pushed is None:
        return
    try:
        delete_branch(ref, {pushed}, context)
    except WorldError as error:
        log.warning("branch_not_deleted", issue=str(ref), reason=str(error))


def push_work(ref: IssueRef, work: ShownWork, context: WriteContext) -> None:
    """Push an attempt's change to a separate ref, for people to inspect; best effort."""
    try:
        why = check_shown_work(ref, work.attempt, context)
        if not why:
            pushed = context.git.push_attempt(ref, work.head_sha, work.attempt.number)
            done = WorkPushed(attempt=work.attempt.number, git_ref=pushed)
            record_effect(ref, done, context.ledger)
            return
    except WorldError as error:
        why = str(error)
    log.warning("work_not_pushed", issue=str(ref), reason=why)
