"""Whatever reads the records of a ledger reads the same from a file and from PostgreSQL."""

import json
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

from mulligan.domain.command import Verb
from mulligan.domain.events import (
    Authorised,
    CommandReceived,
    Forgotten,
    HumanResponded,
    IssueSeen,
    Published,
    Resolution,
    Resolved,
)
from mulligan.domain.issue import CommentAct, Stage
from mulligan.domain.recorded_effects import CommentsRead
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run
from mulligan.interfaces.cli.app import app
from mulligan.interfaces.cli.events import number_at, pages
from mulligan.interfaces.dashboard.state import RecentEventsReader
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.retention import SqlRetentionStore
from mulligan.storage.stats_query import read_ledger_history
from mulligan.storage.usage import SqlUsageStore
from world.ledgers import ISSUES, START, completed, open_ledger_url, url_for

ONE, TWO, THREE = ISSUES
PULL = Published(pull_request="https://x.example/pull/7", number=7, head_sha="c0ffee")
LATER = START + timedelta(days=1)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_for(request, tmp_path)


@pytest.fixture
def ledger(url: str) -> Generator[SqlLedger]:
    """Give a ledger with an issue that was merged, and two that are just known."""
    with open_ledger_url(url) as made:
        asked = Authorised(act="labeled:7", actor="ada", act_at=START)
        ended = Resolved(
            resolution=Resolution.MERGED, reason="It ended.", total_attempts=1, total_duration_ms=1
        )
        for event in (IssueSeen(title="Mend it"), asked, completed(ONE, 1), PULL, ended):
            made.append(ONE, event)
        for ref in (TWO, THREE):
            made.append(ref, IssueSeen(title="New"))
        SqlUsageStore(made.database).record(Run(ONE, 1, 0, START), AgentFacts(kind="x", cost_usd=1))
        yield made


@pytest.fixture
def configured(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {
        "repositories": [{"name": "octo/one"}],
        "agent": {"command": ["agent"]},
        "state": {"url": url},
        "workspace": {"root": "work"},
    }
    (tmp_path / "mulligan.yml").write_text(json.dumps(settings))


def mulligan(*arguments: str) -> Result:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done


def test_what_is_counted_is_read_from_the_events(ledger: SqlLedger) -> None:
    found = read_ledger_history(ledger.database)
    assert [(each.issue, each.number) for each in found.attempts] == [(ONE, 1)]
    assert [each.kind for each in found.milestones] == ["asked", "published", "merged"]
    assert len(found.stages) == 3
    assert found.since
    assert found.since < LATER


def test_events_are_read_page_by_page_and_by_issue_and_time(ledger: SqlLedger) -> None:
    (page, end) = pages(ledger, None, 0, follow=False)
    assert [each.seq for each in page] == [each.seq for each in ledger.events()]
    assert not end
    assert [each.issue for each in next(pages(ledger, TWO, 0, follow=False))] == [TWO]
    assert number_at(START, ledger) == 0
    assert not next(pages(ledger, None, number_at(LATER, ledger), follow=False))


def test_the_commands_that_only_look_say_the_same(configured: None, ledger: SqlLedger) -> None:
    told = json.loads(mulligan("stats", "--json").stdout)
    assert told["issues"]["merged"] == 1
    lines = [json.loads(line) for line in mulligan("debug", "events", "--json").stdout.splitlines()]
    assert [each["seq"] for each in lines] == [each.seq for each in ledger.events()]
    assert len(json.loads(mulligan("status", "--json").stdout)) == 3
    assert json.loads(mulligan("inspect", str(ONE), "--json").stdout)["attempts"]


def test_the_dashboard_reads_on_from_where_it_was(ledger: SqlLedger) -> None:
    recent = RecentEventsReader()
    assert [each.number for each in recent.refresh(ledger).results] == [1]
    ledger.append(TWO, completed(TWO, 1))
    assert [each.issue for each in recent.refresh(ledger).results] == [str(TWO), str(ONE)]


def test_an_old_issue_is_let_go_of_at_once(ledger: SqlLedger) -> None:
    attic = SqlRetentionStore(ledger.database, ledger.clock)
    ledger.append(ONE, CommentsRead(read_to=9))
    assert list(attic.outdated(LATER)) == [ONE]
    assert attic.forget(ONE, LATER)
    (kept,) = ledger.events(ONE)
    assert isinstance(kept.event, Forgotten)
    assert ledger.status(ONE).stage is Stage.RESOLVED
    with ledger.database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 0
    assert list(attic.outdated(LATER)) == []
    assert read_ledger_history(ledger.database).attempts == []


def test_a_command_that_two_workers_hear_at_once_is_to_be_obeyed_once(
    url: str, ledger: SqlLedger
) -> None:
    heard = CommandReceived(key="comment:9", command=Verb.RETRY, actor="ada", at=START)
    with open_ledger_url(url) as other:
        ledger.append(TWO, heard)
        other.append(TWO, heard)
        assert [each.act for each in other.status(TWO).pending] == [CommentAct(9)]
        done = HumanResponded(key="comment:9", command=Verb.RETRY, actor="ada", answer="")
        ledger.append(TWO, done)
        other.append(TWO, heard)
        assert ledger.status(TWO).pending == ()
