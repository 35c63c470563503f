"""The mirror fetches what it must, mends itself, and shares nothing it should not."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.issue import IssueRef, RepositoryFacts
from mulligan.git.worktrees.mirror import MAX_PACKS
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import (
    REF,
    REPOSITORY,
    TEXT,
    calc_remote,
    contents,
    files_as_committed,
    never_asked,
    run_in_worktree,
    worktrees_of,
)
from world.repositories import branch_head, commit_to, git, make_remote


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture
def worktrees(tmp_path: Path, remote: Path) -> GitWorktrees:
    return worktrees_of(tmp_path / "work", remote)


def act_in(directory: Path, line: str) -> None:
    subprocess.run(["sh", "-c", line], cwd=directory, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "work" / REPOSITORY / "mirror.git"


def test_the_tracker_is_asked_for_what_the_settings_leave_open(
    tmp_path: Path, remote: Path
) -> None:
    git(remote, "branch", "-m", "main", "trunk")
    told = {REPOSITORY: RepositoryFacts(REPOSITORY, str(remote), "trunk")}
    worktrees = replace(
        worktrees_of(tmp_path / "work", remote), repositories={}, facts=told.__getitem__
    )
    assert worktrees.base_branch(REPOSITORY) == "trunk"
    with worktrees.open(REF) as tree:
        assert contents(tree.path) == files_as_committed()
        assert run_in_worktree(tree, "git rev-parse origin/trunk") == tree.base_sha
    quiet = replace(worktrees, facts=never_asked)
    assert quiet.base_branch(REPOSITORY) == "trunk"


def test_only_the_base_branch_and_its_tags_are_fetched(
    worktrees: GitWorktrees, remote: Path, mirror: Path
) -> None:
    git(remote, "tag", "v1", "main")
    git(remote, "tag", "side", commit_to(remote, {"x": "x\n"}, "side"))
    with worktrees.open(REF) as tree:
        assert run_in_worktree(tree, "git describe --tags") == "v1"
        assert run_in_worktree(tree, "git tag") == "v1"
        assert "side" not in run_in_worktree(tree, "git branch -a")
    keys = git(mirror, "config", "--local", "--list", "--name-only").split()
    assert [key for key in keys if not key.startswith("core.")] == []


def test_a_base_branch_that_was_rewritten_is_followed(
    worktrees: GitWorktrees, remote: Path
) -> None:
    worktrees.fetch_base(REPOSITORY)
    git(remote, "update-ref", "-d", "refs/heads/main")
    sha = commit_to(remote, {"new.txt": "new\n"})
    with worktrees.open(REF) as tree:
        assert tree.base_sha == sha
        assert contents(tree.path) == files_as_committed({"new.txt": "new\n"})


@pytest.mark.parametrize("branch", ["nowhere", "mulligan"])
def test_a_branch_that_is_not_there_is_named(tmp_path: Path, remote: Path, branch: str) -> None:
    with pytest.raises(MisconfiguredError) as refused:
        worktrees_of(tmp_path / "work", remote, branch).fetch_base(REPOSITORY)
    assert str(refused.value) == (
        f"octo/calc has no branch '{branch}'; push a first commit to it, "
        "or set base_branch to another one."
    )


def test_a_branch_named_like_mulligans_own_still_gives_a_worktree(tmp_path: Path) -> None:
    remote = make_remote(tmp_path / "odd.git", {"x": "x\n"}, "mulligan")
    with worktrees_of(tmp_path / "work", remote, "mulligan").open(REF) as tree:
        run_in_worktree(tree, "git commit -q --allow-empty -m x")


def test_a_name_that_is_no_branch_is_refused(tmp_path: Path, remote: Path) -> None:
    with pytest.raises(MisconfiguredError, match="base_branch"):
        worktrees_of(tmp_path / "work", remote, "main:refs/heads/x").fetch_base(REPOSITORY)


def truncate_objects(mirror: Path) -> None:
    for file in (mirror / "objects").rglob("*"):
        if file.is_file():
            file.chmod(0o644)
            file.write_bytes(b"")


def delete_objects(mirror: Path) -> None:
    shutil.rmtree(mirror / "objects")


def spoil_config(mirror: Path) -> None:
    (mirror / "config").write_text("[core\n")


def spoil_ref(mirror: Path) -> None:
    (mirror / "refs" / "remotes" / "origin" / "main").write_text("nonsense\n")


def ref_in_the_way(mirror: Path) -> None:
    place = mirror / "refs" / "remotes" / "origin" / "main"
    place.unlink()
    (place / "below").mkdir(parents=True)
    (place / "below" / "x").write_text("0" * 40)


SPOILT = [truncate_objects, delete_objects, spoil_config, spoil_ref, ref_in_the_way]


@pytest.mark.parametrize("spoil", SPOILT)
@pytest.mark.parametrize("moved", [True, False])
def test_a_broken_mirror_is_made_anew(
    worktrees: GitWorktrees,
    remote: Path,
    mirror: Path,
    spoil: Callable[[Path], None],
    *,
    moved: bool,
) -> None:
    with worktrees.open(REF):
        pass
    spoil(mirror)
    sha = commit_to(remote, {"README.md": "Adds more.\n"}) if moved else branch_head(remote, "main")
    with worktrees.open(REF) as tree:
        assert tree.base_sha == sha
        assert run_in_worktree(tree, "git status --porcelain", "git log -1 --format=%H") == sha
    assert list((mirror.parent / "trash").iterdir()) == []


def test_work_that_was_not_published_outlives_a_broken_mirror(
    worktrees: GitWorktrees, remote: Path, mirror: Path
) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "echo changed > README.md")
        head = str(tree.capture(TEXT, CommitSettings()).head_sha)
    ref_in_the_way(mirror)
    with worktrees.open(IssueRef(REPOSITORY, 13)):
        pass
    worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) == head


def test_a_remote_that_stays_broken_is_tried_again_later(
    worktrees: GitWorktrees, remote: Path
) -> None:
    truncate_objects(remote)
    for _ in range(2):
        with pytest.raises(UnavailableError), worktrees.open(REF):
            pass


def test_fetches_of_one_mirror_take_turns(worktrees: GitWorktrees, remote: Path) -> None:
    failures = list[BaseException]()

    def refresh() -> None:
        try:
            worktrees.fetch_base(REPOSITORY)
        except UnavailableError as error:
            failures.append(error)

    for round_ in range(3):
        commit_to(remote, {"README.md": f"{round_}\n"})
        threads = [threading.Thread(target=refresh) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert worktrees.base_file(REPOSITORY, "README.md") == b"2\n"


def test_the_locks_of_a_fetch_that_was_killed_are_removed(
    worktrees: GitWorktrees, remote: Path, mirror: Path
) -> None:
    worktrees.fetch_base(REPOSITORY)
    before = mirror.stat().st_ino
    for lock in ("refs/remotes/origin/main.lock", "HEAD.lock", "packed-refs.lock"):
        (mirror / lock).touch()
    commit_to(remote, {"README.md": "Adds more.\n"})
    worktrees.fetch_base(REPOSITORY)
    assert worktrees.base_file(REPOSITORY, "README.md") == b"Adds more.\n"
    assert mirror.stat().st_ino == before


def test_packs_do_not_pile_up_and_no_object_is_lost(worktrees: GitWorktrees, mirror: Path) -> None:
    worktrees.fetch_base(REPOSITORY)
    act_in(
        mirror,
        f"for number in $(seq {MAX_PACKS}); do echo $number | git hash-object -w --stdin "
        "| tee -a blobs | git pack-objects -q objects/pack/pack; done; git prune-packed",
    )
    worktrees.fetch_base(REPOSITORY)
    assert len(list((mirror / "objects" / "pack").glob("*.pack"))) < 5
    for blob in (mirror / "blobs").read_text().split():
        git(mirror, "cat-file", "-e", blob)


def test_an_issue_is_worked_on_once_at_a_time(worktrees: GitWorktrees) -> None:
    with (
        worktrees.open(REF),
        worktrees.open(IssueRef(REPOSITORY, 13)),
        pytest.raises(UnavailableError, match="octo/calc#12"),
        worktrees.open(REF),
    ):
        pass


def test_a_commit_that_was_never_fetched_cannot_be_read(worktrees: GitWorktrees) -> None:
    worktrees.fetch_base(REPOSITORY)
    with pytest.raises(UnavailableError, match="fetch"):
        worktrees.base_file(REPOSITORY, "README.md", "1" * 40)


def test_a_file_that_cannot_be_read_is_not_taken_for_one_that_is_not_there(
    worktrees: GitWorktrees, mirror: Path, remote: Path
) -> None:
    worktrees.fetch_base(REPOSITORY)
    blob = git(remote, "rev-parse", "main:README.md")
    (pack,) = (mirror / "objects" / "pack").glob("*.pack")
    act_in(mirror, f"mv {pack} x.pack; rm objects/pack/*; git unpack-objects -q < x.pack")
    (mirror / "objects" / blob[:2] / blob[2:]).unlink()
    for _ in range(2):
        with pytest.raises(UnavailableError):
            worktrees.base_file(REPOSITORY, "README.md")


def test_a_workspace_that_cannot_be_used_is_named(tmp_path: Path, remote: Path) -> None:
    (tmp_path / "file").touch()
    worktrees = worktrees_of(tmp_path / "file", remote)
    with pytest.raises(UnavailableError, match="Not a directory"):
        worktrees.fetch_base(REPOSITORY)
    with pytest.raises(UnavailableError, match="Not a directory"), worktrees.open(REF):
        pass


def commit_raw(remote: Path, kind: str, content: str) -> str:
    command = ("hash-object", "-t", kind, "-w", "--stdin", "--literally")
    return git(remote, *command, stdin=content)


def test_old_mistakes_in_a_history_do_no_harm(worktrees: GitWorktrees, remote: Path) -> None:
    tree = git(remote, "rev-parse", "main^{tree}")
    who = "A<a@example.org> 1300000000 +051800"
    content = (
        f"tree {tree}\nparent {branch_head(remote, 'main')}\nauthor {who}\ncommitter {who}\n\nx\n"
    )
    sha = commit_raw(remote, "commit", content)
    git(remote, "update-ref", "refs/heads/main", sha)
    with worktrees.open(REF) as opened:
        assert opened.base_sha == sha


def test_a_tree_that_would_plant_a_git_directory_is_refused(
    worktrees: GitWorktrees, remote: Path
) -> None:
    inner = git(remote, "rev-parse", "main^{tree}")
    raw = subprocess.run(
        ["git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        cwd=remote,
        input=b"40000 .git\0" + bytes.fromhex(inner),
        capture_output=True,
        check=True,
    )
    tree = raw.stdout.decode().strip()
    sha = git(remote, "commit-tree", tree, "-p", "main", "-m", "evil")
    git(remote, "update-ref", "refs/heads/main", sha)
    with pytest.raises(UnavailableError, match="hasDotgit"), worktrees.open(REF):
        pass


def test_environment_and_token_are_in_no_repr(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        assert os.environ["PATH"] not in repr((worktrees, tree))
