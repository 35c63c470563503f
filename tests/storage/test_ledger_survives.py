"""What the ledger has acknowledged is there after any kill."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

from mulligan.domain.issue import IssueRef
from mulligan.domain.recorded_effects import WorkPushed
from mulligan.storage.database import open_database
from world.ledgers import folded, open_ledger_at, url_of

TESTS = Path(__file__).parents[1]
KILLS = 20
REF = IssueRef("octo/kill", 1)
OPEN_TOGETHER = """
import sys
import alembic.command
import sqlalchemy.dialects.sqlite
from mulligan.storage.database import open_database
print("ready", flush=True)
sys.stdin.read()
open_database(sys.argv[1]).close()
"""


def test_twenty_kills_lose_no_acknowledged_event(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with subprocess.Popen(
        [sys.executable, str(TESTS / "world" / "ledger_writer.py"), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}/src"},
        text=True,
    ) as process:
        acknowledged = [kill_one(process, life) for life in range(1, KILLS + 1)]
        assert process.stdin
        process.stdin.close()
    with open_ledger_at(path) as ledger:
        status = ledger.status(REF)
        for life, last in enumerate(acknowledged, start=1):
            written = {each.attempt: each.git_ref for each in status.effects.all(WorkPushed)}
            kept = int(written.get(life, 0))
            # At most the one event that was on its way is there without having been acknowledged.
            assert kept in (last, last + 1)
        assert status == folded(ledger, REF)
        assert [each.seq for each in ledger.events()] == list(range(1, len(ledger.events()) + 1))
    assert sum(acknowledged) > KILLS


def kill_one(process: subprocess.Popen[str], life: int) -> int:
    """Kill a writer somewhere in the middle; give the last number that it acknowledged."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{life}\n")
    process.stdin.flush()
    writer, last, most = 0, 0, 1 + life * 7 % KILLS
    for line in process.stdout:
        if line == "ended\n":
            break
        if line.startswith("writer"):
            writer = int(line.split()[1])
        else:
            last = int(line)
        if last >= most and writer:
            time.sleep(life / 20_000)
            os.kill(writer, signal.SIGKILL)
            most = sys.maxsize
    return last


def test_a_database_that_is_first_opened_by_many_at_once_is_made_once(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", OPEN_TOGETHER, url_of(tmp_path / "state" / "ledger.db")]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(4)
        ]
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.close()
    assert [process.returncode for process in processes] == [0] * 4


def test_a_database_that_is_made_while_another_process_waits_is_not_made_again(
    tmp_path: Path,
) -> None:
    path, made = tmp_path / "ledger.db", tmp_path / "made.db"
    open_database(url_of(made)).close()
    with (
        closing(sqlite3.connect(made)) as source,
        closing(sqlite3.connect(path, isolation_level=None)) as first,
        subprocess.Popen(
            [sys.executable, "-c", OPEN_TOGETHER, url_of(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as second,
    ):
        assert second.stdin
        assert second.stdout
        assert second.stdout.readline() == "ready\n"
        first.execute("PRAGMA journal_mode = WAL")
        first.execute("BEGIN IMMEDIATE")
        second.stdin.close()
        # Long enough for the second to find the database empty, and to wait for its turn.
        time.sleep(0.4)
        for statement in source.iterdump():
            if not statement.startswith(("BEGIN", "COMMIT")):
                first.execute(statement)
        first.execute("COMMIT")
    assert second.returncode == 0
