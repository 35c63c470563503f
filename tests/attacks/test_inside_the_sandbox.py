"""What an agent and a check find around them, in a worktree as Mulligan makes it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.agents.runner import CommandAgent
from mulligan.checks.runner import CommandVerifier
from mulligan.config.operator import AgentSettings
from mulligan.config.policy import Check, CommitSettings
from mulligan.domain.attempt import Task
from mulligan.domain.host import Network
from mulligan.implement.ports import Worktree
from mulligan.sandbox.process import Command, run
from mulligan.sandbox.sandbox import Bubblewrap, CommandAccess
from world.checkouts import REF, TEXT, calc_remote, worktrees_of
from world.confined import sandbox
from world.place import BIN

TOKEN, MODEL_KEY = "ghs_only_for_mulligan", "sk_only_for_the_model"
OUTER = {"PATH": os.environ["PATH"], "GITHUB_TOKEN": TOKEN, "MODEL_KEY": MODEL_KEY}
LOOK = """
import os, pathlib, subprocess, sys
words = ["_for_".join(halves) for halves in (("ghs_only", "mulligan"), ("sk_only", "the_model"))]
def look(place):
    try:
        content = place.read_bytes() if place.is_file() else b""
    except OSError:
        return
    for word in words:
        if word.encode() in content:
            print("found in", place)
for pattern in ("environ", "cmdline", "fd/*"):
    for place in pathlib.Path("/proc").glob("[0-9]*/" + pattern):
        look(place)
for top in sys.argv[1:]:
    for directory, below, files in os.walk(top):
        # Of programs there are many, and nothing else is bound of these.
        below[:] = [name for name in below if name not in (".venv", ".pyenv")]
        for name in files:
            look(pathlib.Path(directory, name))
done = subprocess.run(["git", "config", "--list", "--show-origin"], capture_output=True, text=True)
print("found in git's configuration" if any(word in done.stdout for word in words) else "looked")
"""
"""Says where the credentials are to be found; prints `looked` at the end."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a directory that holds all that is Mulligan's, its credentials among it."""
    for name in ("token", "mulligan.db"):
        (tmp_path / name).write_text(TOKEN)
    (tmp_path / "model-key").write_text(MODEL_KEY)
    return tmp_path


@pytest.fixture
def tree(place: Path) -> Generator[Worktree]:
    with worktrees_of(place / "work", calc_remote(place / "remote.git")).open(REF) as opened:
        yield opened


@pytest.fixture
def walls(place: Path) -> Bubblewrap:
    return sandbox((place, place / "work"))


def run_agent(tree: Worktree, walls: Bubblewrap, *argv: str) -> str:
    task = Task(
        issue=str(REF),
        attempt=1,
        fix_round=0,
        prompt="Mend it.",
        directory=tree.path,
        private=tree.private,
        log=tree.private.parent / "agent.log",
        manifest_hash="",
        readable=tree.readable,
        writable=tree.writable,
    )
    settings = AgentSettings(command=argv)
    CommandAgent(settings, OUTER, sandbox=walls, network=Network.NONE).run(task)
    return task.log.read_text()


def test_no_credential_is_anywhere_around_an_agent(
    tree: Worktree, walls: Bubblewrap, place: Path
) -> None:
    tool = place / "look.py"
    tool.write_text(LOOK)
    tops = (str(place), "/tmp", "/run", "/etc", "/var", "/home", "/root")  # noqa: S108 - inside
    # The search starts in what it is told, so nothing of it may be shown for that.
    line = " ".join((sys.executable, str(tool), "$HOME", *tops))
    said = run_agent(
        tree, walls, sys.executable, "-c", f"import os; os.system({line!r})", str(tool)
    )
    assert said == "looked\n"


def test_the_search_itself_finds_what_is_there(tree: Worktree, place: Path) -> None:
    """The naive set-up: a plain process, with the environment and the files of its parent."""
    (place / "look.py").write_text(LOOK)
    command = Command(
        argv=(sys.executable, str(place / "look.py"), str(place)),
        directory=tree.path,
        environment={**OUTER, "HOME": str(place)},
        timeout=timedelta(seconds=20),
    )
    said = run(command).text
    assert "found in /proc/" in said
    assert f"found in {place}" in said


def test_an_agent_works_with_git_and_mulligan_takes_its_work(
    tree: Worktree, walls: Bubblewrap
) -> None:
    line = (
        "git log --oneline | wc -l; echo new > new.txt; git add -A; git commit -qm one;"
        " echo more > more.txt; git status --short; git log --oneline | wc -l; git stash -q -u;"
        " git stash pop -q > /dev/null; git branch other; test -w ${MULLIGAN_REPORT%/*}; echo $?"
    )
    assert run_agent(tree, walls, "/bin/sh", "-c", line).split() == [
        "1",
        "??",
        "more.txt",
        "2",
        "0",
    ]
    change = tree.capture(TEXT, CommitSettings())
    assert (change.commits, {file.path for file in change.files}) == (2, {"new.txt", "more.txt"})


def test_a_check_sees_the_commit_and_no_network(
    tree: Worktree, walls: Bubblewrap, place: Path
) -> None:
    (tree.path / "new.txt").write_text("new\n")
    change = tree.capture(TEXT, CommitSettings())
    assert change.head_sha
    tree.check_out(change.head_sha)
    line = f"git log -1 --format=%s; grep -c : /proc/net/dev; ls {place}; cat {place}/token"
    log = place / "check.log"
    CommandVerifier(OUTER, walls).check(Check(name="look", run=line), tree, log)
    subject, devices, *listed, refused = log.read_text().splitlines()
    assert (subject, devices, listed) == (TEXT.subject, "1", ["work"])
    assert "No such file" in refused


def test_a_check_that_asks_for_the_network_has_it(
    tree: Worktree, walls: Bubblewrap, place: Path
) -> None:
    check = Check(name="look", run="cat /proc/net/dev", network=True)
    CommandVerifier(OUTER, walls).check(check, tree, place / "check.log")
    outside = Path("/proc/net/dev").read_text()
    assert (place / "check.log").read_text().count(":") == outside.count(":")


def test_set_up_has_the_network_and_may_write(
    tree: Worktree, walls: Bubblewrap, place: Path
) -> None:
    lines = ("cat /proc/net/dev > build.log", "test -w $HOME")
    CommandVerifier(OUTER, walls).set_up(lines, tree, place / "setup.log")
    assert (tree.path / "build.log").read_text().count(":") == (
        Path("/proc/net/dev").read_text().count(":")
    )


C = '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n'
TEST = "def test_one() -> None:\n    assert True\n"
TOOLS = {
    "node": "node -e 'console.log([1,2].length + 39)'; node --version",
    "python3": "python3 -m venv --without-pip v && v/bin/python -c 'print(6*7)'",
    "make": "printf 'all:\\n\\t@echo made\\n' > Makefile && make",
    "git": "git init -q r && cd r && git commit -q --allow-empty -m x && git log --oneline",
    "gcc": "gcc -o built built.c && ./built",
    "cargo": "cargo init -q --vcs none --name p p && cd p && cargo build -q --offline",
    "pytest": f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:xdist -o addopts= t.py",
}


def starts(tool: str) -> bool:
    """Tell whether a tool works outside at all."""
    return not subprocess.run([tool, "--version"], capture_output=True, check=False).returncode


@pytest.mark.parametrize(
    "tool",
    [tool if tool == "pytest" else pytest.param(tool, marks=pytest.mark.deep) for tool in TOOLS],
)
def test_what_projects_are_built_with_works_inside(tool: str, tmp_path: Path) -> None:
    # One that a version manager stands in for may be there and not set up for this user.
    if tool != "pytest" and (not shutil.which(tool) or not starts(tool)):
        pytest.skip(f"{tool} does not work on this machine")
    (tmp_path / "built.c").write_text(C)
    (tmp_path / "t.py").write_text(TEST)
    author = {
        f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    toolchains = Path("~/.rustup").expanduser()
    command = Command(
        argv=("/bin/sh", "-ec", TOOLS[tool]),
        directory=tmp_path,
        environment={
            **author,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "RUSTUP_HOME": str(toolchains),
        },
        timeout=timedelta(seconds=25),
    )
    ended = sandbox().run(command, CommandAccess(read=(toolchains,), write=(tmp_path,)))
    assert ended.exit_code == 0, ended.text
