"""Guard work by a lease: renew it, and refuse every write once it is lost (RECOVERY-2)."""

import threading
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import LeaseLostError, MulliganError
from mulligan.domain.issue import IssueRef, Lease, lease_lost
from mulligan.implement.ports import BotContext, GitWriter, Guard
from mulligan.sandbox.cancellation import CURRENT_CANCELLATION, Cancellation

HEARTBEAT = timedelta(seconds=10)
"""The default time between two renewals of a lease."""

HEARTBEATS_PER_LEASE = 4
"""How often a worker renews its lease, and its presence, within the lease's duration."""


@contextmanager
def under_lease(
    lease: Lease, context: BotContext, stop: Cancellation, heartbeat: timedelta = HEARTBEAT
) -> Generator[BotContext]:
    """Renew the lease in this block, and yield a context that writes only while it is held.

    On GitHub it writes only while this installation owns the repository (OWNER-1), which it reads
    again before each push. Commands that this thread runs are stopped when `stop` is cancelled or
    either is lost.
    """
    repository = lease.issue.repository

    def guard() -> None:
        if not context.leases.holds(lease):
            raise lease_lost(lease)

    def guard_write() -> None:
        guard()
        context.owners.require(repository, fresh=False)

    def guard_push() -> None:
        guard()
        context.owners.require(repository)

    fenced = replace(
        context,
        ledger=context.ledger.with_lease(lease),
        writer=context.writer.guarded(guard_write),
        git=FencedGit(context.git, guard, guard_push),
    )
    _stop_at_expiry(lease, context, stop, time.monotonic())
    token = CURRENT_CANCELLATION.set(stop)
    ended = threading.Event()
    renewal = (lease, context, stop, ended, heartbeat)
    renewer = threading.Thread(target=_renew, args=renewal, name="lease-renewal")
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
        asked = time.monotonic()
        try:
            if not context.leases.renew(lease):
                raise lease_lost(lease)
            _stop_at_expiry(lease, context, stop, asked)
            context.owners.require(lease.issue.repository, fresh=False)
        except LeaseLostError as error:
            stop.cancel(error)
            return
        except MulliganError:
            # The database or GitHub is unavailable; if it stays so, both expire by themselves.
            continue


def _stop_at_expiry(lease: Lease, context: BotContext, stop: Cancellation, since: float) -> None:
    """Stop the work when the lease ends, even if the renewal hangs.

    Another worker may start the issue then, and the limits do not count this one any longer.
    """
    message = f"The lease of {lease.issue} could not be renewed in time; this worker stops."
    stop.expire(since + context.limits.lease.total_seconds(), LeaseLostError(message))


@dataclass(frozen=True, slots=True)
class FencedGit:
    """Implements GitWriter over another one: calls a guard before every write, here or remote."""

    inner: GitWriter
    guard: Guard
    guard_push: Guard

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        self.guard_push()
        self.inner.push(ref, head_sha, expected)

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        self.guard_push()
        return self.inner.push_attempt(ref, head_sha, number)

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        self.guard_push()
        return self.inner.delete_branch(ref, own)

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        self.guard()
        self.inner.store_commit(ref, head_sha, place)

    def discard(self, ref: IssueRef) -> None:
        self.guard()
        self.inner.discard(ref)
