"""Pushes that fail, that only seem to fail, and that somebody else came before."""

from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.errors import DeniedError, UnavailableError, WorldError
from mulligan.git.repository import Remote
from mulligan.git.worktrees.mirror import Mirror
from mulligan.git.worktrees.naming import repository_paths
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import REF, REPOSITORY, TEXT, calc_remote, run_in_worktree, worktrees_of
from world.repositories import branch_head, commit_to, git


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture
def worktrees(tmp_path: Path, remote: Path) -> GitWorktrees:
    return worktrees_of(tmp_path / "work", remote)


@pytest.fixture
def head(worktrees: GitWorktrees) -> str:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "echo changed > README.md")
        return str(tree.capture(TEXT, CommitSettings()).head_sha)


def hook(remote: Path, name: str, script: str) -> None:
    (remote / "hooks").mkdir(exist_ok=True)
    (remote / "hooks" / name).write_text(f"#!/bin/sh\n{script}\n")
    (remote / "hooks" / name).chmod(0o755)


def test_the_servers_words_are_told_on_one_line(
    worktrees: GitWorktrees, remote: Path, head: str
) -> None:
    hook(remote, "update", "echo 'error: GH013: Repository rule violations'; echo; exit 1")
    with pytest.raises(DeniedError) as refused:
        worktrees.push(REF, head, None)
    assert str(refused.value) == (
        "git push for octo/calc failed: GH013: Repository rule violations; "
        "hook declined to update refs/heads/mulligan/issue-12; "
        "[remote rejected] (hook declined); change that rule or allow Mulligan's branch."
    )


@pytest.mark.parametrize("tries", [1, 3])
def test_a_push_whose_answer_was_lost_has_happened(
    tries: int, worktrees: GitWorktrees, remote: Path, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mulligan.git.repository.REMOTE_TRIES", tries)
    hook(remote, "post-receive", "kill -9 $PPID")
    worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) == head


def test_a_server_that_fails_before_the_push_is_tried_again(
    worktrees: GitWorktrees, remote: Path, head: str
) -> None:
    hook(remote, "pre-receive", "kill -9 $PPID")
    with pytest.raises(UnavailableError):
        worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) is None


def test_a_person_who_is_faster_wins(worktrees: GitWorktrees, remote: Path, head: str) -> None:
    theirs = commit_to(remote, {"mine": "mine\n"}, "theirs")
    hook(
        remote,
        "pre-receive",
        f"env -u GIT_QUARANTINE_PATH git update-ref refs/heads/{REF.branch} {theirs}",
    )
    with pytest.raises(DeniedError, match="did not make"):
        worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) == theirs


def test_a_branch_that_was_deleted_meanwhile_is_made_again(
    worktrees: GitWorktrees, remote: Path, head: str
) -> None:
    worktrees.push(REF, head, None)
    git(remote, "update-ref", "-d", f"refs/heads/{REF.branch}")
    worktrees.push(REF, head, head)
    assert branch_head(remote, REF.branch) == head


def test_a_commit_that_is_gone_is_said_to_be(worktrees: GitWorktrees, head: str) -> None:
    with pytest.raises(DeniedError, match="no longer exists on this machine"):
        worktrees.push(REF, "1" * 40, None)


def test_nothing_is_pushed_where_nothing_was_ever_fetched(tmp_path: Path, remote: Path) -> None:
    with pytest.raises(DeniedError, match="no longer exists on this machine"):
        worktrees_of(tmp_path / "new", remote).push(REF, "1" * 40, None)


def test_the_base_branch_is_never_pushed_to(tmp_path: Path, remote: Path, head: str) -> None:
    worktrees = worktrees_of(tmp_path / "work", remote, REF.branch)
    with pytest.raises(DeniedError, match="base branch"):
        worktrees.push(REF, head, None)


def test_who_pushes_between_the_look_and_the_push_wins(
    worktrees: GitWorktrees, remote: Path, head: str
) -> None:
    theirs = commit_to(remote, {"mine": "mine\n"}, REF.branch)
    mirror = Mirror(REPOSITORY, repository_paths(worktrees.root, REPOSITORY), {})
    for seen in (None, head):
        with pytest.raises(WorldError, match="stale info"):
            Remote(str(remote)).push(mirror.git, head, f"refs/heads/{REF.branch}", seen)
    assert branch_head(remote, REF.branch) == theirs
