"""Submodules are fetched by the base branch's files only, and are plain files (WORKTREE-5)."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.operator import RepositorySettings
from mulligan.config.policy import RECURSIVE, CheckoutSettings, CommitSettings
from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.git.worktrees import fetch_submodules
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.implement.ports import PullRequestBase, Worktree
from world.checkouts import (
    REF,
    REPOSITORY,
    TEXT,
    calc_remote,
    contents,
    files_as_committed,
    run_in_worktree,
    set_up_in_worktree,
    worktrees_of,
)
from world.repositories import git
from world.submodules import FILE, GITLINK, LIBRARY, SYMLINK, gitmodules, library, link, put

SETTINGS = CommitSettings()
ON = CheckoutSettings(submodules=True)
AS_WRITTEN = files_as_committed({**LIBRARY, "crlf.txt": "a\nb\n"})
DEEP = CheckoutSettings(submodules=RECURSIVE)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture
def worktrees(tmp_path: Path, remote: Path) -> GitWorktrees:
    return worktrees_of(tmp_path / "work", remote)


def inside(tree: Worktree, path: str) -> dict[str, str]:
    return contents(tree.path / path)


def test_a_submodule_has_the_files_of_the_linked_commit(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    lib = library(tmp_path)
    link(remote, "lib", lib)
    put(lib, {"lib.py": (FILE, "VALUE = 0\n")}, "Not linked")
    with worktrees.open(REF) as opened:
        assert inside(opened, "lib") == {}
        tree = opened.with_checkout(ON)
        assert inside(tree, "lib") == AS_WRITTEN
        assert (tree.path / "lib/crlf.txt").read_bytes() == b"a\r\nb\r\n"
        change = tree.capture(TEXT, SETTINGS)
        assert (change.commits, change.submodule_files, change.nested) == (0, (), ())
        # Every command starts with them, whatever was left there.
        run_in_worktree(tree, "rm -r lib/deep; echo x > lib/lib.py; ln -s /etc lib/deep; > lib/n")
        tree.check_out(tree.start_sha)
        assert inside(tree, "lib") == AS_WRITTEN
        with tree.beside() as other:
            other.check_out(other.start_sha)
            assert inside(other, "lib") == AS_WRITTEN
    # Nothing is fetched again.
    shutil.rmtree(lib)
    with worktrees.open(REF) as opened:
        assert inside(opened.with_checkout(ON), "lib") == AS_WRITTEN
        assert opened.with_checkout(CheckoutSettings()) is opened


@pytest.mark.parametrize(
    ("work", "left"),
    [
        (":", []),
        ("echo x > lib/x.o; rm lib/lib.py", []),
        ("printf 'a\\0b' > lib/b.bin", ["output: lib/b.bin"]),
        ("echo x > lib/lib.py", ["lib/lib.py"]),
        ("printf 'a\\nb\\n' > lib/crlf.txt", ["lib/crlf.txt"]),
        (
            "echo '* filter=x' > lib/.gitattributes; echo x > lib/lib.py",
            [".gitattributes", "lib.py"],
        ),
        ("echo x > lib/new.py; ln -s lib.py lib/ln", ["lib/ln", "lib/new.py"]),
        ("cd lib; git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm x", []),
        ("cd lib; git init -q; echo x > lib.py; git add -A", ["lib/lib.py"]),
        ("rm -r lib; ln -s /etc lib", []),
        ("rm -r lib; cp -r ../issue-12/src lib", ["lib/calc.py", "lib/deep/er/empty.py"]),
    ],
)
def test_what_an_agent_does_in_a_submodule_is_named(
    work: str, left: list[str], worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    link(remote, "lib", library(tmp_path))
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        run_in_worktree(tree, f"echo fixed > README.md; {work}")
        change = tree.capture(TEXT, SETTINGS)
    beside = [f"output: {path}" for path in change.leftovers]
    named = [*change.submodule_files, *beside]
    assert named == [path if "/" in path else f"lib/{path}" for path in left]
    if "ln -s /etc" not in work:
        assert [file.path for file in change.files] == ["README.md"]


def test_an_inner_submodule_needs_the_word_recursive(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    inner, middle = library(tmp_path, "inner.git", {"in.txt": "in\n"}), library(tmp_path)
    link(middle, "sub/inner", inner)
    link(remote, "lib", middle)
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        assert inside(tree, "lib/sub/inner") == {}
        run_in_worktree(tree, "echo x > lib/sub/inner/x")
        assert tree.capture(TEXT, SETTINGS).submodule_files == ("lib/sub/inner/x",)
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(DEEP)
        assert inside(tree, "lib/sub/inner") == {"in.txt": "= in\n"}
        assert tree.capture(TEXT, SETTINGS).submodule_files == ()
        run_in_worktree(tree, "echo x > lib/sub/inner/in.txt")
        assert tree.capture(TEXT, SETTINGS).submodule_files == ("lib/sub/inner/in.txt",)
        tree.check_out(tree.start_sha)
        assert inside(tree, "lib/sub/inner") == {"in.txt": "= in\n"}


def test_a_submodule_in_itself_ends(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = library(tmp_path, "last.git", {"in.txt": "in\n"})
    for number in range(3):
        outer = library(tmp_path, f"outer-{number}.git", {"x": f"{number}\n"})
        link(outer, "deeper", last)
        last = outer
    link(remote, "lib", last)
    monkeypatch.setattr(fetch_submodules, "MAX_DEPTH", 3)
    with (
        worktrees.open(REF) as opened,
        pytest.raises(MisconfiguredError, match="more than 3 in each other"),
    ):
        opened.with_checkout(DEEP)
    monkeypatch.setattr(fetch_submodules, "MAX_DEPTH", 4)
    with worktrees.open(REF) as opened:
        assert inside(opened.with_checkout(DEEP), "lib/deeper/deeper/deeper")


def test_limits(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = library(tmp_path, files={f"{number}": "x" * 90_000 for number in range(12)})
    link(remote, "lib", large)
    monkeypatch.setattr(fetch_submodules, "MAX_BYTES", 1_000_000)
    with worktrees.open(REF) as opened, pytest.raises(MisconfiguredError, match="too large"):
        opened.with_checkout(ON)
    monkeypatch.setattr(fetch_submodules, "MAX_BYTES", 2_000_000)
    monkeypatch.setattr(fetch_submodules, "MAX_FILES", 11)
    with worktrees.open(REF) as opened, pytest.raises(MisconfiguredError, match="too large"):
        opened.with_checkout(ON)


def test_git_receives_no_more_than_the_limit(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = "".join(f"{number * 7919 % 104729:x}" for number in range(60_000))
    link(remote, "lib", library(tmp_path, files={"noise": noise}))
    monkeypatch.setattr(fetch_submodules, "MAX_BYTES", 8192)
    with worktrees.open(REF) as opened, pytest.raises(MisconfiguredError, match="too large"):
        opened.with_checkout(ON)
    assert not list((tmp_path / "work" / REPOSITORY / "submodules").glob("*.git"))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://evil.example/a/b", "is not on this machine"),
        ("git@evil.example:a/b", "is not on this machine"),
        ("ext::sh -c touch% /tmp/pwned", "is not an https, ssh or local address"),
        ("../../lib.git", "is not in the directory of the repository's clone_url"),
        ("/etc", "is not in the directory of the repository's clone_url"),
        ("../", "is not in the directory of the repository's clone_url"),
    ],
)
def test_a_url_elsewhere_is_refused_by_name(
    url: str, words: str, worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    link(remote, "lib", library(tmp_path), url)
    with worktrees.open(REF) as opened, pytest.raises(MisconfiguredError) as raised:
        opened.with_checkout(ON)
    assert words in str(raised.value)


def test_a_password_in_a_url_is_not_shown(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    link(remote, "lib", library(tmp_path), "https://me:secret@evil.example/a/b")
    with worktrees.open(REF) as opened, pytest.raises(MisconfiguredError) as raised:
        opened.with_checkout(ON)
    assert "secret" not in str(raised.value)


def test_a_link_without_an_entry_is_named_and_update_none_is_skipped(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    lib = library(tmp_path)
    put(remote, {"lib": (GITLINK, git(lib, "rev-parse", "main"))})
    with (
        worktrees.open(REF) as opened,
        pytest.raises(MisconfiguredError, match=r"lib is a submodule without an entry in \.gitmod"),
    ):
        opened.with_checkout(ON)
    put(remote, {".gitmodules": (FILE, gitmodules(lib="../lib.git") + "\tupdate = none\n")})
    with worktrees.open(REF) as opened:
        assert inside(opened.with_checkout(ON), "lib") == {}


def test_a_commit_or_repository_that_is_not_there_is_an_outage(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    library(tmp_path)
    put(remote, {"lib": (GITLINK, "1" * 40), ".gitmodules": (FILE, gitmodules(lib="../lib.git"))})
    with (
        worktrees.open(REF) as opened,
        pytest.raises(UnavailableError, match=r"links to the commit 1111111111, which .* not have"),
    ):
        opened.with_checkout(ON)
    shutil.rmtree(tmp_path / "lib.git")
    with worktrees.open(REF) as opened, pytest.raises(UnavailableError):
        opened.with_checkout(ON)


REWRITE = (
    "git config -f .gitmodules submodule.name-0.url ../other.git;"
    "git config -f .gitmodules submodule.name-0.path src; git add -A;"
    "git update-index --cacheinfo 160000,{sha},lib;"
    "git -c user.name=a -c user.email=a@b commit -qm moved"
)


def test_what_an_agent_writes_changes_nothing_about_what_is_fetched(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    other = library(tmp_path, "other.git", {"evil.py": "evil\n"})
    link(remote, "lib", library(tmp_path))
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        run_in_worktree(tree, REWRITE.format(sha=git(other, "rev-parse", "main")))
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha
        assert change.submodule_links == ("lib",)
        tree.check_out(change.head_sha)
        assert inside(tree, "lib") == AS_WRITTEN
        assert "../other.git" in (tree.path / ".gitmodules").read_text()
        tree.check_out(tree.start_sha)
        assert inside(tree, "lib") == AS_WRITTEN
    stored = list((tmp_path / "work" / REPOSITORY / "submodules").glob("*.git"))
    assert len(stored) == 1


def test_a_pull_request_that_moves_a_submodule_gets_the_base_branchs(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    """Somebody else's commit in the pull request, on which the attempt starts."""
    link(remote, "lib", library(tmp_path))
    base = git(remote, "rev-parse", "main")
    moved = link(remote, "lib", library(tmp_path, "other.git", {"evil.py": "evil\n"}))
    git(remote, "update-ref", "refs/heads/mulligan/issue-12", "main")
    git(remote, "update-ref", "refs/heads/main", base)
    with worktrees.open(REF, PullRequestBase(frozenset())) as opened:
        assert git(remote, "rev-parse", f"{opened.start_sha}:lib") == moved
        assert opened.fork_sha == base
        tree = opened.with_checkout(ON)
        assert inside(tree, "lib") == AS_WRITTEN
        assert tree.capture(TEXT, SETTINGS).submodule_files == ()


def test_a_change_that_replaces_a_submodule_by_files_gets_none(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    link(remote, "lib", library(tmp_path))
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        run_in_worktree(tree, "git rm -q --cached lib; rm -r lib; mkdir lib; echo x > lib/mine")
        run_in_worktree(tree, "git add -A; git -c user.name=a -c user.email=a@b commit -qm x")
        head = run_in_worktree(tree, "git rev-parse HEAD")
        objects = run_in_worktree(tree, "git rev-parse --absolute-git-dir")
        git(tmp_path / "work" / REPOSITORY / "mirror.git", "fetch", "-q", objects, head)
        tree.check_out(head)
        assert inside(tree, "lib") == {"mine": "= x\n"}


@pytest.mark.parametrize(
    ("path", "target", "left"),
    [
        ("in", "deep/data.txt", "-> deep/data.txt"),
        ("up", "../src/calc.py", None),
        ("absolute", "/etc/passwd", None),
        ("deep/out", "../../../x", None),
        ("dangling", "nothing", "-> nothing"),
    ],
)
def test_a_link_out_of_a_submodule_is_not_written(
    path: str, target: str, left: str | None, worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    lib = library(tmp_path)
    put(lib, {path: (SYMLINK, target)})
    link(remote, "lib", lib)
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        assert inside(tree, "lib").get(path) == left
        assert tree.capture(TEXT, SETTINGS).submodule_files == ()


def test_a_chain_of_links_that_leads_out_is_not_written(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    lib = library(tmp_path)
    put(lib, {"a/b/top": (SYMLINK, "../.."), "chain": (SYMLINK, "a/b/top/../../x")})
    link(remote, "lib", lib)
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        assert (tree.path / "lib/a/b/top").is_symlink()
        assert not (tree.path / "lib/chain").is_symlink()


@pytest.mark.parametrize("name", [".git", ".GIT", ".git\u200c", "git~1", "..", ".gitmodules"])
def test_a_tree_with_a_path_trick_is_not_fetched(
    name: str, worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    lib = library(tmp_path)
    blob = git(lib, "hash-object", "-w", "--stdin", stdin="[core]\n\tfsmonitor = touch /tmp/x\n")
    mode = f"120000 blob {blob}" if name == ".gitmodules" else None
    below = git(lib, "mktree", stdin=f"100644 blob {blob}\tconfig\n")
    tree = git(lib, "mktree", stdin=f"{mode or f'040000 tree {below}'}\t{name}\n")
    commit = git(lib, "commit-tree", tree, "-m", "trick")
    git(lib, "update-ref", "refs/heads/main", commit)
    link(remote, "lib", lib)
    with worktrees.open(REF) as opened, pytest.raises(UnavailableError):
        opened.with_checkout(ON)
    assert not list((tmp_path / "work" / REPOSITORY / "submodules").glob("*.git"))


@pytest.mark.parametrize("path", ["../evil", "lib/../../evil", ".git/hooks", "/evil"])
def test_a_path_in_gitmodules_is_only_compared(
    path: str, worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    link(remote, "lib", library(tmp_path))
    entry = gitmodules(**{"lib": "../lib.git", path: "../lib.git"})
    put(remote, {".gitmodules": (FILE, entry)})
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        assert set(inside(tree, "lib")) == set(AS_WRITTEN)
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("kind", ["copied", "layered"])
def test_what_setup_commands_build_in_a_submodule_stays(
    kind: str, worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    link(remote, "lib", library(tmp_path))
    with replace(worktrees, is_layered=kind == "layered").open(REF) as opened:
        tree = opened.with_checkout(ON)
        line = "cat lib/lib.py > lib/built.o; echo x > lib/lib.py; ln -s /etc lib/deep/x.o"
        ready = set_up_in_worktree(tree, line)
        assert ready.set_up_files
        left = contents(ready.set_up_files / "tree")
        assert left["lib/built.o"] == "= VALUE = 41\n"
        assert "lib/lib.py" not in left
        found = inside(ready, "lib")
        assert found["lib.py"] == "= VALUE = 41\n"
        assert kind == "layered" or found["built.o"] == "= VALUE = 41\n"
        assert ready.capture(TEXT, SETTINGS).submodule_files == ()


def test_a_link_that_setup_commands_leave_is_not_followed(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path
) -> None:
    """An ignored link is in the way of a directory of the submodule."""
    lib = library(tmp_path, files={"x.o/in": "in\n", ".gitignore": "*.o\n"})
    link(remote, "lib", lib)
    (tmp_path / "elsewhere").mkdir()
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        ready = set_up_in_worktree(tree, f"rm -r lib/x.o; ln -s {tmp_path}/elsewhere lib/x.o")
        assert inside(ready, "lib")["x.o/in"] == "= in\n"
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_rehearsal_uses_the_submodules_of_the_clone(remote: Path, tmp_path: Path) -> None:
    """Their URL leads elsewhere, as in a clone from GitHub."""
    lib = library(tmp_path)
    link(remote, "lib", lib, "https://github.com/acme/lib")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(remote), str(clone))
    trees = worktrees_of(tmp_path / "work", clone)
    with (
        trees.open(REF) as opened,
        pytest.raises(
            MisconfiguredError, match=r"Or run `git submodule update --init --recursive`"
        ),
    ):
        opened.with_checkout(ON)
    instead = f"url.{lib}.insteadOf=https://github.com/acme/lib"
    allowed = ("-c", "protocol.file.allow=always", "-c", instead)
    git(clone, *allowed, "submodule", "-q", "update", "--init")
    with trees.open(REF) as opened:
        assert inside(opened.with_checkout(ON), "lib") == AS_WRITTEN


def test_commits_that_nobody_uses_are_removed(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib = library(tmp_path)
    link(remote, "lib", lib)
    with worktrees.open(REF) as opened:
        opened.with_checkout(ON)
    stored = tmp_path / "work" / REPOSITORY / "submodules"
    (first,) = stored.glob("*.git")
    put(lib, {"lib.py": (FILE, "VALUE = 0\n")})
    link(remote, "lib", lib)
    monkeypatch.setattr(fetch_submodules, "KEPT_SECONDS", -10)
    with worktrees.open(REF) as opened:
        opened.with_checkout(ON)
    (second,) = stored.glob("*.git")
    assert first != second


def test_a_credential_is_for_named_repositories_only() -> None:
    settings = RepositorySettings(name=REPOSITORY, submodules=("octo/lib",))
    assert settings.submodules == ("octo/lib",)
