"""The port Dispatcher at its simplest."""

from collections.abc import Callable, Iterable

from mulligan.domain.issue import IssueRef

Visit = Callable[[IssueRef], None]


class InlineDispatcher:
    """The port Dispatcher in this thread: waking an issue is visiting it."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    def wake(self, refs: Iterable[IssueRef]) -> None:
        """Visit each issue, one after the other."""
        for ref in dict.fromkeys(refs):
            self._visit(ref)

    def drain(self) -> None:
        """Return at once: nothing is ever under way between two calls."""
