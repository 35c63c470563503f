"""A worktree is removed with all that belongs to it, and never from under an attempt."""

from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import IssueRef
from mulligan.git.worktrees.naming import worktree_paths
from world.checkouts import REF, REPOSITORY, calc_remote, run_in_worktree, worktrees_of

OTHER = IssueRef(REPOSITORY, 1)


def test_nothing_of_a_worktree_is_left_and_its_neighbour_stays(tmp_path: Path) -> None:
    worktrees = worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git"))
    for ref in (REF, OTHER):
        with worktrees.open(ref) as tree:
            run_in_worktree(tree, "mkdir -p closed/in; chmod 0 closed", "git worktree prune")
    place = worktree_paths(tmp_path / "work", OTHER)
    assert worktrees.exists(OTHER)
    worktrees.discard(OTHER)
    assert not worktrees.exists(OTHER)
    assert worktrees.exists(REF)
    assert [path for path in place.all_paths if path.exists()] == []
    assert list(place.repository.trash.iterdir()) == []


def test_a_discarding_that_was_killed_is_gone_on_with(tmp_path: Path) -> None:
    worktrees = worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git"))
    with worktrees.open(REF):
        pass
    worktrees.discard(REF)
    left = (
        worktree_paths(tmp_path / "work", REF).repository.trash / f"issue-{REF.number}-x" / "tree"
    )
    left.mkdir(parents=True)
    assert worktrees.exists(REF)
    worktrees.discard(REF)
    assert not left.exists()


def test_a_worktree_in_use_is_left_alone(tmp_path: Path) -> None:
    worktrees = worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git"))
    with worktrees.open(REF) as tree:
        with pytest.raises(UnavailableError, match="busy with octo/calc#12"):
            worktrees.discard(REF)
        assert (tree.path / "README.md").exists()
