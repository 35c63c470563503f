"""Any worktrees keep what others committed to a pull request (ports Worktrees and Branches)."""

from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.implement.ports import PullRequestBase
from world.checkouts import REF, REPOSITORY, TEXT, calc_remote, run_in_worktree, worktrees_of
from world.kept_work import KINDS, kept_work
from world.plain_worktrees import Clones, PlainWorktrees
from world.repositories import branch_head, commit_to, git

SETTINGS = CommitSettings()
BRANCH = REF.branch


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture(params=KINDS)
def worktrees(request: pytest.FixtureRequest, tmp_path: Path, remote: Path) -> Clones:
    root = tmp_path / "work"
    root.mkdir()
    return KINDS[request.param](root, remote)


def propose(worktrees: Clones, remote: Path) -> str:
    """Have an agent change the file that says hello, and push that."""
    return kept_work(remote.parent, worktrees, pushed=True)


def standing(*own: str, answered: bool = False) -> PullRequestBase:
    return PullRequestBase(frozenset(own), is_answered=answered)


def test_without_a_branch_there_is_nothing_to_build_upon(worktrees: Clones) -> None:
    assert worktrees.remote_head(REF) is None
    with worktrees.open(REF, standing()) as tree:
        assert (tree.start_sha, tree.pull_request_diff) == (tree.base_sha, b"")


def test_own_commits_are_made_again_from_the_base_branch(worktrees: Clones, remote: Path) -> None:
    head = propose(worktrees, remote)
    assert worktrees.remote_head(REF) == head
    with worktrees.open(REF, standing(head)) as tree:
        assert tree.start_sha == tree.base_sha
        assert b"+two" in tree.pull_request_diff
        (tree.path / "proposed.diff").write_bytes(tree.pull_request_diff)
        run_in_worktree(tree, "git apply proposed.diff && rm proposed.diff")
        assert (tree.path / "README.md").read_text() == "two\n"


@pytest.mark.parametrize("answered", [True, False])
def test_the_pull_requests_own_tree_is_no_change_on_review(
    worktrees: Clones,
    remote: Path,
    answered: bool,  # noqa: FBT001
) -> None:
    head = propose(worktrees, remote)
    with worktrees.open(REF, standing(head, answered=answered)) as tree:
        run_in_worktree(tree, "echo two > README.md")
        change = tree.capture(TEXT, SETTINGS)
    assert (change.is_proposed, change.tree_changed) == (answered, not answered)
    assert change.commits == 1


MOVED = {"new": "1\n"}
CONFLICTING = {**MOVED, "README.md": "three\n"}


@pytest.mark.parametrize(
    ("moved", "reviewed", "work", "proposed"),
    [
        (MOVED, True, "echo two > README.md", True),
        (MOVED, True, "echo two > README.md; echo more > more", False),
        (MOVED, True, "echo '  two' > README.md", False),
        (MOVED, False, "echo two > README.md", False),
        (CONFLICTING, True, "echo two > README.md", False),
    ],
)
def test_the_same_change_on_a_base_that_moved_is_none_on_review(
    worktrees: Clones,
    remote: Path,
    moved: dict[str, str],
    reviewed: bool,  # noqa: FBT001
    work: str,
    proposed: bool,  # noqa: FBT001
) -> None:
    head = propose(worktrees, remote)
    commit_to(remote, moved)
    stands = PullRequestBase(frozenset({head}), is_answered=True, is_reviewed=reviewed)
    with worktrees.open(REF, stands) as tree:
        run_in_worktree(tree, work)
        change = tree.capture(TEXT, SETTINGS)
    assert (change.is_proposed, change.tree_changed) == (proposed, not proposed)


@pytest.mark.parametrize("above", [True, False])
def test_work_begins_on_top_of_other_peoples_commits(
    worktrees: Clones,
    remote: Path,
    above: bool,  # noqa: FBT001
) -> None:
    head = propose(worktrees, remote)
    theirs = commit_to(remote, {"by_hand": "1\n"}, BRANCH)
    own = [head]
    if above:
        with worktrees.open(REF, standing(head)) as tree:
            run_in_worktree(tree, "echo three > README.md")
            mine = tree.capture(TEXT, SETTINGS).head_sha
        assert mine
        worktrees.push(REF, mine, theirs)
        own.append(mine)
    with worktrees.open(REF, standing(*own)) as tree:
        assert (
            tree.start_sha
            == branch_head(remote, BRANCH)
            != tree.base_sha
            == branch_head(remote, "main")
        )
        assert (tree.path / "by_hand").exists()
        assert b"by_hand" in tree.pull_request_diff
        run_in_worktree(tree, "echo four > README.md")
        change = tree.capture(TEXT, SETTINGS)
    assert [file.path for file in change.files] == ["README.md"]
    assert change.head_sha
    assert git(remote, "rev-parse", f"{BRANCH}^{{tree}}")


def test_a_commit_on_top_of_others_is_brought_back_from_its_file(
    worktrees: Clones, remote: Path, tmp_path: Path
) -> None:
    head = propose(worktrees, remote)
    commit_to(remote, {"by_hand": "1\n"}, BRANCH)
    with worktrees.open(REF, standing(head)) as tree:
        run_in_worktree(tree, "echo four > README.md")
        mine = tree.capture(TEXT, SETTINGS).head_sha
    assert mine
    kept = tmp_path / "kept.bundle"
    worktrees.store_commit(REF, mine, kept)
    assert kept.stat().st_size
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = (
        PlainWorktrees(other, remote)
        if isinstance(worktrees, PlainWorktrees)
        else worktrees_of(other, remote)
    )
    assert elsewhere.ensure_commit(REF, mine, kept)
    elsewhere.push(REF, mine, branch_head(remote, BRANCH))
    assert branch_head(remote, BRANCH) == mine


def test_a_branch_is_dropped_but_not_with_commits_of_others(
    worktrees: Clones, remote: Path
) -> None:
    assert not worktrees.delete_branch(REF, set())
    head = propose(worktrees, remote)
    assert not worktrees.delete_branch(REF, set())
    assert branch_head(remote, BRANCH) == head
    assert worktrees.delete_branch(REF, {head})
    assert branch_head(remote, BRANCH) is None


def test_conflicts_are_named_by_file(worktrees: Clones, remote: Path) -> None:
    head, base = propose(worktrees, remote), worktrees.base_sha(REPOSITORY)
    assert base == branch_head(remote, "main")
    assert base
    assert worktrees.conflicts(REF, base, head) == ()
    commit_to(remote, {"README.md": "something else\n", "other": "x\n"})
    worktrees.fetch_base(REPOSITORY)
    moved = worktrees.base_sha(REPOSITORY)
    assert moved == branch_head(remote, "main")
    assert moved
    assert worktrees.conflicts(REF, moved, head) == ("README.md",)


def test_a_head_is_behind_once_the_base_branch_has_moved(worktrees: Clones, remote: Path) -> None:
    head = propose(worktrees, remote)
    base = worktrees.base_sha(REPOSITORY) or ""
    assert not worktrees.is_behind(REF, base, head)
    commit_to(remote, {"new": "1\n"})
    worktrees.fetch_base(REPOSITORY)
    assert worktrees.is_behind(REF, worktrees.base_sha(REPOSITORY) or "", head)
    assert not worktrees.is_behind(REF, base, "0" * 40)


def test_a_merge_of_the_base_branch_is_the_same_whoever_makes_it(
    worktrees: Clones, remote: Path
) -> None:
    head = propose(worktrees, remote)
    base = commit_to(remote, {"new": "1\n"})
    worktrees.fetch_base(REPOSITORY)
    merged = worktrees.merge(REF, base, head, SETTINGS)
    assert merged
    assert worktrees.merge(REF, base, head, SETTINGS) == merged
    worktrees.push(REF, merged, head)
    assert git(remote, "rev-list", "--parents", "-1", BRANCH) == f"{merged} {head} {base}"
    assert git(remote, "show", f"{BRANCH}:README.md") == "two"
    assert git(remote, "show", f"{BRANCH}:new") == "1"
    assert (
        git(remote, "show", "-s", "--format=%an <%ae>", BRANCH) == "mulligan <mulligan@bot.invalid>"
    )
    with worktrees.open(REF, standing(head, merged)) as tree:
        assert tree.start_sha == base


def test_what_conflicts_is_not_merged(worktrees: Clones, remote: Path) -> None:
    head = propose(worktrees, remote)
    base = commit_to(remote, {"README.md": "three\n"})
    worktrees.fetch_base(REPOSITORY)
    assert worktrees.is_behind(REF, base, head)
    assert worktrees.merge(REF, base, head, SETTINGS) is None


@pytest.mark.parametrize("taken_back", [True, False])
def test_what_work_stands_on_may_be_taken_off_the_base_branch(
    worktrees: Clones, remote: Path, *, taken_back: bool
) -> None:
    before = branch_head(remote, "main") or ""
    first = propose(worktrees, remote)
    theirs = commit_to(remote, {"by_hand": "x\n"}, BRANCH)
    dropped = commit_to(remote, {"more": "1\n"})
    with worktrees.open(REF, standing(first)) as tree:
        assert (tree.start_sha, tree.base_sha) == (theirs, dropped)
    if taken_back:
        git(remote, "push", "-q", "--force", str(remote), f"{before}:refs/heads/main")
    else:
        commit_to(remote, {"more": "2\n"})
    assert worktrees.is_in_base(REF, dropped, dropped) is not taken_back
    # The pull request left the base branch before that.
    assert worktrees.is_in_base(REF, theirs, dropped)
    assert worktrees.is_in_base(REF, before, before)
    assert not worktrees.is_in_base(REF, "1" * 40, "1" * 40)
