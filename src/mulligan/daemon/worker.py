"""Visit issues: attempt after attempt, until each rests in review, with a person, or waiting."""

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import structlog

from mulligan.daemon.commands import answer_meanwhile, execute_commands
from mulligan.daemon.lease_guard import BEATS, under_lease
from mulligan.domain.errors import (
    LeaseLostError,
    MulliganError,
    ShutdownError,
    WithdrawnError,
    WorldError,
)
from mulligan.domain.issue import AuthorisingAct, IssueRef, Stage
from mulligan.domain.issue_context import Skipped
from mulligan.domain.outcome import Escalate, Retry, StandDown
from mulligan.domain.status import BETWEEN_EDITS, IssueStatus, Phase
from mulligan.implement.effects import stand_down, tell_late
from mulligan.implement.issue_snapshot import withdrawal
from mulligan.implement.phase import implement
from mulligan.implement.ports import Tools
from mulligan.sandbox.cancellation import Stop, stopping

VisitIssue = Callable[[IssueRef], None]

A_BUG = "A bug in Mulligan; the log has the traceback."

log = structlog.get_logger()


class PoolDispatcher:
    """Visits issues on threads: `concurrency` at a time, of them `per_repository` in each.

    `visit` must not raise. Leaving the block waits for the visits that have begun.
    """

    def __init__(self, visit: VisitIssue, concurrency: int, per_repository: int) -> None:
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


@dataclass(frozen=True, slots=True)
class Visit:
    """What a visit came to; `problem` says what failed around the agent, if anything did."""

    issue: IssueRef
    attempts: int = 0
    skipped: str | None = None
    problem: str | None = None
    escalated: bool = False


@dataclass(frozen=True, slots=True)
class LeasedVisit:
    """An issue that is being worked on: what ends that, and the tools that go with its lease."""

    stop: Stop
    tools: Tools


class Worker:
    """Works on issues under leases, from any number of threads; at most `most` attempts a visit."""

    def __init__(self, tools: Tools, most: int | None = None) -> None:
        self._tools = tools
        self._most = most
        self._lock = threading.Lock()
        self._talking = threading.Lock()
        self._held: dict[IssueRef, LeasedVisit] = {}

    def visit(self, ref: IssueRef, act: AuthorisingAct | None = None) -> Visit:
        """Work an issue until it rests, and carry out what is commanded; never raises."""
        done = self._visit(ref, act)
        again = done
        # What ended an attempt is carried out after it, in a visit that nothing has ended yet.
        while again.attempts and self._is_commanded(ref):
            again = self._visit(ref, None)
            done = replace(again, attempts=done.attempts + again.attempts)
        return done

    def heed(self, refs: Iterable[IssueRef]) -> None:
        """Stop the work on those issues whose people gave a command that ends it (SPEC H4)."""
        with self._lock:
            running = {ref: self._held[ref].stop for ref in refs if ref in self._held}
        for ref, stop in running.items():
            status = self._tools.ledger.status(ref)
            # Before an attempt has started, the command is just being carried out.
            if status.ending and status.phase is not Phase.IDLE:
                stop.give(WithdrawnError(status.ending))

    def talk(self, ref: IssueRef) -> None:
        """Answer who asks about an issue that is being worked on here (SPEC H4)."""
        # Until it is said, the issue is not let go: nobody else may be saying it.
        with self._talking:
            with self._lock:
                held = self._held.get(ref)
            if held is None:
                return
            try:
                answer_meanwhile(ref, held.tools)
            except MulliganError as error:
                log.warning("not_answered", issue=str(ref), reason=str(error))

    @property
    def running(self) -> frozenset[IssueRef]:
        """Name the issues that are being worked on."""
        with self._lock:
            return frozenset(self._held)

    def safely(
        self, ref: IssueRef, work: Callable[[Tools], Visit], most: int | None = None
    ) -> Visit:
        """Do something with an issue, under its lease; never raises.

        Expected faults become the visit's problem. A bug is logged with its traceback; the
        attempt that it ended is recovered by the next pass.
        """
        try:
            with self.holding(ref, most) as tools:
                if tools is None:
                    return Visit(ref, skipped=self._why_not(ref))
                return work(tools)
        except LeaseLostError as error:
            return Visit(ref, skipped=str(error))
        except MulliganError as error:
            return Visit(ref, problem=str(error))
        except Exception:
            log.exception("visit_failed", issue=str(ref))
            return Visit(ref, problem=A_BUG)

    def watch(self) -> None:
        """Stop the work on every issue whose request was withdrawn since (SPEC L5).

        Where it goes on, the status comment says so by now.
        """
        with self._lock:
            running = dict(self._held)
        for ref, held in running.items():
            before = self._tools.ledger.status(ref)
            try:
                reason = withdrawal(ref, self._tools) if before.phase is not Phase.IDLE else None
                if not reason:
                    _tell_late(ref, held.tools)
            except (WorldError, ShutdownError, LeaseLostError) as error:
                log.warning("not_watched", issue=str(ref), reason=str(error))
                continue
            # Meanwhile another attempt may have been begun, for a newer request.
            if reason and self._tools.ledger.status(ref).number == before.number:
                held.stop.give(WithdrawnError(reason))

    @contextmanager
    def holding(self, ref: IssueRef, most: int | None = None) -> Generator[Tools | None]:
        """Hold the lease of an issue; None where another worker does, or `most` are held."""
        lease = self._tools.leases.claim(ref, self._tools.worker, most)
        if lease is None:
            yield None
            return
        stop = Stop()
        heartbeat = self._tools.limits.lease / BEATS
        with under_lease(lease, self._tools, stop, heartbeat) as tools:
            with self._lock:
                self._held[ref] = LeasedVisit(stop, tools)
            try:
                yield tools
            finally:
                with self._talking, self._lock:
                    del self._held[ref]

    def _visit(self, ref: IssueRef, act: AuthorisingAct | None) -> Visit:
        return self.safely(ref, lambda tools: self._work(ref, tools, act), self._tools.limits.fleet)

    def _is_commanded(self, ref: IssueRef) -> bool:
        """Tell whether a command is still to be carried out, and may be in this visit."""
        if self._most is not None or stopping():
            return False
        try:
            return bool(self._tools.ledger.status(ref).pending)
        except MulliganError:
            return False

    def _why_not(self, ref: IssueRef) -> str:
        if self._tools.leases.holder(ref):
            return "Another worker is on it."
        return "As many issues as limits.fleet allows are being worked on; it comes later."

    def _work(self, ref: IssueRef, tools: Tools, act: AuthorisingAct | None) -> Visit:
        execute_commands(ref, tools)
        made = 0
        while (self._most is None or made < self._most) and not stopping():
            result = implement(ref, tools, act)
            if isinstance(result, Skipped):
                let_go(ref, tools)
                return Visit(ref, made, skipped=result.reason)
            made += 1
            if not isinstance(result, Retry) or result.backoff_step:
                return _rested(ref, made, tools, escalated=isinstance(result, Escalate))
        return Visit(ref, made)


def _tell_late(ref: IssueRef, tools: Tools) -> None:
    """Write the status comment that was put off when the attempt began, a while ago."""
    status, now = tools.ledger.status(ref), tools.clock.now()
    lasts = status.started_at and status.started_at + BETWEEN_EDITS <= now
    if lasts and status.is_late and status.stage is Stage.RUNNING:
        tell_late(ref, tools)


def let_go(ref: IssueRef, tools: Tools) -> None:
    """Stand down from a queued issue whose request does not stand any more (SPEC L5, L7)."""
    if is_queued(tools.ledger.status(ref)) and (reason := withdrawal(ref, tools)):
        stand_down(ref, StandDown(reason=reason), tools)


def is_queued(status: IssueStatus) -> bool:
    """Tell whether an issue that was asked for waits for an attempt, or for its first epoch."""
    waits = status.phase is Phase.IDLE and status.stage is Stage.READY
    held = not status.epoch and bool(status.reason)
    asked = status.by_command or status.act.startswith("labeled:")
    return waits and (held or asked or status.feedback is not None)


def _rested(ref: IssueRef, made: int, tools: Tools, *, escalated: bool) -> Visit:
    status = tools.ledger.status(ref)
    waits = status.due is not None and status.due > tools.clock.now()
    return Visit(ref, made, problem=status.reason if waits else None, escalated=escalated)
