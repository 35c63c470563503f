"""What the command line has before any command: help by task, short options, completion."""

import os
import re
from pathlib import Path

import pytest

from mulligan import __version__
from world.fork_server import run_forked

ROOT = Path(__file__).parents[2]
GROUP = re.compile(r"^╭─ ([A-Z].*?) ─+╮$", re.MULTILINE)
BASH = {"COMP_WORDS": "mulligan st", "COMP_CWORD": "1"}
REQUESTS = {
    "bash": BASH,
    "zsh": {"_TYPER_COMPLETE_ARGS": "mulligan st"},
    "fish": {"_TYPER_COMPLETE_ARGS": "mulligan st", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


def said(*arguments: str, **environment: str) -> str:
    path = {"PATH": os.environ["PATH"], "COLUMNS": "100"}
    done = run_forked(arguments, ROOT, {**path, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_groups_the_commands_by_task() -> None:
    assert GROUP.findall(said("--help")) == [
        "Options",
        "Try without an account",
        "Set up",
        "Work on issues",
        "Answer for one issue",
        "See what happened",
        "Move to another machine",
    ]


def test_version_and_configuration_have_a_short_option() -> None:
    assert said("-V") == said("--version") == f"mulligan {__version__}\n"
    assert re.search(r"--config +-c ", said("status", "--help"))


@pytest.mark.parametrize("shell", REQUESTS)
def test_a_shell_completes_commands(shell: str) -> None:
    request = {"_MULLIGAN_COMPLETE": f"complete_{shell}", **REQUESTS[shell]}
    words = re.findall(r"\b(status|stats|state|simulate|skip)\b", said(**request))
    assert {"status", "stats", "state"} <= set(words)
    assert not {"simulate", "skip"} & set(words)
