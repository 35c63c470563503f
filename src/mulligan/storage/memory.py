"""Keep the ledger and the leases in memory, for dry runs and tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock

from mulligan.config.operator import LEASE_TIME
from mulligan.domain.events import (
    AttemptCompleted,
    BaselineRecorded,
    Event,
    LearningsAccepted,
    LearningsDropped,
    RecordedEvent,
    comments_read_to,
)
from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef, Lease, lease_lost
from mulligan.domain.result import WorkerResultMeta, latest_records
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Clock, Listener, ignore_event
from mulligan.storage.serialization import record_event, redacted, storable
from mulligan.text.redact import Redactor


class MemoryLeases:
    """The port Leases in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._fences: dict[IssueRef, int] = {}
        self._held: dict[IssueRef, tuple[Lease, datetime]] = {}

    def claim(self, ref: IssueRef, worker: str, most: int | None = None) -> Lease | None:
        with self._lock:
            now = self._clock.now()
            good = [each for each, (_, expires) in self._held.items() if expires > now]
            if ref in good or (most is not None and len(good) >= most):
                return None
            self._fences[ref] = fence = self._fences.get(ref, 0) + 1
            lease = Lease(ref, worker, fence)
            self._held[ref] = (lease, now + LEASE_TIME)
            return lease

    def renew(self, lease: Lease) -> bool:
        with self._lock:
            now = self._clock.now()
            good = self._good(lease, now)
            if good:
                self._held[lease.issue] = (lease, now + LEASE_TIME)
            return good

    def holds(self, lease: Lease) -> bool:
        with self._lock:
            return self._good(lease, self._clock.now())

    def release(self, lease: Lease) -> None:
        with self._lock:
            entry = self._held.get(lease.issue)
            if entry and entry[0] == lease:
                del self._held[lease.issue]

    def holder(self, ref: IssueRef) -> str | None:
        with self._lock:
            entry = self._held.get(ref)
            return entry[0].worker if entry and entry[1] > self._clock.now() else None

    def release_all(self) -> None:
        with self._lock:
            self._held.clear()

    def heartbeat(self, worker: str) -> Sequence[str]:
        """Return `worker`, the only one there can be."""
        return (worker,)

    def _good(self, lease: Lease, now: datetime) -> bool:
        entry = self._held.get(lease.issue)
        return entry is not None and entry[0] == lease and entry[1] > now


@dataclass(slots=True)
class _Contents:
    """The content of a ledger in memory."""

    lock: Lock = field(default_factory=Lock)
    events: list[RecordedEvent] = field(default_factory=list[RecordedEvent])
    statuses: dict[IssueRef, IssueStatus] = field(default_factory=dict[IssueRef, IssueStatus])


@dataclass(frozen=True, slots=True)
class MemoryLedger:
    """The port Ledger on a list; thread-safe."""

    clock: Clock
    leases: MemoryLeases | None = None
    redactor: Redactor = field(default_factory=Redactor)
    lease: Lease | None = None
    listener: Listener = ignore_event
    _kept: _Contents = field(default_factory=_Contents)

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        with self._kept.lock:
            status = self._append(ref, event)
        self.listener(status, event)
        return status

    def restore(self, ref: IssueRef, events: Sequence[Event]) -> bool:
        if not events:
            return False
        with self._kept.lock:
            if ref in self._kept.statuses:
                return False
            status = [self._append(ref, event) for event in events][-1]
        self.listener(status, events[-1])
        return True

    def _append(self, ref: IssueRef, event: Event) -> IssueStatus:
        if self.lease and not (self.leases and self.leases.holds(self.lease)):
            raise lease_lost(self.lease)
        event, at = redacted(storable(event), self.redactor), self.clock.now()
        status = advance(self._status(ref), event, at)
        kept = self._kept
        kept.events.append(record_event(status, event, at, seq=len(kept.events) + 1))
        kept.statuses[ref] = status
        return status

    def with_lease(self, lease: Lease) -> "MemoryLedger":
        return replace(self, lease=lease)

    def status(self, ref: IssueRef) -> IssueStatus:
        with self._kept.lock:
            return self._status(ref)

    def statuses(self) -> Sequence[IssueStatus]:
        with self._kept.lock:
            return [self._kept.statuses[ref] for ref in sorted(self._kept.statuses)]

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        return latest_records(
            recorded.event.meta
            for recorded in self.events(ref)
            if isinstance(recorded.event, AttemptCompleted)
        )

    def events(
        self, ref: IssueRef | None = None, after: int = 0, most: int | None = None
    ) -> Sequence[RecordedEvent]:
        with self._kept.lock:
            newer = self._kept.events[max(0, after) :]
        return [recorded for recorded in newer if ref in (None, recorded.issue)][:most]

    def last_seq(self) -> int:
        with self._kept.lock:
            return len(self._kept.events)

    def comments_read_to(self, repository: str) -> int:
        events = (each.event for each in self.events() if each.issue.repository == repository)
        return max(map(comments_read_to, events), default=0)

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        found = (
            recorded.event
            for recorded in reversed(self.events())
            if recorded.issue.repository == repository
            and isinstance(recorded.event, BaselineRecorded)
        )
        return next((event for event in found if event.key == key), None)

    def learnings(self, repository: str) -> Sequence[RecordedEvent]:
        return [
            each
            for each in self.events()
            if each.issue.repository == repository
            and isinstance(each.event, LearningsAccepted | LearningsDropped)
        ]

    def _status(self, ref: IssueRef) -> IssueStatus:
        return self._kept.statuses.get(ref) or IssueStatus(ref)
