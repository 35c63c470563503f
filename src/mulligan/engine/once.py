"""One pass: recover, publish what is pending, then work each due issue until it rests."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from mulligan.domain.issue import IssueRef
from mulligan.engine.intake import poll
from mulligan.engine.recovery import recover
from mulligan.engine.worker import Visit, visit
from mulligan.ports import Dispatcher, Tools


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass came to: the visits, and a sentence for everything that failed."""

    visits: tuple[Visit, ...] = ()
    problems: tuple[str, ...] = field(default=())

    @property
    def escalated(self) -> bool:
        """Tell whether an issue was handed to a person."""
        return any(visit.escalated for visit in self.visits)


def once(
    repositories: Sequence[str],
    tools: Tools,
    dispatching: Callable[[Callable[[IssueRef], None]], AbstractContextManager[Dispatcher]],
    attempts: int | None = None,
    limit: int | None = None,
) -> Pass:
    """Make one pass, with at most `attempts` for each issue and at most `limit` issues.

    `dispatching` gives a dispatcher for the visits that are handed to it.
    """
    stuck = recover(tools)
    found, failed = poll(repositories, tools)
    due = [ref for ref in found if ref not in stuck][:limit]
    visits = list[Visit]()

    def work(ref: IssueRef) -> None:
        visits.append(visit(ref, tools, attempts))

    with dispatching(work) as dispatcher:
        dispatcher.wake(due)
        dispatcher.drain()
    problems = [
        *(f"{repository}: {problem}" for repository, problem in failed.items()),
        *(f"{ref}: {problem}" for ref, problem in stuck.items()),
        *(f"{done.issue}: {done.problem}" for done in visits if done.problem),
    ]
    return Pass(tuple(sorted(visits, key=lambda done: done.issue)), tuple(problems))
