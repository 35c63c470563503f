"""Visit issues on threads, under leases: run commands and attempts until each issue rests."""

import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Self

import structlog

from mulligan.daemon.commands import answer_during_attempt, execute_commands
from mulligan.daemon.lease_guard import HEARTBEATS_PER_LEASE, under_lease
from mulligan.daemon.restoration import confirm_issue, restore_issue
from mulligan.domain.absence import absences
from mulligan.domain.errors import (
    LeaseLostError,
    MulliganError,
    ShutdownError,
    UnconfirmedError,
    WithdrawnError,
    WorldError,
)
from mulligan.domain.hold import Hold
from mulligan.domain.issue import AuthorisingAct, IssueRef, OperatorAct, Stage
from mulligan.domain.issue_context import Skipped
from mulligan.domain.order import may_start
from mulligan.domain.outcome import Escalate, Retry, StandDown
from mulligan.domain.recorded_effects import NotFoundSince
from mulligan.domain.status import STATUS_EDIT_INTERVAL, IssueStatus, Phase
from mulligan.implement.agent_selection import choosable_agents, hold_of_agents
from mulligan.implement.effects import (
    end_hold,
    note_absence,
    record_effect,
    stand_down,
    write_deferred_status,
)
from mulligan.implement.issue_snapshot import withdrawal
from mulligan.implement.phase import admit, hold, implement, resume
from mulligan.implement.ports import BotContext, NoOwners, ReadContext, WriteContext
from mulligan.sandbox.cancellation import Cancellation, stopping

VisitIssue = Callable[[IssueRef], None]

BUG_MESSAGE = "A bug in Mulligan; the log has the traceback."

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
        """Queue the issues for a visit, except those that are queued or being visited."""
        with self._changed:
            for ref in refs:
                if ref not in self._waiting and ref not in self._running:
                    self._waiting.append(ref)
            self._start_visits()

    def drain(self) -> None:
        """Wait until every visit has ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._running)

    def running(self) -> frozenset[IssueRef]:
        """Return the issues that are being visited."""
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

    def _start_visits(self) -> None:
        while ref := self._next():
            self._waiting.remove(ref)
            self._running.add(ref)
            self._pool.submit(self._work, ref)

    def _next(self) -> IssueRef | None:
        places = (self._concurrency, self._per_repository)
        return next(may_start(self._waiting, self._running, *places), None)

    def _work(self, ref: IssueRef) -> None:
        try:
            self._visit(ref)
        finally:
            with self._changed:
                self._running.discard(ref)
                self._start_visits()
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Visit:
    """The result of a visit; `problem` says what failed outside the agent, "" for nothing.

    `due` is when the next attempt may start, if it waits after that failure.
    """

    issue: IssueRef
    attempts: int = 0
    skipped: str = ""
    problem: str = ""
    escalated: bool = False
    due: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeasedVisit:
    """A visit under a lease: `stop` cancels it, `context` works only while the lease is held."""

    stop: Cancellation
    context: BotContext


class Worker:
    """Visits issues under leases; safe for threads. At most `max_attempts` attempts a visit."""

    def __init__(self, context: BotContext, max_attempts: int | None = None) -> None:
        self._context = context
        self._max_attempts = max_attempts
        self._lock = threading.Lock()
        self._answering = threading.Lock()
        self._leased_visits: dict[IssueRef, LeasedVisit] = {}

    def visit(self, ref: IssueRef, act: AuthorisingAct | None = None) -> Visit:
        """Run the commands of an issue, and attempts until it rests; never raises."""
        done = self._visit(ref, act)
        again = done
        # A command that stopped the attempt is executed in another visit, which is not cancelled.
        while again.attempts and self._is_commanded(ref):
            again = self._visit(ref, None)
            done = replace(again, attempts=done.attempts + again.attempts)
        return done

    def admit(self, ref: IssueRef) -> Visit:
        """Record and show that an issue is queued, without an attempt; never raises."""

        def work(context: BotContext) -> Visit:
            if not restore_issue(ref, context) and not context.ledger.status(ref).epoch:
                admit(ref, context)
            return Visit(ref)

        return self.run_leased(ref, work)

    def hold(self, ref: IssueRef, reason: str) -> Visit:
        """Show on a waiting issue that no agent can start a run; never raises."""

        def work(context: BotContext) -> Visit:
            if not restore_issue(ref, context):
                hold(ref, reason, context)
            return Visit(ref)

        return self.run_leased(ref, work)

    def end_hold(self, ref: IssueRef) -> Visit:
        """Queue an issue again that waited for an agent; never raises."""

        def work(context: BotContext) -> Visit:
            end_hold(ref, context)
            return Visit(ref)

        return self.run_leased(ref, work)

    def cancel_commanded(self, refs: Iterable[IssueRef]) -> None:
        """Stop running attempts whose issue has a command that ends them (COMMAND-1)."""
        with self._lock:
            running = {
                ref: self._leased_visits[ref].stop for ref in refs if ref in self._leased_visits
            }
        for ref, stop in running.items():
            status = self._context.ledger.status(ref)
            # While the phase is IDLE, no attempt runs, and the visit itself executes the command.
            if status.ending_reason and status.phase is not Phase.IDLE:
                stop.cancel(WithdrawnError(status.ending_reason))

    def answer_queries(self, ref: IssueRef) -> None:
        """Answer the queries on an issue that this worker is visiting (COMMAND-1)."""
        # claim_lease waits for this lock before it releases, so no other worker answers as well.
        with self._answering:
            with self._lock:
                leased = self._leased_visits.get(ref)
            if leased is None:
                return
            try:
                answer_during_attempt(ref, leased.context)
            except MulliganError as error:
                log.warning("command_not_answered", issue=str(ref), reason=str(error))

    @property
    def running(self) -> frozenset[IssueRef]:
        """Return the issues that this worker is visiting."""
        with self._lock:
            return frozenset(self._leased_visits)

    def run_leased(
        self,
        ref: IssueRef,
        work: Callable[[BotContext], Visit],
        most: int | None = None,
        *,
        is_local: bool = False,
    ) -> Visit:
        """Call `work` on an issue under its lease; never raises.

        An expected error becomes the visit's problem. A bug is logged with its traceback, and the
        next poll or pass recovers the attempt. `most` limits the leases of the whole fleet.
        With `is_local`, the work changes nothing on GitHub, so it needs no owner (OWNER-1).
        """
        try:
            with self.claim_lease(ref, most, is_local=is_local) as context:
                if context is None:
                    return Visit(ref, skipped=self._skip_reason(ref))
                return _noting_absence(ref, work, context)
        except LeaseLostError as error:
            return Visit(ref, skipped=str(error))
        except MulliganError as error:
            return Visit(ref, problem=str(error))
        except Exception:
            log.exception("visit_failed", issue=str(ref))
            return Visit(ref, problem=BUG_MESSAGE)

    def watch(self) -> None:
        """Stop running attempts whose request was withdrawn (LABEL-5).

        For the others, write the status comment if it was delayed.
        """
        with self._lock:
            running = dict(self._leased_visits)
        for ref, leased in running.items():
            try:
                before = self._context.ledger.status(ref)
                reason = withdrawal(ref, self._context) if before.phase is not Phase.IDLE else ""
                if not reason:
                    _write_deferred_status(ref, leased.context)
                # Another attempt may have started meanwhile, for a newer request.
                elif self._context.ledger.status(ref).number == before.number:
                    leased.stop.cancel(WithdrawnError(reason))
            except (WorldError, ShutdownError, LeaseLostError) as error:
                log.warning("issue_not_read", issue=str(ref), reason=str(error))

    @contextmanager
    def claim_lease(
        self, ref: IssueRef, most: int | None = None, *, is_local: bool = False
    ) -> Generator[BotContext | None]:
        """Hold the lease of an issue; yield None if another worker has it, or `most` are held.

        StandsBackError if another installation owns the repository (OWNER-1).
        """
        context = replace(self._context, owners=NoOwners()) if is_local else self._context
        context.owners.require(ref.repository)
        lease = context.leases.claim(ref, context.worker, most)
        if lease is None:
            yield None
            return
        stop = Cancellation()
        heartbeat = context.limits.lease / HEARTBEATS_PER_LEASE
        with under_lease(lease, context, stop, heartbeat) as leased:
            with self._lock:
                self._leased_visits[ref] = LeasedVisit(stop, leased)
            try:
                confirm_issue(ref, leased)
                yield leased
            finally:
                with self._answering, self._lock:
                    del self._leased_visits[ref]

    def _visit(self, ref: IssueRef, act: AuthorisingAct | None) -> Visit:
        return self.run_leased(
            ref, lambda context: self._work(ref, context, act), self._context.limits.fleet
        )

    def _is_commanded(self, ref: IssueRef) -> bool:
        """Return whether a command is pending that this visit may execute."""
        if self._max_attempts is not None or stopping():
            return False
        try:
            return bool(self._context.ledger.status(ref).pending)
        except MulliganError:
            return False

    def _skip_reason(self, ref: IssueRef) -> str:
        if self._context.leases.holder(ref):
            return "Another worker has it."
        return "The limit limits.fleet is reached; the issue waits."

    def _work(self, ref: IssueRef, context: BotContext, act: AuthorisingAct | None) -> Visit:
        is_restored = restore_issue(ref, context)
        if is_restored or context.ledger.status(ref).phase is not Phase.IDLE:
            resume(ref, context)
        execute_commands(ref, context)
        attempts = 0
        while (self._max_attempts is None or attempts < self._max_attempts) and not stopping():
            if held := hold_on(
                ref.repository,
                context,
                at_once=act is not None and isinstance(act.act, OperatorAct),
            ):
                return Visit(ref, attempts, skipped=held.reason)
            result = implement(ref, context, act)
            if isinstance(result, Skipped):
                stand_down_if_withdrawn(ref, context)
                return Visit(ref, attempts, skipped=result.reason)
            attempts += 1
            if not isinstance(result, Retry) or result.backoff_step:
                return _visit_result(ref, attempts, context, escalated=isinstance(result, Escalate))
        return Visit(ref, attempts)


def _noting_absence(
    ref: IssueRef, work: Callable[[BotContext], Visit], context: BotContext
) -> Visit:
    """Do the work, and record what GitHub does not find, until it finds it again (GITHUB-3)."""
    try:
        done = work(context)
    except UnconfirmedError as error:
        note_absence(ref, error.what, context)
        raise
    for each in absences(context.ledger.status(ref)):
        record_effect(ref, NotFoundSince(what=each.what), context.ledger)
    return done


def hold_on(repository: str, context: BotContext, *, at_once: bool = False) -> Hold | None:
    """Return why no attempt may begin in a repository; None if one of its agents may start.

    With `at_once`, an operator asks to try agents that rest.
    """
    agents = choosable_agents(repository, context)
    held = context.holds.on(repository, agents)
    return held or (None if at_once else hold_of_agents(agents, context))


def agents_fail(repository: str, context: BotContext) -> bool:
    """Return whether no agent of a repository can start, or the last run of each failed so."""
    agents = choosable_agents(repository, context)
    held = context.holds.on(repository, agents)
    return bool(held or hold_of_agents(agents, context, until_a_run=True))


def _write_deferred_status(ref: IssueRef, context: WriteContext) -> None:
    """Write the status comment that was delayed when the attempt began."""
    status, now = context.ledger.status(ref), context.clock.now()
    is_due = status.started_at and status.started_at + STATUS_EDIT_INTERVAL <= now
    if is_due and status.has_deferred_comment and status.stage is Stage.RUNNING:
        write_deferred_status(ref, context)


def stand_down_if_withdrawn(ref: IssueRef, context: WriteContext) -> None:
    """Stand down from a waiting issue whose request was withdrawn (LABEL-5, LABEL-7)."""
    status = context.ledger.status(ref)
    waits = is_queued(status) or waits_for_answer(status)
    if waits and (reason := withdrawal(ref, context)):
        stand_down(ref, StandDown(reason=reason), context)


def is_queued(status: IssueStatus) -> bool:
    """Return whether a requested issue waits for an attempt, or for its first epoch."""
    waits = status.phase is Phase.IDLE and status.stage is Stage.READY
    blocked = not status.epoch and bool(status.reason)
    requested = status.request.by_command or status.request.by_label
    return waits and (blocked or requested or status.feedback is not None)


def waits_for_answer(status: IssueStatus) -> bool:
    """Return whether an issue waits for a maintainer, and has no pull request that decides."""
    is_asked = status.phase is Phase.IDLE and status.stage is Stage.HITL
    return is_asked and status.pull.number is None


def _visit_result(ref: IssueRef, attempts: int, context: ReadContext, *, escalated: bool) -> Visit:
    status = context.ledger.status(ref)
    due = status.due if status.due and status.due > context.clock.now() else None
    return Visit(ref, attempts, "", status.reason if due else "", escalated, due)
