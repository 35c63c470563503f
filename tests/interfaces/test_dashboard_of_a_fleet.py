"""The dashboard of one worker of a fleet: the work of all, in PostgreSQL, which may be away."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.interfaces.dashboard.state import DashboardStores
from mulligan.storage.artifacts import FileArtifacts, SharedArtifacts
from mulligan.storage.database import Database, open_database
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.usage import SqlUsageStore
from world.dashboards import Dashboard, serve_dashboard, tried
from world.ledgers import TickingClock
from world.postgres import server
from world.stories import green_check

ONE = IssueRef("octo/one", 1)


def books_of(database: Database, root: Path) -> DashboardStores:
    """Give what one worker has: its own files, and the database of all."""
    clock = TickingClock()
    artifacts = SharedArtifacts(FileArtifacts(root), database, clock)
    return DashboardStores(SqlLedger(database, clock), SqlUsageStore(database), artifacts, clock)


@contextmanager
def worker(directory: Path, url: str) -> Generator[Dashboard]:
    directory.mkdir()
    with (
        open_database(url) as database,
        serve_dashboard(directory, found=books_of(database, directory / "artifacts")) as made,
    ):
        yield made


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str) -> Generator[tuple[Dashboard, Dashboard]]:
    with (
        worker(tmp_path / "here", postgres_url) as here,
        worker(tmp_path / "there", postgres_url) as there,
    ):
        yield here, there


def test_each_shows_what_the_other_did(pair: tuple[Dashboard, Dashboard]) -> None:
    here, there = pair
    there.begin(ONE, "Mend it")
    running = here.ask("/").text
    assert "running claude" in running
    there.stores.artifacts.write(ONE, 1, "prompt.md", b"Mend it, please.")
    log = there.stores.artifacts.name(there.stores.artifacts.path(ONE, 1, "check.log"))
    (there.desk.stores.artifacts.path(ONE, 1, "check.log")).write_bytes(b"all is red")
    check = green_check().model_copy(update={"log_artifact": log})
    there.end(ONE, tried(1, Outcome.SUCCEEDED).model_copy(update={"checks": (check,)}))
    place = f"/issues/{ONE.repository}/{ONE.number}"
    assert here.ask(f"{place}/attempts/1/prompt").text == "Mend it, please."
    assert here.ask("/api/issues").json == there.ask("/api/issues").json
    assert here.ask("/api/events").json == there.ask("/api/events").json
    assert "attempts/1/check-1" in there.ask(place).text
    assert "attempts/1/check-1" not in here.ask(place).text
    assert there.ask(f"{place}/attempts/1/check-1").text == "all is red"
    assert here.ask(f"{place}/attempts/1/check-1").status == 404


def test_nobody_waits_while_the_database_is_away(tmp_path: Path) -> None:
    with server() as own, own.fresh() as url, worker(tmp_path / "here", url) as here:
        here.begin(ONE, "Mend it")
        own.stop()
        began = time.monotonic()
        measured = here.ask_without_key("/metrics").text
        assert "mulligan_poll_quiet_seconds" in measured
        assert "mulligan_issues{" not in measured
        page = here.ask("/")
        assert (page.status, "cannot be reached" in page.text) == (503, True)
        assert here.ask("/api/issues").status == 503
        assert time.monotonic() - began < 30
        own.start()
        assert "running claude" in here.ask("/").text
