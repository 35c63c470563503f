"""`mulligan simulate --clone`: a copy of one's own repository; the clone stays as it was."""

import os
import re
import shlex
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from world.fork_server import run_forked
from world.place import BIN
from world.repositories import git

AGENT = "sh -c 'echo two >> notes.txt'"
POLICY = 'checks: [{name: two, run: "grep -q two notes.txt"}]\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a clone with a branch of another name, and a change that is not committed."""
    place = tmp_path / "own"
    (place / ".github").mkdir(parents=True)
    git(place, "init", "-q", "-b", "trunk")
    (place / "notes.txt").write_text("one\n")
    (place / ".github" / "mulligan.yml").write_text(POLICY)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "First")
    git(place, "remote", "add", "origin", "git@github.com:me/notes.git")
    (place / "draft.txt").write_text("later\n")
    return place


def environment(home: Path) -> dict[str, str]:
    return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(home), "COLUMNS": "200"}


@contextmanager
def simulated(home: Path, *arguments: str) -> Generator[str]:
    """Run the command while the block lasts; give what it printed first."""
    command = [BIN / "mulligan", "simulate", "--port", "0", "--directory", "p", *arguments]
    with subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            lines = list[str]()
            while not lines or "Ctrl-C" not in lines[-1]:
                lines.append(process.stdout.readline())
                assert lines[-1], lines
            yield "".join(lines)
        finally:
            process.terminate()


def test_an_issue_becomes_a_pull_request_on_a_copy(tmp_path: Path, clone: Path) -> None:
    with simulated(tmp_path, "--clone", "own", "--agent", AGENT) as said:
        found = re.search(r"(http://\S+)/me/notes/issues/new", said)
        assert found, said
        issue = {"title": "Say two", "body": "", "labels": ["mulligan"]}
        made = requests.post(
            f"{found[1]}/repos/me/notes/issues",
            json=issue,
            headers={"Authorization": "Bearer maya"},
            timeout=60,
        )
        assert made.status_code == 201
        done = run_forked(("once", "--config", "p/mulligan.yml"), tmp_path, environment(tmp_path))
        assert done.returncode == 0, done.stderr
        assert f"{found[1]}/me/notes/pull/2" in done.stdout
    assert git(clone, "status", "--porcelain") == "?? draft.txt"
    assert git(clone, "for-each-ref", "--format=%(refname)") == "refs/heads/trunk"
    fetch = re.search(r"git -C .*", said)
    assert fetch
    subprocess.run(shlex.split(fetch[0]), check=True, capture_output=True)
    assert git(clone, "show", "refs/remotes/practice/issue-1:notes.txt") == "one\ntwo"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--agent", "claude"), "--agent and --config need --clone; the demo has its own agent."),
        (("--clone", "own"), "No agent is configured. Add --agent KIND"),
        (
            ("--clone", "missing", "--agent", "sh"),
            "missing is not a directory. Name the directory of a clone.",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, clone: Path, arguments: tuple[str, ...], said: str
) -> None:
    del clone
    command = ("simulate", "--port", "0", "--directory", "p", *arguments)
    done = run_forked(command, tmp_path, environment(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


def test_a_clone_without_a_commit_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "own")
    command = ("simulate", "--port", "0", "--clone", "own", "--agent", "sh")
    done = run_forked(command, tmp_path, environment(tmp_path))
    assert done.returncode == 2
    assert done.stderr.endswith("own; commit something on main first.\n")
