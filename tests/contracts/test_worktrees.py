"""Any worktrees start clean, tell what an agent left, and push it safely (port Worktrees)."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.errors import DeniedError, MisconfiguredError, UnavailableError
from mulligan.domain.result import FileChange
from world.checkouts import (
    FILES,
    REF,
    REPOSITORY,
    TEXT,
    calc_remote,
    contents,
    files_as_committed,
    run_in_worktree,
)
from world.kept_work import KINDS, kept_work, work
from world.plain_worktrees import Clones
from world.repositories import branch_head, commit_to, git, make_remote, read_branch

SETTINGS = CommitSettings(name="Mull Igan", email="mulligan@example.org", signoff=True)
CHANGE = "echo changed > README.md"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture(params=KINDS)
def worktrees(request: pytest.FixtureRequest, tmp_path: Path, remote: Path) -> Clones:
    root = tmp_path / "work"
    root.mkdir()
    return KINDS[request.param](root, remote)


@pytest.fixture
def with_git(tmp_path: Path, remote: Path) -> Clones:
    """Give the worktrees in which an agent finds git; the plain ones are for agents without."""
    return KINDS["git"](tmp_path / "work", remote)


def test_a_worktree_holds_what_the_base_branch_holds(worktrees: Clones, remote: Path) -> None:
    with worktrees.open(REF) as tree:
        assert contents(tree.path) == files_as_committed()
        assert tree.base_sha == tree.start_sha == branch_head(remote, "main")
        assert tree.recreated is False


def test_a_branch_in_the_way_of_mulligans_is_named(worktrees: Clones, remote: Path) -> None:
    worktrees.fetch_base(REPOSITORY)
    git(remote, "branch", "mulligan", "main")
    with pytest.raises(MisconfiguredError, match="Delete or rename that branch"):
        worktrees.check_branch_names(REPOSITORY)


def test_a_branch_of_a_similar_name_is_not_in_the_way(worktrees: Clones, remote: Path) -> None:
    git(remote, "branch", "mulligan-2", "main")
    worktrees.check_branch_names(REPOSITORY)


def test_a_branch_below_the_issues_is_in_the_way_of_this_issue_only(
    worktrees: Clones, remote: Path
) -> None:
    git(remote, "branch", f"{REF.branch}/x", "main")
    worktrees.check_branch_names(REPOSITORY)
    worktrees.check_branch_names(REPOSITORY, replace(REF, number=1))
    with pytest.raises(MisconfiguredError, match=f"a branch named '{REF.branch}/x'"):
        worktrees.check_branch_names(REPOSITORY, REF)
    git(remote, "branch", "-D", f"{REF.branch}/x")
    worktrees.check_branch_names(REPOSITORY, REF)


def test_a_persons_branch_of_the_issues_name_is_in_the_way(worktrees: Clones, remote: Path) -> None:
    git(remote, "branch", REF.branch, "main")
    head = branch_head(remote, "main") or ""
    worktrees.check_branch_names(REPOSITORY, REF, {head})
    with pytest.raises(MisconfiguredError, match="has commits that Mulligan did not make"):
        worktrees.check_branch_names(REPOSITORY, REF, {"1" * 40})


def test_an_agent_can_use_git_as_it_is_used_to(with_git: Clones, remote: Path) -> None:
    with with_git.open(REF) as tree:
        assert run_in_worktree(tree, "git status --porcelain --ignored", "git diff HEAD") == ""
        assert (
            run_in_worktree(tree, "git rev-parse HEAD origin/main main").split()
            == [branch_head(remote, "main")] * 3
        )
        assert run_in_worktree(tree, "git rev-parse --abbrev-ref HEAD") == REF.branch
        run_in_worktree(
            tree,
            "git config user.name || git config user.name A",
            "git config user.email || git config user.email a@example.org",
            f"{CHANGE}; git commit -qam one; git checkout -qb two HEAD~1",
            "echo two > two; git add two; git commit -qm two",
            f"git rebase -q {REF.branch}; git stash list",
        )
        assert run_in_worktree(tree, "git log --format=%s -3").split() == ["two", "one", "Change"]


def test_the_next_worktree_has_the_new_base_and_nothing_of_the_last(
    worktrees: Clones, remote: Path
) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, CHANGE, "rm -r src", "echo new > new", "echo x > x.log")
        (tree.private / "report").write_text("done")
        tree.capture(TEXT, SETTINGS)
    sha = commit_to(remote, {"more.txt": "more\n"})
    with worktrees.open(REF) as tree:
        assert contents(tree.path) == files_as_committed({**FILES, "more.txt": "more\n"})
        assert tree.start_sha == sha
        assert list(tree.private.iterdir()) == []


def test_nothing_that_an_agent_does_with_git_is_there_for_the_next(with_git: Clones) -> None:
    with with_git.open(REF) as tree:
        run_in_worktree(tree, CHANGE, "echo new > new", "echo x > x.log", "git stash -u")
        run_in_worktree(tree, CHANGE, "echo new > new", "echo x > x.log", "git add -A")
        tree.capture(TEXT, SETTINGS)
    with with_git.open(REF) as tree:
        assert run_in_worktree(tree, "git status --porcelain --ignored", "git stash list") == ""


@pytest.mark.parametrize(
    ("lines", "commits", "changed"),
    [
        ([":"], 0, False),
        ([CHANGE], 1, True),
        (["chmod +x README.md"], 1, True),
        (["rm README.md; ln -s src README.md"], 1, True),
        (["echo x > x.log; mkdir build; echo x > build/x"], 0, False),
    ],
)
def test_work_is_read_from_the_files(
    worktrees: Clones, lines: list[str], commits: int, *, changed: bool
) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, *lines)
        change = tree.capture(TEXT, SETTINGS)
    assert (change.commits, change.tree_changed) == (commits, changed)
    assert bool(change.files) == bool(change.diff) == changed


@pytest.mark.parametrize(
    ("lines", "commits", "changed"),
    [
        ([CHANGE, "git commit -qam one"], 1, True),
        ([CHANGE, "git commit -qam one", "echo new > new"], 2, True),
        ([CHANGE, "git commit -qam one", "git revert --no-edit HEAD"], 2, False),
        ([CHANGE, "git commit -qam one", "git reset -q --hard HEAD~1"], 0, False),
        (["git checkout -q -b other", CHANGE, "git commit -qam one"], 1, True),
        ([CHANGE, "git commit -qam one", "git checkout -q --detach main"], 1, False),
    ],
)
def test_work_is_read_from_git(
    with_git: Clones, lines: list[str], commits: int, *, changed: bool
) -> None:
    with with_git.open(REF) as tree:
        run_in_worktree(
            tree, "git config user.name A", "git config user.email a@example.org", *lines
        )
        change = tree.capture(TEXT, SETTINGS)
    assert (change.commits, change.tree_changed) == (commits, changed)
    assert bool(change.files) == bool(change.diff) == changed


def changed(path: str, status: str, plus: int, minus: int, **more: str | int) -> FileChange:
    told = {"path": path, "status": status, "insertions": plus, "deletions": minus}
    return FileChange.model_validate({"mode": "100644", **told, **more})


def test_a_moved_file_is_told_by_both_names(worktrees: Clones) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "mv src/calc.py moved.py")
        (moved,) = tree.capture(TEXT, SETTINGS).files
    assert (moved.status, moved.path, moved.old_path) == ("R", "moved.py", "src/calc.py")
    assert (moved.insertions, moved.deletions) == (0, 0)


def test_the_commit_is_mulligans_own(worktrees: Clones, remote: Path) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, CHANGE, "rm src/calc.py", "echo new > new; ln -s new link")
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha
    worktrees.push(REF, change.head_sha, None)
    shown = git(remote, "show", "-s", "--format=%P|%an|%ae|%cn|%ce|%B", change.head_sha)
    *people, message = shown.split("|")
    assert people == [change.start_sha, *("Mull Igan", "mulligan@example.org") * 2]
    assert message.rstrip("\n") == (
        "Add numbers (#12)\n\nIssue: octo/calc#12\nMulligan-Attempt: 1\n"
        "Co-authored-by: ada <ada@users.noreply.github.com>\n"
        "Signed-off-by: Mull Igan <mulligan@example.org>"
    )
    assert change.files == (
        changed("README.md", "M", 1, 1, size=8),
        changed("link", "A", 1, 0, mode="120000", size=3, link="new"),
        changed("new", "A", 1, 0, size=4),
        changed("src/calc.py", "D", 0, 2),
    )
    assert b"-Adds.\n+changed\n" in change.diff


def test_checks_see_the_commit_and_nothing_else(worktrees: Clones) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, CHANGE, "echo x > x.log")
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha
        run_in_worktree(tree, "echo lies > README.md; echo about > about")
        tree.check_out(change.head_sha)
        assert contents(tree.path) == files_as_committed({**FILES, "README.md": "changed\n"})


def test_the_start_tree_takes_single_files_of_a_change(worktrees: Clones) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, f"{CHANGE}; mkdir tests; echo 1 > 'tests/a b[1].py'; rm src/calc.py")
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha is not None
        before = tree.blobs(tree.start_sha)
        after = tree.blobs(tree.start_with(change.head_sha, ["tests/a b[1].py", "src/calc.py"]))
        assert after.keys() == {*before, "tests/a b[1].py"} - {"src/calc.py"}
        assert after["README.md"] == before["README.md"]
        assert tree.changed_files(change.head_sha) == ()


def test_files_that_a_command_changed_are_listed(worktrees: Clones) -> None:
    with worktrees.open(REF) as tree:
        assert tree.changed_files(tree.start_sha) == ()
        run_in_worktree(tree, "echo x > new.txt; echo x >> README.md; touch src/calc.py")
        assert tree.changed_files(tree.start_sha) == ("README.md",)
        run_in_worktree(tree, "rm src/calc.py")
        assert set(tree.changed_files(tree.start_sha)) == {"README.md", "src/calc.py"}
        tree.check_out(tree.start_sha)
        assert tree.changed_files(tree.start_sha) == ()


def test_a_change_lies_beside_the_base_for_a_while(worktrees: Clones) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, CHANGE, "echo x > x.log", "mkdir build", "echo x > build/x")
        head = tree.capture(TEXT, SETTINGS).head_sha
        assert head
        for _ in range(2):
            with tree.base_checkout(head) as (base, files):
                assert contents(base.path) == files_as_committed()
                changed = contents(files)
                assert changed != files_as_committed()
                run_in_worktree(base, "rm -r src", "echo y > y.log")
            tree.check_out(head)
            assert contents(tree.path) == changed


def test_git_has_the_change_beside_the_base(with_git: Clones) -> None:
    with with_git.open(REF) as tree:
        run_in_worktree(tree, "echo x > new.py")
        head = tree.capture(TEXT, SETTINGS).head_sha
        assert head
        with tree.base_checkout(head) as (base, _):
            assert run_in_worktree(base, "git rev-parse HEAD") == tree.fork_sha
            seen = run_in_worktree(base, "git diff --name-status HEAD mulligan/change")
            assert seen == "A\tnew.py"
            assert run_in_worktree(base, "git log -1 --format=%H mulligan/change") == head


def test_a_second_worktree_shares_no_file_with_the_first(worktrees: Clones) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, CHANGE, "echo x > x.log")
        mine = contents(tree.path)
        with tree.beside() as base:
            base.check_out(base.start_sha)
            assert contents(base.path) == files_as_committed()
            run_in_worktree(base, "rm -r src", "echo y > y.log")
            assert contents(tree.path) == mine
            base.check_out(base.start_sha)
            assert contents(base.path) == files_as_committed()
        assert contents(tree.path) == mine
        assert not base.path.exists()
        assert not base.private.exists()
        assert tree.capture(TEXT, SETTINGS).head_sha


def test_git_of_a_second_worktree_is_its_own(with_git: Clones) -> None:
    with with_git.open(REF) as tree:
        run_in_worktree(tree, CHANGE)
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha
        tree.check_out(change.head_sha)
        with tree.beside() as base:
            base.check_out(base.start_sha)
            assert run_in_worktree(base, "git rev-parse HEAD") == base.start_sha
            assert run_in_worktree(base, "git status --porcelain --ignored") == ""
            branch = run_in_worktree(tree, "git branch --show-current")
            assert run_in_worktree(base, "git branch --show-current") == branch == REF.branch
            run_in_worktree(base, "echo x > x", "git add x", "git commit -qm Mine")
        assert run_in_worktree(tree, "git rev-parse HEAD") == change.head_sha
        # Mulligan's own branch still has the change, which would be lost for a publication.
        with tree.pristine_checkout(change.head_sha):
            assert run_in_worktree(tree, "git rev-parse HEAD") == change.head_sha


def test_git_sees_the_commit_that_is_checked_and_nothing_else(with_git: Clones) -> None:
    with with_git.open(REF) as tree:
        run_in_worktree(tree, CHANGE, "echo x > x.log")
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha
        with tree.pristine_checkout(tree.start_sha):
            assert run_in_worktree(tree, "git rev-parse HEAD") == tree.start_sha
        tree.check_out(change.head_sha)
        assert run_in_worktree(tree, "git rev-parse HEAD") == change.head_sha
        assert run_in_worktree(tree, "git status --porcelain --ignored") == ""


def worked(worktrees: Clones, remote: Path) -> str:
    """Let an agent work; give Mulligan's commit."""
    return kept_work(remote.parent, worktrees, pushed=False)


def test_a_push_may_be_repeated(worktrees: Clones, remote: Path) -> None:
    head = worked(worktrees, remote)
    worktrees.push(REF, head, None)
    worktrees.push(REF, head, None)
    worktrees.push(REF, head, head)
    assert read_branch(remote, REF.branch, "README.md") == "two"
    assert read_branch(remote, "main", "README.md") == "Adds."


def test_new_work_takes_the_place_of_mulligans_own(worktrees: Clones, remote: Path) -> None:
    first, second = worked(worktrees, remote), work(worktrees, "three", SETTINGS)
    worktrees.push(REF, first, None)
    worktrees.push(REF, second, first)
    assert branch_head(remote, REF.branch) == second


def test_a_persons_commit_is_never_pushed_over(worktrees: Clones, remote: Path) -> None:
    head = worked(worktrees, remote)
    theirs = commit_to(remote, {"mine.txt": "mine\n"}, REF.branch)
    for expected in (None, head):
        with pytest.raises(DeniedError, match=REF.branch):
            worktrees.push(REF, head, expected)
    assert branch_head(remote, REF.branch) == theirs


def test_a_refused_push_needs_a_person(worktrees: Clones, remote: Path) -> None:
    head = worked(worktrees, remote)
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'branch names must begin with feature/' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(DeniedError):
        worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) is None


def test_a_remote_that_is_away_is_tried_again(worktrees: Clones, remote: Path) -> None:
    head = worked(worktrees, remote)
    remote.rename(remote.with_name("away"))
    with pytest.raises(UnavailableError):
        worktrees.push(REF, head, None)
    with pytest.raises(UnavailableError), worktrees.open(REF):
        pass
    with pytest.raises(UnavailableError):
        worktrees.fetch_base(REPOSITORY)
    remote.with_name("away").rename(remote)
    worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) == head


def test_an_empty_repository_needs_its_operator(worktrees: Clones, remote: Path) -> None:
    shutil.rmtree(remote)
    make_remote(remote, {})
    with pytest.raises(MisconfiguredError), worktrees.open(REF):
        pass


def test_files_of_the_base_branch_can_be_read(worktrees: Clones, remote: Path) -> None:
    assert worktrees.base_file(REPOSITORY, "README.md") is None
    worktrees.fetch_base(REPOSITORY)
    old = branch_head(remote, "main")
    commit_to(remote, {"README.md": "Adds more.\n"})
    assert worktrees.base_file(REPOSITORY, "README.md") == b"Adds.\n"
    worktrees.fetch_base(REPOSITORY)
    assert worktrees.base_file(REPOSITORY, "README.md") == b"Adds more.\n"
    assert worktrees.base_file(REPOSITORY, "README.md", old) == b"Adds.\n"
    assert worktrees.base_file(REPOSITORY, "nowhere") is None
    assert worktrees.base_file(REPOSITORY, "src") is None
    assert worktrees.base_branch(REPOSITORY) == "main"


def test_a_directory_of_the_base_branch_can_be_written(
    worktrees: Clones, remote: Path, tmp_path: Path
) -> None:
    commit_to(remote, {"app/Dockerfile": "FROM a\n", "app/in/side.txt": "x\n"})
    worktrees.fetch_base(REPOSITORY)
    sha = branch_head(remote, "main") or ""
    assert worktrees.base_tree(REPOSITORY, "nowhere", sha) is None
    assert worktrees.base_tree(REPOSITORY, "README.md", sha) is None

    def written(path: str) -> dict[str, str]:
        tree = worktrees.base_tree(REPOSITORY, path, sha) or ""
        assert tree == git(remote, "rev-parse", f"{sha}:{path.removeprefix('.')}")
        (place := tmp_path / f"at-{path}").mkdir()
        worktrees.write_tree(REPOSITORY, tree, place)
        files = [each for each in place.rglob("*") if each.is_file()]
        return {str(each.relative_to(place)): each.read_text() for each in files}

    app = {"Dockerfile": "FROM a\n", "in/side.txt": "x\n"}
    assert written("app") == app
    whole = written(".")
    assert whole["README.md"] == "Adds.\n"
    assert {path for path in whole if path.startswith("app/")} == {f"app/{name}" for name in app}
    assert not any(".git/" in path for path in whole)


def lose_everything(tmp_path: Path) -> None:
    """Take away what was fetched and made here, as a new machine would."""
    shutil.rmtree(tmp_path / "work")
    (tmp_path / "work").mkdir()


def test_kept_work_outlives_its_repository(worktrees: Clones, remote: Path, tmp_path: Path) -> None:
    head, place = worked(worktrees, remote), tmp_path / "verified.bundle"
    worktrees.store_commit(REF, head, place)
    lose_everything(tmp_path)
    assert worktrees.ensure_commit(REF, head, place)
    worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) == head
    assert read_branch(remote, REF.branch, "README.md") == "two"


def test_an_untouched_worktree_has_nothing_of_an_agent_for_a_while(worktrees: Clones) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, CHANGE, "echo x > x.log", "mkdir build", "echo x > build/x")
        head = tree.capture(TEXT, SETTINGS).head_sha
        assert head
        for _ in range(2):
            with tree.pristine_checkout(tree.start_sha):
                assert contents(tree.path) == files_as_committed()
                run_in_worktree(tree, "rm -r src", "echo y > y.log", "mkdir build", "chmod 0 build")
        tree.check_out(head)
        assert not (tree.path / "y.log").exists()


def test_kept_work_is_kept_once(worktrees: Clones, remote: Path, tmp_path: Path) -> None:
    head, place = worked(worktrees, remote), tmp_path / "verified.bundle"
    worktrees.store_commit(REF, head, place)
    kept = place.read_bytes()
    lose_everything(tmp_path)
    worktrees.store_commit(REF, head, place)
    assert place.read_bytes() == kept


def test_work_that_is_here_needs_no_file(worktrees: Clones, remote: Path, tmp_path: Path) -> None:
    head = worked(worktrees, remote)
    work(worktrees, "something else", SETTINGS)
    assert worktrees.ensure_commit(REF, head, tmp_path / "nowhere.bundle")


@pytest.mark.parametrize("content", [None, b"", b"not a bundle"])
def test_work_that_is_nowhere_is_gone(
    worktrees: Clones, remote: Path, tmp_path: Path, content: bytes | None
) -> None:
    head, place = worked(worktrees, remote), tmp_path / "verified.bundle"
    if content is not None:
        place.write_bytes(content)
    lose_everything(tmp_path)
    assert not worktrees.ensure_commit(REF, head, place)


def test_work_on_a_base_that_is_gone_is_gone_with_it(
    worktrees: Clones, remote: Path, tmp_path: Path
) -> None:
    head, place = worked(worktrees, remote), tmp_path / "verified.bundle"
    worktrees.store_commit(REF, head, place)
    lose_everything(tmp_path)
    shutil.rmtree(remote)
    make_remote(remote, {"README.md": "All new.\n"})
    assert not worktrees.ensure_commit(REF, head, place)


def test_work_that_was_pushed_is_not_gone(worktrees: Clones, remote: Path, tmp_path: Path) -> None:
    head = worked(worktrees, remote)
    worktrees.push(REF, head, None)
    lose_everything(tmp_path)
    place = tmp_path / "verified.bundle"
    assert worktrees.ensure_commit(REF, head, place)
    worktrees.store_commit(REF, head, place)
    assert place.exists()
    worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) == head


def test_a_worktree_that_was_discarded_is_made_anew_and_its_commit_stays(
    worktrees: Clones, remote: Path
) -> None:
    assert not worktrees.exists(REF)
    worktrees.discard(REF)
    head = worked(worktrees, remote)
    for _ in range(2):
        worktrees.discard(REF)
        assert not worktrees.exists(REF)
    worktrees.push(REF, head, None)
    assert branch_head(remote, REF.branch) == head
    with worktrees.open(REF) as tree:
        assert contents(tree.path) == files_as_committed()
        assert tree.recreated is False
