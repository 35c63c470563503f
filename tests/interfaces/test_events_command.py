"""`mulligan debug events` prints what was recorded, and goes on with what follows."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, insert
from typer.testing import CliRunner, Result

from mulligan.domain.events import IssueSeen
from mulligan.domain.issue import IssueRef
from mulligan.interfaces.cli.app import app
from mulligan.interfaces.cli.events import BATCH_SIZE, number_at, pages
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.schema import EVENTS_TABLE
from world.ledgers import START, open_ledger_at
from world.processes import wait_until

ONE, TWO = IssueRef("acme/tools", 1), IssueRef("acme/tools", 2)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_TOKEN", "hunter2-hunter2")
    (tmp_path / "mulligan.yml").write_text(
        "github: {token: $GITHUB_TOKEN}\n"
        "repositories: [{name: acme/tools}]\nagent: {command: [agent]}\n"
        f'state: {{url: "sqlite:///{tmp_path}/ledger.db"}}\nworkspace: {{root: work}}\n'
    )
    return tmp_path


def record(here: Path, *titles: str, ref: IssueRef = ONE) -> None:
    with open_ledger_at(here / "ledger.db") as ledger:
        for title in titles:
            ledger.append(ref, IssueSeen(title=title))


def events(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["debug", "events", *arguments])


def titles(lines: str) -> list[str]:
    return [json.loads(line)["payload"]["title"] for line in lines.splitlines()]


@contextmanager
def following(here: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """Start it as a person does; what it prints goes to a file, so that nobody has to read."""
    command = [
        sys.executable,
        "-m",
        "mulligan",
        "debug",
        "events",
        "--follow",
        "--json",
        *arguments,
    ]
    with (here / "out").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def cpu_seconds(pid: int) -> float:
    """Read what a process has used so far (proc(5)); clock ticks are a hundredth of a second."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / 100


def seen(here: Path) -> list[str]:
    return titles((here / "out").read_text())


def test_events_are_printed_in_their_order_without_secrets(here: Path) -> None:
    record(here, "one", "two hunter2-hunter2")
    record(here, "three", ref=TWO)
    lines = [json.loads(line) for line in events("--json").stdout.splitlines()]
    assert [each["seq"] for each in lines] == [1, 2, 3]
    assert lines[1]["payload"]["title"] == "two [redacted]"
    assert lines[2]["issue"] == "acme/tools#2"
    told = events().stdout.splitlines()
    assert [line.split("  ")[1:4] for line in told[:1]] == [["1", "acme/tools#1", "issue_seen"]]
    assert "hunter2" not in told[1]


def test_reading_begins_where_it_is_asked_to(here: Path) -> None:
    record(here, "one", "two")
    record(here, "three", ref=TWO)
    assert titles(events("--json", "--since", "1").stdout) == ["two", "three"]
    assert titles(events("--json", "--issue", "acme/tools#1").stdout) == ["one", "two"]
    assert events("--json", "--since", "30d").stdout == ""
    assert events("--since", "soon").exit_code == 2
    assert events("--issue", "tools").exit_code == 2


def test_an_empty_ledger_prints_nothing(here: Path) -> None:
    done = events("--json")
    assert (done.exit_code, done.output) == (0, "")


def test_what_another_process_records_is_printed_soon_and_costs_little(
    here: Path,
) -> None:
    record(here, "one", "two")
    with following(here, "--since", "1") as process:
        wait_until(lambda: seen(here) == ["two"])
        begun = time.monotonic()
        record(here, "three")
        wait_until(lambda: seen(here) == ["two", "three"])
        assert time.monotonic() - begun < 30
        before = cpu_seconds(process.pid)
        time.sleep(1)
        assert cpu_seconds(process.pid) - before < 0.1
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == -signal.SIGINT
        assert process.stderr
        assert process.stderr.read() == ""


def test_it_ends_without_a_word_when_nobody_reads_any_more(here: Path) -> None:
    record(here, "one")
    command = [sys.executable, "-m", "mulligan", "debug", "events", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert b"issue_seen" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(120) in {0, -signal.SIGPIPE}
        assert process.stderr
        assert process.stderr.read() == b""


@pytest.fixture
def ledger(tmp_path: Path) -> Generator[SqlLedger]:
    with open_ledger_at(tmp_path / "ledger.db") as made:
        yield made


def read_all(ledger: SqlLedger, ref: IssueRef | None = None, after: int = 0) -> list[int]:
    return [each.seq for page in pages(ledger, ref, after, follow=False) for each in page]


def test_pages_follow_each_other_without_loss_and_without_doubles(ledger: SqlLedger) -> None:
    rows = [
        {
            "at": START.isoformat(timespec="microseconds"),
            "repository": "acme/tools",
            "number": n % 3,
            "epoch": 0,
            "kind": "issue_seen",
            "schema_version": 1,
            "body": '{"kind":"issue_seen","title":"x"}',
        }
        for n in range(BATCH_SIZE + 10)
    ]
    with ledger.database.write() as connection:
        connection.execute(insert(EVENTS_TABLE), rows)
        # Retention leaves gaps, and nothing waits for those.
        connection.execute(delete(EVENTS_TABLE).where(EVENTS_TABLE.c.seq.between(3, 7)))
    left = [seq for seq in range(1, BATCH_SIZE + 11) if not 3 <= seq <= 7]
    assert read_all(ledger) == left
    assert read_all(ledger, IssueRef("acme/tools", 1)) == [n for n in left if n % 3 == 2]
    assert read_all(ledger, after=left[-2]) == left[-1:]


def test_reading_begins_where_the_time_does(ledger: SqlLedger) -> None:
    for title in ("one", "two", "three"):
        ledger.append(ONE, IssueSeen(title=title))
    with ledger.database.write() as connection:
        connection.execute(delete(EVENTS_TABLE).where(EVENTS_TABLE.c.seq == 2))
    first, third = (each.at for each in ledger.events())
    begun = [
        number_at(first, ledger),
        number_at(third, ledger),
        number_at(third + timedelta(days=1), ledger),
    ]
    assert [read_all(ledger, after=each) for each in begun] == [[1, 3], [3], []]
