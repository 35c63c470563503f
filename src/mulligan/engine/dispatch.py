"""Have issues visited: one after the other, or several at a time within the limits."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from mulligan.domain.issue import IssueRef


@dataclass(frozen=True, slots=True)
class InlineDispatcher:
    """See ports.Dispatcher: one visit after the other, in this thread."""

    def visit_all(self, refs: Sequence[IssueRef], visit: Callable[[IssueRef], None]) -> None:
        for ref in refs:
            visit(ref)


@dataclass(frozen=True, slots=True)
class PoolDispatcher:
    """See ports.Dispatcher: at most `concurrency` visits at a time, `per_repository` in each."""

    concurrency: int
    per_repository: int

    def visit_all(self, refs: Sequence[IssueRef], visit: Callable[[IssueRef], None]) -> None:
        waiting, running = list(refs), dict[Future[None], IssueRef]()
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="visit") as pool:
            while waiting or running:
                while ref := self._next(waiting, running):
                    waiting.remove(ref)
                    running[pool.submit(visit, ref)] = ref
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    del running[future]
                    future.result()

    def _next(
        self, waiting: Sequence[IssueRef], running: dict[Future[None], IssueRef]
    ) -> IssueRef | None:
        if len(running) >= self.concurrency:
            return None
        busy = Counter(ref.repository for ref in running.values())
        return next((ref for ref in waiting if busy[ref.repository] < self.per_repository), None)
