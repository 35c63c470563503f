"""What outlives `git reset --hard && git clean -fdx` does not outlive Mulligan's (SPEC A2)."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from attacks.leftovers import NOT_AS_ROOT, RESET_ATTACKS
from attacks.plants import AGENT
from world.checkouts import FILES, REF, calc_remote, contents, files_as_committed, worktrees_of
from world.other_user import run_as_another_user
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
        timeout=20,
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


@pytest.mark.parametrize("attack", RESET_ATTACKS)
def test_it_outlives_a_plain_reset_and_not_mulligans(attack: str, place: Path) -> None:
    worktrees = worktrees_of(place / "work", place / "remote.git")
    with worktrees.open(REF) as tree:
        shell(tree.path, RESET_ATTACKS[attack])
    with worktrees.open(REF) as tree:
        assert is_clean(tree.path)
        assert tree.worktree.git.line("rev-parse", "HEAD") == tree.start_sha
        written = tree.worktree.git.line("write-tree")
        assert written == tree.worktree.git.line("rev-parse", f"{tree.start_sha}^{{tree}}")
        assert stat.S_ISREG((tree.path / ".git").lstat().st_mode)
    if not (AS_ROOT and attack in NOT_AS_ROOT):
        assert leaves_something(attack, place), "the attack itself does not work"


@pytest.mark.skipif(not AS_ROOT, reason="is not root, so all of these ran as a user already")
def test_closed_directories_do_not_outlive_it_for_a_user_who_is_not_root() -> None:
    assert "2 passed" in run_as_another_user(__file__, "33-closed or 33-read")
