"""`mulligan demo` tells the whole life of six issues, on any machine, within a minute."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import BaseModel, TypeAdapter

from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Outcome
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.confined import usable_mode
from world.fork_server import run_forked, start_forked
from world.ledgers import TickingClock
from world.place import BIN
from world.samples import is_as_documented


class Row(BaseModel):
    """One issue of `mulligan status --json`."""

    issue: str
    stage: Stage
    attempt: int
    outcome: Outcome
    pull_request: str | None


ROWS = TypeAdapter(list[Row])
OUTCOMES = [
    (Stage.REVIEW, 1, Outcome.SUCCEEDED),
    (Stage.REVIEW, 2, Outcome.SUCCEEDED),
    (Stage.HITL, 3, Outcome.ZERO_DIFF),
    (Stage.REVIEW, 2, Outcome.SUCCEEDED),
    (Stage.RESOLVED, 1, Outcome.CANCELLED),
    (Stage.REVIEW, 1, Outcome.SUCCEEDED),
]


def environment(home: Path) -> dict[str, str]:
    return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}


FULL_DISK = """
import os, sys
found = os.statvfs("/")
os.statvfs = lambda _: os.statvfs_result((*found[:3], 0, 0, *found[5:]))
from mulligan.__main__ import main
main()
"""


def test_it_says_at_once_that_there_is_no_room(tmp_path: Path) -> None:
    done = subprocess.run(
        [BIN / "python", "-c", FULL_DISK, "demo", "--directory", str(tmp_path / "demo")],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(
        r"mulligan: Less than 64 MiB are free for \S+\. Free some space .*\.\n", done.stderr
    )
    # Where no sandbox works, it says so first.
    assert usable_mode() == "off" or done.stdout == ""


@pytest.mark.parametrize("command", [("demo",), ("simulate", "--port", "0")])
def test_it_says_in_one_sentence_that_git_is_missing(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    nothing = {**environment(tmp_path), "PATH": str(tmp_path)}
    mulligan = str(BIN / "mulligan")
    done = run_forked((*command, "--directory", "here"), tmp_path, nothing, mulligan)
    assert done.returncode == 1
    assert re.fullmatch(r"mulligan: git cannot be started in .*; install git\.\n", done.stderr)


def test_it_says_in_one_sentence_that_the_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run(tmp_path, "simulate", "--port", port, "--directory", "here")
    assert done.returncode == 1
    assert not (tmp_path / "here").exists()
    assert re.fullmatch(
        rf"mulligan: .* cannot listen on port {port}: .*\. .*: --port \d+\n", done.stderr
    )


@contextmanager
def started(home: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """Start a command of Mulligan; nothing of it is left, however the test ends."""
    shown = subprocess.Popen(
        [BIN / "mulligan", *arguments],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield shown
    finally:
        shown.kill()
        shown.communicate()


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked(arguments, home, environment(home), str(BIN / "mulligan"))


def test_six_issues_live_as_they_should(tmp_path: Path) -> None:
    shown = run(tmp_path, "demo", "--directory", "here")
    told = shown.stdout
    assert (shown.returncode, shown.stderr) == (0, ""), told
    config = str(tmp_path / "here" / "mulligan.yml")
    rows = ROWS.validate_json(run(tmp_path, "status", "--json", "--config", config).stdout)
    assert [(row.stage, row.attempt, row.outcome) for row in rows] == OUTCOMES
    assert [bool(row.pull_request) for row in rows] == [row[0] is Stage.REVIEW for row in OUTCOMES]
    with open_database(f"sqlite:///{tmp_path}/here/mulligan.db") as database:
        statuses = SqlLedger(database, TickingClock()).statuses()
    assert [str(each.issue) for each in statuses if not each.is_shown] == []
    _, _, _, zero, withdrawn, unlucky = (part_of(told, row.issue) for row in rows)
    assert "It asked: Shall I make that change?" in zero
    assert "removes the label" in withdrawn
    assert "stopped" in withdrawn
    assert unlucky.count("agent worked") == 1
    assert unlucky.count("GitHub failed at POST /repos/acme/calculator/pulls") == 1
    branches = subprocess.run(
        ["git", "-C", "here/acme/calculator.git", "branch", "--format=%(refname:short)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    pushed = [f"mulligan/issue-{n}" for n in (1, 2, 4, 6)]
    assert branches.stdout.split() == ["main", *pushed]
    assert "  mulligan simulate --directory practice\n" in told
    for line in told.splitlines():
        if line.startswith("  mulligan ") and " simulate " not in line:
            assert run(tmp_path, *line.split()[1:]).returncode == 0, line


def part_of(told: str, issue: str) -> str:
    """Give the lines from an issue's title on, up to the next title."""
    return told.partition(f"\n{issue}  ")[2].partition("\nacme/calculator#")[0]


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    refused = run(tmp_path, "demo", "--directory", ".")
    assert refused.returncode == 2
    assert "not empty" in refused.stderr


@pytest.mark.deep
def test_it_can_be_interrupted(tmp_path: Path) -> None:
    with started(tmp_path, "demo", "--directory", "here") as shown:
        assert shown.stdout
        while "attempt 1" not in shown.stdout.readline():
            assert shown.poll() is None
        shown.send_signal(signal.SIGINT)
        _, errors = shown.communicate(timeout=120)
    assert shown.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_simulated_github_ends_when_told_to(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    arguments = ("simulate", "--port", "0", "--directory", "here")
    with start_forked(arguments, tmp_path, environment(tmp_path)) as shown:
        timeout = time.monotonic() + 120
        while not (tmp_path / "here" / "mulligan.yml").exists():
            assert time.monotonic() < timeout
            time.sleep(0.05)
        shown.send_signal(number)
        said, errors = shown.communicate(timeout=120)
    assert (shown.returncode, errors) == (code, "")
    assert is_as_documented("simulate", said.replace("here/", "practice/"))
