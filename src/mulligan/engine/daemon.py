"""The daemon: poll, wake, recover, watch and clean up at intervals, until it is told to stop."""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta

import structlog

from mulligan.config.operator import Limits
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import Phase
from mulligan.engine.cleanup import clean_up
from mulligan.engine.crews import Crew, Crews
from mulligan.engine.dispatch import PoolDispatcher
from mulligan.engine.fence import BEATS
from mulligan.engine.intake import poll
from mulligan.engine.pace import stretched
from mulligan.engine.pulse import Pulse
from mulligan.engine.recovery import recover
from mulligan.engine.schedule import ticking
from mulligan.errors import MulliganError
from mulligan.ports import Clock
from mulligan.tools import Tools

CLEANUP = timedelta(hours=1)

log = structlog.get_logger()


class Daemon:
    """Serves the newest crew; one that was replaced ends its visits, watched still."""

    def __init__(self, reload: Callable[[], Crew | None]) -> None:
        """Start with no crew; `reload` gives one whenever the configuration changed, else None."""
        self._crews = Crews(reload)
        self.pulse = Pulse()
        self._workers = 1

    def poll(self, wake: Callable[[list[IssueRef]], None]) -> None:
        """Recover, then ask every repository, and wake the issues that were found.

        Where the ledger itself is away, that is logged, and all of it left to the next poll.
        """
        with self.pulse.polling():
            self._poll(wake)

    def _poll(self, wake: Callable[[list[IssueRef]], None]) -> None:
        with self._crews.renewed() as crew:
            if crew is None:
                return
            try:
                self._ask(crew, wake)
            except MulliganError as error:
                log.warning("not_polled", reason=str(error))

    def _ask(self, crew: Crew, wake: Callable[[list[IssueRef]], None]) -> None:
        for ref, reason in recover(crew.tools, crew.worker, crew.repositories).failed.items():
            log.warning("not_recovered", issue=str(ref), reason=reason)
        asked = self.pulse.each(crew.repositories)
        found, failed = poll(asked, crew.tools, crew.worker, crew.freshness)
        unread = len(failed.keys() & set(crew.repositories))
        self.pulse.asked(len(crew.repositories), unread)
        for repository, reason in failed.items():
            log.warning("not_polled", repository=repository, reason=reason)
        wake(found)

    @property
    def repositories(self) -> int:
        """Count the repositories that are polled, as often as workers are heard of that do so."""
        crew = self._crews.newest
        return len(crew.repositories) * self._workers if crew else 0

    def attend(self) -> None:
        """Be heard as a worker, and count all that share the ledger."""
        with self._crews.renewed() as crew:
            if crew is None:
                return
            try:
                self._workers = len(crew.tools.leases.attend(crew.tools.worker))
            except MulliganError as error:
                log.warning("not_heard", reason=str(error))

    @property
    def tools(self) -> Tools | None:
        """Give what the newest crew works with; None before there is one."""
        crew = self._crews.newest
        return crew.tools if crew else None

    def watch(self) -> None:
        """Stop the work on every issue whose request was withdrawn."""
        with self._crews.all() as crews:
            for crew in crews:
                crew.worker.watch()

    def clean_up(self) -> None:
        """Remove what retention does not keep, and log what resists until the next time."""
        with self._crews.renewed() as crew:
            if crew is None:
                return
            try:
                failed = clean_up(crew.tools, crew.worker)
            except MulliganError as error:
                log.warning("not_cleaned_up", reason=str(error))
                return
        for ref, reason in failed.items():
            log.warning("not_cleaned_up", issue=str(ref), reason=reason)

    def visit(self, ref: IssueRef) -> None:
        """Work one issue until it rests, and log what failed around the agent."""
        with self._crews.serving() as crew:
            done = crew.worker.visit(ref)
            undone = bool(done.problem) and _is_undone(ref, crew.tools)
        if done.problem:
            log.warning("visit_failed", issue=str(ref), reason=done.problem)
        self.pulse.visited(undone=undone)

    def close(self) -> None:
        """Give back what every crew has open, once nothing runs any more."""
        self._crews.close()


def _is_undone(ref: IssueRef, tools: Tools) -> bool:
    """Tell whether something is left to be done of what was decided."""
    with suppress(MulliganError):
        return tools.ledger.status(ref).phase is Phase.DECIDED
    return False


@contextmanager
def serving(daemon: Daemon, interval: timedelta, limits: Limits, clock: Clock) -> Generator[None]:
    """Run the daemon in the background; leaving the block ends it once its visits have ended."""
    with PoolDispatcher(daemon.visit, limits.concurrency, limits.per_repository) as dispatcher:

        def look() -> None:
            daemon.poll(dispatcher.wake)

        ticks = {
            "poll": (look, lambda: stretched(interval, daemon.repositories)),
            "watch": (daemon.watch, lambda: interval),
            "attend": (daemon.attend, lambda: limits.lease / BEATS),
            "clean_up": (daemon.clean_up, lambda: CLEANUP),
        }
        with ticking(ticks, clock.now()):
            yield
