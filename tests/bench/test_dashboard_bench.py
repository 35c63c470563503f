"""The pages of the dashboard over 10,000 issues and 100,000 attempts; only their sizes gate.

Every attempt has its files on disk: the same seven, as links; those that are shown are long.
"""

import os
import statistics
import time
from functools import partial
from http import HTTPStatus
from pathlib import Path

import pytest

from bench.test_ledger_bench import ATTEMPTS, fill, report
from mulligan.domain.issue import IssueRef
from mulligan.interfaces.dashboard.files import ARTIFACT_NAMES, MAX_FILE_BYTES
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
FILES = tuple(f"/issues/octo/large/77/attempts/3/{part}" for part in ("prompt", "diff", "log"))
SHOWN = IssueRef("octo/large", 77)
TIMES = 5
LINE = "def rounded(amount: str) -> Decimal:  # half to even, as accountants do\n"
CHANGE = "@@ -1,2 +1,400 @@\n" + f"-{LINE}+{LINE}" * 200
LONG = {
    "prompt.md": f"# Task\n\n{LINE * 2000}# Retry context\n\n{LINE * 200}",
    "changes.diff": "".join(
        f"diff --git a/{n}.py b/{n}.py\n--- a/{n}.py\n+++ b/{n}.py\n{CHANGE}" for n in range(400)
    ),
    "agent.log": LINE * 200_000,
}
"""A prompt of 160 kB, a diff of 12 MB, and a log of 15 MB."""


def keep_files(artifacts: FileArtifacts) -> None:
    """Have the files of every attempt on disk."""
    names, kept = [*ARTIFACT_NAMES.values(), "check-tests.log"], dict[str, Path]()
    for number in range(1, ISSUES + 1):
        for attempt in range(1, ATTEMPTS + 1):
            place = artifacts.path(IssueRef("octo/large", number), attempt, "x").parent
            for name in names:
                # A file system may limit the links to one file.
                if attempt == 1 and number % 1000 == 1:
                    kept[name] = place / name
                    kept[name].write_text(LINE * 100)
                else:
                    os.link(kept[name], place / name)
    for name, content in LONG.items():
        for attempt in (3, ATTEMPTS):
            artifacts.write(SHOWN, attempt, name, content.encode())


@pytest.mark.timeout(1800)
def test_each_page_stays_small(tmp_path: Path) -> None:
    with open_database(url_of(tmp_path / "ledger.db")) as database:
        ledger = fill(database, ISSUES)
        rebuild(ledger)
        clock, artifacts = TickingClock(), FileArtifacts(tmp_path / "artifacts")
        keep_files(artifacts)
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
            for path in (*PATHS, *FILES):
                taken, worked, size = list[float](), list[float](), 0
                for _ in range(TIMES):
                    begun, busy = time.perf_counter(), time.process_time()
                    answer = dashboard.ask(path)
                    size = len(answer.body)
                    taken.append(1000 * (time.perf_counter() - begun))
                    worked.append(1000 * (time.process_time() - busy))
                    assert answer.status == HTTPStatus.OK, path
                    assert size <= (MOST_BYTES if path in PATHS else MAX_FILE_BYTES + 100), path
                milliseconds, cpu = statistics.median(taken), statistics.median(worked)
                report(path, f"{milliseconds:.0f} ms", f"{cpu:.0f} ms of CPU", f"{size:,} bytes")
