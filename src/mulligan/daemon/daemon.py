"""The daemon: poll, wake, recover, watch and clean up at intervals, until it is told to stop."""

import logging
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from mulligan.config.operator import Limits
from mulligan.daemon.cleanup import clean_up
from mulligan.daemon.health import DaemonHealth
from mulligan.daemon.lease_guard import HEARTBEATS_PER_LEASE
from mulligan.daemon.poll import FetchCache, poll, poll_interval
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import PoolDispatcher, Worker
from mulligan.domain.errors import MulliganError
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import Phase
from mulligan.implement.ports import BotContext, Clock

PeriodicJob = Callable[[], None]

Interval = Callable[[], timedelta]

NAME = "mulligan.schedule"

MIN_INTERVAL = timedelta(milliseconds=10)

CLEANUP_INTERVAL = timedelta(hours=1)

log = structlog.get_logger()


def _nothing() -> None:
    """Close nothing."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the configuration asks for: the repositories, and a worker with its tools.

    A new one fetches every repository afresh. `close` gives back what the tools have open.
    """

    repositories: tuple[str, ...]
    context: BotContext
    worker: Worker
    fetch_cache: FetchCache = field(default_factory=FetchCache)
    close: Callable[[], None] = _nothing


@dataclass(slots=True)
class _RuntimeUse:
    runtime: Runtime
    uses: int = 0


class ReloadableRuntime:
    """Hands out crews; one that was replaced is closed once nobody uses it any more."""

    def __init__(self, reload: Callable[[], Runtime | None]) -> None:
        """Start with no crew; `reload` gives one whenever the configuration changed, else None."""
        self._reload = reload
        self._lock = threading.Lock()
        self._runtimes: list[_RuntimeUse] = []

    @property
    def latest(self) -> Runtime | None:
        """Give the crew that serves, without a look at the configuration; None before the first."""
        with self._lock:
            return self._runtimes[-1].runtime if self._runtimes else None

    @contextmanager
    def reloaded(self) -> Generator[Runtime | None]:
        """Look at the configuration, and use the newest crew."""
        # Whoever comes first reads the configuration; the others wait for it.
        with self._lock:
            if changed := self._reload():
                self._runtimes.append(_RuntimeUse(changed))
            shifts = self._begin(self._runtimes[-1:])
        with self._using(shifts):
            yield shifts[0].runtime if shifts else None

    @contextmanager
    def current(self) -> Generator[Runtime]:
        """Use the newest crew; there has to be one."""
        with self._lock:
            shifts = self._begin(self._runtimes[-1:])
        with self._using(shifts):
            yield shifts[0].runtime

    @contextmanager
    def all(self) -> Generator[list[Runtime]]:
        """Use every crew that still has work."""
        with self._lock:
            shifts = self._begin(self._runtimes)
        with self._using(shifts):
            yield [each.runtime for each in shifts]

    def close(self) -> None:
        """Close them all, when nobody uses any."""
        with self._lock:
            gone, self._runtimes = self._runtimes, []
        for each in gone:
            each.runtime.close()

    def _begin(self, shifts: list[_RuntimeUse]) -> list[_RuntimeUse]:
        for each in shifts:
            each.uses += 1
        return list(shifts)

    @contextmanager
    def _using(self, shifts: list[_RuntimeUse]) -> Generator[None]:
        try:
            yield
        finally:
            with self._lock:
                for each in shifts:
                    each.uses -= 1
                gone = [each for each in self._runtimes[:-1] if not each.uses]
                self._runtimes = [each for each in self._runtimes if each not in gone]
            for each in gone:
                each.runtime.close()


class _VariableIntervalTrigger(BaseTrigger):
    """Fires at an interval that may change from call to call; what was missed is made up once."""

    def __init__(self, interval: Interval) -> None:
        self._interval = interval

    def get_next_fire_time(  # pyright: ignore[reportIncompatibleMethodOverride] - it has no types
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime:
        interval = max(self._interval(), MIN_INTERVAL)
        following = (previous_fire_time or now) + interval
        return following if following > now else now + interval


@contextmanager
def run_periodically(
    jobs: Mapping[str, tuple[PeriodicJob, Interval]], now: datetime
) -> Generator[None]:
    """Call each tick at once and then at its interval, never twice at a time, in this block.

    A tick that is late is made up for once, however late; APScheduler's own grace of one second
    would drop it silently. `now` is the time of the first call. Leaving the block waits for those
    that have begun.
    """
    # It warns of each call that is left out while the one before still runs, as is meant here.
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.ERROR)
    scheduler = BackgroundScheduler(
        logger=logger,
        timezone=UTC,
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    for name, (tick, interval) in jobs.items():
        scheduler.add_job(  # pyright: ignore[reportUnknownMemberType] - it has no types
            tick, _VariableIntervalTrigger(interval), id=name, next_run_time=now
        )
    scheduler.start()  # pyright: ignore[reportUnknownMemberType]
    try:
        yield
    finally:
        scheduler.shutdown(wait=True)  # pyright: ignore[reportUnknownMemberType]


class Daemon:
    """Serves the newest crew; one that was replaced ends its visits, watched still."""

    def __init__(self, reload: Callable[[], Runtime | None]) -> None:
        """Start with no crew; `reload` gives one whenever the configuration changed, else None."""
        self._crews = ReloadableRuntime(reload)
        self.pulse = DaemonHealth()
        self._workers = 1

    def poll(self, wake: Callable[[list[IssueRef]], None]) -> None:
        """Recover, then ask every repository, and wake the issues that were found.

        Where the ledger itself is away, that is logged, and all of it left to the next poll.
        """
        with self.pulse.note_poll():
            self._poll(wake)

    def _poll(self, wake: Callable[[list[IssueRef]], None]) -> None:
        with self._crews.reloaded() as crew:
            if crew is None:
                return
            try:
                self._ask(crew, wake)
            except MulliganError as error:
                log.warning("not_polled", reason=str(error))

    def _ask(self, runtime: Runtime, wake: Callable[[list[IssueRef]], None]) -> None:
        for ref, reason in recover(
            runtime.context, runtime.worker, runtime.repositories
        ).failed.items():
            log.warning("not_recovered", issue=str(ref), reason=reason)
        asked = self.pulse.note_each(runtime.repositories)
        found, failed = poll(asked, runtime.context, runtime.worker, runtime.fetch_cache)
        unread = len(failed.keys() & set(runtime.repositories))
        self.pulse.asked(len(runtime.repositories), unread)
        for repository, reason in failed.items():
            log.warning("not_polled", repository=repository, reason=reason)
        wake(found)

    @property
    def repositories(self) -> int:
        """Count the repositories that are polled, as often as workers are heard of that do so."""
        crew = self._crews.latest
        return len(crew.repositories) * self._workers if crew else 0

    def heartbeat(self) -> None:
        """Be heard as a worker, and count all that share the ledger."""
        with self._crews.reloaded() as crew:
            if crew is None:
                return
            try:
                self._workers = len(crew.context.leases.heartbeat(crew.context.worker))
            except MulliganError as error:
                log.warning("not_heard", reason=str(error))

    @property
    def context(self) -> BotContext | None:
        """Give what the newest crew works with; None before there is one."""
        crew = self._crews.latest
        return crew.context if crew else None

    def watch(self) -> None:
        """Stop the work on every issue whose request was withdrawn."""
        with self._crews.all() as crews:
            for crew in crews:
                crew.worker.watch()

    def clean_up(self) -> None:
        """Remove what retention does not keep, and log what resists until the next time."""
        with self._crews.reloaded() as crew:
            if crew is None:
                return
            try:
                failed = clean_up(crew.context, crew.worker)
            except MulliganError as error:
                log.warning("not_cleaned_up", reason=str(error))
                return
        for ref, reason in failed.items():
            log.warning("not_cleaned_up", issue=str(ref), reason=reason)

    def visit(self, ref: IssueRef) -> None:
        """Work one issue until it rests, and log what failed around the agent."""
        with self._crews.current() as crew:
            done = crew.worker.visit(ref)
            undone = bool(done.problem) and _is_undone(ref, crew.context)
        if done.problem:
            log.warning("visit_failed", issue=str(ref), reason=done.problem)
        self.pulse.visited(undone=undone)

    def close(self) -> None:
        """Give back what every crew has open, once nothing runs any more."""
        self._crews.close()


def _is_undone(ref: IssueRef, context: BotContext) -> bool:
    """Tell whether something is left to be done of what was decided."""
    with suppress(MulliganError):
        return context.ledger.status(ref).phase is Phase.DECIDED
    return False


@contextmanager
def serving(daemon: Daemon, interval: timedelta, limits: Limits, clock: Clock) -> Generator[None]:
    """Run the daemon in the background; leaving the block ends it once its visits have ended."""
    with PoolDispatcher(daemon.visit, limits.concurrency, limits.per_repository) as dispatcher:

        def look() -> None:
            daemon.poll(dispatcher.wake)

        ticks = {
            "poll": (look, lambda: poll_interval(interval, daemon.repositories)),
            "watch": (daemon.watch, lambda: interval),
            "attend": (daemon.heartbeat, lambda: limits.lease / HEARTBEATS_PER_LEASE),
            "clean_up": (daemon.clean_up, lambda: CLEANUP_INTERVAL),
        }
        with run_periodically(ticks, clock.now()):
            yield
