"""A worker of a fleet polls only while it may, and visits what it is handed."""

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Event, Lock

import pytest
from sqlalchemy import column, table, update

from mulligan.config.operator import Limits
from mulligan.daemon import fleet
from mulligan.daemon.daemon import Daemon, Runtime
from mulligan.daemon.fleet import Poller, Role, VisitJob, serving_fleet
from mulligan.daemon.poll import poll
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import LeaseLostError, UnavailableError
from mulligan.domain.issue import IssueRef, PollerLease, Stage
from mulligan.domain.outcome import Outcome
from mulligan.sandbox.cancellation import CLOSING, SHUTDOWN, sleep_until_cancelled
from mulligan.storage import VERSION_TABLE
from mulligan.storage.ledger import SqlLedger
from world.behaviours import AgentInput, Behaviour
from world.plain_worktrees import PlainWorktrees
from world.processes import wait_until
from world.simulated import NAME, push
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

SOON = timedelta(milliseconds=50)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


@dataclass
class HandedOut:
    """A job engine in memory: one poller, and visits in the thread that defers."""

    poller: str = "one"
    is_away: bool = False
    visit: VisitJob | None = None
    hinted: Callable[[str], None] | None = None
    deferred: list[list[IssueRef]] = field(default_factory=list[list[IssueRef]])
    done: list[int | None] = field(default_factory=list[int | None])
    ended: list[PollerLease] = field(default_factory=list[PollerLease])
    _lock: Lock = field(default_factory=Lock)

    def lead(self, worker: str) -> PollerLease | None:
        if self.is_away:
            raise UnavailableError
        return PollerLease("bot", worker, 1) if worker == self.poller else None

    def step_down(self, lease: PollerLease) -> None:
        self.ended.append(lease)

    def defer(self, lease: PollerLease, due: Sequence[IssueRef]) -> None:
        if lease.worker != self.poller:
            raise LeaseLostError
        self.deferred.append([*due])
        if visit := self.visit:
            for ref in due:
                visit(ref, ref.number)

    def fill(self, done: int | None = None) -> None:
        self.done.append(done)

    def tidy(self, lease: PollerLease) -> None:
        assert lease.worker == self.poller

    def hint(self, repository: str) -> None:
        if self.hinted:
            self.hinted(repository)

    @contextmanager
    def working(self, visit: VisitJob | None, hinted: Callable[[str], None]) -> Generator[None]:
        self.visit, self.hinted = visit, hinted
        yield
        self.visit = None


@contextmanager
def serving(
    here: WorkerEnvironment,
    queue: HandedOut,
    role: Role = Role.ALL,
    worker: str = "one",
    agent: Behaviour = fix_the_bug,
    often: timedelta = SOON,
) -> Generator[Daemon]:
    context = here.context(agent, worker)
    built = [Runtime((NAME,), context, Worker(context), queue=queue)]
    daemon = Daemon(lambda: built.pop() if built else None)
    with serving_fleet(daemon, role, queue.working, often, Limits(), here.desk.clock):
        yield daemon


def test_the_poller_hands_out_what_is_due_and_ends_its_right_at_the_end(
    here: WorkerEnvironment,
) -> None:
    ref, queue = here.desk.ready(), HandedOut()
    with serving(here, queue):
        wait_until(lambda: here.ledger.status(ref).stage is Stage.REVIEW)
        wait_until(lambda: ref.number in queue.done)
    assert [lease.worker for lease in queue.ended] == ["one"]
    assert [ref] in queue.deferred


def test_a_poller_alone_visits_nothing(here: WorkerEnvironment) -> None:
    ref, queue = here.desk.ready(), HandedOut()
    with serving(here, queue, Role.POLLER):
        wait_until(lambda: len(queue.deferred) > 1)
    assert (queue.deferred[:2], queue.done) == ([[ref], [ref]], [])


def test_a_worker_that_does_not_poll_reads_the_policy_before_it_works(
    here: WorkerEnvironment,
) -> None:
    """What the poller fetched is on another machine."""
    push(here.desk.hub.bare, "main", {".github/mulligan.yml": "labels: {ready: bot}\n"})
    ref, queue = here.desk.hub.issue(), HandedOut(poller="two")
    here.desk.hub.world.label(ref, "bot", "wes")
    with serving(here, queue, Role.WORKER):
        queue.defer(PollerLease("bot", "two", 1), [ref])
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_a_worker_holds_the_issue_while_it_clones_the_repository(here: WorkerEnvironment) -> None:
    """Else the job counts as lost, and other workers clone it too, for no more than the first."""
    ref, holders = here.desk.ready(), list[str | None]()

    class LargeRepository(PlainWorktrees):
        def fetch_base(self, repository: str) -> None:
            holders.append(here.leases.holder(ref))
            super().fetch_base(repository)

    clones = LargeRepository(here.directory, here.desk.hub.bare)
    context, queue = here.context(fix_the_bug, worktrees=clones), HandedOut(poller="two")
    built = [Runtime((NAME,), context, Worker(context), queue=queue)]
    daemon = Daemon(lambda: built.pop() if built else None)
    with serving_fleet(daemon, Role.WORKER, queue.working, SOON, Limits(), here.desk.clock):
        queue.defer(PollerLease("bot", "two", 1), [ref])
    assert (holders[0], here.leases.holder(ref)) == ("one", None)
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_without_the_policy_a_worker_changes_nothing(
    here: WorkerEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    ref, queue = here.desk.ready(), HandedOut(poller="two")
    here.desk.hub.bare.rename(here.desk.hub.bare.with_name("away"))
    with serving(here, queue, Role.WORKER):
        queue.defer(PollerLease("bot", "two", 1), [ref])
    assert "visit_failed" in capfd.readouterr().out
    assert (queue.done, [*here.ledger.events(ref)]) == ([ref.number], [])


@pytest.mark.parametrize("role", [Role.WORKER, Role.ALL])
def test_who_does_not_poll_asks_github_nothing_and_is_ready(
    here: WorkerEnvironment, role: Role
) -> None:
    here.desk.ready()
    here.desk.requests()
    with serving(here, HandedOut(), role, worker="two") as daemon:
        wait_until(lambda: daemon.pulse.snapshot.has_succeeded)
    assert here.desk.requests() == []


def test_a_hint_wakes_the_worker_that_polls_and_no_other(here: WorkerEnvironment) -> None:
    queue, hourly = HandedOut(), timedelta(hours=1)
    with serving(here, queue, Role.POLLER, often=hourly) as daemon:
        wait_until(lambda: queue.deferred == [[]])
        ref = here.desk.ready()
        assert daemon.hint(NAME)
        wait_until(lambda: queue.deferred == [[], [ref]])
    here.desk.requests()
    with serving(here, queue, Role.ALL, worker="two", often=hourly) as daemon:
        wait_until(lambda: daemon.pulse.snapshot.has_succeeded)
        assert daemon.hint(NAME)
    assert here.desk.requests() == []


def test_a_new_right_to_poll_is_used_once(
    here: WorkerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if polling begins while another thread still notes the right."""
    queue, noting = HandedOut(), Event()
    context = here.context(fix_the_bug)
    built = [Runtime((NAME,), context, Worker(context), queue=queue)]
    poller = Poller(Daemon(lambda: built.pop() if built else None), timedelta(hours=1))

    class SlowLog:
        def info(self, _event: str, **_more: object) -> None:
            noting.set()
            timeout = time.monotonic() + 0.5
            while not queue.deferred and time.monotonic() < timeout:
                time.sleep(0.01)

    monkeypatch.setattr(fleet, "log", SlowLog())
    with ThreadPoolExecutor() as pool:
        leading = pool.submit(poller.lead)
        assert noting.wait(60)
        with poller.polling():
            leading.result()
            wait_until(lambda: bool(queue.deferred))
            time.sleep(0.3)
    assert queue.deferred == [[]]


def test_a_poller_that_lost_its_right_stops_polling(here: WorkerEnvironment) -> None:
    queue = HandedOut()
    with serving(here, queue):
        wait_until(lambda: bool(queue.deferred))
        queue.poller = "two"
        wait_until(lambda: here.desk.requests() == [])
        known = len(queue.deferred)
        here.desk.ready()
        assert (here.desk.requests(), len(queue.deferred)) == ([], known)


def test_a_ledger_that_is_away_makes_nobody_a_poller(
    here: WorkerEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    queue = HandedOut(is_away=True)
    with serving(here, queue):
        wait_until(lambda: "poller_not_renewed" in capfd.readouterr().out)
    assert (queue.deferred, queue.ended) == ([], [])


def test_a_poller_goes_on_after_a_bug(
    here: WorkerEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    class Broken(HandedOut):
        def defer(self, lease: PollerLease, due: Sequence[IssueRef]) -> None:
            self.deferred.append([*due])
            raise RuntimeError

    queue = Broken()
    with serving(here, queue):
        wait_until(lambda: len(queue.deferred) > 1)
    assert "A bug in Mulligan; the log has the traceback." in capfd.readouterr().out


def test_a_worker_whose_ledger_was_migrated_by_a_newer_version_shuts_down(
    here: WorkerEnvironment,
) -> None:
    ledger = here.ledger
    assert isinstance(ledger, SqlLedger)
    with ledger.database.write() as connection:
        connection.execute(update(table(VERSION_TABLE, column("version_num"))).values(["9999"]))
    try:
        with serving(here, HandedOut(), Role.WORKER) as daemon:
            wait_until(lambda: CLOSING.is_set() and SHUTDOWN.is_set())
        assert "was written by a newer Mulligan" in str(daemon.fault)
    finally:
        CLOSING.clear()
        SHUTDOWN.clear()


def test_a_command_that_the_poller_recorded_ends_the_attempt_of_another_worker(
    here: WorkerEnvironment,
) -> None:
    ref, queue = here.desk.ready(), HandedOut(poller="two")
    poller = here.context(fix_the_bug, "two")

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        here.desk.hub.world.comment(ref, "/mulligan skip", "wes")
        poll([NAME], poller, Worker(poller))
        sleep_until_cancelled(60)

    with serving(here, queue, Role.WORKER, agent=work, often=timedelta(hours=1)):
        queue.defer(PollerLease("bot", "two", 1), [ref])
        wait_until(lambda: ref.number in queue.done)
    (meta,) = here.ledger.history(ref)
    assert meta.outcome is Outcome.CANCELLED
    assert here.pushed(ref) is None
