"""What is seen at a glance is what the open ledger says; where that takes more, nothing is seen."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import column, table, update

from mulligan.domain.events import Decided, Escalated, IssueSeen
from mulligan.domain.outcome import Escalate
from mulligan.domain.status import IssueStatus
from mulligan.storage import VERSION_TABLE
from mulligan.storage.fast_status import read_fast_status
from mulligan.storage.serialization import statuses_of, written
from world.ledgers import ISSUES, open_ledger_at, url_of


def test_a_glance_sees_what_the_ledger_says_while_it_is_open_or_not(tmp_path: Path) -> None:
    path = tmp_path / "a ledger-1.db"
    with open_ledger_at(path) as ledger:
        for ref in reversed(ISSUES):
            ledger.append(ref, IssueSeen(title=f"Mend {ref}"))
        ledger.append(ISSUES[1], Decided(decision=Escalate(reason="No attempt left.")))
        ledger.append(ISSUES[1], Escalated(reason="No attempt left.", comment="https://x/1#c"))
        said = ledger.statuses()
        assert read_fast_status(url_of(path)) == (said, [])
    assert [each.issue for each in said] == [*ISSUES]
    assert read_fast_status(url_of(path)) == (said, [])
    assert read_fast_status(f"sqlite+pysqlite:///{path}") == (said, [])


def test_nothing_is_seen_of_a_ledger_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with open_ledger_at(path) as ledger, ledger.database.write() as connection:
        connection.execute(update(table(VERSION_TABLE, column("version_num"))).values(["0001"]))
    assert read_fast_status(url_of(path)) is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada@localhost/mulligan",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:ledger.db?uri=true",
        "sqlite:///missing/ledger.db",
        "sqlite:///empty.db",
        "sqlite:///garbage.db",
        "sqlite:///other.db",
    ],
)
def test_nothing_is_seen_of_what_is_no_ledger_and_none_is_made(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.db").touch()
    (tmp_path / "garbage.db").write_text("no database " * 1000)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE issues (status)").close()
    other.close()
    assert read_fast_status(url) is None
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "empty.db",
        "garbage.db",
        "other.db",
    ]


def test_a_status_is_stored_without_what_is_as_it_always_begins() -> None:
    begun = IssueStatus(ISSUES[0])
    assert written(begun) == '{"issue":{"repository":"octo/one","number":1}}'
    ended = IssueStatus(ISSUES[0], epoch=1, decision=Escalate(reason="No attempt left."))
    assert statuses_of([written(begun), written(ended)]) == [begun, ended]


def test_status_of_an_open_ledger_needs_neither_sqlalchemy_nor_the_route(tmp_path: Path) -> None:
    with open_ledger_at(tmp_path / "ledger.db"):
        pass
    (tmp_path / "mulligan.yml").write_text(
        "repositories: [{name: octo/one}]\nagent: {command: [agent]}\n"
        f"state: {{url: '{url_of(tmp_path / 'ledger.db')}'}}\n"
    )
    code = (
        "import sys; sys.argv = ['mulligan', 'status'];"
        "from mulligan.interfaces.cli.app import app;"
        "app(standalone_mode=False);"
        "heavy = {'sqlalchemy', 'structlog', 'jinja2', 'mulligan.implement.ports'};"
        "print(sorted(heavy & {*sys.modules}))"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "No issues yet. Add the label to one, then run `mulligan once`.",
        "[]",
    ]
