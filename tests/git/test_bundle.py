"""Keeping a commit survives what a killed git leaves behind."""

from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.errors import UnavailableError
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import REF, REPOSITORY, TEXT, calc_remote, run_in_worktree, worktrees_of
from world.repositories import git


@pytest.fixture
def worktrees(tmp_path: Path) -> GitWorktrees:
    return worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git"))


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "work" / REPOSITORY / "mirror.git"


@pytest.fixture
def head(worktrees: GitWorktrees) -> str:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "echo changed > README.md")
        return str(tree.capture(TEXT, CommitSettings()).head_sha)


def test_locks_of_a_killed_git_are_cleared_away(
    worktrees: GitWorktrees, mirror: Path, head: str, tmp_path: Path
) -> None:
    refs = mirror / "refs" / "mulligan" / "verified"
    refs.mkdir(parents=True)
    for lock in (refs / f"{REF.number}.lock", tmp_path / ".verified.bundle.lock"):
        lock.touch()
    worktrees.store_commit(REF, head, tmp_path / "verified.bundle")
    assert head in git(mirror, "bundle", "list-heads", str(tmp_path / "verified.bundle"))
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_only_the_commit_itself_is_kept(
    worktrees: GitWorktrees, mirror: Path, head: str, tmp_path: Path
) -> None:
    worktrees.store_commit(REF, head, tmp_path / "verified.bundle")
    told = git(mirror, "bundle", "verify", str(tmp_path / "verified.bundle"))
    assert git(mirror, "rev-parse", f"{head}^") in told.partition("requires")[2]


def test_a_commit_that_is_not_here_cannot_be_kept(
    worktrees: GitWorktrees, head: str, tmp_path: Path
) -> None:
    with pytest.raises(UnavailableError):
        worktrees.store_commit(REF, "0" * 39 + "1", tmp_path / "verified.bundle")
    assert not (tmp_path / "verified.bundle").exists()
