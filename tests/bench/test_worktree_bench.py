"""What Mulligan adds to an attempt on 11,000 files, beside bare git and what other tools do."""

import os
import shutil
import subprocess
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from bench.figures import Bench, Stopwatch
from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check, CommitSettings
from world.checkouts import REF, TEXT, calc_remote, worktrees_of
from world.confined import sandbox
from world.place import BIN
from world.repositories import make_remote

ROUNDS = 5

FILES = {
    f"package_{each // 55}/module_{each % 55}.py": f"NAME = {each}\n" * 20 for each in range(11_000)
}
CHANGED = sorted(FILES)[::11]
"""1,000 of them, in every directory."""
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "GIT_CONFIG_GLOBAL": "/dev/null"}


def bare(tree: Path, line: str) -> None:
    subprocess.run(["sh", "-ec", line], cwd=tree, env=ENVIRONMENT, check=True, capture_output=True)


def make_dirty(tree: Path) -> None:
    for number, name in enumerate(CHANGED):
        (tree / name).write_text(f"CHANGED = {number}\n")
        (tree / name).with_suffix(f".{number}.new").write_text("NEW = True\n")


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_remote(tmp_path_factory.mktemp("remote") / "remote.git", FILES)


START = "git fetch -q origin main; git reset -q --hard origin/main; git clean -q -ffdx"
END = """\
git add -A
git -c user.name=A -c user.email=a@example.org commit -q -m x
git diff HEAD~1 > /dev/null
"""
INSTEAD = {
    "shallow clone": "git clone -q --depth 1 file://{remote} {place}",
    "local clone": "git clone -q --local {remote} {place}",
    "full clone": "git clone -q file://{remote} {place}",
    "new worktree": "git -C {plain} worktree add -q --detach {place} origin/main",
}
"""What other tools do for each attempt."""

MAKE_VENV = "python3 -m venv .venv"

FRESH = count()


def write_two(tree: Path) -> None:
    for name in CHANGED[:2]:
        (tree / name).write_text(f"CHANGED = {next(FRESH)}\n")


@pytest.mark.timeout(3600)
def test_what_an_attempt_adds_to_agent_and_checks(
    remote: Path, tmp_path: Path, bench: Bench
) -> None:
    worktrees, plain = worktrees_of(tmp_path / "work", remote), tmp_path / "plain"
    bare(remote, f"git clone -q file://{remote} {plain}")
    with worktrees.open(REF) as opened:
        tree = opened.path
    taken = Stopwatch()
    for number in range(ROUNDS):
        make_dirty(tree)
        make_dirty(plain)
        with taken("start"):
            entered = worktrees.open(REF)
            opened = entered.__enter__()
        with taken("bare start"):
            bare(plain, START)
        write_two(tree)
        write_two(plain)
        with taken("end"):
            head = opened.capture(TEXT, CommitSettings()).head_sha
            assert head
            opened.check_out(head)
        with taken("bare end"):
            bare(plain, END)
        entered.__exit__(None, None, None)
        for name, line in INSTEAD.items():
            place = tmp_path / f"instead-{number}"
            with taken(name):
                bare(remote, line.format(remote=remote, plain=plain, place=place))
            shutil.rmtree(place)
    added = {
        "start of an attempt / bare fetch, reset, clean": ("start", "bare start", 1.1),
        "end of an attempt / bare add, commit, diff": ("end", "bare end", 2),
    }
    for name, (work, bare_work, most) in added.items():
        bench.figure(name, taken.ratios(work, bare_work), most=most)
    for name in INSTEAD:
        least = 10 if name == "shallow clone" else None
        bench.figure(f"{name} / start of an attempt", taken.ratios(name, "start"), least=least)


@pytest.mark.timeout(600)
def test_a_second_set_up_is_a_copy_of_the_first(tmp_path: Path, bench: Bench) -> None:
    remote = calc_remote(tmp_path / "remote.git")
    worktrees, taken = worktrees_of(tmp_path / "work", remote), Stopwatch()
    verifier = CommandVerifier(ENVIRONMENT)
    for number in range(5):
        key = f"20260101-{number}"
        with worktrees.open(REF) as tree:
            with taken("first"):
                verifier.set_up((MAKE_VENV,), tree, tree.private / "setup.log")
                tree.keep_set_up(key).check_out(tree.start_sha)
            for _ in range(2):
                with taken("second"):
                    ready = tree.with_set_up(key)
                    assert ready
                    ready.check_out(tree.start_sha)
            taken.taken["second"].pop()
    bench.figure("second set-up / first", taken.ratios("second", "first"), most=0.2)


@pytest.mark.timeout(600)
def test_the_command_line_starts_at_once(bench: Bench) -> None:
    taken = Stopwatch()
    program, python = BIN / "mulligan", BIN / "python"
    for _ in range(9):
        with taken("python"):
            subprocess.run([python, "-c", "import typer, rich.console"], check=True)
        with taken("help"):
            subprocess.run([program, "--help"], check=True, capture_output=True)
    bench.figure("mulligan --help / importing Typer and Rich", taken.ratios("help", "python"))


BESIDE = 27_000
MAKE_FILES = (
    f"for each in $(seq {BESIDE // 2 // 100}); do mkdir -p build/$each ~/cache/$each;"
    " (cd build/$each && touch $(seq 100)); (cd ~/cache/$each && touch $(seq 100)); done"
)


@pytest.mark.timeout(1800)
def test_what_a_command_costs_beside_many_files_of_set_up(tmp_path: Path, bench: Bench) -> None:
    """Half of them are in the worktree, and half in HOME."""
    verifier, taken = CommandVerifier(ENVIRONMENT, sandbox()), Stopwatch()
    check, log = Check(name="it", run="true"), tmp_path / "check.log"
    remote = calc_remote(tmp_path / "remote.git")
    layered = replace(worktrees_of(tmp_path / "work", remote), is_layered=True)
    with layered.open(REF) as bare_tree:
        assert verifier.set_up((MAKE_FILES,), bare_tree, log).passed
        with_files = bare_tree.keep_set_up()
        trees = {"without": bare_tree, "layers": with_files, "copies": with_files.with_copies()}
        for _ in range(ROUNDS):
            for name, tree in trees.items():
                tree.check_out(tree.start_sha)
                with taken(name):
                    tree.check_out(tree.start_sha)
                    assert verifier.check(check, tree, log).passed
    for name, most in (("layers", 0.3), ("copies", None)):
        pairs = zip(taken.taken[name], taken.taken["without"], strict=True)
        added = [(one - other) / 1000 for one, other in pairs]
        bench.figure(f"seconds a command adds beside 27,000 files, {name}", added, most=most)
