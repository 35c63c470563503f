"""The ledger in memory, for dry runs and tests: gone with the process."""

from collections.abc import Sequence
from threading import Lock

from mulligan.domain.events import AttemptCompleted, Event, Recorded
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus, advance
from mulligan.ports import Clock
from mulligan.state.events import happen, storable


class MemoryLedger:
    """The port Ledger on a list; may be used from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._events: list[Recorded] = []
        self._statuses: dict[IssueRef, IssueStatus] = {}

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        """Note an event; give where the issue stands now."""
        event = storable(event)
        with self._lock:
            at = self._clock.now()
            status = advance(self._status(ref), event, at)
            self._events.append(happen(status, event, at, seq=len(self._events) + 1))
            self._statuses[ref] = status
        return status

    def status(self, ref: IssueRef) -> IssueStatus:
        """Say where an issue stands; one never seen stands at epoch 0."""
        with self._lock:
            return self._status(ref)

    def statuses(self) -> Sequence[IssueStatus]:
        """Say where every known issue stands, by repository and number."""
        with self._lock:
            return [self._statuses[ref] for ref in sorted(self._statuses)]

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        """Give the completed attempts of all epochs, oldest first."""
        return tuple(
            recorded.event.meta
            for recorded in self.events(ref)
            if isinstance(recorded.event, AttemptCompleted)
        )

    def events(self, ref: IssueRef | None = None, after: int = 0) -> Sequence[Recorded]:
        """Give the events of one issue, or of all, with `seq` above `after`, in order."""
        with self._lock:
            newer = self._events[max(0, after) :]
        return [recorded for recorded in newer if ref in (None, recorded.issue)]

    def _status(self, ref: IssueRef) -> IssueStatus:
        return self._statuses.get(ref) or IssueStatus(ref)
