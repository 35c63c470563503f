"""A ledger that tells somebody of every event as it is recorded, for progress on a terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mulligan.domain.events import BaselineRecorded, Event, Recorded
from mulligan.domain.issue import IssueRef
from mulligan.domain.lease import Lease
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.ports import Ledger

Listener = Callable[[IssueStatus, Event], None]


@dataclass(frozen=True, slots=True)
class WatchedLedger:
    """See ports.Ledger: `inner` keeps, `listener` hears of it afterwards."""

    inner: Ledger
    listener: Listener

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        status = self.inner.append(ref, event)
        self.listener(status, event)
        return status

    def under(self, lease: Lease) -> "WatchedLedger":
        return replace(self, inner=self.inner.under(lease))

    def status(self, ref: IssueRef) -> IssueStatus:
        return self.inner.status(ref)

    def statuses(self) -> Sequence[IssueStatus]:
        return self.inner.statuses()

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        return self.inner.history(ref)

    def events(
        self, ref: IssueRef | None = None, after: int = 0, most: int | None = None
    ) -> Sequence[Recorded]:
        return self.inner.events(ref, after, most)

    def newest(self) -> int:
        return self.inner.newest()

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        return self.inner.baseline(repository, key)
