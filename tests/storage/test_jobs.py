"""The queue of a fleet: one poller, one job per due issue, no limit passed, nothing left behind."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from mulligan.config.operator import Limits
from mulligan.domain.errors import LeaseLostError
from mulligan.domain.events import AttemptStarted, IssueSeen
from mulligan.domain.issue import IssueRef, PollerLease
from mulligan.storage.database import Database, open_database
from mulligan.storage.jobs import (
    MOST_STARTED,
    POLLER_LEASE,
    JobQueue,
    Visit,
    open_jobs,
    working,
)
from mulligan.storage.leases import SqlLeases
from mulligan.storage.ledger import SqlLedger
from world.postgres import Server
from world.processes import wait_until
from world.trackers import FrozenClock

SLOW_FETCH = """
CREATE TABLE busy AS SELECT 1;
ALTER FUNCTION procrastinate_fetch_job_v2 RENAME TO fetch_at_once;
CREATE FUNCTION procrastinate_fetch_job_v2(queues varchar[], worker bigint)
RETURNS procrastinate_jobs LANGUAGE plpgsql AS $$
DECLARE found procrastinate_jobs;
BEGIN
    found := fetch_at_once(queues, worker);
    WHILE EXISTS (SELECT FROM busy) LOOP
        PERFORM pg_sleep(0.05);
    END LOOP;
    RETURN found;
END
$$
"""
"""A busy server: the answer of a fetch is old when it arrives."""

LISTENS = """
SELECT 1 FROM pg_stat_activity
WHERE query ~ 'LISTEN "mulligan_hints"' AND state = 'idle' AND pid <> pg_backend_pid()
"""
FETCHES = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

END_CONNECTIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

ONE, TWO, THREE, OTHER = (
    *(IssueRef("octo/one", number) for number in (1, 2, 3)),
    IssueRef("octo/two", 1),
)


@pytest.fixture
def database(postgres_url: str) -> Generator[Database]:
    with open_database(postgres_url) as found:
        yield found


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


def queue_of(database: Database, clock: FrozenClock, **limits: int) -> JobQueue:
    return open_jobs(database, clock, Limits.model_validate(limits), lambda: "bot")


def polling(queue: JobQueue) -> PollerLease:
    lease = queue.lead("poller")
    assert lease
    return lease


def jobs(database: Database, status: str = "todo") -> list[str]:
    wanted = text("SELECT lock FROM procrastinate_jobs WHERE status::text = :status ORDER BY id")
    with database.read() as connection:
        return [*connection.execute(wanted, {"status": status}).scalars()]


def job_of(database: Database, ref: IssueRef) -> int:
    wanted = text("SELECT max(id) FROM procrastinate_jobs WHERE lock = :issue")
    with database.read() as connection:
        return connection.execute(wanted, {"issue": str(ref)}).scalar_one()


def test_one_worker_polls_until_it_is_silent_for_too_long(
    database: Database, clock: FrozenClock
) -> None:
    queue = queue_of(database, clock)
    first = queue.lead("one")
    assert first
    assert queue.lead("two") is None
    assert queue.lead("one") == first
    clock.time += POLLER_LEASE
    second = queue.lead("two")
    assert second
    assert second.fence > first.fence
    with pytest.raises(LeaseLostError, match="Another worker of the fleet polls"):
        queue.defer(first, [ONE])
    with pytest.raises(LeaseLostError):
        queue.tidy(first)
    queue.step_down(first)
    assert queue.lead("one") is None
    queue.step_down(second)
    assert queue.lead("one")
    assert jobs(database) == []


def test_the_next_poller_waits_until_the_last_one_has_deferred(
    postgres_url: str, database: Database, clock: FrozenClock
) -> None:
    """The row of the right to poll is locked from its check to the end of the transaction."""
    queue = queue_of(database, clock)
    lease = polling(queue)
    with ThreadPoolExecutor(2) as pool, open_database(postgres_url) as other:
        with other.write_rows() as connection:
            connection.execute(text("LOCK TABLE waiting IN EXCLUSIVE MODE"))
            deferring = pool.submit(queue.defer, lease, [ONE])
            wait_until(lambda: locked_out(database) == 1)
            clock.time += POLLER_LEASE
            leading = pool.submit(queue.lead, "two")
            wait_until(lambda: locked_out(database) == 2 or leading.done())
            assert not leading.done()
        deferring.result(30)
        second = leading.result(30)
    assert second
    assert second.fence > lease.fence
    assert jobs(database) == [str(ONE)]


def locked_out(database: Database) -> int:
    """Count the connections that wait for a lock."""
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    with database.read() as connection:
        return connection.execute(waiting).scalar_one()


def test_an_issue_has_one_job_however_often_it_is_due(
    database: Database, clock: FrozenClock
) -> None:
    queue = queue_of(database, clock, per_repository=9)
    lease = polling(queue)
    for _ in range(2):
        queue.defer(lease, [ONE, OTHER, ONE])
    assert sorted(jobs(database)) == [str(ONE), str(OTHER)]


def test_a_duplicate_job_does_not_end_the_transaction(
    database: Database, clock: FrozenClock
) -> None:
    queue = queue_of(database, clock)
    queue.defer(polling(queue), [ONE, TWO])
    with database.write() as connection:
        connection.execute(text("UPDATE waiting SET number = 1"))
        connection.execute(text("INSERT INTO waiting VALUES ('octo/two', 1, 0, '9')"))
    queue.fill(job_of(database, ONE))
    assert jobs(database) == [str(ONE), str(OTHER)]


def test_an_issue_is_not_visited_again_before_its_visit_has_ended(
    database: Database, clock: FrozenClock
) -> None:
    queue = queue_of(database, clock)
    queue.defer(polling(queue), [ONE])
    assert fetched(database) == str(ONE)
    with database.write() as connection:
        connection.execute(text("INSERT INTO waiting VALUES ('octo/one', 1, 0, '9')"))
    queue.fill(job_of(database, ONE))
    assert (jobs(database), fetched(database)) == ([str(ONE)], None)


def fetched(database: Database) -> str | None:
    with database.write() as connection:
        fetch = "SELECT lock FROM procrastinate_fetch_job_v2(NULL, NULL)"
        return connection.execute(text(fetch)).scalar()


def test_no_job_is_for_later(database: Database, clock: FrozenClock) -> None:
    """It would hold the queueing lock, and a maintainer's `/mulligan retry` would be lost."""
    queue = queue_of(database, clock)
    queue.defer(polling(queue), [ONE, OTHER])
    later = text("SELECT count(*) FROM procrastinate_jobs WHERE scheduled_at IS NOT NULL")
    with database.read() as connection:
        assert connection.execute(later).scalar_one() == 0
    assert {fetched(database), fetched(database)} == {str(ONE), str(OTHER)}


def test_the_commands_of_procrastinate_show_the_queue(postgres: Server, clock: FrozenClock) -> None:
    """As docs/fleet.md describes them."""
    with postgres.fresh() as url, open_database(url) as database:
        queue = queue_of(database, clock)
        queue.defer(polling(queue), [ONE, OTHER])
        assert fetched(database) == str(ONE)
        own = {
            "PROCRASTINATE_APP": "mulligan.storage.jobs.app",
            "PGHOST": str(postgres.home),
            "PGPORT": str(postgres.port),
            "PGUSER": "mulligan",
            "PGDATABASE": str(make_url(url).database),
        }

        def procrastinate(*arguments: str) -> str:
            argv = [Path(sys.executable).with_name("procrastinate"), *arguments]
            done = subprocess.run(argv, env=os.environ | own, capture_output=True, check=True)
            return done.stdout.decode()

        assert "Found procrastinate_jobs table: OK" in procrastinate("healthchecks")
        running, waiting = procrastinate("shell", "list_locks").splitlines()
    assert running.startswith(f"{ONE}: 1 jobs (todo: 0, doing: 1,")
    assert waiting.startswith(f"{OTHER}: 1 jobs (todo: 1, doing: 0,")


def test_what_passes_a_limit_waits_until_a_slot_is_free(
    database: Database, clock: FrozenClock
) -> None:
    queue, leases = queue_of(database, clock, fleet=2), SqlLeases(database, clock)
    held = leases.claim(IssueRef("octo/three", 1), "other")
    assert held
    queue.defer(polling(queue), [ONE, TWO, OTHER])
    assert jobs(database) == [str(ONE)]
    leases.release(held)
    queue.fill()
    assert jobs(database) == [str(ONE), str(OTHER)]
    queue.fill(job_of(database, ONE))
    assert jobs(database) == [str(ONE), str(OTHER), str(TWO)]


@pytest.mark.parametrize("has_lease", [False, True])
def test_an_issue_that_another_worker_took_over_keeps_its_slot(
    database: Database, clock: FrozenClock, *, has_lease: bool
) -> None:
    """A worker wakes up after it was frozen, and its visit ends since its lease is lost."""
    queue, leases = queue_of(database, clock), SqlLeases(database, clock)
    queue.defer(polling(queue), [ONE, TWO])
    lost = job_of(database, ONE)
    with database.write() as connection:
        connection.execute(text("DELETE FROM procrastinate_jobs"))
    queue.defer(polling(queue), [ONE, TWO])
    assert fetched(database) == str(ONE)
    assert not has_lease or leases.claim(ONE, "other")
    queue.fill(lost)
    assert jobs(database) == []


def test_the_order_of_the_last_poll_holds_in_a_repository_and_repositories_take_turns(
    database: Database, clock: FrozenClock
) -> None:
    queue = queue_of(database, clock, fleet=2, per_repository=2)
    queue.defer(polling(queue), [ONE, TWO, OTHER])
    assert jobs(database) == [str(ONE), str(OTHER)]
    clock.time += timedelta(seconds=1)
    queue.defer(polling(queue), [THREE, TWO])
    queue.fill(job_of(database, ONE))
    assert jobs(database) == [str(ONE), str(OTHER), str(THREE)]


def test_a_slot_goes_to_another_repository_if_the_first_one_has_all_of_its_own(
    database: Database, clock: FrozenClock
) -> None:
    queue = queue_of(database, clock, fleet=2)
    with database.write() as connection:
        for ref, priority in ((ONE, 9), (TWO, 8), (OTHER, 0)):
            row = {"repository": ref.repository, "number": ref.number, "priority": priority}
            waits = "INSERT INTO waiting VALUES (:repository, :number, :priority, '0')"
            connection.execute(text(waits), row)
    queue.fill()
    assert jobs(database) == [str(ONE), str(OTHER)]


def test_without_a_limit_of_the_fleet_all_that_may_start_does(
    database: Database, clock: FrozenClock
) -> None:
    refs = [IssueRef(f"octo/{n % 3}", n) for n in range(1, 2 * MOST_STARTED)]
    queue = queue_of(database, clock, per_repository=60)
    queue.defer(polling(queue), refs)
    assert Counter(lock[:6] for lock in jobs(database)) == {f"octo/{n}": 60 for n in range(3)}


def test_an_issue_that_is_being_visited_does_not_wait_for_another_visit(
    database: Database, clock: FrozenClock
) -> None:
    queue = queue_of(database, clock)
    assert SqlLeases(database, clock).claim(ONE, "other")
    queue.defer(polling(queue), [ONE])
    clock.time += timedelta(hours=1)
    queue.fill()
    assert jobs(database) == []


def test_a_job_whose_worker_died_is_deleted_and_its_issue_visited_by_another(
    database: Database, clock: FrozenClock
) -> None:
    queue, leases = queue_of(database, clock), SqlLeases(database, clock)
    queue.defer(polling(queue), [ONE])
    assert fetched(database) == str(ONE)
    assert leases.claim(ONE, "dead")
    ledger = SqlLedger(database, clock)
    ledger.append(ONE, IssueSeen(title="Mend it"))
    ledger.append(ONE, AttemptStarted(attempt=1, number=1, worker="dead"))
    queue.tidy(polling(queue))
    assert (jobs(database, "doing"), jobs(database)) == ([str(ONE)], [])
    clock.time += timedelta(minutes=1)
    queue.tidy(polling(queue))
    assert (jobs(database, "doing"), jobs(database)) == ([], [str(ONE)])


def test_what_was_begun_comes_before_all_that_is_new(
    database: Database, clock: FrozenClock
) -> None:
    queue, leases = queue_of(database, clock), SqlLeases(database, clock)
    lease = leases.claim(TWO, "one")
    assert lease
    ledger = SqlLedger(database, clock, lease)
    ledger.append(TWO, IssueSeen(title="Mend it"))
    ledger.append(TWO, AttemptStarted(attempt=1, number=1, worker="one"))
    leases.release(lease)
    queue.tidy(polling(queue))
    assert jobs(database) == []
    queue.defer(polling(queue), [ONE])
    assert jobs(database) == [str(TWO)]


def test_workers_visit_each_issue_once_and_leave_no_job(
    database: Database, clock: FrozenClock, postgres_url: str
) -> None:
    queue, visited = queue_of(database, clock, per_repository=64), Counter[IssueRef]()
    done, most = threading.Semaphore(0), list[int]()
    now, lock = list[IssueRef](), threading.Lock()

    def visit(ref: IssueRef, _job: int) -> None:
        with lock:
            now.append(ref)
            most.append(len(now))
            visited[ref] += 1
        done.release()
        with lock:
            now.remove(ref)

    with working(postgres_url, visit, 2), working(postgres_url, visit, 1):
        refs = [IssueRef("octo/one", number) for number in range(1, 21)]
        queue.defer(polling(queue), refs)
        assert all(done.acquire(timeout=60) for _ in refs)
    assert visited == Counter(refs)
    assert max(most) <= 3
    assert (jobs(database), jobs(database, "doing")) == ([], [])


def test_a_job_that_the_poller_deleted_during_its_visit_is_no_error(
    database: Database,
    clock: FrozenClock,
    postgres_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue, done = queue_of(database, clock), list[IssueRef]()

    def visit(ref: IssueRef, _job: int) -> None:
        with database.write() as connection:
            connection.execute(text("DELETE FROM procrastinate_jobs WHERE status = 'doing'"))
        done.append(ref)

    with working(postgres_url, visit, 1):
        for ref in (ONE, OTHER):
            queue.defer(polling(queue), [ref])
            wait_until(lambda ref=ref: ref in done)
    gc.collect()
    assert [each for each in caplog.records if each.name == "asyncio"] == []


def test_a_job_ends_when_a_replica_is_the_primary_server_again(
    postgres: Server, clock: FrozenClock
) -> None:
    with postgres.fresh() as url, open_database(url) as database:
        name, visited = make_url(url).database or "", threading.Event()

        def set_read_only(value: str) -> None:
            postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")
            postgres.execute(END_CONNECTIONS, name)

        def visit(_ref: IssueRef, _job: int) -> None:
            set_read_only("on")
            visited.set()

        queue = queue_of(database, clock)
        with working(url, visit, 1):
            queue.defer(polling(queue), [ONE])
            assert visited.wait(60)
            assert not ended_within(0.3, database)
            set_read_only("off")
            assert ended_within(10, database)


def ended_within(seconds: float, database: Database) -> bool:
    """Tell whether no job is left within this time."""
    until = time.monotonic() + seconds
    while jobs(database, "doing"):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_a_job_that_comes_during_a_fetch_does_not_wait_for_the_next_look(
    postgres: Server, clock: FrozenClock
) -> None:
    with postgres.fresh() as url, open_database(url) as database:
        queue, visited = queue_of(database, clock), list[IssueRef]()
        lease = polling(queue)
        with database.write() as connection:
            connection.exec_driver_sql(SLOW_FETCH)

        def is_true(query: str) -> bool:
            with database.read() as connection:
                return connection.exec_driver_sql(query).first() is not None

        with working(url, lambda ref, _: visited.append(ref), 1, fetch_seconds=3600):
            wait_until(lambda: is_true(LISTENS) and is_true(FETCHES))
            queue.defer(lease, [ONE])
            with database.write() as connection:
                connection.exec_driver_sql("DELETE FROM busy")
            wait_until(lambda: visited == [ONE])


@pytest.mark.parametrize("visit", [None, print])
def test_a_hint_of_one_worker_reaches_all(
    database: Database,
    clock: FrozenClock,
    postgres_url: str,
    visit: Visit | None,
) -> None:
    queue, hinted = queue_of(database, clock), list[str]()

    def has_arrived() -> bool:
        queue.hint("octo/one")
        return bool(hinted)

    with working(postgres_url, visit, 1, hinted.append):
        wait_until(has_arrived)
    assert set(hinted) == {"octo/one"}


@pytest.mark.parametrize("visit", [None, print])
def test_a_worker_ends_however_many_hints_come(
    database: Database, clock: FrozenClock, postgres_url: str, visit: Visit | None
) -> None:
    queue, is_over = queue_of(database, clock), threading.Event()

    def hint() -> None:
        while not is_over.is_set():
            queue.hint("octo/one")

    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(hint)
        try:
            for _ in range(30):
                hinted = list[str]()
                with working(postgres_url, visit, 1, hinted.append):
                    wait_until(lambda hinted=hinted: bool(hinted))
        finally:
            is_over.set()


def test_leaving_waits_for_the_visits_that_have_begun(
    database: Database, clock: FrozenClock, postgres_url: str
) -> None:
    queue, begun, seen = queue_of(database, clock), threading.Event(), list[IssueRef]()

    def visit(ref: IssueRef, _job: int) -> None:
        begun.set()
        wait_until(ended.is_set)
        seen.append(ref)

    ended = threading.Event()
    queue.defer(polling(queue), [ONE, OTHER])
    with working(postgres_url, visit, 1):
        assert begun.wait(60)
        threading.Timer(0.05, ended.set).start()
    assert len(seen) == 1
    assert len(jobs(database)) == 1
