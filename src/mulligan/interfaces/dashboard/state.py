"""The dashboard's data: stores, recent events, daemon health, GitHub's rate limits."""

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from mulligan.config.settings import Budget
from mulligan.daemon.health import DaemonHealth
from mulligan.domain.errors import UnavailableError
from mulligan.domain.events import (
    AgentStarted,
    AttemptCompleted,
    CheckFinished,
    CheckSkipped,
    Decided,
    Event,
    FixRoundStarted,
    RecordedEvent,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.stats import LedgerHistory, Stats, summarise
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import (
    Artifacts,
    BotContext,
    Clock,
    Holds,
    Ledger,
    NoHolds,
    NoOwners,
    Owners,
    UsageStore,
)
from mulligan.interfaces.bootstrap.container import Gauges
from mulligan.interfaces.event_text import UNNAMED_AGENT
from mulligan.text.escape import one_line
from mulligan.text.redact import Redactor

# The state, and the stores that it reads


@dataclass(frozen=True, slots=True)
class DashboardStores:
    """The stores of all issues, and the redactor that their content passes through."""

    ledger: Ledger
    accounts: UsageStore
    artifacts: Artifacts
    clock: Clock
    budget: Budget = field(default_factory=Budget)
    redactor: Redactor = field(default_factory=Redactor)
    holds: Holds = field(default_factory=NoHolds)
    owners: Owners = field(default_factory=NoOwners)

    @classmethod
    def of(cls, context: BotContext) -> Self:
        """Return the stores of the daemon's context."""
        return cls(
            context.ledger,
            context.usage,
            context.artifacts,
            context.clock,
            context.budget,
            context.redactor,
            context.holds,
            context.owners,
        )


STARTING = "Mulligan is starting, or its configuration is invalid. See its log."


@dataclass(frozen=True, slots=True)
class DashboardState:
    """The data of the dashboard, all of it held by the daemon; nothing here writes.

    `find_stores` returns None until the configuration was read. `timeout` is how many seconds the
    poll may go without progress. `check_writable` raises a MulliganError if the ledger cannot be
    written. `read_history` reads what statistics need. `ending` is set when the server ends.
    """

    find_stores: Callable[[], DashboardStores | None]
    pulse: DaemonHealth
    gauges: Gauges
    timeout: Callable[[], float]
    check_writable: Callable[[], None]
    read_history: Callable[[], LedgerHistory]
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def stores(self) -> DashboardStores:
        """Return the stores; UnavailableError if there are none yet."""
        found = self.find_stores()
        if found is None:
            raise UnavailableError(STARTING)
        return found

    @property
    def redactor(self) -> Redactor:
        """Return the current redactor; without a configuration, it knows only token shapes."""
        found = self.find_stores()
        return found.redactor if found else Redactor()


# Statistics

STATS_LAST = timedelta(minutes=1)
"""How long statistics are shown before they are computed again; a large ledger takes seconds."""

FIRST_READ_SECONDS = 0.2


class StatsReader:
    """Computes statistics in a thread, for all pages; thread-safe."""

    def __init__(self, read: Callable[[], LedgerHistory]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(1, "statistics")
        self._known = dict[timedelta | None, Stats]()
        self._running = dict[timedelta | None, Future[Stats]]()

    def refresh(
        self, span: timedelta | None, now: datetime, timeout: float | None = FIRST_READ_SECONDS
    ) -> Stats | None:
        """Return the statistics of the last `span`, or of everything; None if they take longer.

        Wait at most `timeout` seconds for the first ones, None for as long as it takes.
        """
        with self._lock:
            known = self._known.get(span)
            if known and known.until > now - STATS_LAST:
                return known
            task = self._running.get(span) or self._threads.submit(self._compute, span, now)
            self._running[span] = task
        with suppress(TimeoutError):
            return task.result(timeout if known is None else 0)
        return known

    def _compute(self, span: timedelta | None, now: datetime) -> Stats:
        try:
            found = summarise(self._read(), now, now - span if span else None)
            self._known[span] = found
            return found
        finally:
            with self._lock:
                del self._running[span]


# Recent events

INITIAL_EVENTS = 2000
"""Events to read for the first page; a page needs only the last few."""

PAGE = 500
MAX_RESULTS = 12
MAX_ACTIVITIES = 1000


@dataclass(frozen=True, slots=True)
class RecentEvents:
    """The newest results first, each issue's current step, and the last event included.

    `statuses` has every issue, by repository and number.
    """

    statuses: tuple[IssueStatus, ...]
    results: tuple[WorkerResultMeta, ...]
    doing: Mapping[IssueRef, str]
    seq: int


class RecentEventsReader:
    """Reads each event once, and a status again only after an event, for all pages; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq: int | None = None
        self._results: deque[WorkerResultMeta] = deque(maxlen=MAX_RESULTS)
        self._doing = dict[IssueRef, str]()
        self._statuses = dict[IssueRef, IssueStatus]()

    def refresh(self, ledger: Ledger) -> RecentEvents:
        """Read new events, and return the current state."""
        with self._lock:
            seq, changed = self._seq, set[IssueRef]()
            if seq is None:
                seq = max(0, ledger.last_seq() - INITIAL_EVENTS)
            while page := ledger.events(after=seq, most=PAGE):
                for recorded in page:
                    self._take(recorded)
                changed.update(recorded.issue for recorded in page)
                seq = page[-1].seq
            self._read_statuses(ledger, changed)
            self._seq = seq
            statuses = tuple(self._statuses.values())
            return RecentEvents(statuses, tuple(self._results), dict(self._doing), seq)

    def _read_statuses(self, ledger: Ledger, changed: Collection[IssueRef]) -> None:
        """Read the statuses of the issues that changed, or all if one of them is new."""
        if self._seq is None or any(ref not in self._statuses for ref in changed):
            self._statuses = {each.issue: each for each in ledger.statuses()}
            return
        for ref in changed:
            self._statuses[ref] = ledger.status(ref)

    def _take(self, recorded: RecordedEvent) -> None:
        ref, event = recorded.issue, recorded.event
        if isinstance(event, AttemptCompleted):
            self._results.appendleft(event.meta)
        if activity := activity_of(event):
            self._doing.pop(ref, None)
            self._doing[ref] = activity
            while len(self._doing) > MAX_ACTIVITIES:
                del self._doing[next(iter(self._doing))]


PLAIN: Mapping[str, str] = {
    "attempt_started": "resetting the worktree",
    "worktree_reset": "writing the prompt",
    "agent_finished": "reading the agent's changes",
    "attempt_completed": "deciding the next step",
    "publish_started": "publishing the change",
}
"""The current step of an attempt after an event of this kind."""


def activity_of(event: Event) -> str | None:
    """Return the step of an attempt after an event; None if the event does not change it."""
    match event:
        case AgentStarted(agent=agent):
            return (
                "running the agent" if agent == UNNAMED_AGENT else f"running {one_line(agent, 40)}"
            )
        case CheckFinished(check=check):
            how = "passed" if check.passed else "failed"
            return f"verifying: check '{one_line(check.name, 60)}' {how}"
        case CheckSkipped(check=skipped):
            return f"verifying: check '{one_line(skipped.name, 60)}' was not run"
        case FixRoundStarted(number=number, most=most):
            return f"fix round {number} of {most}"
        case Decided(decision=decision):
            return one_line(decision.reason, 120)
        case _:
            return PLAIN.get(event.kind)
