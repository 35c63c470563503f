"""What a change must not do, shown on diffs that real git wrote."""

import os
from pathlib import Path

import pytest

from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.result import FileChange
from mulligan.errors import MisconfiguredError
from mulligan.verification.guards import violations
from world.repositories import git


def change(*paths: str, diff: bytes = b"") -> Change:
    files = tuple(FileChange(path=path, status="M") for path in paths)
    return Change("a" * 40, "b" * 40, 1, files, diff)


ALLOWED = "(src/**, *.md)."


@pytest.mark.parametrize(
    ("scope", "paths", "told"),
    [
        (Scope(), ("anything", "at/all"), ()),
        (Scope(allow=("src/**", "*.md")), ("src/a.py", "docs/x.md", "README.md"), ()),
        (
            Scope(allow=("src/**", "*.md")),
            ("src/a.py", "setup.py", "tests/t.py"),
            (
                f"setup.py is outside the allowed scope {ALLOWED}",
                f"tests/t.py is outside the allowed scope {ALLOWED}",
            ),
        ),
        (
            Scope(deny=(".github/", "*.lock")),
            (".github/workflows/ci.yml", "a.py", "sub/x.lock"),
            (
                ".github/workflows/ci.yml must not change: scope.deny has .github/, *.lock.",
                "sub/x.lock must not change: scope.deny has .github/, *.lock.",
            ),
        ),
        (Scope(deny=("*.lock", "!ok.lock")), ("ok.lock",), ()),
        (
            Scope(allow=("src/**",), deny=("src/secret/",)),
            ("src/secret/key",),
            ("src/secret/key must not change: scope.deny has src/secret/.",),
        ),
        (
            Scope(max_changed_files=2),
            ("a", "b", "c"),
            ("3 files were changed; scope.max_changed_files allows 2.",),
        ),
        (Scope(max_changed_files=2), ("a", "b"), ()),
    ],
)
@pytest.mark.pure
def test_paths_are_held_against_the_scope(
    scope: Scope, paths: tuple[str, ...], told: tuple[str, ...]
) -> None:
    assert violations(change(*paths), scope) == told


@pytest.mark.parametrize(("key", "pattern"), [("allow", "!"), ("deny", "[z-a]")])
@pytest.mark.pure
def test_a_pattern_that_is_none_is_the_operators_to_mend(key: str, pattern: str) -> None:
    with pytest.raises(MisconfiguredError, match=rf"scope\.{key} has a pattern that is none"):
        violations(change("a"), Scope.model_validate({key: (pattern,)}))


@pytest.mark.pure
def test_a_diff_that_was_cut_off_cannot_be_trusted() -> None:
    text = b"diff --git a/x b/x\n@@ -1 +1 @@\n+y\n"
    assert violations(change("x", diff=text), Scope()) == ()
    cut = text + b"\n[... 12 bytes omitted]\n"
    assert violations(change("x", diff=cut), Scope()) == (
        "The change is too large to be looked through; make a smaller one.",
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "old.txt").write_text("one\ntwo\nthree\n" * 9)
    (tmp_path / "link").symlink_to("old.txt")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "start")
    return tmp_path


def left_by(repository: Path, *options: str) -> Change:
    """Read what differs from the first commit as Mulligan does."""
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "more")
    diff = git(repository, "diff", "-M", *options, "HEAD~1", "HEAD", "--").encode(
        errors="surrogateescape"
    )
    names = git(repository, "diff", "--no-renames", "--name-only", "-z", "HEAD~1", "HEAD")
    return change(*names.rstrip("\0").split("\0"), diff=diff + b"\n")


@pytest.mark.parametrize(
    ("path", "target", "leads_out"),
    [
        ("new", "old.txt", False),
        ("sub/new", "../old.txt", False),
        ("sub/new", "..", False),
        ("sub/new", "./a/b", False),
        ("a b/ñew\tlink", "../old.txt", False),
        ("new", "/etc/passwd", True),
        ("new", "../old.txt", True),
        ("sub/new", "../../etc/passwd", True),
        ("new", "sub/../../etc/passwd", True),
        ("sub/new", "a/../../old.txt", True),
        ("a b/ñew\tlink", "/etc/passwd", True),
        ('quo"te', "/etc/passwd", True),
    ],
)
def test_links_must_stay_in_the_tree(
    repository: Path, path: str, target: str, *, leads_out: bool
) -> None:
    (repository / path).parent.mkdir(exist_ok=True)
    (repository / path).symlink_to(target)
    told = violations(left_by(repository), Scope())
    assert bool(told) is leads_out
    assert all(f"{path} is a symbolic link to {target}," in sentence for sentence in told)


def test_a_link_that_is_turned_elsewhere_is_seen(repository: Path) -> None:
    (repository / "link").unlink()
    (repository / "link").symlink_to("/etc/passwd")
    (sentence,) = violations(left_by(repository), Scope())
    assert sentence.startswith("link is a symbolic link to /etc/passwd")


def test_a_file_that_becomes_a_link_is_seen_and_one_that_was_a_link_is_fine(
    repository: Path,
) -> None:
    (repository / "old.txt").unlink()
    (repository / "old.txt").symlink_to("../elsewhere")
    (repository / "link").unlink()
    (repository / "link").write_text("/etc/passwd\n")
    (sentence,) = violations(left_by(repository), Scope())
    assert sentence.startswith("old.txt is a symbolic link to ../elsewhere")


def test_a_link_that_goes_is_no_matter(repository: Path) -> None:
    (repository / "link").unlink()
    assert violations(left_by(repository), Scope()) == ()


def test_submodules_must_not_come_change_or_go(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "one")
    said = ("inner is a submodule; submodules must not be added, changed or removed.",)
    assert violations(left_by(repository), Scope()) == said
    git(inner, "commit", "-q", "--allow-empty", "-m", "two")
    assert violations(left_by(repository), Scope()) == said
    os.rename(inner, repository.parent / f"{repository.name}-inner")  # noqa: PTH104 - across directories
    assert violations(left_by(repository), Scope()) == said


def test_a_file_that_was_moved_away_has_changed_too(repository: Path) -> None:
    (repository / "old.txt").rename(repository / "new.txt")
    moved = left_by(repository)
    only_new = Change(moved.start_sha, moved.head_sha, 1, moved.files[:1], moved.diff)
    assert violations(only_new, Scope(deny=("old.txt",))) == (
        "old.txt must not change: scope.deny has old.txt.",
    )


def test_moved_files_with_odd_names_are_read(repository: Path) -> None:
    odd = repository / 'o"d\tñ.txt'
    (repository / "old.txt").rename(odd)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "odd")
    odd.rename(repository / "plain.txt")
    moved = left_by(repository)
    assert violations(moved, Scope(deny=("o*",))) == (
        'o"d\tñ.txt must not change: scope.deny has o*.',
    )


def test_content_that_looks_like_a_diff_is_only_content(repository: Path) -> None:
    text = "diff --git a/x b/x\nnew file mode 160000\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n"
    (repository / "notes.diff").write_text(text * 2)
    assert violations(left_by(repository), Scope()) == ()


def test_binary_files_and_modes_are_fine(repository: Path) -> None:
    (repository / "a.bin").write_bytes(bytes(range(256)))
    (repository / "old.txt").chmod(0o755)
    assert violations(left_by(repository), Scope()) == ()
    assert violations(left_by_nothing(), Scope()) == ()


def left_by_nothing() -> Change:
    return change(diff=b"diff --git a/odd")
