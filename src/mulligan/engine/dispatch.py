"""Have issues visited, several at a time, within the limits of this process."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from mulligan.domain.issue import IssueRef

Visit = Callable[[IssueRef], None]


class PoolDispatcher:
    """The port Dispatcher on threads: `concurrency` visits at a time, `per_repository` in each.

    `visit` must not raise. Leaving the block waits for the visits that have begun.
    """

    def __init__(self, visit: Visit, concurrency: int, per_repository: int) -> None:
        self._visit = visit
        self._concurrency = concurrency
        self._per_repository = per_repository
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="visit")
        self._waiting: list[IssueRef] = []
        self._running: set[IssueRef] = set()
        self._changed = threading.Condition()

    def wake(self, refs: Iterable[IssueRef]) -> None:
        """Have each issue visited soon; one that waits or is being visited is left alone."""
        with self._changed:
            for ref in refs:
                if ref not in self._waiting and ref not in self._running:
                    self._waiting.append(ref)
            self._start_what_may_run()

    def drain(self) -> None:
        """Wait until every visit has ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._running)

    def running(self) -> frozenset[IssueRef]:
        """Name the issues that are being visited."""
        with self._changed:
            return frozenset(self._running)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._waiting.clear()
        self._pool.shutdown(wait=True)

    def _start_what_may_run(self) -> None:
        while ref := self._next():
            self._waiting.remove(ref)
            self._running.add(ref)
            self._pool.submit(self._work, ref)

    def _next(self) -> IssueRef | None:
        if len(self._running) >= self._concurrency:
            return None
        busy = Counter(ref.repository for ref in self._running)
        return next((r for r in self._waiting if busy[r.repository] < self._per_repository), None)

    def _work(self, ref: IssueRef) -> None:
        try:
            self._visit(ref)
        finally:
            with self._changed:
                self._running.discard(ref)
                self._start_what_may_run()
                self._changed.notify_all()
