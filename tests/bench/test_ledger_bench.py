"""The ledger with 10,000 issues and 100,000 attempts: `status`, and one history.

Rows in milliseconds are printed; only ratios gate. The yardsticks are measured in the same run:
plain sqlite3 and json reading the same rows, and a ledger that holds one issue alone.
"""

import gc
import json
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import insert

from bench.figures import Bench
from mulligan.__main__ import OBJECTS
from mulligan.domain.events import (
    AttemptStarted,
    Authorised,
    CheckFinished,
    Decided,
    Escalated,
    Event,
    IssueSeen,
    RetryScheduled,
)
from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef, Lease
from mulligan.domain.outcome import Escalate, Retry
from mulligan.domain.result import AgentFacts, CheckKind, CheckResult, FileChange, Finding
from mulligan.domain.spending import Run
from mulligan.domain.stats import summarise
from mulligan.domain.status import IssueStatus
from mulligan.storage.database import Database, clock_of, open_database
from mulligan.storage.leases import SqlLeases
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.schema import EVENTS_TABLE, RUNS_TABLE
from mulligan.storage.serialization import record_event, values_of
from mulligan.storage.stats_query import read_ledger_history
from mulligan.storage.usage import SqlUsageStore
from world.ledgers import START, TickingClock, completed, rebuild, url_of
from world.postgres import server

ISSUES = 10_000
ATTEMPTS = 10
STATUS_RATIO = 2.5
"""Committed: what `statuses()` may take, in times of sqlite3 and json reading the same rows."""
HISTORY_RATIO = 1.5
"""Committed: what one history may take, in times of the same in a ledger of that issue alone."""

ONE_HISTORY = "history() of one issue of 10,000 / in a ledger of its own"

STATS_RATIO = 2.5
"""Committed: what `stats` may take, in times of sqlite3 and json reading the same attempts."""

FINDING = Finding(
    summary="tests/test_add.py::test_add", message="assert 3 == 4", file="a.py", line=4
)
CHECK = CheckResult(
    name="tests",
    kind=CheckKind.TEST,
    command="python -m pytest -q",
    passed=False,
    digest="FAILED tests/test_add.py::test_add - assert 3 == 4\n" * 25,
    findings=(FINDING,) * 3,
)
FILES = tuple(FileChange(path=f"src/package/file_{n}.py", status="M") for n in range(4))


def life(ref: IssueRef) -> Iterator[Event]:
    """All that happens to an issue on which ten attempts fail, each with a digest of 1.3 kB."""
    yield IssueSeen(title="Add numbers as they are added elsewhere", url=f"https://x/{ref.number}")
    yield Authorised(act=f"labeled:{ref.number}", actor="ada", act_at=START)
    for number in range(1, ATTEMPTS + 1):
        meta = completed(ref, number).meta
        yield AttemptStarted(attempt=number, number=number, worker="here")
        yield CheckFinished(check=CHECK)
        done = meta.model_copy(update={"checks": (CHECK,), "files_modified": FILES})
        yield completed(ref, number).model_copy(update={"meta": done})
        yield Decided(decision=Retry(reason="1 check failed. 2 attempts left."))
        yield RetryScheduled(due=START, reason="1 check failed. 2 attempts left.")
    yield Decided(decision=Escalate(reason="All 10 attempts failed. The last one: 1 check failed."))
    yield Escalated(reason="All 10 attempts failed.", comment=f"https://x/{ref.number}#c")


def rows(ref: IssueRef) -> Iterator[dict[str, str | int | None]]:
    status = IssueStatus(ref)
    for event in life(ref):
        status = advance(status, event, START)
        yield values_of(record_event(status, event, START, seq=0))


def fill(database: Database, issues: int) -> SqlLedger:
    with database.write() as connection:
        for number in range(1, issues + 1):
            connection.execute(insert(EVENTS_TABLE), [*rows(IssueRef("octo/large", number))])
    return SqlLedger(database, TickingClock())


def milliseconds(work: Callable[[], object], times: int) -> float:
    """Measure the median of several runs."""
    taken: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


def plain_reading(path: Path) -> None:
    connection = sqlite3.connect(path)
    wanted = "SELECT status FROM issues ORDER BY repository, number"
    found = [json.loads(status) for (status,) in connection.execute(wanted)]
    connection.close()
    assert len(found) == ISSUES


def plain_attempts(path: Path) -> None:
    connection = sqlite3.connect(path)
    wanted = "SELECT body FROM events WHERE kind = 'attempt_completed' ORDER BY seq"
    found = sum(json.loads(body)["meta"]["number"] > 0 for (body,) in connection.execute(wanted))
    connection.close()
    assert found == ISSUES * ATTEMPTS


def count(database: Database) -> None:
    found = summarise(read_ledger_history(database), START)
    assert found.overall.attempts == ISSUES * ATTEMPTS


@pytest.fixture(autouse=True)
def garbage_as_in_the_program() -> Iterator[None]:
    """Look for garbage as seldom as Mulligan does."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS)
    yield
    gc.set_threshold(*before)


@pytest.fixture
def place() -> Iterator[Path]:
    # Close to a gigabyte, which pytest's own directories would keep for three runs.
    with TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.mark.timeout(600)
def test_status_and_history_stay_fast_with_a_hundred_thousand_attempts(
    place: Path, bench: Bench
) -> None:
    ref = IssueRef("octo/large", ISSUES // 2)
    path = place / "large.db"
    with (
        open_database(url_of(path)) as large,
        open_database(url_of(place / "small.db")) as small,
    ):
        alone = fill(small, 1)
        ledger = fill(large, ISSUES)
        rebuilt = milliseconds(partial(rebuild, ledger), 1)
        counted = milliseconds(lambda: count(large), 3)
        read = milliseconds(lambda: plain_attempts(path), 3)
        assert len(ledger.statuses()) == ISSUES
        assert len(ledger.history(ref)) == ATTEMPTS
        plain = milliseconds(lambda: plain_reading(path), 9)
        status = milliseconds(ledger.statuses, 9)
        one = milliseconds(lambda: alone.history(IssueRef("octo/large", 1)), 101)
        history = milliseconds(lambda: ledger.history(ref), 101)
        append = milliseconds(lambda: ledger.append(ref, CheckFinished(check=CHECK)), 101)
    report("10,000 issues, 100,000 attempts", f"{path.stat().st_size / 1e6:.0f} MB")
    report("statuses()", f"{status:.0f} ms", f"{status / plain:.2f} × sqlite3 and json")
    report("history() of one issue", f"{history:.2f} ms", f"{history / one:.2f} × that issue alone")
    report("append()", f"{append:.2f} ms")
    report("rebuild()", f"{rebuilt:.0f} ms")
    report("stats", f"{counted:.0f} ms", f"{counted / read:.2f} × sqlite3 and json")
    stats, statuses = "stats / sqlite3 and json", "statuses() / sqlite3 and json"
    bench.figure(stats, [counted / read], most=STATS_RATIO, gates=True)
    bench.figure(statuses, [status / plain], most=STATUS_RATIO, gates=True)
    bench.figure(f"SQLite: {ONE_HISTORY}", [history / one], most=HISTORY_RATIO, gates=True)


def test_what_a_day_has_cost_is_read_from_its_own_rows(place: Path, bench: Bench) -> None:
    """Among 100,000 runs on 500 days, a day of 200 costs what it does where there is no other."""
    with (
        open_database(url_of(place / "large.db")) as large,
        open_database(url_of(place / "small.db")) as small,
    ):
        many, few = SqlUsageStore(large), SqlUsageStore(small)
        fill_runs(large, days=500)
        fill_runs(small, days=1)
        assert len(many.used_on(START.date())) == len(few.used_on(START.date())) == 20
        among_many = milliseconds(lambda: many.used_on(START.date()), 101)
        alone = milliseconds(lambda: few.used_on(START.date()), 101)
        run = Run(IssueRef("octo/r1", 1), 1, 0, START)
        noted = milliseconds(lambda: many.record(run, AgentFacts(kind="x", cost_usd=1)), 101)
    report("a day of 100,000 runs", f"{among_many:.2f} ms", f"{among_many / alone:.2f} × it alone")
    report("record()", f"{noted:.2f} ms")
    day = "a day of 100,000 runs / that day alone"
    bench.figure(day, [among_many / alone], most=HISTORY_RATIO, gates=True)


@pytest.mark.timeout(900)
def test_the_same_ledger_on_postgresql(bench: Bench) -> None:
    """Its server waits for no disk here; what is measured is what Mulligan asks of it."""
    ref = IssueRef("octo/large", ISSUES // 2)
    with (
        server() as own,
        own.fresh() as url,
        own.fresh() as other,
        open_database(url) as large,
        open_database(other) as small,
    ):
        alone, ledger = fill(small, 1), fill(large, ISSUES)
        rebuilt = milliseconds(partial(rebuild, ledger), 1)
        own.execute("VACUUM ANALYZE")
        status = milliseconds(ledger.statuses, 9)
        one = milliseconds(lambda: alone.history(IssueRef("octo/large", 1)), 101)
        history = milliseconds(lambda: ledger.history(ref), 101)
        append = milliseconds(lambda: ledger.append(ref, CheckFinished(check=CHECK)), 101)
        leases = SqlLeases(large, clock_of(large, TickingClock()))
        claim = milliseconds(lambda: leases.release(lease_of(leases, ref)), 101)
    report("PostgreSQL: statuses()", f"{status:.0f} ms")
    report("PostgreSQL: history()", f"{history:.2f} ms", f"{history / one:.2f} × that issue alone")
    report("PostgreSQL: append()", f"{append:.2f} ms")
    report("PostgreSQL: claim() and release()", f"{claim:.2f} ms")
    report("PostgreSQL: rebuild()", f"{rebuilt:.0f} ms")
    bench.figure(f"PostgreSQL: {ONE_HISTORY}", [history / one], most=HISTORY_RATIO, gates=True)


def lease_of(leases: SqlLeases, ref: IssueRef) -> Lease:
    lease = leases.claim(ref, "here", most=10)
    assert lease
    return lease


def fill_runs(database: Database, days: int) -> None:
    rows = [
        {
            "repository": f"octo/r{number % 20}",
            "number": number,
            "attempt": 1,
            "fix_round": 0,
            "day": (START + timedelta(days=number // 200)).date().isoformat(),
            "microdollars": number,
            "tokens": number,
            "usage": AgentFacts(kind="x", cost_usd=number / 1e6).model_dump_json(),
            "agent": "x",
            "began": START.isoformat(),
            "denied": False,
        }
        for number in range(200 * days)
    ]
    with database.write() as connection:
        connection.execute(insert(RUNS_TABLE), rows)


def report(*cells: str) -> None:
    print("ledger |", " | ".join(cells))  # noqa: T201 - what a benchmark is for
