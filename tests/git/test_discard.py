"""A worktree is removed with all that belongs to it, and never from under an attempt."""

from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import IssueRef
from mulligan.git.worktrees.naming import issue_place
from world.checkouts import REF, REPOSITORY, act, calc_remote, worktrees_of

OTHER = IssueRef(REPOSITORY, 1)


def test_nothing_of_a_worktree_is_left_and_its_neighbour_stays(tmp_path: Path) -> None:
    worktrees = worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git"))
    for ref in (REF, OTHER):
        with worktrees.open(ref) as tree:
            act(tree, "mkdir -p closed/in; chmod 0 closed", "git worktree prune")
    place = issue_place(tmp_path / "work", OTHER)
    assert worktrees.has(OTHER)
    worktrees.discard(OTHER)
    assert not worktrees.has(OTHER)
    assert worktrees.has(REF)
    assert [path for path in place.everything if path.exists()] == []
    assert list(place.repository.trash.iterdir()) == []


def test_a_discarding_that_was_killed_is_gone_on_with(tmp_path: Path) -> None:
    worktrees = worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git"))
    with worktrees.open(REF):
        pass
    worktrees.discard(REF)
    left = issue_place(tmp_path / "work", REF).repository.trash / f"issue-{REF.number}-x" / "tree"
    left.mkdir(parents=True)
    assert worktrees.has(REF)
    worktrees.discard(REF)
    assert not left.exists()


def test_a_worktree_in_use_is_left_alone(tmp_path: Path) -> None:
    worktrees = worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git"))
    with worktrees.open(REF) as tree:
        with pytest.raises(UnavailableError, match="busy with octo/calc#12"):
            worktrees.discard(REF)
        assert (tree.path / "README.md").exists()
