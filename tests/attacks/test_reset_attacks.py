"""What outlives `git reset --hard && git clean -fdx` does not outlive Mulligan's (WORKTREE-1)."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from attacks.leftovers import NOT_AS_ROOT, RESET_ATTACKS
from attacks.plants import AGENT
from mulligan.git.worktrees.attempt_worktree import Checkout
from world.checkouts import FILES, REF, calc_remote, contents, files_as_committed, worktrees_of
from world.repositories import git

NAIVE = "git fetch -q origin; git reset -q --hard origin/main && git clean -qfdx"
CLEAN = {**files_as_committed(FILES), "vendor": "directory"}
AS_ROOT = os.getuid() == 0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a remote with a submodule that is only a link, as Mulligan leaves it."""
    place = tmp_path_factory.mktemp("place")
    remote = calc_remote(place / "remote.git")
    listed = f"{git(remote, 'ls-tree', 'main')}\n160000 commit {'1' * 40}\tvendor\n"
    tree = git(remote, "mktree", "--missing", stdin=listed)
    commit = git(remote, "commit-tree", tree, "-p", "main", "-m", "sub")
    git(remote, "update-ref", "refs/heads/main", commit)
    return place


def shell(tree: Path, lines: str) -> None:
    home = tree.parent / "home"
    home.mkdir(exist_ok=True)
    subprocess.run(
        ["bash", "-c", lines],
        cwd=tree,
        env={**AGENT, "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=240,
    )


def is_clean(tree: Path) -> bool:
    """Tell whether a worktree is just what was committed; what no path reaches, find sees."""
    listed = subprocess.run(
        ["find", str(tree), "-mindepth", "1", "-name", ".git", "-prune", "-o", "-printf", "x"],
        capture_output=True,
        check=False,
    )
    if len(listed.stdout) != len(CLEAN) or contents(tree) != CLEAN:
        return False
    return (tree / "README.md").read_bytes() == FILES["README.md"].encode()


def leaves_something(attack: str, place: Path) -> bool:
    """Attack a plain worktree, and reset it as most programs do."""
    own = place / f"naive-{attack}"
    own.mkdir()
    git(own, "clone", "-q", "--no-hardlinks", str(place / "remote.git"), "repository")
    git(own / "repository", "worktree", "add", "-q", "--detach", "../tree", "HEAD")
    assert is_clean(own / "tree")
    shell(own / "tree", RESET_ATTACKS[attack])
    shell(own / "tree", NAIVE)
    try:
        return not is_clean(own / "tree")
    finally:
        # pytest could not clear this away.
        subprocess.run(["chmod", "-R", "u+rwx", str(own)], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", str(own)], check=False)


def assert_clean(tree: Checkout) -> None:
    assert is_clean(tree.path)
    assert tree.worktree.git.line("rev-parse", "HEAD") == tree.start_sha
    written = tree.worktree.git.line("write-tree")
    assert written == tree.worktree.git.line("rev-parse", f"{tree.start_sha}^{{tree}}")
    assert stat.S_ISREG((tree.path / ".git").lstat().st_mode)


CHANGED_SETTINGS = [attack for attack in RESET_ATTACKS if attack[:2] in {"44", "46", "47", "58"}]
"""Those that tests/git/test_clean_start.py has none of."""


def test_none_outlives_mulligans_reset(place: Path, subtests: pytest.Subtests) -> None:
    worktrees = worktrees_of(place / "work", place / "remote.git")
    for attack, before in zip([*CHANGED_SETTINGS, ""], ["", *CHANGED_SETTINGS], strict=True):
        with subtests.test(before), worktrees.open(REF) as tree:
            assert_clean(tree)
            shell(tree.path, RESET_ATTACKS.get(attack, ""))


@pytest.mark.deep
@pytest.mark.parametrize("attack", RESET_ATTACKS)
def test_it_outlives_a_plain_reset_and_not_mulligans(attack: str, place: Path) -> None:
    worktrees = worktrees_of(place / "work", place / "remote.git")
    with worktrees.open(REF) as tree:
        shell(tree.path, RESET_ATTACKS[attack])
    with worktrees.open(REF) as tree:
        assert_clean(tree)
    if not (AS_ROOT and attack in NOT_AS_ROOT):
        assert leaves_something(attack, place), "the attack itself does not work"
