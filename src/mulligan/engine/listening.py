"""Listen to open pull requests: reviews and conflicts ask for another attempt, an end resolves."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from mulligan.config.policy import OnConflict
from mulligan.domain.case import is_on_others, own_commits
from mulligan.domain.events import Resolved
from mulligan.domain.feedback import MERGED, NOT_MERGED, Conflicted, OpenPull, PullState
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import SETTLING, IssueStatus, Phase
from mulligan.done import THE_ONE, done
from mulligan.effects import show
from mulligan.engine.on_github import Seen, left, watch
from mulligan.engine.up_to_date import keep_up
from mulligan.engine.worker import Visit, Worker
from mulligan.errors import DeniedError, UnavailableError
from mulligan.implement import resume
from mulligan.retry.returned import LISTENING, is_settled, new_reviews, received
from mulligan.tools import Tools

SAME_SECOND = timedelta(seconds=5)
"""GitHub's times are whole seconds: what was looked at so soon may have more by now."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Ears:
    """What was heard last of each pull request, so that nothing is read again; for one thread."""

    updated: dict[IssueRef, datetime] = field(default_factory=dict[IssueRef, datetime])
    merged: dict[IssueRef, tuple[str, str]] = field(default_factory=dict[IssueRef, tuple[str, str]])
    checks: dict[IssueRef, Seen] = field(default_factory=dict[IssueRef, Seen])


def follow(
    repository: str, known: Iterable[IssueStatus], tools: Tools, worker: Worker, ears: Ears
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
        _attend(each, there.get(each.pull_number or 0), tools, worker, ears) for each in waiting
    ]
    return [done for done in visits if done]


def _attend(
    status: IssueStatus, pull: OpenPull | None, tools: Tools, worker: Worker, ears: Ears
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


def _hear(ref: IssueRef, pull: OpenPull, ears: Ears, tools: Tools) -> Visit:
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
    ref: IssueRef, pull: OpenPull, tools: Tools, worker: Worker, ears: Ears
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
