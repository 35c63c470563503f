"""Guard work by a lease: renew it, and refuse every write once it is lost (RECOVERY-2)."""

import threading
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import MulliganError
from mulligan.domain.issue import IssueRef, Lease, lease_lost
from mulligan.implement.ports import BotContext, GitWriter, Guard, Leases
from mulligan.sandbox.cancellation import CURRENT_CANCELLATION, Cancellation

HEARTBEAT = timedelta(seconds=15)
"""The default time between two renewals of a lease."""

HEARTBEATS_PER_LEASE = 4
"""How often a worker renews its lease, and its presence, within the lease's duration."""


@contextmanager
def under_lease(
    lease: Lease, context: BotContext, stop: Cancellation, heartbeat: timedelta = HEARTBEAT
) -> Generator[BotContext]:
    """Renew the lease in this block, and yield a context that writes only while it is held.

    Commands that this thread runs are stopped when `stop` is cancelled or the lease is lost.
    """

    def guard() -> None:
        if not context.leases.holds(lease):
            raise lease_lost(lease)

    fenced = replace(
        context,
        ledger=context.ledger.with_lease(lease),
        writer=context.writer.guarded(guard),
        git=FencedGit(context.git, guard),
    )
    token = CURRENT_CANCELLATION.set(stop)
    ended = threading.Event()
    renewal = (lease, context.leases, stop, ended, heartbeat)
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
    leases: Leases,
    stop: Cancellation,
    ended: threading.Event,
    interval: timedelta,
) -> None:
    while not ended.wait(interval.total_seconds()):
        try:
            if not leases.renew(lease):
                stop.cancel(lease_lost(lease))
                return
        except MulliganError:
            # The database is unavailable; if it stays so, the lease expires by itself.
            continue


@dataclass(frozen=True, slots=True)
class FencedGit:
    """Implements GitWriter over another one: calls `guard` before every write."""

    inner: GitWriter
    guard: Guard

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        self.guard()
        self.inner.push(ref, head_sha, expected)

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        self.guard()
        return self.inner.push_attempt(ref, head_sha, number)

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        self.guard()
        return self.inner.delete_branch(ref, own)

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        self.guard()
        self.inner.store_commit(ref, head_sha, place)

    def discard(self, ref: IssueRef) -> None:
        self.guard()
        self.inner.discard(ref)
