"""Attempt 2's worktree holds nothing of attempt 1, whatever attempt 1 did (WORKTREE-1)."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.issue import IssueRef
from mulligan.git.worktrees.naming import WorktreePaths, worktree_paths
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.implement.ports import Worktree
from mulligan.sandbox.cancellation import SHUTDOWN
from world.checkouts import (
    REF,
    TEXT,
    calc_remote,
    contents,
    files_as_committed,
    run_in_worktree,
    set_up_in_worktree,
    worktrees_of,
)
from world.repositories import add_submodule, branch_head, commit_to, git, make_remote

SETTINGS = CommitSettings()
MINE = "git config user.name A; git config user.email a@example.org"
COMMIT = f"{MINE}; echo one > README.md; git commit -qam one"

LEFT_BEHIND = {
    "nothing": ":",
    "modified": "echo changed > README.md",
    "staged": "echo changed > README.md; echo new > new; git add -A",
    "untracked": "echo new > new; mkdir -p a/b; echo new > a/b/c; mkdir empty",
    "ignored": "echo x > x.log; mkdir build; echo x > build/x",
    "hidden_by_a_new_gitignore": "echo '*' > .gitignore; echo new > new",
    "hidden_by_the_exclude_file": "echo new >> $(git rev-parse --git-dir)/info/exclude; > new",
    "deleted": "rm -r src README.md",
    "executable": "chmod +x README.md",
    "committed": COMMIT,
    "on_another_branch": f"git checkout -q -b other; {COMMIT}",
    "detached": f"git checkout -q --detach; {COMMIT}",
    "branch_deleted": "git checkout -q --detach; git branch -q -D mulligan/issue-12 main",
    "mid_rebase": f"{COMMIT}; git checkout -q -b other HEAD~1; echo two > README.md; "
    "git commit -qam two; git rebase mulligan/issue-12 || git status | grep 'rebase in progress'",
    "mid_merge": f"{COMMIT}; git checkout -q -b other HEAD~1; echo two > README.md; "
    "git commit -qam two; git merge mulligan/issue-12 || git ls-files -u | grep README",
    "stashed": f"{MINE}; echo changed > README.md; git stash -q",
    "tags_and_refs": f"{COMMIT}; git tag v1; git update-ref refs/heads/evil HEAD",
    "nested_repository": f"git init -q sub; cd sub; {MINE}; git commit -q --allow-empty -m x",
    "nested_bare_repository": "git init -q --bare sub/x.git",
    "gitlink_staged": f"git init -q sub; cd sub; {MINE}; git commit -q --allow-empty -m x; "
    "cd ..; git add -f sub 2> /dev/null; git commit -qm sub",
    "fifo": "mkfifo pipe src/pipe; mkdir a; mkfifo a/pipe .gitattributes",
    "closed_directory": "mkdir -p a/b; echo x > a/b/x; chmod 000 a/b a; chmod 000 src",
    "read_only_directory": "mkdir ro; echo x > ro/x; chmod 555 ro src src/deep",
    "unreadable_file": "echo x > x; chmod 000 x README.md",
    "read_only_file": "chmod 444 README.md src/calc.py",
    "skip_worktree": "git update-index --skip-worktree README.md; echo changed > README.md",
    "assume_unchanged": "git update-index --assume-unchanged README.md; echo x > README.md",
    "link_to_elsewhere": "rm -r src; ln -s $HOME/../elsewhere src; echo x > $HOME/kept; "
    "ln -s /etc/passwd passwd; ln -s loop loop; ln -s . here",
    "file_for_directory": "rm -r src; echo x > src; rm README.md; mkdir README.md; > README.md/x",
    "index_lock": "touch $(git rev-parse --git-dir)/index.lock; echo changed > README.md",
    "index_destroyed": "echo x > $(git rev-parse --git-dir)/index",
    "git_directory_deleted": "rm -rf $(git rev-parse --git-dir); echo changed > README.md",
    "git_file_deleted": "rm .git; echo changed > README.md",
    "git_file_replaced": f"rm .git; git init -q .; {MINE}; git add -A; git commit -qm own",
    "git_file_elsewhere": "git init -q $HOME/other; echo gitdir: $HOME/other/.git > .git",
    "git_file_a_fifo": "rm .git; mkfifo .git",
    "git_file_a_link": "rm .git; ln -s /etc .git",
    "odd_names": "touch -- -rf $'new\\nline' $'\\xff\\xfe' ' ' '*' ':(top)x' .gi\u200ct; "
    "mkdir .GIT git~1; touch .GIT/x git~1/config",
    "many_levels": "python3 -c \"import os\nfor i in range(2000): os.mkdir('d'); os.chdir('d')\"",
    "too_long_path": "python3 -c \"import os\nfor i in range(30): os.mkdir('d' * 200); "
    "os.chdir('d' * 200)\nopen('x', 'w')\"",
    "agents_litter": "mkdir .claude .gemini; touch .claude/x .gemini/x .aider.chat.history.md",
    "objects_destroyed": f"{COMMIT}; find $(git rev-parse --git-dir)/objects -type f -delete; "
    "echo two > README.md",
    "refs_destroyed": "cd $(git rev-parse --git-dir); rm -rf refs; mkfifo refs packed-refs.new; "
    "mv packed-refs.new packed-refs; rm HEAD; mkfifo HEAD",
}

HARDEST_TO_READ = (
    *("closed_directory", "fifo", "git_directory_deleted", "git_file_a_fifo", "odd_names"),
    *("objects_destroyed", "refs_destroyed"),
)
HARD_TO_READ = (
    *("nothing", "untracked", "branch_deleted", "mid_rebase", "mid_merge", "nested_repository"),
    *("gitlink_staged", "read_only_directory", "unreadable_file", "link_to_elsewhere"),
    *("index_lock", "index_destroyed", "git_file_replaced", "git_file_a_link", "many_levels"),
    *("too_long_path", "agents_litter"),
)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture
def worktrees(tmp_path: Path, remote: Path) -> Generator[GitWorktrees]:
    (tmp_path / "elsewhere").mkdir()
    yield worktrees_of(tmp_path / "work", remote)
    # Where a test fails, pytest itself could not clear away what its agent made.
    subprocess.run(["rm", "-rf", str(tmp_path / "work")], check=False, stderr=subprocess.DEVNULL)


@pytest.fixture
def place(tmp_path: Path) -> WorktreePaths:
    return worktree_paths(tmp_path / "work", REF)


def first_attempt(worktrees: GitWorktrees, *lines: str) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, *lines)


LOOK = (
    r"printf '%s\0' $(git rev-parse HEAD) $(git rev-parse --abbrev-ref HEAD)",
    r"printf '%s\0' $(git branch --format='%(refname)')",
    "LEFT=$(git status --porcelain --ignored; git stash list; git tag)",
    "printf '%s\\0' \"$LEFT\"",
    "git status",
)
"""What an agent sees of where it starts, in parts with NUL between them."""


def assert_clean(tree: Worktree, remote: Path) -> None:
    assert contents(tree.path) == files_as_committed()
    assert tree.start_sha == branch_head(remote, "main")
    head, branch, *branches, left, status = run_in_worktree(tree, *LOOK).split("\0")
    assert head == tree.start_sha
    assert branch == REF.branch
    assert branches == ["refs/heads/main", f"refs/heads/{REF.branch}"]
    assert left == ""
    assert "in progress" not in status
    assert list(tree.private.iterdir()) == []


def by_row(deeds: Iterable[str], *marks: pytest.MarkDecorator) -> list[object]:
    """Put deeds into rows: each leaves what the next one finds, which saves half the time."""
    left = list(deeds)
    rows = [left[at : at + 14] for at in range(0, len(left), 14)]
    return [pytest.param(row, id=" ".join(row), marks=marks) for row in rows]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "deeds",
    [
        *by_row(name for name in LEFT_BEHIND if name != "many_levels"),
        *by_row(["many_levels"], pytest.mark.deep),
    ],
)
def test_the_next_worktree_is_clean_after(
    deeds: list[str],
    worktrees: GitWorktrees,
    remote: Path,
    place: WorktreePaths,
    subtests: pytest.Subtests,
) -> None:
    first_attempt(worktrees, LEFT_BEHIND[deeds[0]])
    for deed, following in pairwise([*deeds, "nothing"]):
        with subtests.test(deed), worktrees.open(REF) as tree:
            assert_clean(tree, remote)
            assert tree.recreated is False
            assert list(place.repository.trash.iterdir()) == []
            run_in_worktree(tree, LEFT_BEHIND[following])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "deeds", [*by_row(HARDEST_TO_READ), *by_row(HARD_TO_READ, pytest.mark.deep)]
)
def test_capture_survives(
    deeds: list[str], worktrees: GitWorktrees, remote: Path, subtests: pytest.Subtests
) -> None:
    for deed in deeds:
        with subtests.test(deed), worktrees.open(REF) as tree:
            assert_clean(tree, remote)
            run_in_worktree(tree, LEFT_BEHIND[deed])
            change = tree.capture(TEXT, SETTINGS)
            if change.head_sha:
                tree.check_out(change.head_sha)
                assert run_in_worktree(tree, "git status --porcelain --ignored") == ""
    with worktrees.open(REF) as tree:
        assert_clean(tree, remote)


def test_a_socket_is_not_left(
    worktrees: GitWorktrees, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worktrees.open(REF) as tree:
        with monkeypatch.context() as here, socket.socket(socket.AF_UNIX) as listening:
            # The whole path may be longer than a socket's address can be.
            here.chdir(tree.path)
            listening.bind("here.sock")
        assert (tree.path / "here.sock").is_socket()
        assert tree.capture(TEXT, SETTINGS).commits == 0
    with worktrees.open(REF) as tree:
        assert_clean(tree, remote)


def test_nothing_outside_is_touched_through_a_link(worktrees: GitWorktrees, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    (outside / "calc.py").write_text("precious")
    outside.chmod(0o500)
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, f"rm -r src; ln -s {outside} src; ln -s {outside} .git.d; rm .git")
        run_in_worktree(tree, f"ln -s {outside} .git", check=False)
        tree.capture(TEXT, SETTINGS)
    with worktrees.open(REF):
        assert (outside / "calc.py").read_text() == "precious"
        assert outside.stat().st_mode & 0o777 == 0o500


def delete_worktree(place: WorktreePaths) -> None:
    shutil.rmtree(place.tree)


def worktree_becomes_a_link(place: WorktreePaths) -> None:
    shutil.rmtree(place.tree)
    place.tree.symlink_to("/etc")


def worktree_becomes_a_file(place: WorktreePaths) -> None:
    shutil.rmtree(place.tree)
    place.tree.write_text("gone")


def delete_admin(place: WorktreePaths) -> None:
    shutil.rmtree(place.git_dir)


def spoil_head(place: WorktreePaths) -> None:
    (place.git_dir / "HEAD").write_text("nonsense")


def point_commondir_elsewhere(place: WorktreePaths) -> None:
    (place.git_dir / "commondir").write_text("/etc\n")


def take_for_another(place: WorktreePaths) -> None:
    """Let git believe that its entry `issue-12` is of a worktree elsewhere."""
    (place.git_dir / "gitdir").write_text("/elsewhere/.git\n")
    shutil.rmtree(place.tree)


@pytest.mark.timeout(300)
def test_a_worktree_that_cannot_be_reset_is_made_anew(
    worktrees: GitWorktrees, remote: Path, place: WorktreePaths, subtests: pytest.Subtests
) -> None:
    for spoil in (
        take_for_another,
        delete_worktree,
        worktree_becomes_a_link,
        worktree_becomes_a_file,
        delete_admin,
        spoil_head,
        point_commondir_elsewhere,
    ):
        with subtests.test(spoil.__name__):
            with worktrees.open(REF) as tree:
                assert tree.recreated is False
                run_in_worktree(tree, "echo new > new")
            spoil(place)
            with worktrees.open(REF) as tree:
                assert tree.recreated is True
                assert_clean(tree, remote)
                assert [path.name for path in place.git_dir.parent.iterdir()] == ["issue-12"]


def corrupt_index(place: WorktreePaths) -> None:
    (place.git_dir / "index").write_text("nonsense")


def hide_changes(place: WorktreePaths) -> None:
    environment = {"GIT_DIR": str(place.git_dir), "GIT_WORK_TREE": str(place.tree)}
    subprocess.run(
        ["git", "update-index", "--skip-worktree", "README.md", "src/calc.py"],
        cwd=place.tree,
        env={**os.environ, **environment},
        check=True,
    )


def leave_locks(place: WorktreePaths) -> None:
    mirror = place.repository.mirror
    for lock in (
        place.git_dir / "index.lock",
        place.git_dir / "HEAD.lock",
        mirror / "refs" / "heads" / "mulligan" / "issue-12.lock",
        mirror / "refs" / "remotes" / "origin" / "main.lock",
        mirror / "packed-refs.lock",
        mirror / "config.lock",
    ):
        lock.touch()


@pytest.mark.parametrize("spoil", [corrupt_index, hide_changes, leave_locks])
def test_mulligans_own_git_directory_is_mended_in_place(
    spoil: Callable[[WorktreePaths], None],
    worktrees: GitWorktrees,
    remote: Path,
    place: WorktreePaths,
) -> None:
    first_attempt(worktrees, "echo changed > README.md")
    spoil(place)
    with worktrees.open(REF) as tree:
        assert tree.recreated is False
        assert_clean(tree, remote)
        spoil(place)
        run_in_worktree(tree, "echo changed > README.md")
        if spoil is not leave_locks:
            assert [file.path for file in tree.capture(TEXT, SETTINGS).files] == ["README.md"]


def test_worktrees_of_issues_whose_numbers_begin_alike_stay_apart(
    worktrees: GitWorktrees, place: WorktreePaths
) -> None:
    with worktrees.open(IssueRef(REF.repository, 1)) as one:
        run_in_worktree(one, "echo one > README.md")
        shutil.rmtree(one.path)
    with worktrees.open(IssueRef(REF.repository, 11)) as eleven:
        run_in_worktree(eleven, "echo eleven > README.md")
        with worktrees.open(IssueRef(REF.repository, 1)) as one:
            assert contents(one.path) == files_as_committed()
        assert run_in_worktree(eleven, "cat README.md") == "eleven"
    names = sorted(path.name for path in place.git_dir.parent.iterdir())
    assert names == ["issue-1", "issue-11"]


def test_ignored_files_are_kept_where_the_operator_wants_that(tmp_path: Path, remote: Path) -> None:
    keeping = worktrees_of(tmp_path / "work", remote, keep_ignored=True)
    with keeping.open(REF) as tree:
        run_in_worktree(
            tree, "mkdir build; > build/x; > x.log; > new; mkdir .claude; > .claude/y; > .aider.z"
        )
        run_in_worktree(tree, "mkdir -p build/nested; git init -q build/nested; mkfifo build/pipe")
    with keeping.open(REF) as tree:
        assert tree.recreated is False
        left = contents(tree.path).keys() - files_as_committed().keys()
        assert left == {"build", "build/x", "build/nested", "x.log"}


def test_an_untouched_worktree_has_what_set_up_left_and_the_other_stays(
    tmp_path: Path, remote: Path
) -> None:
    with worktrees_of(tmp_path / "work", remote).open(REF) as opened:
        tree = set_up_in_worktree(opened, "mkdir build; echo set-up > build/tool; echo y > y.log")
        run_in_worktree(tree, "echo agent > build/tool; echo x > README.md")
        with tree.pristine_checkout(tree.start_sha):
            assert run_in_worktree(tree, "cat build/tool README.md y.log") == "set-up\nAdds.\ny"
            run_in_worktree(tree, "echo check > build/tool")
        assert run_in_worktree(tree, "cat build/tool README.md") == "agent\nx"
        tree.check_out(tree.start_sha)
        assert run_in_worktree(tree, "cat build/tool README.md y.log") == "set-up\nAdds.\ny"


def test_ignored_files_that_an_agent_keeps_are_not_there_for_the_checks(
    tmp_path: Path, remote: Path
) -> None:
    keeping = worktrees_of(tmp_path / "work", remote, keep_ignored=True)
    with keeping.open(REF) as tree:
        run_in_worktree(tree, "mkdir build; echo agent > build/tool")
        for _ in range(2):
            tree.check_out(tree.start_sha)
            assert contents(tree.path) == files_as_committed()
            run_in_worktree(tree, "mkdir build; echo check > build/tool; echo x > README.md")
        tree.check_out(tree.start_sha, for_agent=True)
        assert run_in_worktree(tree, "cat build/tool README.md") == "agent\nAdds."
        tree.check_out(tree.start_sha)
        run_in_worktree(tree, "mkdir build; echo check > build/tool")
    with keeping.open(REF) as tree:
        assert run_in_worktree(tree, "cat build/tool") == "agent"


def test_whatever_ends_mulligan_in_an_untouched_worktree_the_next_one_is_clean(
    tmp_path: Path, remote: Path
) -> None:
    keeping = worktrees_of(tmp_path / "work", remote)
    with keeping.open(REF) as tree:
        run_in_worktree(tree, "mkdir build; echo agent > build/tool")
        killed = tree.pristine_checkout(tree.start_sha)
        killed.__enter__()
        run_in_worktree(tree, "mkdir build; echo set-up > build/tool")
    with keeping.open(REF) as tree:
        assert contents(tree.path) == files_as_committed()
        assert list(tree.private.iterdir()) == []


def test_a_second_worktree_of_the_start_leaves_the_issues_branch_alone(
    tmp_path: Path, remote: Path
) -> None:
    keeping = worktrees_of(tmp_path / "work", remote)
    with keeping.open(REF) as tree:
        run_in_worktree(tree, "echo x > README.md")
        head = tree.capture(TEXT, SETTINGS).head_sha
        ref = tree.worktree.mirror.paths.mirror / f"refs/heads/{REF.branch}"
        with tree.beside() as base:
            for _ in range(2):
                base.check_out(base.start_sha)
                assert ref.read_text().strip() == head
        refs = tree.worktree.mirror.git.read("for-each-ref", "--format=%(refname)").decode()
        assert refs.split() == [f"refs/heads/{REF.branch}", "refs/remotes/origin/main"]
    left = [path.name for path in tree.path.parent.iterdir()]
    assert [name for name in left if "base" in name] == []
    assert [*tree.worktree.mirror.paths.trash.iterdir()] == []
    worktrees = [path.name for path in tree.worktree.paths.git_dir.parent.iterdir()]
    assert worktrees == [tree.worktree.paths.name]


def test_a_shutdown_leaves_nothing_of_a_second_worktree(tmp_path: Path, remote: Path) -> None:
    with worktrees_of(tmp_path / "work", remote).open(REF) as tree:
        try:
            with tree.beside() as base:
                base.check_out(base.start_sha)
                run_in_worktree(base, "mkdir build; touch build/{1..200}")
                SHUTDOWN.set()
        finally:
            SHUTDOWN.clear()
        assert not base.path.exists()
        assert [*tree.worktree.mirror.paths.trash.iterdir()] == []


def test_a_second_worktree_has_what_set_up_left(tmp_path: Path, remote: Path) -> None:
    with worktrees_of(tmp_path / "work", remote).open(REF) as opened:
        tree = set_up_in_worktree(opened, "mkdir build; echo set-up > build/tool")
        run_in_worktree(tree, "echo agent > build/tool")
        copied = tree.copies.took
        with tree.beside() as base:
            base.check_out(base.start_sha)
            assert run_in_worktree(base, "cat build/tool") == "set-up"
            run_in_worktree(base, "echo check > build/tool")
        assert run_in_worktree(tree, "cat build/tool") == "agent"
        # No part of the attempt's times.
        assert tree.copies.took == copied


@pytest.mark.parametrize("is_discarded", [True, False])
def test_whatever_ends_mulligan_beside_an_agent_the_next_one_is_clean(
    tmp_path: Path, remote: Path, *, is_discarded: bool
) -> None:
    worktrees = worktrees_of(tmp_path / "work", remote)
    with worktrees.open(REF) as tree:
        killed = tree.beside()
        base = killed.__enter__()
        base.check_out(base.start_sha)
        run_in_worktree(base, "mkdir build; echo x > build/tool")
    if is_discarded:
        assert worktrees.exists(REF)
        worktrees.discard(REF)
        assert not worktrees.exists(REF)
    else:
        with worktrees.open(REF) as tree:
            assert not base.path.exists()
            with tree.beside() as base:
                assert list(base.private.iterdir()) == []
                base.check_out(base.start_sha)
                assert contents(base.path) == files_as_committed()
    assert not base.path.exists()
    assert not base.worktree.paths.git_dir.exists()


@pytest.mark.parametrize("action", ["rm -rf $PWD", "rm -rf $PWD; ln -s /etc $PWD", "chmod 0 ."])
def test_an_untouched_worktree_needs_nothing_of_the_other(
    action: str, tmp_path: Path, remote: Path
) -> None:
    with worktrees_of(tmp_path / "work", remote).open(REF) as tree:
        run_in_worktree(tree, action, check=False)
        with tree.pristine_checkout(tree.start_sha):
            assert contents(tree.path) == files_as_committed()
            run_in_worktree(tree, action, check=False)
        tree.check_out(tree.start_sha)
        assert contents(tree.path) == files_as_committed()


@pytest.mark.parametrize("kind", ["plain", "untracked", "committed"])
def test_submodules_stay_links_and_their_files_are_named(
    kind: str, worktrees: GitWorktrees, remote: Path
) -> None:
    add_submodule(remote, "vendor/sub")
    expected = {**files_as_committed(), "vendor": "directory", "vendor/sub": "directory"}
    with worktrees.open(REF) as tree:
        assert contents(tree.path) == expected
        inside = f"; {MINE}; git add -A; git commit -qm x" if kind == "committed" else ""
        begin = ":" if kind == "plain" else "git init -q"
        files = "echo x > x; mkdir -p a/b .git; touch a/b/c a/.DS_Store a/b/d.pyc"
        run_in_worktree(tree, f"cd vendor/sub; {begin}; {files}{inside}")
        change = tree.capture(TEXT, SETTINGS)
        files, nested = ("vendor/sub/a/b/c", "vendor/sub/x"), ("vendor/sub",)
        named = (files, ()) if kind == "plain" else ((), nested)
        assert change.head_sha is None
        assert (change.submodule_files, change.nested) == named
    with worktrees.open(REF) as tree:
        assert tree.recreated is False
        assert contents(tree.path) == expected


CLONE = "git clone -q {library} vendor/sub; cd vendor/sub"
UPDATE = (
    "git config -f .gitmodules submodule.sub.path vendor/sub; git config submodule.sub.url "
    "{library}; git -c protocol.file.allow=always submodule -q update --init 2> $HOME/log; "
    "rm .gitmodules; cd vendor/sub; test -f lib.c"
)
NOBODY = "-c user.name=a -c user.email=a@b"


@pytest.mark.parametrize("lines", [CLONE, UPDATE])
@pytest.mark.parametrize(
    ("work", "left"),
    [
        (":", []),
        ("echo x > x.o; mkdir a; echo x > a/y.o; chmod 0 a; mkfifo fifo", []),
        (
            "git config filter.x.clean false; echo '*.c filter=x' > .gitattributes",
            [".gitattributes"],
        ),
        ("printf 'a\\0b' > b.bin", ["output: vendor/sub/b.bin"]),
        ("rm lib.c", []),
        ("echo x > lib.c", ["lib.c"]),
        (f"echo x > lib.c; git {NOBODY} commit -qam x", ["lib.c"]),
        ("echo x > new.c; ln -s lib.c link", ["link", "new.c"]),
        ("echo '*.c filter=lfs' > .gitattributes; echo x > lib.c", [".gitattributes"]),
        ("echo /etc > $(git rev-parse --git-dir)/objects/info/alternates", []),
        ("rm -rf $(git rev-parse --git-dir)/objects/??; echo x > lib.c", ["unknown: vendor/sub"]),
        ("echo 'gitdir: /x' > x; rm -rf .git; mv x .git; echo x > lib.c", ["unknown: vendor/sub"]),
        ("rm -rf .git; ln -s /etc .git; echo x > lib.c", ["unknown: vendor/sub"]),
    ],
)
def test_a_submodule_that_was_only_checked_out_and_built_is_no_change(
    lines: str, work: str, left: list[str], worktrees: GitWorktrees, remote: Path
) -> None:
    library = make_remote(remote.with_name("lib.git"), {"lib.c": "int x;\n", ".gitignore": "*.o\n"})
    add_submodule(remote, "vendor/sub", sha=git(library, "rev-parse", "main"))
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, f"echo fixed > README.md; {lines.format(library=library)}; {work}")
        change = tree.capture(TEXT, SETTINGS)
    assert [file.path for file in change.files] == ["README.md"]
    changed = [path.removeprefix("vendor/sub/") for path in change.submodule_files]
    beside = [f"output: {path}" for path in change.leftovers]
    assert [*changed, *beside, *(f"unknown: {path}" for path in change.nested)] == left


LINK = f"git update-index --cacheinfo 160000,{'2' * 40},vendor/sub; {MINE}; git commit -qm bump"


@pytest.mark.parametrize(
    ("lines", "links"),
    [
        (LINK, ("vendor/sub",)),
        (f"echo x > new; git add new; {LINK}", ("vendor/sub",)),
        (f"{LINK}; git revert -n HEAD; git commit -qm back", ()),
        (f"{MINE}; git commit -q --allow-empty -m x", ()),
    ],
)
def test_a_changed_link_of_a_submodule_is_named(
    lines: str, links: tuple[str, ...], worktrees: GitWorktrees, remote: Path
) -> None:
    add_submodule(remote, "vendor/sub")
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, lines)
        change = tree.capture(TEXT, SETTINGS)
    assert (change.submodule_links, change.submodule_files) == (links, ())


def test_a_link_that_came_from_the_base_branch_is_no_change(
    worktrees: GitWorktrees, remote: Path
) -> None:
    add_submodule(remote, "vendor/sub")
    with worktrees.open(REF) as tree:
        other = replace(REF, number=REF.number + 1)
        with worktrees.open(other) as newer:
            run_in_worktree(newer, f"{LINK}; git push -q {remote} HEAD:main")
        with worktrees.open(other) as newer:
            run_in_worktree(tree, f"{MINE}; git merge -q {newer.start_sha}")
        change = tree.capture(TEXT, SETTINGS)
    assert (change.submodule_links, change.submodule_files) == ((), ())


def test_a_link_in_the_way_of_a_submodule_leads_nowhere(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    commit_to(remote, {".gitignore": "vendor\n"})
    add_submodule(remote, "vendor/sub")
    keeping = replace(worktrees, keep_ignored=True)
    with keeping.open(REF) as tree:
        run_in_worktree(tree, f"rm -r vendor; ln -s {tmp_path}/elsewhere vendor")
    with keeping.open(REF) as tree:
        assert (tree.path / "vendor" / "sub").is_dir()
        assert not (tree.path / "vendor").is_symlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_files_with_forbidden_line_ends_do_not_make_a_worktree_dirty(
    tmp_path: Path, remote: Path
) -> None:
    with worktrees_of(tmp_path / "other", remote).open(REF) as tree:
        run_in_worktree(
            tree, MINE, "printf 'a\\r\\nb\\r\\n' > 'w in[1].txt'; git add -A; git commit -qm crlf"
        )
        run_in_worktree(
            tree, "echo '*.txt text' > .gitattributes; git add .gitattributes; git commit -qm text"
        )
        run_in_worktree(tree, f"git push -q {remote} HEAD:main")
    worktrees = worktrees_of(tmp_path / "work", remote)
    for _ in range(2):
        with worktrees.open(REF) as tree:
            assert tree.recreated is False
            assert (tree.path / "w in[1].txt").read_bytes() == b"a\r\nb\r\n"
            run_in_worktree(tree, "echo new > new; touch *.txt")
            change = tree.capture(TEXT, SETTINGS)
            assert [file.path for file in change.files] == ["new"]


HOOKS = (
    *("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-push"),
    *("fsmonitor-watchman", "post-commit", "commit-msg", "post-rewrite", "pre-auto-gc"),
)
PROGRAMS = (
    *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass"),
    *("diff.external", "gpg.program", "filter.x.clean", "filter.x.smudge", "filter.x.process"),
    *("diff.x.command", "diff.x.textconv", "merge.x.driver", "credential.helper"),
    *("uploadpack.packObjectsHook", "remote.origin.receivepack", "alias.status", "alias.add"),
)


def trap(git_dir: Path, marker: Path) -> Path:
    """Make every hook of a git directory tell that it was started."""
    program = git_dir / "program"
    program.write_text(f"#!/bin/sh\necho $0 $* >> {marker}\nexec cat\n")
    program.chmod(0o755)
    (git_dir / "hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        shutil.copy(program, git_dir / "hooks" / hook)
    return program


def plant(git_dir: Path, marker: Path, remote: Path) -> None:
    """Make everything in a git directory that could start a program start one that tells."""
    program = trap(git_dir, marker)
    settings = "".join(
        f'[{section} "{name}"]\n\t{key} = {program}\n'
        if name
        else f"[{section}]\n\t{key} = {program}\n"
        for section, name, key in (
            (parts[0], ".".join(parts[1:-1]), parts[-1])
            for parts in (setting.split(".") for setting in PROGRAMS)
        )
    )
    with (git_dir / "config").open("a") as config:
        config.write(settings)
        config.write(f"[core]\n\thooksPath = {git_dir}/hooks\n\tworktree = /etc\n")
        config.write('[commit]\n\tgpgSign = true\n[filter "x"]\n\trequired = true\n')
        config.write(f'[url "ext::{program}"]\n\tinsteadOf = {remote}\n')
        config.write(f"[include]\n\tpath = {git_dir}/included\n")
    (git_dir / "included").write_text(f"[core]\n\talternateRefsCommand = {program}\n")
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text("* filter=x diff=x merge=x\n")


@pytest.mark.parametrize("lines", [CLONE, UPDATE])
def test_nothing_that_an_agent_planted_in_a_submodule_is_ever_started(
    lines: str, worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    library = make_remote(remote.with_name("lib.git"), {"lib.c": "int x;\n"})
    add_submodule(remote, "vendor/sub", sha=git(library, "rev-parse", "main"))
    marker = tmp_path / "started"
    with worktrees.open(REF) as tree:
        place = run_in_worktree(
            tree,
            lines.format(library=library),
            "echo '* filter=x diff=x merge=x' > .gitattributes; echo y > new.c",
            "git rev-parse --absolute-git-dir",
        )
        plant(Path(place), marker, remote)
        change = tree.capture(TEXT, SETTINGS)
    assert change.submodule_files == ("vendor/sub/.gitattributes", "vendor/sub/new.c")
    assert not marker.exists()


def test_nothing_that_an_agent_planted_is_ever_started(
    worktrees: GitWorktrees, remote: Path, place: WorktreePaths, tmp_path: Path
) -> None:
    marker = tmp_path / "started"
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "git init -q sub; echo new > sub/new; echo changed > README.md")
        run_in_worktree(
            tree, "echo '* filter=x diff=x merge=x' > .gitattributes; cp .gitattributes sub/"
        )
        plant(tree.path / "sub" / ".git", marker, remote)
        plant(place.agent_git_dir, marker, remote)
        change = tree.capture(TEXT, SETTINGS)
        assert {file.path for file in change.files} == {
            *("README.md", ".gitattributes"),
        }
        assert b"+changed" in change.diff
        assert change.head_sha
        plant(place.agent_git_dir, marker, remote)
        tree.check_out(change.head_sha)
        plant(place.agent_git_dir, marker, remote)
        worktrees.push(REF, change.head_sha, None)
    with worktrees.open(REF) as tree:
        assert_clean(tree, remote)
        assert not marker.exists()
        plant(place.agent_git_dir, marker, remote)
        run_in_worktree(tree, "git status", check=False)
        assert marker.exists(), "the trap itself does not work"


def test_hooks_in_mulligans_own_git_directory_are_not_started(
    worktrees: GitWorktrees, place: WorktreePaths, tmp_path: Path
) -> None:
    """The second wall: without a sandbox, an agent can find that directory."""
    marker, mirror = tmp_path / "started", place.repository.mirror
    with worktrees.open(REF) as tree:
        program = trap(mirror, marker)
        with (mirror / "config").open("a") as config:
            config.write(f"[core]\n\tfsmonitor = {program}\n\thooksPath = {mirror}/hooks\n")
            config.write(f"[diff]\n\texternal = {program}\n[gpg]\n\tprogram = {program}\n")
            config.write("[commit]\n\tgpgSign = true\n")
        run_in_worktree(tree, "echo changed > README.md")
        change = tree.capture(TEXT, SETTINGS)
        tree.check_out(str(change.head_sha))
        worktrees.push(REF, str(change.head_sha), None)
    with worktrees.open(REF):
        assert not marker.exists()
    git(mirror, "update-ref", "refs/heads/x", "HEAD")
    assert marker.exists(), "the trap itself does not work"


def test_what_a_check_leaves_is_looked_for_though_a_capture_looked_before(
    tmp_path: Path, remote: Path
) -> None:
    with worktrees_of(tmp_path / "work", remote).open(REF) as tree:
        run_in_worktree(tree, "echo x > README.md; mkfifo pipe; chmod a-w src")
        head = tree.capture(TEXT, CommitSettings()).head_sha
        assert head
        for _ in range(2):
            tree.check_out(head)
            assert contents(tree.path).keys() == files_as_committed().keys()
            run_in_worktree(tree, "mkdir new empty; git init -q new; mkfifo pipe new/pipe")
