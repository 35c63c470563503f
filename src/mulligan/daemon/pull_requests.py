"""Follow open pull requests: reviews, conflicts, base updates, CI results, merge or close."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from mulligan.config.policy import OnConflict
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.errors import DeniedError, UnavailableError, WorldError
from mulligan.domain.events import (
    BroughtUpToDate,
    CiPassed,
    Conflicted,
    FailedCheck,
    LearningsAccepted,
    Resolution,
    Resolved,
)
from mulligan.domain.feedback import (
    MAX_CHECKS,
    CheckRun,
    OpenPull,
    PullState,
    describe_checks,
    describe_other_base,
    judge_checks,
    latest,
    passed_of,
    unique_names,
    without_ignored,
)
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import is_on_others, own_commits
from mulligan.domain.learning import merged_facts
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import BaseMerged, MergeRefused, ReviewsSettling, Topic
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import Conflict, FailedHead, IssueStatus, Phase
from mulligan.implement.decide import (
    REVIEWABLE_STAGES,
    decide_on_failed_checks,
    decide_on_reviews,
    is_settled,
    new_reviews,
)
from mulligan.implement.effects import (
    delete_branch,
    drop_withdrawn_reviews,
    note_on_pull,
    record_effect,
    reopen_or_show,
    sync_labels_and_status,
)
from mulligan.implement.issue_snapshot import attempts_left, learnings_of, objection
from mulligan.implement.phase import resume
from mulligan.implement.ports import (
    ReadContext,
    WriteContext,
)

READ_AGAIN = timedelta(minutes=5)
"""A pull request that was updated more recently is read again, in case a list lacks a review.

GitHub's times are whole seconds, and an empty list is no proof (GITHUB-3). Unchanged answers cost
no quota.
"""

MAX_LOGS = 5
"""Logs read for one head; of further failed checks only the name is recorded."""


@dataclass(frozen=True, slots=True)
class SeenChecks:
    """The checks of a head and, if one of them failed, those of its base commit, as last read."""

    head_sha: str
    runs: tuple[CheckRun, ...]
    base_sha: str = ""
    base_runs: tuple[CheckRun, ...] = ()


log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PullRequestCache:
    """The last known state of each pull request, to skip unchanged ones; for one thread."""

    updated: dict[IssueRef, datetime] = field(default_factory=dict[IssueRef, datetime])
    merged: dict[IssueRef, tuple[str, str]] = field(default_factory=dict[IssueRef, tuple[str, str]])
    checks: dict[IssueRef, SeenChecks] = field(default_factory=dict[IssueRef, SeenChecks])


def follow_pull_requests(
    repository: str,
    known: Iterable[IssueStatus],
    context: ReadContext,
    worker: Worker,
    cache: PullRequestCache,
) -> list[Visit]:
    """Follow the pull requests of a repository with one list request, or none if it has none.

    Return the visits to changed ones. One that is missing from the list is read itself before it
    counts as ended.
    """
    waiting = [each for each in known if each.pull.number and each.phase is Phase.IDLE]
    if not waiting:
        return []
    open_pulls = {pull.number: pull for pull in context.tracker.pulls.list_open(repository)}
    visits = [
        _follow_one(each, open_pulls.get(each.pull.number or 0), context, worker, cache)
        for each in waiting
    ]
    return [done for done in visits if done]


def _follow_one(
    status: IssueStatus,
    pull: OpenPull | None,
    context: ReadContext,
    worker: Worker,
    cache: PullRequestCache,
) -> Visit | None:
    ref = status.issue
    if pull is None:
        return worker.run_leased(ref, partial(_end, ref))
    done = None
    other = describe_other_base(pull.base, context.worktrees.base_branch(ref.repository))
    if other != status.effects.pull_note(Topic.BASE):
        done = worker.run_leased(ref, partial(_note_base, ref, other))
    if other:
        return done
    if status.stage in REVIEWABLE_STAGES and cache.updated.get(ref) != pull.updated_at:
        done = worker.run_leased(ref, partial(_read_reviews, ref, pull, cache))
    if status.stage is Stage.REVIEW and not (done and done.problem):
        done = _find_conflicts(ref, pull, context, worker, cache) or done
    if status.stage is Stage.REVIEW and not (done and done.problem):
        done = update_branch(status, pull, context, worker) or done
    if status.stage is Stage.REVIEW and not (done and done.problem):
        return watch_ci(status, pull, context, worker, cache.checks) or done
    return done


def _note_base(ref: IssueRef, text: str, context: WriteContext) -> Visit:
    """Show on the issue that somebody changed the base of the pull request (PR-8)."""
    if context.ledger.status(ref).phase is Phase.IDLE:
        note_on_pull(ref, Topic.BASE, text, context)
    return Visit(ref)


def _read_reviews(
    ref: IssueRef, pull: OpenPull, cache: PullRequestCache, context: WriteContext
) -> Visit:
    """Read the reviews, and record them once no more have come for `review.settle` (PR-2)."""
    status, settings = context.ledger.status(ref), context.policies.in_force(ref.repository).review
    if status.phase is not Phase.IDLE or status.stage not in REVIEWABLE_STAGES:
        return Visit(ref)
    now = context.clock.now()
    reviews = context.tracker.pulls.reviews(ref, pull.number)
    if drop_withdrawn_reviews(ref, reviews, context):
        resume(ref, context)
    status = context.ledger.status(ref)
    new = new_reviews(reviews, status)
    if new and not is_settled(new, settings, now):
        last = max(new, key=lambda each: each.at)
        settling = ReviewsSettling(review=last.id, until=last.at + settings.settle)
        record_effect(ref, settling, context.ledger)
        return Visit(ref)
    if status.reviews_settle_at and not new:
        # The review was dismissed meanwhile.
        record_effect(ref, ReviewsSettling(), context.ledger)
    if new:
        event = decide_on_reviews(new, status, attempts_left(status, context), settings)
        context.ledger.append(ref, event)
        log.info("review_received", issue=str(ref), reviews=len(new), refused=event.refused)
        if event.refused:
            resume(ref, context)
    if pull.updated_at + READ_AGAIN <= now:
        cache.updated[ref] = pull.updated_at
    return Visit(ref)


def _find_conflicts(
    ref: IssueRef, pull: OpenPull, context: ReadContext, worker: Worker, cache: PullRequestCache
) -> Visit | None:
    """Check whether the pull request still merges, once for each base and head (PR-4)."""
    base = context.worktrees.base_sha(ref.repository)
    rebuilds = context.policies.in_force(ref.repository).on_conflict is OnConflict.REBUILD
    if not rebuilds or base is None or cache.merged.get(ref) == (base, pull.head_sha):
        return None
    done = worker.run_leased(ref, partial(_rebuild, ref, (base, pull.head_sha)))
    if not (done.problem or done.skipped):
        cache.merged[ref] = (base, pull.head_sha)
    return done


def _rebuild(ref: IssueRef, pair: tuple[str, str], context: WriteContext) -> Visit:
    """Record a conflict for the next attempt, if any is left and all commits are ours (PR-4)."""
    status, (base, head) = context.ledger.status(ref), pair
    history, known = context.ledger.history(ref), Conflict(base, head) in status.handled
    is_ours = head in own_commits(status, history) and not is_on_others(history)
    if (
        known
        or not is_ours
        or status.stage is not Stage.REVIEW
        or attempts_left(status, context).nothing
    ):
        return Visit(ref)
    if files := context.worktrees.conflicts(ref, base, head):
        context.ledger.append(ref, Conflicted(base_sha=base, head_sha=head, files=files[:20]))
    return Visit(ref)


MERGED = "Its pull request was merged."
CLOSED = "Its pull request was closed without being merged."


def _end(ref: IssueRef, context: WriteContext) -> Visit:
    """Resolve an issue whose pull request was merged or closed; safe to repeat (PR-5)."""
    status = context.ledger.status(ref)
    if not status.pull.number or status.phase is not Phase.IDLE:
        return Visit(ref)
    ended = context.tracker.pulls.state(ref, status.pull.number)
    if ended.is_open:
        return Visit(ref)
    history = context.ledger.history(ref)
    _clean_up(ref, ended, own_commits(status, history), context)
    if ended.is_merged:
        _accept_learnings(status, history, context)
    resolved = Resolved(
        resolution=Resolution.MERGED if ended.is_merged else Resolution.CLOSED,
        reason=MERGED if ended.is_merged else CLOSED,
        total_attempts=len(history),
        total_duration_ms=sum(meta.duration_ms for meta in history),
    )
    context.ledger.append(ref, resolved)
    reopen_or_show(ref, context)
    return Visit(ref)


def _accept_learnings(
    status: IssueStatus, history: Sequence[WorkerResultMeta], context: WriteContext
) -> None:
    """Record the facts that the merged pull request lists, if the policy asks for it."""
    ref = status.issue
    known = learnings_of(ref.repository, context)
    if known is None:
        return
    if facts := merged_facts(history, context.ledger.events(ref), known):
        accepted = LearningsAccepted(facts=facts, pull_request=status.pull.url or "")
        context.ledger.append(ref, accepted)


def _clean_up(ref: IssueRef, ended: PullState, own: Collection[str], context: WriteContext) -> None:
    """Close the issue if GitHub does not; delete branch and worktree; log failures."""
    try:
        if ended.is_merged and not ended.into_default:
            context.writer.close_issue(ref)
        if context.policies.in_force(ref.repository).pull_request.delete_branch:
            delete_branch(ref, own, context)
    except DeniedError as error:
        log.warning("not_cleaned_up", issue=str(ref), reason=str(error))
    try:
        context.git.discard(ref)
    except UnavailableError as error:
        log.warning("not_cleaned_up", issue=str(ref), reason=str(error))


def update_branch(
    status: IssueStatus, pull: OpenPull, context: ReadContext, worker: Worker
) -> Visit | None:
    """Merge the base branch if the policy allows it and GitHub reports the branch as `behind`.

    GitHub is read only while the head lacks commits of the base; unchanged answers cost no quota.
    A head that Mulligan did not push is not changed.
    """
    ref = status.issue
    if status.unrecorded_merge(pull.head_sha):
        return worker.run_leased(ref, partial(_finish, ref, pull.head_sha))
    base = context.worktrees.base_sha(ref.repository)
    if base is None or not context.policies.in_force(ref.repository).update_branch:
        return None
    try:
        needed = _is_update_needed(status, pull, base, context)
    except WorldError as error:
        return Visit(ref, problem=str(error))
    return worker.run_leased(ref, partial(_update, ref, pull.head_sha, base)) if needed else None


def _is_update_needed(status: IssueStatus, pull: OpenPull, base: str, context: ReadContext) -> bool:
    ref, head = status.issue, pull.head_sha
    refused = MergeRefused(base_sha=base, head_sha=head)
    if head != status.effects.pushed or refused in status.effects.done:
        return False
    behind = context.worktrees.is_behind(ref, base, head)
    return behind and context.tracker.pulls.state(ref, pull.number).is_behind


def _update(ref: IssueRef, head: str, base: str, context: WriteContext) -> Visit:
    """Merge and push. Record the commit as Mulligan's own before the push makes it visible."""
    status = context.ledger.status(ref)
    if status.stage is not Stage.REVIEW or status.phase is not Phase.IDLE:
        return Visit(ref)
    commit = context.policies.in_force(ref.repository).commit
    merged = context.worktrees.merge(ref, base, head, commit)
    if merged is None:
        return Visit(ref)
    record_effect(ref, BaseMerged(base_sha=base, head_sha=head, merge=merged), context.ledger)
    try:
        refusal = _push_refusal(ref, base, context)
        if not refusal:
            context.git.push(ref, merged, head)
    except DeniedError as error:
        # Somebody pushed meanwhile, or a rule of the server refuses the commit.
        refusal = str(error)
    if refusal:
        log.warning("pull_request_not_updated", issue=str(ref), reason=refusal)
        record_effect(ref, MergeRefused(base_sha=base, head_sha=head), context.ledger)
        return Visit(ref)
    return _finish(ref, merged, context)


def _push_refusal(ref: IssueRef, base: str, context: ReadContext) -> str:
    """Check again, right before a push; return why it is refused, or "".

    The merged base and the start of the pull request must still be on the base branch, and the
    requester must still be trusted (TRUST-1). Edits of the published issue do not matter.
    """
    stands_on = {(meta.start_sha, meta.base_sha) for meta in context.ledger.history(ref)[-1:]}
    merged = {base, context.ledger.status(ref).pull.updated_to} - {""}
    for start, known in [*((sha, sha) for sha in merged), *stands_on]:
        if not context.worktrees.is_in_base(ref, start, known):
            return f"The base branch was force-pushed and no longer contains {known[:10]}."
    wrong = objection(ref, context)
    return f"{wrong.reason}." if wrong and not wrong.by_edit else ""


def _finish(ref: IssueRef, merged: str, context: WriteContext) -> Visit:
    """Record a pushed merge, and update the status comment."""
    status = context.ledger.status(ref)
    found = status.unrecorded_merge(merged)
    if found and status.stage is Stage.REVIEW and status.phase is Phase.IDLE:
        context.ledger.append(ref, BroughtUpToDate(base_sha=found.base_sha, head_sha=merged))
        log.info("pull_request_updated", issue=str(ref), base=found.base_sha)
        sync_labels_and_status(ref, context)
    return Visit(ref)


def watch_ci(
    status: IssueStatus,
    pull: OpenPull,
    context: ReadContext,
    worker: Worker,
    seen: dict[IssueRef, SeenChecks],
) -> Visit | None:
    """Read the checks of a pull request in review, if the policy enables `watch_ci`.

    They are read at every poll; unchanged answers cost no quota. Results in `seen` are skipped.
    """
    ref = status.issue
    settings = context.policies.in_force(ref.repository).watch_ci
    if not settings.enabled or status.effects.pushed != pull.head_sha:
        return None
    try:
        now = _read_checks(status, pull.head_sha, settings.ignore, context)
    except WorldError as error:
        return Visit(ref, problem=str(error))
    if seen.get(ref) == now:
        return None
    done = worker.run_leased(ref, partial(_judge, ref, now))
    found = judge_checks(now.runs, now.base_runs)
    # Failures that wait for pending checks are judged at every poll, until their time is over.
    if not (done.problem or done.skipped or found.acts_at(settings.pending_timeout)):
        seen[ref] = now
    return done


def _read_checks(
    status: IssueStatus, head: str, ignored: Sequence[str], context: ReadContext
) -> SeenChecks:
    """Read the checks of a head and, if one failed, those of the commit that it is based on."""
    ref = status.issue
    runs = without_ignored(latest(context.tracker.pulls.checks(ref, head)), ignored)
    good = (m for m in reversed(context.ledger.history(ref)) if m.outcome is Outcome.SUCCEEDED)
    last = next(good, None)
    base = status.pull.updated_to or (last.base_sha if last else "")
    if not base or not any(run.failed for run in runs):
        return SeenChecks(head, runs)
    try:
        on_base = latest(context.tracker.pulls.checks(ref, base))
    except DeniedError:
        # After a force-push, GitHub may have deleted the commit: then there is nothing to compare.
        on_base = ()
    return SeenChecks(head, runs, base, without_ignored(on_base, ignored))


def _judge(ref: IssueRef, now: SeenChecks, context: WriteContext) -> Visit:
    """Record the results of the checks, once for each head, and show what they wait for."""
    status, head = context.ledger.status(ref), now.head_sha
    rests = status.stage is Stage.REVIEW and status.phase is Phase.IDLE
    if not rests or status.effects.pushed != head:
        return Visit(ref)
    found, passed = judge_checks(now.runs, now.base_runs), passed_of(now.runs)
    settings = context.policies.in_force(ref.repository).watch_ci
    acts_at = found.acts_at(settings.pending_timeout)
    waits = acts_at is not None and acts_at > context.clock.now()
    text = describe_checks(found, now.base_sha, acts_at if waits else None)
    note_on_pull(ref, Topic.CHECKS, text, context)
    if found.failed and not waits and FailedHead(head) not in status.handled:
        _record_checks(status, head, found.failed, context)
    elif passed and passed != status.pull.passed:
        context.ledger.append(ref, CiPassed(head_sha=head, count=passed))
        sync_labels_and_status(ref, context)
    return Visit(ref)


def _record_checks(
    status: IssueStatus, head: str, failed: tuple[CheckRun, ...], context: WriteContext
) -> None:
    ref = status.issue
    shown = failed[:MAX_CHECKS]
    pulls, verifier = context.tracker.pulls, context.verifier
    outputs = (pulls.log(ref, run) if at < MAX_LOGS else b"" for at, run in enumerate(shown))
    reports = [
        verifier.condense(name, output) if output.strip() else FailedCheck(name=name)
        for name, output in zip(unique_names(shown), outputs, strict=True)
    ]
    settings = context.policies.in_force(ref.repository).watch_ci
    event = decide_on_failed_checks(head, reports, status, attempts_left(status, context), settings)
    context.ledger.append(ref, event)
    log.info("github_checks_failed", issue=str(ref), checks=len(failed), refused=event.refused)
    if event.refused:
        resume(ref, context)
