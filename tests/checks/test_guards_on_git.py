"""Links, submodules and odd names, in changes that real git wrote and Mulligan read."""

import os
from pathlib import Path

import pytest

from mulligan.checks.guards import violations
from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.git.worktrees.attempt_worktree import changes_of, entries_of, measured
from world.repositories import git


def told(change: Change, scope: Scope | None = None) -> tuple[str, ...]:
    return tuple(broken.message for broken in violations(change, scope or Scope()))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "old.txt").write_text("one\ntwo\nthree\n" * 9)
    (tmp_path / "link").symlink_to("old.txt")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "start")
    return tmp_path


def left_by(repository: Path, *options: str) -> Change:
    """Read what differs from the commit before as Mulligan does."""
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "more")
    commits = ("HEAD~1", "HEAD")
    diff = _read(repository, "diff", "-M", *options, *commits, "--") + b"\n"
    changes = changes_of(
        _read(repository, "diff-tree", "-r", "-z", "-M", "--raw", "--numstat", *commits)
    )
    entries = entries_of(_read(repository, "ls-tree", "-r", "-l", "-z", "HEAD"))
    blobs = {entry.blob for entry in entries.values() if entry.mode == "120000"}
    links = {blob: git(repository, "cat-file", "blob", blob) for blob in blobs}
    return Change("a" * 40, "b" * 40, 1, measured(changes, entries, links), diff)


def _read(repository: Path, *arguments: str) -> bytes:
    return git(repository, *arguments).encode(errors="surrogateescape")


@pytest.mark.parametrize(
    ("path", "target", "leads_out"),
    [
        ("a b/ñew\tlink", "../old.txt", False),
        ("a b/ñew\tlink", "/etc/passwd", True),
        ('quo"te', "/etc/passwd", True),
    ],
)
def test_links_with_odd_names_are_read(
    repository: Path, path: str, target: str, *, leads_out: bool
) -> None:
    (repository / path).parent.mkdir(exist_ok=True)
    (repository / path).symlink_to(target)
    sentences = told(left_by(repository))
    assert bool(sentences) is leads_out
    assert all(f"{path} is a symbolic link to {target}," in sentence for sentence in sentences)


def test_a_link_that_is_turned_elsewhere_is_seen(repository: Path) -> None:
    (repository / "link").unlink()
    (repository / "link").symlink_to("/etc/passwd")
    (sentence,) = told(left_by(repository))
    assert sentence.startswith("link is a symbolic link to /etc/passwd")


def test_a_file_that_becomes_a_link_is_seen_and_one_that_was_a_link_is_fine(
    repository: Path,
) -> None:
    (repository / "old.txt").unlink()
    (repository / "old.txt").symlink_to("../elsewhere")
    (repository / "link").unlink()
    (repository / "link").write_text("/etc/passwd\n")
    (sentence,) = told(left_by(repository))
    assert sentence.startswith("old.txt is a symbolic link to ../elsewhere")


def test_a_link_that_is_moved_to_where_it_leads_out_is_seen(repository: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "up").symlink_to("../old.txt")
    assert told(left_by(repository)) == ()
    (repository / "sub" / "up").rename(repository / "up")
    moved = left_by(repository)
    assert (moved.files[0].status, moved.files[0].old_path) == ("R", "sub/up")
    (sentence,) = told(moved)
    assert sentence.startswith("up is a symbolic link to ../old.txt")


def test_a_link_that_goes_is_no_matter(repository: Path) -> None:
    (repository / "link").unlink()
    assert told(left_by(repository)) == ()


def test_submodules_must_not_come_change_or_go(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "one")
    said = ("inner is a submodule; submodules must not be added, changed or removed.",)
    assert told(left_by(repository)) == said
    git(inner, "commit", "-q", "--allow-empty", "-m", "two")
    assert told(left_by(repository)) == said
    os.rename(inner, repository.parent / f"{repository.name}-inner")  # noqa: PTH104 - across directories
    assert told(left_by(repository)) == said


def test_a_file_that_was_moved_away_has_changed_too(repository: Path) -> None:
    (repository / "old.txt").rename(repository / "new.txt")
    moved = left_by(repository)
    only_new = Change(moved.start_sha, moved.head_sha, 1, moved.files[:1], moved.diff)
    assert told(only_new, Scope(deny=("old.txt",))) == (
        "old.txt must not change: scope.deny has old.txt.",
    )


def test_moved_files_with_odd_names_are_read(repository: Path) -> None:
    odd = repository / 'o"d\tñ.txt'
    (repository / "old.txt").rename(odd)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "odd")
    odd.rename(repository / "plain.txt")
    moved = left_by(repository)
    assert told(moved, Scope(deny=("o*",))) == ('o"d\tñ.txt must not change: scope.deny has o*.',)


def test_content_that_looks_like_a_diff_is_only_content(repository: Path) -> None:
    text = "diff --git a/x b/x\nnew file mode 160000\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n"
    (repository / "notes.diff").write_text(text * 2)
    assert told(left_by(repository)) == ()


def test_binary_files_and_modes_are_fine(repository: Path) -> None:
    (repository / "a.bin").write_bytes(bytes(range(256)))
    (repository / "old.txt").chmod(0o755)
    assert told(left_by(repository)) == ()
    assert told(left_by_nothing()) == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.test.js", b'/*\0*/\nit("stays", () => {});\n'),
        ("pytest.ini", b"# \0\n[pytest]\naddopts = --deselect tests/test_a.py\n"),
    ],
)
def test_a_zero_byte_hides_no_lost_test(repository: Path, name: str, content: bytes) -> None:
    before = "".join(
        f'it("{test}", () => {{ expect(1).toBe(1); }});\n' for test in ("stays", "goes")
    )
    (repository / "a.test.js").write_text(before)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "tests")
    (repository / name).write_bytes(content)
    assert f"{name} has a zero byte, so git shows no lines of it; remove the byte." in told(
        left_by(repository), Scope(allow_deleted_tests=True)
    )


def left_by_nothing() -> Change:
    return Change("a" * 40, "b" * 40, 1, diff=b"diff --git a/odd")
