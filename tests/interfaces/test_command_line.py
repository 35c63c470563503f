"""What the command line has before any command: help by task, short options, completion."""

import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mulligan import __version__
from mulligan.interfaces.cli.app import app
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
        "More",
    ]


def commands_in(*arguments: str) -> set[str]:
    return set(re.findall(r"^│ ([a-z]+) ", said(*arguments, "--help"), re.MULTILINE))


def test_help_lists_the_commands_of_a_normal_week_and_debug_the_others() -> None:
    shown, others = commands_in() - {"debug"}, commands_in("debug")
    assert len(shown) == 16
    assert others == {"abort", "action", "stats", "work"} | set(FORMER)
    assert shown.isdisjoint(others)


FORMER = ("config", "digest", "events", "learnings", "prompt", "state")


@pytest.mark.parametrize("name", ["abort", *FORMER])
def test_a_former_name_has_the_same_options(name: str) -> None:
    former, new = (said(*start, name, "--help") for start in ((), ("debug",)))
    assert new.replace("mulligan debug", "mulligan").split() == former.split()


def test_a_former_name_works_for_one_release_and_names_the_new_one() -> None:
    by_former, by_new = (
        CliRunner().invoke(app, [*start, "events", "--schema"]) for start in ((), ("debug",))
    )
    assert (by_former.exit_code, by_former.stdout) == (0, by_new.stdout)
    assert by_new.stderr == ""
    assert by_former.stderr == (
        "mulligan: `mulligan events` is `mulligan debug events` now. "
        "The former name will be removed in the next release.\n"
    )


@pytest.mark.parametrize("command", ["status", "once", "init"])
def test_a_flag_shows_no_type(command: str) -> None:
    assert "bool" not in said(command, "--help")


def test_version_and_configuration_have_a_short_option() -> None:
    assert said("-V") == said("--version") == f"mulligan {__version__}\n"
    assert re.search(r"--config +-c ", said("status", "--help"))


@pytest.mark.parametrize("shell", REQUESTS)
def test_a_shell_completes_commands(shell: str) -> None:
    request = {"_MULLIGAN_COMPLETE": f"complete_{shell}", **REQUESTS[shell]}
    words = re.findall(r"\b(status|stats|simulate|skip)\b", said(**request))
    assert "status" in words
    assert not {"stats", "simulate", "skip"} & set(words)
