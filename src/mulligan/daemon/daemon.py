"""Run the daemon: poll, watch, renew leases and clean up at intervals; reload the configuration."""

import logging
import threading
import time
from collections.abc import Callable, Container, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from mulligan.config.operator import Limits
from mulligan.daemon.cleanup import RetentionPlan, clean_up
from mulligan.daemon.health import DaemonHealth
from mulligan.daemon.lease_guard import HEARTBEATS_PER_LEASE
from mulligan.daemon.poll import (
    MAX_AGE_BEFORE_WORK,
    REQUESTS_PER_POLL,
    FetchCache,
    admit_waiting,
    holds_on,
    poll,
    poll_interval,
    show_holds,
)
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import BUG_MESSAGE, PoolDispatcher, Visit, Worker
from mulligan.domain.errors import MulliganError, OutdatedError, UnavailableError
from mulligan.domain.hold import Hold
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import Phase
from mulligan.implement.ports import BotContext, Clock, LedgerReader, VisitQueue
from mulligan.sandbox.cancellation import CLOSING, SHUTDOWN

PeriodicJob = Callable[[], None]

Interval = Callable[[], timedelta]

NAME = "mulligan.schedule"

MIN_INTERVAL = timedelta(milliseconds=10)

CLEANUP_INTERVAL = timedelta(hours=1)

CLOCK_CHECK = timedelta(seconds=5)
"""How often the machine's clock is compared with one that nobody can set."""

SET_BACK = timedelta(seconds=1)
"""The smallest change that counts as set back; synchronization moves a clock by less."""

HINT_INTERVAL = timedelta(seconds=1)
"""The average time between two polls that webhooks start; deliveries meanwhile become one poll."""

HINT_BURST = timedelta(seconds=5)
"""How far these polls may run ahead of the average, so that a new label does not wait."""

HINT_REQUESTS_PER_POLL = 2 * REQUESTS_PER_POLL + 1
"""Counted for each, so that webhooks and the regular poll stay below GitHub's 900 a minute."""

log = structlog.get_logger()


@contextmanager
def logging_failure(event: str) -> Generator[None]:
    """Log what fails in this block, with the traceback of a bug: the next call tries it again."""
    try:
        yield
    except MulliganError as error:
        log.warning(event, reason=str(error))
    except Exception:
        log.exception(event, reason=BUG_MESSAGE)


def _nothing() -> None:
    """Do nothing: the default of Runtime.close."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything built from one configuration: the repositories, the context and a worker.

    A new runtime fetches every repository afresh. `queue` is the one of a fleet with a job engine.
    `close` closes its stores and connections.
    """

    repositories: tuple[str, ...]
    context: BotContext
    worker: Worker
    retention: RetentionPlan = field(default_factory=RetentionPlan)
    fetch_cache: FetchCache = field(default_factory=FetchCache)
    queue: VisitQueue | None = None
    close: Callable[[], None] = _nothing


@dataclass(slots=True)
class _RuntimeUse:
    runtime: Runtime
    uses: int = 0


class ReloadableRuntime:
    """Hands out runtimes; a replaced one is closed when its last user is done. Safe for threads."""

    def __init__(self, reload: Callable[[], Runtime | None]) -> None:
        """Start without a runtime; `reload` builds one if the configuration changed, else None."""
        self._reload = reload
        self._lock = threading.Lock()
        self._runtimes: list[_RuntimeUse] = []

    @property
    def latest(self) -> Runtime | None:
        """Return the newest runtime without reading the configuration; None before the first."""
        with self._lock:
            return self._runtimes[-1].runtime if self._runtimes else None

    @contextmanager
    def reloaded(self) -> Generator[Runtime | None]:
        """Read the configuration if it changed, and use the newest runtime."""
        # The first thread reads the configuration; the others wait for it.
        with self._lock:
            if changed := self._reload():
                self._runtimes.append(_RuntimeUse(changed))
        with self._using(-1) as runtimes:
            yield runtimes[0] if runtimes else None

    @contextmanager
    def current(self) -> Generator[Runtime]:
        """Use the newest runtime; one must exist."""
        with self._using(-1) as runtimes:
            yield runtimes[0]

    def all(self) -> AbstractContextManager[list[Runtime]]:
        """Use every runtime that still has users, and the newest."""
        return self._using()

    def close(self) -> None:
        """Close all runtimes; call this when none is in use."""
        with self._lock:
            gone, self._runtimes = self._runtimes, []
        for each in gone:
            each.runtime.close()

    @contextmanager
    def _using(self, first: int | None = None) -> Generator[list[Runtime]]:
        with self._lock:
            uses = self._runtimes[first:]
            for each in uses:
                each.uses += 1
        try:
            yield [each.runtime for each in uses]
        finally:
            with self._lock:
                for each in uses:
                    each.uses -= 1
                gone = [each for each in self._runtimes[:-1] if not each.uses]
                self._runtimes = [each for each in self._runtimes if each not in gone]
            for each in gone:
                each.runtime.close()


class _VariableIntervalTrigger(BaseTrigger):
    """Fires at an interval that may change between calls; makes up for missed calls once.

    APScheduler's `IntervalTrigger` lists all missed calls: with 60 s, and a clock set forward by
    10 years, that takes 4 s and 282 MiB. `reschedule_job`, called after each call, would add the
    duration of the call to the interval.
    """

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
    """Call each job at `now` and then at its interval, never twice at a time, in this block.

    A late job runs once, however late it is; APScheduler's default grace of one second would drop
    it silently. If the machine's clock is set back, all jobs run within `CLOCK_CHECK`. Leaving the
    block waits for the jobs that are running.
    """
    # It warns of each call that is skipped while the one before still runs, which is intended.
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.ERROR)
    scheduler = BackgroundScheduler(
        logger=logger,
        timezone=UTC,
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )

    def run(name: str) -> None:
        with logging_failure(f"{name}_failed"):
            jobs[name][0]()

    for name, (_, interval) in jobs.items():
        scheduler.add_job(  # pyright: ignore[reportUnknownMemberType] - it has no types
            run, _VariableIntervalTrigger(interval), args=[name], id=name, next_run_time=now
        )
    scheduler.start()  # pyright: ignore[reportUnknownMemberType]
    try:
        with _watching_clock(scheduler, jobs):
            yield
    finally:
        scheduler.shutdown(wait=True)  # pyright: ignore[reportUnknownMemberType]


def _machine_time() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - APScheduler reads it, whatever the port Clock tells


@contextmanager
def _watching_clock(scheduler: BackgroundScheduler, names: Iterable[str]) -> Generator[None]:
    """Run the named jobs when the machine's clock is set back, in a thread, during this block.

    APScheduler keeps the time of each next run. If a clock is set back by two hours, it would wait
    for two hours. No setting changes that: it "relies on the system time being correct"
    (agronholm/apscheduler, issue 351).
    """
    ended = threading.Event()

    def watch() -> None:
        now, since = _machine_time(), time.monotonic()
        while not ended.wait(CLOCK_CHECK.total_seconds()):
            expected = now + timedelta(seconds=time.monotonic() - since)
            now, since = _machine_time(), time.monotonic()
            if (back := expected - now) >= SET_BACK:
                log.warning("clock_set_back", seconds=round(back.total_seconds()))
                for name in names:
                    scheduler.modify_job(  # pyright: ignore[reportUnknownMemberType]
                        name, next_run_time=now
                    )

    thread = threading.Thread(target=watch, name="clock")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Hints:
    """The repositories that may have changed, as GitHub's webhook reports; safe for threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._names = set[str]()
        self._is_ended = False

    def add(self, repository: str) -> None:
        """Add a repository, once."""
        with self._changed:
            self._names.add(repository)
            self._changed.notify_all()

    def take(self, pause: timedelta) -> set[str]:
        """Wait for `pause`, then for repositories, and return them; none after `end`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ended, pause.total_seconds())
            self._changed.wait_for(lambda: self._is_ended or self._names)
            taken, self._names = self._names, set[str]()
            return set[str]() if self._is_ended else taken

    def end(self) -> None:
        """Let `take` return nothing from now on."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()


@dataclass(slots=True)
class HintPace:
    """The pauses after polls that webhooks start; `paid` is when the average permits the next."""

    paid: float = float("-inf")

    def pause_after(self, repositories: int, now: float) -> timedelta:
        """Return the pause after a poll of so many repositories; `now` is in seconds."""
        cost = poll_interval(HINT_INTERVAL, repositories, HINT_REQUESTS_PER_POLL)
        self.paid = max(self.paid, now) + cost.total_seconds()
        return max(timedelta(), timedelta(seconds=self.paid - now) - HINT_BURST)


class Daemon:
    """The jobs of `mulligan run`, on the newest runtime; a replaced runtime finishes its visits."""

    def __init__(self, reload: Callable[[], Runtime | None]) -> None:
        """Start without a runtime; `reload` builds one if the configuration changed, else None.

        If `reload` raises MulliganError, the process shuts down, and `fault` has the error.
        """
        self._reload = reload
        self._runtimes = ReloadableRuntime(self._reloaded)
        self.pulse = DaemonHealth()
        self.hints = Hints()
        self.fault: MulliganError | None = None
        self._workers = 1
        self._held = set[str]()

    def poll(self, wake: Callable[[list[IssueRef]], None]) -> None:
        """Recover, then poll every repository, and call `wake` with the issues that are due.

        If the ledger is unavailable, log that and leave everything to the next poll.
        """
        with (
            self.pulse.note_poll(),
            logging_failure("not_polled"),
            self._runtimes.reloaded() as runtime,
        ):
            if runtime is not None:
                self._poll_repositories(runtime, wake)

    def _poll_repositories(self, runtime: Runtime, wake: Callable[[list[IssueRef]], None]) -> None:
        recovered = recover(
            runtime.context,
            runtime.worker,
            runtime.repositories,
            only_idle=runtime.queue is not None,
        )
        repositories = self.pulse.note_each(runtime.repositories)
        found, failed, held = _poll_each(repositories, runtime)
        for ref, reason in recovered.failed.items():
            log.warning("not_recovered", issue=str(ref), reason=reason)
        _log_failed_polls(failed)
        failed_repositories = len(set(failed) & set(runtime.repositories))
        self.pulse.asked(len(runtime.repositories), failed_repositories)
        standing = {back.sentence for back in runtime.context.owners.standing_back()}
        self._log_holds(standing | {hold.reason for hold in held.values()})
        self.pulse.held(sorted(hold.reason for hold in held.values() if hold.is_fault))
        show_holds(found, held, runtime.context, runtime.worker)
        self._admit_and_wake([ref for ref in found if ref.repository not in held], runtime, wake)

    def hint(self, repository: str) -> bool:
        """Have a repository polled at once, by the worker that polls; False if it has none.

        UnavailableError if the worker is starting, or if the database of a fleet is away.
        """
        with self._runtimes.reloaded() as runtime:
            if runtime is None:
                raise UnavailableError("Mulligan is starting; it polls all repositories then.")
            names = {name.lower(): name for name in runtime.repositories}
            name = names.get(repository.lower())
            if name is not None:
                hint = runtime.queue.hint if runtime.queue else self.hints.add
                hint(name)
        return name is not None

    def poll_hinted(self, names: Container[str], wake: Callable[[list[IssueRef]], None]) -> None:
        """Poll some repositories between two regular polls; log what fails."""
        with logging_failure("not_polled"), self._runtimes.reloaded() as runtime:
            if runtime is None:
                return
            repositories = [name for name in runtime.repositories if name in names]
            found, failed, held = _poll_each(repositories, runtime)
            _log_failed_polls(failed)
            show_holds(found, held, runtime.context, runtime.worker)
            due = [ref for ref in found if ref.repository not in held]
            self._admit_and_wake(due, runtime, wake)

    def _admit_and_wake(
        self, due: list[IssueRef], runtime: Runtime, wake: Callable[[list[IssueRef]], None]
    ) -> None:
        """Show the new issues that must wait as queued, and wake workers for all."""
        limits = runtime.context.limits
        workers = limits.concurrency * (self._workers if runtime.queue else 1)
        admit_waiting(due, runtime.context, runtime.worker, min(limits.fleet or workers, workers))
        wake(due)

    def _log_holds(self, reasons: set[str]) -> None:
        """Log each hold once, when it begins, and once when none is left."""
        for reason in sorted(reasons - self._held):
            log.warning("work_held", reason=reason)
        if self._held and not reasons:
            log.info("work_resumed")
        self._held = reasons

    @property
    def repositories(self) -> int:
        """Count the repositories polled with this token: times the workers, if all of them poll."""
        runtime = self._runtimes.latest
        if runtime is None:
            return 0
        return len(runtime.repositories) * (1 if runtime.queue else self._workers)

    def heartbeat(self) -> None:
        """Renew this worker's presence in the ledger, and count the workers that share it.

        If a newer Mulligan has migrated the ledger, shut down: no work could be recorded.
        """
        with self._runtimes.reloaded() as runtime:
            if runtime is None:
                return
            try:
                self._workers = len(runtime.context.leases.heartbeat(runtime.context.worker))
            except OutdatedError as error:
                self._shut_down(error)
            except MulliganError as error:
                log.warning("heartbeat_not_recorded", reason=str(error))

    def _reloaded(self) -> Runtime | None:
        try:
            return None if self.fault else self._reload()
        except MulliganError as error:
            self._shut_down(error)
            return None

    def _shut_down(self, error: MulliganError) -> None:
        self.fault = error
        CLOSING.set()
        SHUTDOWN.set()

    @property
    def context(self) -> BotContext | None:
        """Return the context of the newest runtime; None before there is one."""
        runtime = self._runtimes.latest
        return runtime.context if runtime else None

    def watch(self) -> None:
        """Stop running attempts whose request was withdrawn, in every runtime."""
        with self._runtimes.all() as runtimes:
            for runtime in runtimes:
                runtime.worker.watch()

    def attend_commands(self) -> None:
        """Execute the commands on issues that are being visited, which the poller recorded."""
        with self._runtimes.all() as runtimes:
            for runtime in runtimes:
                try:
                    runtime.worker.cancel_commanded(runtime.worker.running)
                    for ref in runtime.worker.running:
                        runtime.worker.answer_queries(ref)
                except MulliganError as error:
                    log.warning("commands_not_read", reason=str(error))

    def current(self) -> AbstractContextManager[Runtime | None]:
        """Use the newest runtime, after reading the configuration if it changed."""
        return self._runtimes.reloaded()

    def clean_up(self) -> None:
        """Delete what retention does not keep; log failures, which the next run repeats."""
        with self._runtimes.reloaded() as runtime:
            if runtime is None:
                return
            try:
                failed = clean_up(runtime.context, runtime.worker, runtime.retention)
            except MulliganError as error:
                log.warning("not_cleaned_up", reason=str(error))
                return
        for ref, reason in failed.items():
            log.warning("not_cleaned_up", issue=str(ref), reason=reason)

    def visit(self, ref: IssueRef) -> None:
        """Visit one issue until it rests, and log what failed outside the agent."""
        with self._runtimes.current() as runtime:
            done = _visit(ref, runtime)
            undone = bool(done.problem) and _is_undone(ref, runtime.context.ledger)
        if done.problem:
            log.warning("visit_failed", issue=str(ref), reason=done.problem)
        self.pulse.visited(undone=undone)

    def close(self) -> None:
        """Close every runtime; call this when no job runs."""
        self._runtimes.close()


def _poll_each(
    repositories: Iterable[str], runtime: Runtime
) -> tuple[list[IssueRef], Mapping[str, str], Mapping[str, Hold]]:
    """Poll repositories; return the due issues, the reason of each failed poll, and the holds."""
    found, failed = poll(
        repositories,
        runtime.context,
        runtime.worker,
        runtime.fetch_cache,
        is_for_others=runtime.queue is not None,
    )
    return found, failed, holds_on(found, runtime.context)


def _log_failed_polls(failed: Mapping[str, str]) -> None:
    for name, reason in failed.items():
        log.warning("not_polled", repository=name, reason=reason)


def _visit(ref: IssueRef, runtime: Runtime) -> Visit:
    """Visit an issue; in a fleet, fetch first, since the poller may be on another machine.

    A lease shows that the worker is at work: a first clone may take longer than the lease.
    """

    def fetch(context: BotContext) -> Visit:
        runtime.fetch_cache.fetch_if_older(ref.repository, context, MAX_AGE_BEFORE_WORK)
        return Visit(ref)

    if runtime.queue:
        fetched = runtime.worker.run_leased(ref, fetch, is_local=True)
        if fetched.problem or fetched.skipped:
            return fetched
    return runtime.worker.visit(ref)


def _is_undone(ref: IssueRef, ledger: LedgerReader) -> bool:
    """Return whether a recorded decision was not carried out completely."""
    with suppress(MulliganError):
        return ledger.status(ref).phase is Phase.DECIDED
    return False


@contextmanager
def polling_hinted(daemon: Daemon, wake: Callable[[list[IssueRef]], None]) -> Generator[None]:
    """Poll the repositories that GitHub's webhook names, in a thread, during this block."""

    def run() -> None:
        pace, pause = HintPace(), timedelta()
        while names := daemon.hints.take(pause):
            daemon.poll_hinted(names, wake)
            pause = pace.pause_after(len(names), time.monotonic())

    thread = threading.Thread(target=run, name="hints")
    thread.start()
    try:
        yield
    finally:
        daemon.hints.end()
        thread.join()


@contextmanager
def serving(daemon: Daemon, interval: timedelta, limits: Limits, clock: Clock) -> Generator[None]:
    """Run the jobs of the daemon in the background; leaving the block waits for its visits."""
    with PoolDispatcher(daemon.visit, limits.concurrency, limits.per_repository) as dispatcher:

        def poll_and_wake() -> None:
            daemon.poll(dispatcher.wake)

        jobs = {
            "poll": (poll_and_wake, lambda: poll_interval(interval, daemon.repositories)),
            "watch": (daemon.watch, lambda: interval),
            "attend": (daemon.heartbeat, lambda: limits.lease / HEARTBEATS_PER_LEASE),
            "clean_up": (daemon.clean_up, lambda: CLEANUP_INTERVAL),
        }
        with run_periodically(jobs, clock.now()), polling_hinted(daemon, dispatcher.wake):
            yield
