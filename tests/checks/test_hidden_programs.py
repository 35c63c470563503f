"""Where a program is there and the sandbox hides it, the message says so and names the setting."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check
from mulligan.domain.errors import MisconfiguredError
from mulligan.sandbox.hidden_programs import find_hidden_program
from mulligan.sandbox.sandbox import Bubblewrap, Unconfined
from world.confined import sandbox
from world.trees import PlainWorktree, plain_worktree

ADVICE = re.compile(r"Add (\S+) to `sandbox.read` in mulligan.yml")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "bin").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def tree(tmp_path: Path) -> PlainWorktree:
    return plain_worktree(tmp_path / "work")


def executable(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)
    return place


def interpreter(home: Path) -> Path:
    """Make an interpreter in an environment that no link of the PATH leads to."""
    place = home / "poetry-venv" / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/sh", place)
    return place


def script(home: Path, name: str = "poetry") -> str:
    executable(home / "bin" / name, f"#!{interpreter(home)}\necho it works\n")
    return name


def nested(home: Path) -> str:
    return f"echo 'all: ; {script(home)}' > Makefile; make"


def started_by_env(home: Path) -> str:
    script(home, "node-of-a-project")
    executable(home / "bin" / "tool", "#!/usr/bin/env node-of-a-project\n")
    return "tool"


def installed_elsewhere(home: Path) -> str:
    tool = executable(home / "tools" / "bin" / "run", "#!/bin/sh\necho it works\n")
    return f"{tool} --all"


def in_a_project(home: Path) -> str:
    """The file alone is shown, and not the environment beside it."""
    deploy = home / "src" / "project" / "bin" / "deploy"
    executable(deploy, f"#!{home}/src/project/tools/bin/sh\necho it works\n")
    (home / "src/project/.git").mkdir()
    (home / "src/project/tools/bin").mkdir(parents=True)
    shutil.copy("/bin/sh", home / "src/project/tools/bin/sh")
    (home / "bin" / "deploy").symlink_to(deploy)
    return "deploy"


CASES: tuple[Callable[[Path], str], ...] = (
    *(script, nested, started_by_env, installed_elsewhere, in_a_project),
)


def verifier(home: Path, walls: Bubblewrap | None = None) -> CommandVerifier:
    return CommandVerifier({"PATH": f"{home}/bin:/usr/bin:/bin"}, walls or sandbox())


def published(
    line: str, tree: PlainWorktree, checks: CommandVerifier, *, is_set_up: bool
) -> tuple[str, bool]:
    """Return what is published about a line, and whether it passed."""
    log = tree.private / "it.log"
    try:
        result = (
            checks.set_up([line], tree, log)
            if is_set_up
            else checks.check(Check(name="it", run=line), tree, log)
        )
    except MisconfiguredError as error:
        return str(error), False
    return result.digest + result.long_digest, result.passed


@pytest.mark.parametrize("is_set_up", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_log_names_the_path_and_the_setting_that_shows_it(
    case: Callable[[Path], str], home: Path, tree: PlainWorktree, *, is_set_up: bool
) -> None:
    line = case(home)
    text, passed = published(line, tree, verifier(home), is_set_up=is_set_up)
    assert not passed
    assert "is installed on Mulligan's machine, but the sandbox hides" in text
    assert str(home) not in text.replace(line.partition(" ")[0], "")
    advised = ADVICE.search((tree.private / "it.log").read_text())
    assert advised
    assert Path(advised[1]) not in {home, *home.parents, home / "bin", home / "src"}
    walls = sandbox()
    walls = replace(walls, common=replace(walls.common, read=(Path(advised[1]),)))
    assert published(line, tree, verifier(home, walls), is_set_up=is_set_up)[1]


def counted(tmp_path: Path) -> tuple[Bubblewrap, Path]:
    """Give a sandbox and a file with a line for each of its starts."""
    count, walls = tmp_path / "starts", sandbox()
    text = f'#!/bin/sh\necho >> {count}\nexec {walls.program} "$@"\n'
    return replace(walls, program=str(executable(tmp_path / "bwrap", text))), count


def starts(count: Path) -> int:
    return len(count.read_text().splitlines()) if count.exists() else 0


@pytest.mark.parametrize(
    "output", ["AssertionError in test", "sh: make: python3 git grep cat", "uv: not found", ""]
)
def test_where_nothing_is_hidden_nothing_is_started(
    output: str, home: Path, tmp_path: Path
) -> None:
    walls, count = counted(tmp_path)
    environment = {"PATH": f"{home}/bin:/usr/bin:/bin"}
    assert find_hidden_program(walls, "make test", output, environment) is None
    assert starts(count) == 0


def test_an_output_of_many_words_costs_one_start(home: Path, tmp_path: Path) -> None:
    walls, count = counted(tmp_path)
    environment = {"PATH": f"{home}/bin:/usr/bin:/bin"}
    for number in range(300):
        script(home, f"tool-{number}")
    output = "\n".join(" ".join(f"tool-{each}" for each in range(300)) for _ in range(50))
    found = find_hidden_program(walls, "false", output, environment)
    assert found
    assert (found.needed, starts(count)) == (interpreter(home), 1)


def test_an_output_cannot_ask_for_a_path(home: Path, tmp_path: Path) -> None:
    walls, count = counted(tmp_path)
    tool = installed_elsewhere(home).partition(" ")[0]
    output = f"{tool}: not found\n../../{tool}\n$HOME/tools/bin/run\n~/tools/bin/run"
    environment = {"PATH": f"{home}/bin:{os.defpath}"}
    assert find_hidden_program(walls, "false", output, environment) is None
    assert starts(count) == 0


def test_a_second_program_of_the_name_that_is_shown_is_enough(home: Path) -> None:
    name = script(home)
    executable(home / "other" / name, "#!/bin/sh\n")
    path = f"{home}/bin:{home}/other:/usr/bin:/bin"
    assert find_hidden_program(sandbox(), name, "", {"PATH": path}) is None


def test_mulligans_own_files_are_never_advised(home: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (home / "bin" / "tool").symlink_to(executable(state / "bin" / "tool", "#!/bin/sh\n"))
    environment = {"PATH": f"{home}/bin:{os.defpath}"}
    assert find_hidden_program(sandbox((state,)), "tool", "", environment) is None
    assert find_hidden_program(Unconfined(), "tool", "", environment) is None


def test_what_a_command_wrote_is_no_reason_for_an_advice(home: Path, tmp_path: Path) -> None:
    """A directory of the PATH that commands can write to is a mistake, and advises nothing."""
    cache = tmp_path / "cache"
    executable(cache / "tool", f"#!{interpreter(home)}\n")
    walls = sandbox()
    walls = replace(walls, common=replace(walls.common, write=(cache,)))
    assert find_hidden_program(walls, "tool", "", {"PATH": f"{cache}:{os.defpath}"}) is None


@pytest.mark.parametrize("kind", ["pipe", "directory", "missing"])
def test_an_interpreter_that_is_no_file_is_not_read(kind: str, home: Path) -> None:
    odd = home / "odd"
    if kind == "pipe":
        os.mkfifo(odd, 0o755)
    elif kind == "directory":
        odd.mkdir()
    executable(home / "bin/tool", f"#!{odd}\n")
    found = find_hidden_program(sandbox(), "tool", "", {"PATH": f"{home}/bin:{os.defpath}"})
    assert (found and found.needed) == (None if kind == "missing" else odd)
