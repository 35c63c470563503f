"""Ctrl-C on a terminal ends every command with exit code 130, and no traceback."""

import os
import re
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from world.confined import usable_mode
from world.place import mulligan_installation
from world.pseudo_terminal import PseudoTerminal, on_a_terminal
from world.repositories import git

ROOT = Path(__file__).parents[2]
CTRL_C = "\x03"
POLICY = "checks: [{name: slow, run: 'echo started; sleep 60', kind: test}]\n"
SLOW = "import sys, time\nsys.stdin.read()\nprint('at work', flush=True)\ntime.sleep(60)\n"
WHO = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A clone with a check that takes long, an issue in a file, and an agent that takes long."""
    clone = tmp_path / "tools"
    (clone / ".github").mkdir(parents=True)
    (clone / ".github" / "mulligan.yml").write_text(POLICY)
    git(clone, "init", "--quiet", "--initial-branch", "main")
    git(clone, "remote", "add", "origin", "https://github.com/acme/tools")
    git(clone, "add", ".")
    git(clone, *WHO, "commit", "--quiet", "--message", "One")
    (tmp_path / "ISSUE.md").write_text("# Say two\n")
    (tmp_path / "agent.py").write_text(SLOW)
    (tmp_path / "tmp").mkdir()
    return tmp_path


def started(
    home: Path, *arguments: str, **environment: str
) -> AbstractContextManager[PseudoTerminal]:
    """Start a command on a terminal."""
    given = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home / "tmp")}
    argv = (sys.executable, "-m", "mulligan", *arguments)
    environment = {**given, "PYTHONPATH": str(ROOT / "src"), **environment}
    return on_a_terminal(argv, home, environment, columns=100)


def interrupt(
    home: Path, seen: str, *arguments: str, **environment: str
) -> tuple[int, PseudoTerminal]:
    """Press Ctrl-C once the command has printed `seen`; return its exit code and its terminal."""
    with started(home, *arguments, **environment) as terminal:
        terminal.wait_for(seen)
        terminal.press(CTRL_C)
        return terminal.end(), terminal


def configure(home: Path) -> None:
    (home / "mulligan.yml").write_text(
        f"sandbox: {usable_mode()}\nagent: {{kind: command, command: [replaced]}}\n"
        f"repositories: [{{name: acme/tools, clone_url: {home / 'tools'}}}]\n"
    )


def assert_interrupted(code: int, terminal: PseudoTerminal) -> None:
    assert (code, "Traceback" in terminal.text) == (130, False), terminal.text


def test_rehearse(home: Path) -> None:
    configure(home)
    agent = f"{sys.executable} {home / 'agent.py'}"
    code, terminal = interrupt(
        home, r"agent \ds", "rehearse", "ISSUE.md", "tools", "--agent", agent
    )
    assert_interrupted(code, terminal)
    assert "Exit code 130: the rehearsal was interrupted." in terminal.text
    (kept,) = (home / "tmp").glob("mulligan-rehearsal-*")
    assert f"rm -rf {kept}" in terminal.text


def test_check(home: Path) -> None:
    configure(home)
    assert_interrupted(*interrupt(home, "slow .*started", "check", "tools"))


def test_the_message_is_not_on_the_line_of_the_spinner(home: Path) -> None:
    configure(home)
    _, terminal = interrupt(home, "slow .*started", "check", "tools")
    assert re.search(r"\x1b\[2K(?:\x1b\[0m)?mulligan: SIGINT: ", terminal.seen), terminal.seen


def test_init(home: Path) -> None:
    with started(home, "init", "tools") as terminal:
        terminal.wait_for(r"\[y/N\]")
        assert_interrupted(terminal.press_until_end(CTRL_C), terminal)
    assert not (home / "mulligan.yml").exists()


def test_status(home: Path) -> None:
    configure(home)
    assert_interrupted(*interrupt(home, "q Quit", "status"))


def test_doctor(home: Path) -> None:
    (home / "bin").mkdir()
    (home / "bin" / "claude").write_text("#!/bin/sh\nsleep 60\n")
    (home / "bin" / "claude").chmod(0o755)
    (home / "mulligan.yml").write_text(
        "agent: {kind: claude}\nrepositories: [{name: acme/tools}]\n"
    )
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    assert_interrupted(*interrupt(home, "workspace", "doctor", PATH=path))


def test_simulate(home: Path) -> None:
    assert_interrupted(*interrupt(home, "Press Ctrl-C", "simulate", "--port", "0"))


@pytest.mark.parametrize("moment", ["has added the label", "attempt 1 of 3"])
def test_demo(home: Path, moment: str) -> None:
    assert_interrupted(*interrupt(home, moment, "demo"))


def test_once(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}) as here:
        here.agent("import time\nprint('at work', flush=True)\ntime.sleep(60)\n")
        here.issue()
        (tmp_path / "tmp").mkdir()
        code, terminal = interrupt(tmp_path, "at work", "once", GITHUB_TOKEN="token-of-the-bot")
        assert_interrupted(code, terminal)
        assert "waiting: Mulligan was shut down" in terminal.text
        assert "Exit code 130: interrupted; the next run continues." in terminal.text
