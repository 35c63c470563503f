"""Guard work by a lease: renew it, and refuse every write once it is lost (E4)."""

import threading
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from mulligan.config.policy import CommitSettings, Escalation, Labels, PullRequestSettings
from mulligan.domain.command import CommandBatch, PendingCommand
from mulligan.domain.errors import MulliganError
from mulligan.domain.feedback import CheckRun, OpenPull, PullState, Review
from mulligan.domain.issue import (
    AuthorisingAct,
    Issue,
    IssueRef,
    Lease,
    Objection,
    RepositoryFacts,
    Stage,
    lease_lost,
)
from mulligan.domain.issue_context import IssueContext, PullRequest
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import (
    BotContext,
    PullRequestBase,
    PullRequests,
    Tracker,
    Worktree,
    Worktrees,
)
from mulligan.sandbox.cancellation import CURRENT_CANCELLATION, Cancellation

HEARTBEAT = timedelta(seconds=15)
"""The default time between two renewals of a lease."""

HEARTBEATS_PER_LEASE = 4
"""How often a worker renews its lease, and its presence, within the lease's duration."""

Check = Callable[[], None]
"""Raises LeaseLostError if the lease is lost."""


@contextmanager
def under_lease(
    lease: Lease, context: BotContext, stop: Cancellation, heartbeat: timedelta = HEARTBEAT
) -> Generator[BotContext]:
    """Renew the lease in this block, and yield a context that writes only while it is held.

    Commands that this thread runs are stopped when `stop` is cancelled or the lease is lost.
    """

    def check() -> None:
        if not context.leases.holds(lease):
            raise lease_lost(lease)

    fenced = replace(
        context,
        ledger=context.ledger.with_lease(lease),
        tracker=FencedTracker(context.tracker, check),
        worktrees=FencedWorktrees(context.worktrees, check),
    )
    token = CURRENT_CANCELLATION.set(stop)
    ended = threading.Event()
    renewal = (lease, context, stop, ended, heartbeat)
    renewer = threading.Thread(target=_renew, args=renewal, name="heart")
    renewer.start()
    try:
        yield fenced
    finally:
        ended.set()
        renewer.join()
        CURRENT_CANCELLATION.reset(token)
        context.leases.release(lease)


def _renew(
    lease: Lease,
    context: BotContext,
    stop: Cancellation,
    ended: threading.Event,
    interval: timedelta,
) -> None:
    while not ended.wait(interval.total_seconds()):
        try:
            if not context.leases.renew(lease):
                stop.cancel(lease_lost(lease))
                return
        except MulliganError:
            # The database is unavailable; if it stays so, the lease expires by itself.
            continue


@dataclass(frozen=True, slots=True)
class FencedTracker:
    """The port Tracker over another one: `check` comes before every write."""

    inner: Tracker
    check: Check

    @property
    def pulls(self) -> PullRequests:
        return FencedPulls(self.inner.pulls, self.check)

    def repository(self, name: str) -> RepositoryFacts:
        return self.inner.repository(name)

    def list_labelled(
        self, repository: str, label: str, priority: Sequence[str] = ()
    ) -> Sequence[IssueRef]:
        return self.inner.list_labelled(repository, label, priority)

    def read(self, ref: IssueRef) -> Issue:
        return self.inner.read(ref)

    def authorising_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        return self.inner.authorising_act(ref, ready_label)

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        return self.inner.reauthorise(ref, status)

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        return self.inner.read_commands(repository, after, since, places)

    def react(self, repository: str, comment: int, reaction: str) -> None:
        self.check()
        self.inner.react(repository, comment, reaction)

    def reply(self, case: IssueContext, order: PendingCommand, answer: str) -> str:
        self.check()
        return self.inner.reply(case, order, answer)

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        return self.inner.withdrawal(ref, status, labels)

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        return self.inner.settled_elsewhere(ref, status, labels)

    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        return self.inner.pull_request_elsewhere(ref, status)

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        return self.inner.objection(ref, status)

    def set_stage_labels(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        self.check()
        self.inner.set_stage_labels(ref, stage, labels)

    def update_status(self, case: IssueContext) -> str | None:
        self.check()
        return self.inner.update_status(case)

    def ask_for_label(self, case: IssueContext, act: str, reason: str) -> str:
        self.check()
        return self.inner.ask_for_label(case, act, reason)

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        self.check()
        return self.inner.post_escalation(case, escalation)

    def open_pull_request(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        self.check()
        return self.inner.open_pull_request(case, base_branch, settings)

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        self.check()
        return self.inner.open_draft(case, base_branch)


@dataclass(frozen=True, slots=True)
class FencedPulls:
    """The port PullRequests over another one: `check` comes before every write."""

    inner: PullRequests
    check: Check

    def list_open(self, repository: str) -> Sequence[OpenPull]:
        return self.inner.list_open(repository)

    def state(self, ref: IssueRef, number: int) -> PullState:
        return self.inner.state(ref, number)

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        return self.inner.reviews(ref, number)

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        return self.inner.checks(ref, head_sha)

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        return self.inner.log(ref, run)

    def answer(self, ref: IssueRef, number: int, thread: int, text: str) -> str:
        self.check()
        return self.inner.answer(ref, number, thread, text)

    def answer_review(self, ref: IssueRef, number: int, review: int, text: str) -> str:
        self.check()
        return self.inner.answer_review(ref, number, review, text)

    def close_issue(self, ref: IssueRef) -> None:
        self.check()
        self.inner.close_issue(ref)


@dataclass(frozen=True, slots=True)
class FencedWorktrees:
    """The port Worktrees over another one: `check` comes before every push and removal."""

    inner: Worktrees
    check: Check

    def fetch_base(self, repository: str) -> None:
        self.inner.fetch_base(repository)

    def open(
        self, ref: IssueRef, standing: PullRequestBase | None = None
    ) -> AbstractContextManager[Worktree]:
        return self.inner.open(ref, standing)

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        return self.inner.base_file(repository, path, sha)

    def base_branch(self, repository: str) -> str:
        return self.inner.base_branch(repository)

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        self.check()
        self.inner.store_commit(ref, head_sha, place)

    def ensure_commit(self, ref: IssueRef, head_sha: str, bundle: Path) -> bool:
        return self.inner.ensure_commit(ref, head_sha, bundle)

    def base_sha(self, repository: str) -> str | None:
        return self.inner.base_sha(repository)

    def conflicts(self, ref: IssueRef, base_sha: str, head_sha: str) -> tuple[str, ...]:
        return self.inner.conflicts(ref, base_sha, head_sha)

    def is_behind(self, ref: IssueRef, base_sha: str, head_sha: str) -> bool:
        return self.inner.is_behind(ref, base_sha, head_sha)

    def is_in_base(self, ref: IssueRef, start_sha: str, base_sha: str) -> bool:
        return self.inner.is_in_base(ref, start_sha, base_sha)

    def merge(
        self, ref: IssueRef, base_sha: str, head_sha: str, settings: CommitSettings
    ) -> str | None:
        return self.inner.merge(ref, base_sha, head_sha, settings)

    def remote_head(self, ref: IssueRef) -> str | None:
        return self.inner.remote_head(ref)

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        self.check()
        return self.inner.delete_branch(ref, own)

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        self.check()
        self.inner.push(ref, head_sha, expected)

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        self.check()
        return self.inner.push_attempt(ref, head_sha, number)

    def exists(self, ref: IssueRef) -> bool:
        return self.inner.exists(ref)

    def discard(self, ref: IssueRef) -> None:
        self.check()
        self.inner.discard(ref)
