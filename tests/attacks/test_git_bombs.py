"""Objects that an agent made may be far larger than their files: git reads them within limits."""

import hashlib
import os
import shutil
import zlib
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import Change
from mulligan.git import repository
from mulligan.git.worktrees import attempt_worktree
from mulligan.git.worktrees.attempt_worktree import Checkout
from world.checkouts import REF, TEXT, calc_remote, worktrees_of

MEBIBYTE = 1024**2
LEAST = ("/bin/sh", "-c", 'ulimit -d 65536; exec "$@"', "sh")
"""64 MiB, so that a small bomb shows it."""
WIDTH, DEPTH = 30, 5


def write_object(git_dir: Path, kind: str, content: bytes) -> str:
    whole = f"{kind} {len(content)}\0".encode() + content
    sha = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    place = git_dir / "objects" / sha[:2] / sha[2:]
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(zlib.compress(whole))
    return sha


def commit_of(tree: Checkout, agents_tree: str, message: bytes) -> None:
    git_dir = tree.worktree.paths.agent_git_dir
    who = "A <a@example.org> 1700000000 +0000"
    head = f"tree {agents_tree}\nparent {tree.start_sha}\nauthor {who}\ncommitter {who}\n\n"
    sha = write_object(git_dir, "commit", head.encode() + message)
    (git_dir / "HEAD").write_text(f"{sha}\n")


def capture(tree: Checkout) -> Change:
    (tree.path / "new.txt").write_text("new\n")
    return tree.capture(TEXT, CommitSettings())


@pytest.fixture
def tree(tmp_path: Path) -> Checkout:
    work = worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git"))
    with work.open(REF) as made:
        return made


def test_an_object_that_is_too_large_for_memory_is_not_read(
    tree: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tree.worktree.git.line("rev-parse", f"{tree.start_sha}^{{tree}}")
    commit_of(tree, start, b"\n" * (96 * MEBIBYTE))
    assert capture(tree).commits == 2
    monkeypatch.setattr(repository, "LIMITED", LEAST)
    change = capture(tree)
    # Its work counts all the same.
    assert (change.commits, [file.path for file in change.files]) == (1, ["new.txt"])


def test_a_tree_of_millions_of_paths_is_not_listed(
    tree: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_worktree, "ADDED_NAMES_TIMEOUT", timedelta(seconds=1))
    git_dir = tree.worktree.paths.agent_git_dir
    sha, mode = write_object(git_dir, "blob", b"x"), b"100644"
    for _ in range(DEPTH):
        names = (f"{number:03}-{'x' * 40}".encode() for number in range(WIDTH))
        entries = b"".join(mode + b" " + name + b"\0" + bytes.fromhex(sha) for name in names)
        sha, mode = write_object(git_dir, "tree", entries), b"40000"
    commit_of(tree, sha, b"bomb\n")
    assert [file.path for file in capture(tree).files] == ["new.txt"]


def test_many_branches_of_large_commits_are_not_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may take as long as git may take for all of them: a thousand took hours."""
    program, calls = tmp_path / "bin" / "git", tmp_path / "calls"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {calls}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git")).open(REF) as tree:
        start = tree.worktree.git.line("rev-parse", f"{tree.start_sha}^{{tree}}")
        git_dir = tree.worktree.paths.agent_git_dir
        for number in range(40):
            commit_of(tree, start, b"%d\n" % number)
            (git_dir / f"refs/heads/b{number}").write_bytes((git_dir / "HEAD").read_bytes())
        (git_dir / "refs/heads/missing").write_text("1" * 40)
        assert capture(tree).commits == 2
    assert calls.read_text().count(" rev-list --count ") == 2


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_an_object_of_gigabytes_is_not_read(tree: Checkout) -> None:
    start = tree.worktree.git.line("rev-parse", f"{tree.start_sha}^{{tree}}")
    commit_of(tree, start, b"\n" * (1536 * MEBIBYTE))
    assert capture(tree).commits == 1
