"""Follow open pull requests: reviews, conflicts, checks on GitHub, ends, base updates."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from mulligan.config.policy import OnConflict
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.errors import DeniedError, UnavailableError, WorldError
from mulligan.domain.events import (
    MERGED,
    NOT_MERGED,
    BroughtUpToDate,
    CiPassed,
    Conflicted,
    FailedCheck,
    Resolved,
)
from mulligan.domain.feedback import (
    MOST_CHECKS,
    CheckRun,
    OpenPull,
    PullState,
    failed_of,
    key_of,
    latest,
    passed_of,
    told_apart,
)
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import is_on_others, own_commits
from mulligan.domain.status import MERGE, PUSH, SETTLING, IssueStatus, Phase
from mulligan.implement.decide import (
    LISTENING,
    EndedAttempt,
    Left,
    RetryPolicy,
    count_spent,
    failed_on_github,
    is_settled,
    new_reviews,
    received,
)
from mulligan.implement.effects import THE_ONE, done, show
from mulligan.implement.issue_snapshot import objection
from mulligan.implement.phase import resume
from mulligan.implement.ports import Tools

SAME_SECOND = timedelta(seconds=5)
"""GitHub's times are whole seconds: what was looked at so soon may have more by now."""

log = structlog.get_logger()

Seen = tuple[str, tuple[CheckRun, ...]]
"""A head, and what ran on it when it was looked at last."""

REFUSED = "merge_refused"
"""The effect that a merge could not be pushed, by base and head: it is not tried again."""

MOST_LOGS = 5
"""Of one head; further checks that failed are told by name."""


@dataclass(frozen=True, slots=True)
class PullRequestCache:
    """What was heard last of each pull request, so that nothing is read again; for one thread."""

    updated: dict[IssueRef, datetime] = field(default_factory=dict[IssueRef, datetime])
    merged: dict[IssueRef, tuple[str, str]] = field(default_factory=dict[IssueRef, tuple[str, str]])
    checks: dict[IssueRef, Seen] = field(default_factory=dict[IssueRef, Seen])


def follow(
    repository: str,
    known: Iterable[IssueStatus],
    tools: Tools,
    worker: Worker,
    ears: PullRequestCache,
) -> list[Visit]:
    """See what became of a repository's pull requests; one list is asked for, if there are any.

    Gives the visits to those that had to be looked at. That one is not in the list is believed
    only after it was read itself.
    """
    waiting = [each for each in known if each.pull_number and each.phase is Phase.IDLE]
    if not waiting:
        return []
    there = {pull.number: pull for pull in tools.tracker.pulls.listed(repository)}
    visits = [
        _follow_one(each, there.get(each.pull_number or 0), tools, worker, ears) for each in waiting
    ]
    return [done for done in visits if done]


def _follow_one(
    status: IssueStatus, pull: OpenPull | None, tools: Tools, worker: Worker, ears: PullRequestCache
) -> Visit | None:
    ref = status.issue
    if pull is None:
        return worker.safely(ref, partial(_end, ref))
    done = None
    if status.stage in LISTENING and ears.updated.get(ref) != pull.updated_at:
        done = worker.safely(ref, partial(_hear, ref, pull, ears))
    if status.stage is Stage.REVIEW and not (done and done.problem):
        done = _compare(ref, pull, tools, worker, ears) or done
    if status.stage is Stage.REVIEW and not (done and done.problem):
        done = keep_up(status, pull, tools, worker) or done
    if status.stage is Stage.REVIEW and not (done and done.problem):
        return watch(status, pull, tools, worker, ears.checks) or done
    return done


def _hear(ref: IssueRef, pull: OpenPull, ears: PullRequestCache, tools: Tools) -> Visit:
    """Read the reviews, and take them in once nobody adds to them any more (SPEC P3)."""
    status, settings = tools.ledger.status(ref), tools.policies.current(ref.repository).review
    if status.phase is not Phase.IDLE or status.stage not in LISTENING:
        return Visit(ref)
    now = tools.clock.now()
    new = new_reviews(tools.tracker.pulls.reviews(ref, pull.number), status)
    if new and not is_settled(new, settings, now):
        last = max(new, key=lambda each: each.at)
        until = last.at + settings.settle
        done(ref, SETTLING, THE_ONE, f"{last.id} {until.isoformat()}", tools)
        return Visit(ref)
    if status.settles and not new:
        # It was dismissed or withdrawn meanwhile.
        done(ref, SETTLING, THE_ONE, "", tools)
    if new:
        event = received(new, status, left(status, tools), settings)
        tools.ledger.append(ref, event)
        log.info("reviewed", issue=str(ref), reviews=len(new), refused=event.refused)
        if event.refused:
            resume(ref, tools)
    if pull.updated_at + SAME_SECOND <= now:
        ears.updated[ref] = pull.updated_at
    return Visit(ref)


def _compare(
    ref: IssueRef, pull: OpenPull, tools: Tools, worker: Worker, ears: PullRequestCache
) -> Visit | None:
    """Look whether the pull request still merges, once for each base and head (SPEC P5)."""
    base = tools.worktrees.base_sha(ref.repository)
    rebuilds = tools.policies.current(ref.repository).on_conflict is OnConflict.REBUILD
    if not rebuilds or base is None or ears.merged.get(ref) == (base, pull.head_sha):
        return None
    done = worker.safely(ref, partial(_rebuild, ref, (base, pull.head_sha)))
    if not (done.problem or done.skipped):
        ears.merged[ref] = (base, pull.head_sha)
    return done


def _rebuild(ref: IssueRef, pair: tuple[str, str], tools: Tools) -> Visit:
    """Have a conflict resolved by an attempt, while one is left; others' commits stay (P2)."""
    status, (base, head) = tools.ledger.status(ref), pair
    history, known = tools.ledger.history(ref), f"conflict:{base}:{head}" in status.heard
    is_ours = head in own_commits(status, history) and not is_on_others(history)
    if known or not is_ours or status.stage is not Stage.REVIEW or left(status, tools).nothing:
        return Visit(ref)
    if files := tools.worktrees.conflicts(ref, base, head):
        tools.ledger.append(ref, Conflicted(base_sha=base, head_sha=head, files=files[:20]))
    return Visit(ref)


def _end(ref: IssueRef, tools: Tools) -> Visit:
    """Resolve an issue whose pull request was merged or closed; all of it may happen twice (P6)."""
    status = tools.ledger.status(ref)
    if not status.pull_number or status.phase is not Phase.IDLE:
        return Visit(ref)
    ended = tools.tracker.pulls.state(ref, status.pull_number)
    if ended.is_open:
        return Visit(ref)
    history = tools.ledger.history(ref)
    _leave_nothing(ref, ended, own_commits(status, history), tools)
    resolved = Resolved(
        resolution=MERGED if ended.is_merged else NOT_MERGED,
        total_attempts=len(history),
        total_duration_ms=sum(meta.duration_ms for meta in history),
    )
    tools.ledger.append(ref, resolved)
    show(ref, tools)
    return Visit(ref)


def _leave_nothing(ref: IssueRef, ended: PullState, own: Collection[str], tools: Tools) -> None:
    """Close the issue where GitHub does not, and remove branch and worktree; best effort."""
    try:
        if ended.is_merged and not ended.into_default:
            tools.tracker.pulls.close_issue(ref)
        if tools.policies.current(ref.repository).pull_request.delete_branch:
            tools.worktrees.drop(ref, own)
    except DeniedError as error:
        log.warning("not_cleaned_up", issue=str(ref), reason=str(error))
    try:
        tools.worktrees.discard(ref)
    except UnavailableError as error:
        log.warning("not_cleaned_up", issue=str(ref), reason=str(error))


def keep_up(status: IssueStatus, pull: OpenPull, tools: Tools, worker: Worker) -> Visit | None:
    """Merge the base branch, where the policy wants it and GitHub says that only that is missing.

    GitHub is asked while the head lacks commits of the base, free of charge while nothing changed.
    A head that Mulligan did not push last is left to whoever made it.
    """
    ref = status.issue
    if pull.head_sha in status.merged_since:
        return worker.safely(ref, partial(_finish, ref, pull.head_sha))
    base = tools.worktrees.base_sha(ref.repository)
    if base is None or not tools.policies.current(ref.repository).update_branch:
        return None
    try:
        wanted = _is_wanted(status, pull, base, tools)
    except WorldError as error:
        return Visit(ref, problem=str(error))
    return worker.safely(ref, partial(_update, ref, pull.head_sha, base)) if wanted else None


def _pushed(status: IssueStatus) -> str | None:
    return status.effect(PUSH, status.issue.branch)


def _is_wanted(status: IssueStatus, pull: OpenPull, base: str, tools: Tools) -> bool:
    ref, head = status.issue, pull.head_sha
    if head != _pushed(status) or status.effect(REFUSED, f"{base}:{head}"):
        return False
    behind = tools.worktrees.is_behind(ref, base, head)
    return behind and tools.tracker.pulls.state(ref, pull.number).is_behind


def _update(ref: IssueRef, head: str, base: str, tools: Tools) -> Visit:
    """Merge and push. The commit is known to be Mulligan's own before anybody can see it."""
    status = tools.ledger.status(ref)
    if status.stage is not Stage.REVIEW or status.phase is not Phase.IDLE:
        return Visit(ref)
    commit = tools.policies.current(ref.repository).commit
    merged = tools.worktrees.merge(ref, base, head, commit)
    if merged is None:
        return Visit(ref)
    done(ref, MERGE, f"{base}:{head}", merged, tools)
    try:
        why = _unfit(ref, base, tools)
        if not why:
            tools.worktrees.push(ref, merged, head)
    except DeniedError as error:
        # Somebody pushed meanwhile, or the server wants no such commit: it is left to people.
        why = str(error)
    if why:
        log.warning("not_updated", issue=str(ref), reason=why)
        done(ref, REFUSED, f"{base}:{head}", "refused", tools)
        return Visit(ref)
    return _finish(ref, merged, tools)


def _unfit(ref: IssueRef, base: str, tools: Tools) -> str:
    """Check once more, right before a push; say why there may be none.

    Neither the base that is merged, nor what the pull request stands on, may have been taken off
    the base branch; and who asked for the work has to be somebody who may (SPEC T1). A text that
    was changed since the work was published does not matter.
    """
    stands_on = {(meta.start_sha, meta.base_sha) for meta in tools.ledger.history(ref)[-1:]}
    merged = {base, tools.ledger.status(ref).updated_to} - {""}
    for start, known in [*((sha, sha) for sha in merged), *stands_on]:
        if not tools.worktrees.is_in_base(ref, start, known):
            return f"The base branch was force-pushed and no longer contains {known[:10]}."
    wrong = objection(ref, tools)
    return f"{wrong.reason}." if wrong and not wrong.by_edit else ""


def _finish(ref: IssueRef, merged: str, tools: Tools) -> Visit:
    """Record a merge that was pushed, and say so in the status comment."""
    status = tools.ledger.status(ref)
    base = status.merged_since.get(merged)
    if base and status.stage is Stage.REVIEW and status.phase is Phase.IDLE:
        tools.ledger.append(ref, BroughtUpToDate(base_sha=base, head_sha=merged))
        log.info("brought_up_to_date", issue=str(ref), base=base)
        show(ref, tools)
    return Visit(ref)


def watch(
    status: IssueStatus, pull: OpenPull, tools: Tools, worker: Worker, seen: dict[IssueRef, Seen]
) -> Visit | None:
    """Look at the checks of a pull request in review, where the policy has them count.

    They are read at every poll, free of charge while nothing changed; what was `seen` already
    comes to nothing.
    """
    ref = status.issue
    watches = tools.policies.current(ref.repository).watch_ci.enabled
    if not watches or status.effect(PUSH, ref.branch) != pull.head_sha:
        return None
    try:
        now = (pull.head_sha, latest(tools.tracker.pulls.checks(ref, pull.head_sha)))
    except WorldError as error:
        return Visit(ref, problem=str(error))
    if seen.get(ref) == now:
        return None
    done = worker.safely(ref, partial(_judge, ref, now))
    if not (done.problem or done.skipped):
        seen[ref] = now
    return done


def left(status: IssueStatus, tools: Tools) -> Left:
    """Count what the epoch has left."""
    history, repository = tools.ledger.history(status.issue), status.issue.repository
    policy = RetryPolicy.of(tools.policies.current(repository), tools.limits)
    epoch = [EndedAttempt.of(meta) for meta in history if meta.epoch == status.epoch]
    return Left(count_spent(epoch, policy), policy.max_issue_attempts)


def _judge(ref: IssueRef, now: Seen, tools: Tools) -> Visit:
    """Take in what the checks came to, once for each head; those that still run come to nothing."""
    status, (head, runs) = tools.ledger.status(ref), now
    rests = status.stage is Stage.REVIEW and status.phase is Phase.IDLE
    if not rests or status.effect(PUSH, ref.branch) != head:
        return Visit(ref)
    failed, passed = failed_of(runs), passed_of(runs)
    if failed and key_of(head) not in status.heard:
        _take_in(status, head, failed, tools)
    elif passed and passed != status.ci_passed:
        tools.ledger.append(ref, CiPassed(head_sha=head, count=passed))
        show(ref, tools)
    return Visit(ref)


def _take_in(status: IssueStatus, head: str, failed: tuple[CheckRun, ...], tools: Tools) -> None:
    ref = status.issue
    shown = failed[:MOST_CHECKS]
    told = [
        FailedCheck(name=name, digest=_digest(ref, run, tools) if at < MOST_LOGS else "")
        for at, (name, run) in enumerate(zip(told_apart(shown), shown, strict=True))
    ]
    settings = tools.policies.current(ref.repository).watch_ci
    event = failed_on_github(head, told, status, left(status, tools), settings)
    tools.ledger.append(ref, event)
    log.info("failed_on_github", issue=str(ref), checks=len(failed), refused=event.refused)
    if event.refused:
        resume(ref, tools)


def _digest(ref: IssueRef, run: CheckRun, tools: Tools) -> str:
    output = tools.tracker.pulls.log(ref, run)
    return tools.verifier.condense(output) if output.strip() else ""
