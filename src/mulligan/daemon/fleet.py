"""Run a worker of a fleet: one worker polls for all, and each visits what the job engine hands out.

The poller's right is a lease in the ledger, which the transaction that defers jobs checks. A job
only wakes a worker: the claim of the issue decides, and a job that comes too late does nothing.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from enum import StrEnum

import structlog

from mulligan.config.operator import Limits
from mulligan.daemon.daemon import (
    CLEANUP_INTERVAL,
    Daemon,
    logging_failure,
    polling_hinted,
    run_periodically,
)
from mulligan.daemon.lease_guard import HEARTBEATS_PER_LEASE
from mulligan.daemon.poll import poll_interval
from mulligan.domain.errors import LeaseLostError, MulliganError
from mulligan.domain.issue import IssueRef, PollerLease
from mulligan.implement.ports import Clock

LEAD_INTERVAL = timedelta(seconds=5)
"""How often a worker renews its right to poll, or tries to get it."""

COMMANDS_INTERVAL = timedelta(seconds=1)
"""How often a worker reads the ledger for commands on the issues that it visits."""

VisitJob = Callable[[IssueRef, int], None]
"""Visits the issue of a job, which has this number."""

Working = Callable[[VisitJob | None, Callable[[str], None]], AbstractContextManager[None]]
"""Fetches jobs in its block, and calls the first function, if any, for each; calls the second one
for each repository that any worker of the fleet hints at."""

log = structlog.get_logger()


class Role(StrEnum):
    """The role of a worker in a fleet."""

    POLLER = "poller"
    WORKER = "worker"
    ALL = "all"


class Poller:
    """Polls GitHub for a fleet while this worker has the right to; otherwise waits for it."""

    def __init__(self, daemon: Daemon, interval: timedelta) -> None:
        self._daemon = daemon
        self._interval = interval
        self._lease: PollerLease | None = None
        self._changing = threading.Lock()
        self._wake = threading.Event()
        """Set with a new right, and at the end: the next poll is due at once."""
        self._ended = threading.Event()

    def lead(self) -> None:
        """Renew the right to poll or try to get it; the one that has it tidies up and polls."""
        if self._ended.is_set():
            return
        with self._daemon.current() as runtime:
            if runtime is None or runtime.queue is None:
                return
            try:
                lease = runtime.queue.lead(runtime.context.worker)
                if lease:
                    runtime.queue.tidy(lease)
            except MulliganError as error:
                log.warning("poller_not_renewed", reason=str(error))
                return
        self._note(lease)

    @contextmanager
    def polling(self) -> Generator[None]:
        """Poll during this block, in a separate thread; its end releases the right to poll."""
        thread = threading.Thread(target=self._run, name="poller")
        thread.start()
        try:
            with polling_hinted(self._daemon, self._defer):
                yield
        finally:
            self._ended.set()
            self._wake.set()
            thread.join()
            self._step_down()

    def hint(self, repository: str) -> None:
        """Have a repository polled at once, if this worker has the right to poll."""
        if self._lease:
            self._daemon.hints.add(repository)

    def _note(self, lease: PollerLease | None) -> None:
        with self._changing:
            before, self._lease = self._lease, lease
            if lease and (before is None or before.fence != lease.fence):
                log.info("poller_started", account=lease.account)
                self._wake.set()
        if lease is None:
            self._daemon.pulse.stand_by()
            if before:
                log.warning("poller_stopped", reason="Another worker of the fleet polls now.")

    def _run(self) -> None:
        while True:
            with self._changing:
                self._wake.clear()
                lease = self._lease
            if self._ended.is_set():
                return
            if lease:
                self._daemon.poll(self._defer)
            interval = poll_interval(self._interval, self._daemon.repositories)
            self._wake.wait(interval.total_seconds())

    def _defer(self, due: Sequence[IssueRef]) -> None:
        lease = self._lease
        with self._daemon.current() as runtime:
            if runtime is None or runtime.queue is None or lease is None:
                return
            try:
                runtime.queue.defer(lease, due)
            except LeaseLostError:
                self._note(None)

    def _step_down(self) -> None:
        lease, self._lease = self._lease, None
        with self._daemon.current() as runtime:
            queue = runtime.queue if runtime else None
            if queue and lease:
                with logging_failure("poller_not_ended"):
                    queue.step_down(lease)


@contextmanager
def serving_fleet(
    daemon: Daemon,
    role: Role,
    working: Working,
    interval: timedelta,
    limits: Limits,
    clock: Clock,
) -> Generator[None]:
    """Run a worker of a fleet in the background; leaving the block waits for its visits."""
    poller = Poller(daemon, interval)

    def visit(ref: IssueRef, job: int) -> None:
        with daemon.current() as runtime:
            queue = runtime.queue if runtime else None
            if queue is None:
                return
            daemon.visit(ref)
            with logging_failure("next_not_started"):
                queue.fill(job)

    jobs = {
        "watch": (daemon.watch, lambda: interval),
        "commands": (daemon.attend_commands, lambda: COMMANDS_INTERVAL),
        "attend": (daemon.heartbeat, lambda: limits.lease / HEARTBEATS_PER_LEASE),
        "clean_up": (daemon.clean_up, lambda: CLEANUP_INTERVAL),
        "lead": (poller.lead, lambda: LEAD_INTERVAL),
    }
    if role is Role.WORKER:
        jobs["lead"] = (daemon.pulse.stand_by, lambda: LEAD_INTERVAL)
    with daemon.current():
        pass  # This builds the first runtime, and with it the tables of the job engine.
    if daemon.fault:
        yield
        return
    with (
        run_periodically(jobs, clock.now()),
        working(None if role is Role.POLLER else visit, poller.hint),
        nullcontext() if role is Role.WORKER else poller.polling(),
    ):
        yield
