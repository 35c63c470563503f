"""A verified commit is handed from run to run over a ref, which is gone once it is published."""

from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import REF, TEXT, calc_remote, run_in_worktree, worktrees_of
from world.repositories import branch_head, git

HANDED_OVER = f"refs/mulligan/verified/{REF.number}"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


def run_of(directory: Path, remote: Path) -> GitWorktrees:
    return replace(worktrees_of(directory / "work", remote), stores_verified_remotely=True)


@pytest.fixture
def first(tmp_path: Path, remote: Path) -> GitWorktrees:
    return run_of(tmp_path / "first", remote)


@pytest.fixture
def second(tmp_path: Path, remote: Path) -> GitWorktrees:
    """Give the worktrees of a later run, on another machine."""
    return run_of(tmp_path / "second", remote)


@pytest.fixture
def head(first: GitWorktrees, tmp_path: Path) -> str:
    with first.open(REF) as tree:
        run_in_worktree(tree, "echo changed > README.md")
        made = str(tree.capture(TEXT, CommitSettings()).head_sha)
    first.store_commit(REF, made, tmp_path / "verified.bundle")
    return made


def refs(remote: Path) -> list[str]:
    return git(remote, "for-each-ref", "--format=%(refname)", "refs/mulligan").splitlines()


def test_another_run_publishes_what_the_first_verified(
    second: GitWorktrees, remote: Path, head: str, tmp_path: Path
) -> None:
    assert refs(remote) == [HANDED_OVER]
    assert second.ensure_commit(REF, head, tmp_path / "not here.bundle")
    second.store_commit(REF, head, tmp_path / "again.bundle")
    second.push(REF, head, None)
    assert branch_head(remote, REF.branch) == head
    assert refs(remote) == []
    assert second.ensure_commit(REF, head, tmp_path / "not here.bundle")


def test_what_was_handed_over_is_replaced_by_a_newer_one(
    first: GitWorktrees, second: GitWorktrees, remote: Path, head: str, tmp_path: Path
) -> None:
    with first.open(REF) as tree:
        run_in_worktree(tree, "echo changed again > README.md")
        newer = str(tree.capture(TEXT, CommitSettings()).head_sha)
    first.store_commit(REF, newer, tmp_path / "newer.bundle")
    assert not second.ensure_commit(REF, head, tmp_path / "not here.bundle")
    assert second.ensure_commit(REF, newer, tmp_path / "not here.bundle")


def test_what_no_issue_needs_any_more_goes(first: GitWorktrees, remote: Path, head: str) -> None:
    for name in ("12345", "x"):
        git(remote, "update-ref", f"refs/mulligan/verified/{name}", "main")
    first.delete_old_verified(REF.repository, lambda number: number == REF.number)
    assert refs(remote) == [HANDED_OVER, "refs/mulligan/verified/x"]
    first.delete_old_verified(REF.repository, lambda _: False)
    assert refs(remote) == ["refs/mulligan/verified/x"]


def test_a_refusal_is_left_to_the_publication(
    first: GitWorktrees, remote: Path, head: str, tmp_path: Path
) -> None:
    git(remote, "update-ref", "-d", HANDED_OVER)
    hook = remote / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    first.store_commit(REF, head, tmp_path / "refused.bundle")
    assert refs(remote) == []
    assert (tmp_path / "refused.bundle").exists()


def test_what_nobody_handed_over_is_gone(second: GitWorktrees, tmp_path: Path) -> None:
    assert not second.ensure_commit(REF, "1" * 40, tmp_path / "not here.bundle")
