"""A worktree of 11,000 files: its reset, and all that Mulligan adds to an attempt.

Rows in milliseconds are printed; only ratios gate. The yardsticks are bare git commands on the same
files, measured in the same run, turn and turn about.
"""

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.git.worktrees.mirror import Mirror
from mulligan.git.worktrees.naming import repository_paths, worktree_paths
from mulligan.git.worktrees.reset import IssueWorktree, reset_worktree
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import REF, REPOSITORY, TEXT, worktrees_of
from world.repositories import git, make_remote

ROUNDS = 7
RESET_RATIO = 1.5
"""Committed: a reset, in times of `git reset --hard && git clean -ffdx`."""
CLONE_RATIO = 10.0
"""Committed: how many resets a fresh shallow clone from the local disk takes."""
ADDED_RATIO = 3.0
"""Committed: all of an attempt but agent and checks, in times of the bare commands it needs."""

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


@dataclass
class Stopwatch:
    """Adds up what one kind of work took, round by round."""

    taken: list[float]

    def __call__(self, work: Callable[[], object]) -> None:
        begun = time.perf_counter()
        work()
        self.taken.append((time.perf_counter() - begun) * 1000)

    @property
    def median(self) -> float:
        return statistics.median(self.taken)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_remote(tmp_path_factory.mktemp("remote") / "remote.git", FILES)


def plain_clone(remote: Path, place: Path) -> Path:
    bare(remote, f"git clone -q file://{remote} {place}")
    return place


@pytest.mark.timeout(600)
def test_a_reset_costs_little_more_than_the_bare_commands(remote: Path, tmp_path: Path) -> None:
    worktrees = worktrees_of(tmp_path / "work", remote)
    with worktrees.open(REF) as opened:
        tree, sha = opened.path, opened.base_sha
    mirror = Mirror(REPOSITORY, repository_paths(tmp_path / "work", REPOSITORY), ENVIRONMENT)
    site = IssueWorktree(worktree_paths(tmp_path / "work", REF), mirror, REF.branch)
    plain = plain_clone(remote, tmp_path / "plain")
    reset, commands, clone = Stopwatch([]), Stopwatch([]), Stopwatch([])
    for number in range(ROUNDS):
        make_dirty(tree)
        make_dirty(plain)
        reset(lambda: reset_worktree(site, sha, keep_ignored=False))
        commands(lambda: bare(plain, "git reset -q --hard && git clean -q -ffdx"))
        fresh = tmp_path / f"clone_{number}"
        clone(lambda to=fresh: bare(remote, f"git clone -q --depth 1 file://{remote} {to}"))
        shutil.rmtree(fresh)
    report("reset", reset, f"{reset.median / commands.median:.2f} × reset --hard, clean -ffdx")
    report("fresh shallow clone", clone, f"{clone.median / reset.median:.1f} × the reset")
    assert reset.median / commands.median < 1.5 * RESET_RATIO
    assert clone.median / reset.median > CLONE_RATIO / 1.5


def attempt(worktrees: GitWorktrees) -> None:
    """Do what an attempt does around an agent that changes two files, and publish it."""
    with worktrees.open(REF) as tree:
        write_two(tree.path)
        head = tree.capture(TEXT, CommitSettings()).head_sha
        assert head
        tree.check_out(head)
    worktrees.push(REF, head, None)


FRESH = count()


def write_two(tree: Path) -> None:
    for name in CHANGED[:2]:
        (tree / name).write_text(f"CHANGED = {next(FRESH)}\n")


BEFORE = """\
git fetch -q origin main
git reset -q --hard origin/main
git clean -q -ffdx
git status --porcelain > /dev/null
"""
AFTER = f"""\
git add -A
git -c user.name=A -c user.email=a@example.org commit -q -m x
git diff HEAD~1 > /dev/null
git reset -q --hard
git clean -q -ffdx
git push -q -f origin HEAD:refs/heads/{REF.branch}
"""


def bare_attempt(tree: Path) -> None:
    bare(tree, BEFORE)
    write_two(tree)
    bare(tree, AFTER)


@pytest.mark.timeout(600)
def test_what_is_added_to_an_attempt_is_near_the_bare_commands(
    remote: Path, tmp_path: Path
) -> None:
    worktrees = worktrees_of(tmp_path / "work", remote)
    with worktrees.open(REF) as opened:
        tree = opened.path
    plain = plain_clone(remote, tmp_path / "plain")
    added, commands = Stopwatch([]), Stopwatch([])
    for _ in range(ROUNDS):
        make_dirty(tree)
        make_dirty(plain)
        added(lambda: attempt(worktrees))
        git(remote, "update-ref", "-d", f"refs/heads/{REF.branch}")
        commands(lambda: bare_attempt(plain))
        git(remote, "update-ref", "-d", f"refs/heads/{REF.branch}")
    report("all around the agent", added, f"{added.median / commands.median:.2f} × bare commands")
    assert added.median / commands.median < 1.5 * ADDED_RATIO


def report(what: str, watch: Stopwatch, ratio: str) -> None:
    print(f"worktree | {what} | {watch.median:.0f} ms | {ratio}")  # noqa: T201 - for people
