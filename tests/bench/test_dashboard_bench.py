"""The pages of the dashboard over 10,000 issues and 100,000 attempts; only their sizes gate."""

import statistics
import time
from functools import partial
from pathlib import Path

import pytest

from bench.test_ledger_bench import fill, report
from mulligan.interfaces.dashboard.state import DashboardStores
from mulligan.storage.artifacts import FileArtifacts
from mulligan.storage.database import open_database
from mulligan.storage.stats_query import read_ledger_history
from mulligan.storage.usage import SqlUsageStore
from world.dashboards import serve_dashboard
from world.ledgers import TickingClock, rebuild, url_of

ISSUES = 10_000
MOST_BYTES = 200_000
PATHS = (
    *("/", "/running", "/issues", "/issues?list=asked&page=150", "/issues?text=numbers+9999"),
    *("/issues/octo/large/77", "/issues/octo/large/77/attempts/3", "/stats", "/stats?since=30d"),
)
TIMES = 5


@pytest.mark.timeout(900)
def test_each_page_stays_small(tmp_path: Path) -> None:
    with open_database(url_of(tmp_path / "ledger.db")) as database:
        ledger = fill(database, ISSUES)
        rebuild(ledger)
        clock, artifacts = TickingClock(), FileArtifacts(tmp_path / "artifacts")
        found = DashboardStores(ledger, SqlUsageStore(database), artifacts, clock)
        read = partial(read_ledger_history, database)
        with serve_dashboard(tmp_path, found=found, read_history=read) as dashboard:
            for path in ("/", "/stats"):
                begun = time.perf_counter()
                dashboard.ask(path)
                report(path, f"{1000 * (time.perf_counter() - begun):.0f} ms", "at first")
            begun = time.perf_counter()
            while "computing" in dashboard.ask("/stats").text:
                time.sleep(0.2)
            report("/stats", f"{1000 * (time.perf_counter() - begun):.0f} ms", "until computed")
            for path in PATHS:
                taken, size = list[float](), 0
                for _ in range(TIMES):
                    begun = time.perf_counter()
                    size = len(dashboard.ask(path).body)
                    taken.append(1000 * (time.perf_counter() - begun))
                    assert size <= MOST_BYTES, path
                report(path, f"{statistics.median(taken):.0f} ms", f"{size:,} bytes")
