"""Diffs that real git printed are read as git says: names, modes, lines and binary files."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mulligan.text.diff import Patch, patches_of

LINE = b"a line of text\n"
NAMES = st.lists(
    st.one_of(
        st.sampled_from([b" b", b"a b", b"b", b'quo"te', b"tab\t", b"new\nline", b"back\\slash"]),
        st.sampled_from(["ü", "a\u2028b", "@@ -1 +1 @@", "x y ", "+++ b", "-- "]).map(str.encode),
        st.binary(min_size=1, max_size=4).filter(
            lambda name: not set(name) & set(b"\0/") and name.lower() not in {b".", b"..", b".git"}
        ),
    ),
    min_size=1,
    max_size=3,
).map(b"/".join)
CONTENTS = st.one_of(
    st.sampled_from([b"", b"\0binary", b"no end", LINE * 9, LINE * 9 + b"more\n", b"a\r\nb\r\n"]),
    st.lists(
        st.sampled_from(
            [
                *(b"-- x", b"++ y", b"\\ No newline at end of file", b"@@ -1 +1 @@", b"\xe9", b""),
                *(b"diff --git a/x b/x", b"+++ b/x", b"a\rb", b"a\x0cb", "\u2028b".encode(), b"x"),
            ]
        ),
        max_size=6,
    ).map(b"\n".join),
)
FILES = st.dictionaries(NAMES, CONTENTS, max_size=5)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("repository")
    git(place, "init", "-q", "--bare")
    return place


def git(place: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_INDEX_FILE": str(place / "scratch"),
    }
    command = ["git", "-C", str(place), *arguments]
    done = subprocess.run(command, input=stdin, env=environment, capture_output=True, check=True)
    return done.stdout


def tree_of(place: Path, files: Mapping[bytes, bytes], mode: bytes = b"100644") -> str:
    """Store files as a tree; where one name is a directory of another, the first one counts."""
    names = [
        name
        for at, name in enumerate(files)
        if not any(
            name.startswith(other + b"/") or other.startswith(name + b"/")
            for other in list(files)[:at]
        )
    ]
    blobs = {
        content: git(place, "hash-object", "-w", "--stdin", stdin=content).strip()
        for content in {files[name] for name in names}
    }
    (place / "scratch").unlink(missing_ok=True)
    lines = [mode + b" " + blobs[files[name]] + b"\t" + name + b"\0" for name in names]
    git(place, "update-index", "-z", "--index-info", stdin=b"".join(lines))
    return git(place, "write-tree").decode().strip()


def patches_between(place: Path, old: str, new: str) -> tuple[Patch, ...]:
    options = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "-M")
    return tuple(patches_of(git(place, "diff", *options, old, new, "--")))


def listed(place: Path, old: str, new: str) -> list[tuple[str, str | None]]:
    """Give the new name of each changed file, and the old one of a moved file, as git says."""
    options = ("-r", "-z", "-M", "--name-status")
    tokens = iter(git(place, "diff-tree", *options, old, new).decode(errors="replace").split("\0"))
    found = list[tuple[str, str | None]]()
    for status in filter(None, tokens):
        name = next(tokens)
        found.append((next(tokens), name) if status.startswith("R") else (name, None))
    return found


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(FILES, FILES)
def test_every_file_and_line_is_read(
    repository: Path, before: dict[bytes, bytes], after: dict[bytes, bytes]
) -> None:
    old, new = tree_of(repository, before), tree_of(repository, after)
    patches = patches_between(repository, old, new)
    names = listed(repository, old, new)
    assert [(patch.path, patch.old_path) for patch in patches] == names
    for patch in patches:
        lines = {
            content.decode(errors="replace")
            for name, content in after.items()
            if name.decode(errors="replace") == patch.path
        }
        hunks = tuple(patch.hunks(400))
        shown = [line for hunk in hunks for line in hunk.new]
        assert [line.text for line in shown if line.is_changed] == patch.added
        if patch.is_new and not patch.is_binary:
            assert "\n".join(patch.added) in {text.removesuffix("\n") for text in lines}
        for line in shown:
            assert any(text.split("\n")[line.number - 1] == line.text for text in lines)


@pytest.mark.parametrize(
    ("before", "after", "path", "old_path"),
    [
        ({}, {b"a b/c": b""}, "a b/c", None),
        ({b"a b/c": b"\0"}, {b"a b/c": b"\0\0"}, "a b/c", None),
        ({b"a b/\xc3\xbc": b"\0"}, {b"a b/\xc3\xbc": b"\0\0"}, "a b/ü", None),
        ({b"x b/y": LINE}, {b'"': LINE}, '"', "x b/y"),
        ({b"\xff": LINE}, {b"b": LINE}, "b", "\ufffd"),
    ],
)
def test_a_file_without_shown_lines_has_its_name(
    repository: Path,
    before: dict[bytes, bytes],
    after: dict[bytes, bytes],
    path: str,
    old_path: str | None,
) -> None:
    (patch,) = patches_between(repository, tree_of(repository, before), tree_of(repository, after))
    assert (patch.path, patch.old_path, patch.content) == (path, old_path, b"")


def test_a_change_of_mode_is_read(repository: Path) -> None:
    files = {b"a b/run": LINE}
    (patch,) = patches_between(
        repository, tree_of(repository, files), tree_of(repository, files, b"100755")
    )
    assert (patch.path, patch.modes) == ("a b/run", {b"100755"})


@pytest.mark.parametrize(
    "diff", [b"", b"no diff", b"diff --git a/x b/y\n", b'diff --git "a/x" "b/y"', b"diff --cc x\n"]
)
def test_what_names_no_file_has_no_name(diff: bytes) -> None:
    assert [patch.path for patch in patches_of(diff)] in ([], [""])


@pytest.mark.pure
@pytest.mark.parametrize(
    ("written", "path"),
    [
        (b"b/src/a.py", "src/a.py"),
        (b'"b/tab\\there"', "tab\there"),
        (b'"b/\\303\\274.py"', "ü.py"),
    ],
)
def test_a_path_is_read_as_git_quotes_it(written: bytes, path: str) -> None:
    diff = b"diff --git %b %b\n--- /dev/null\n+++ %b\n@@ -0,0 +1 @@\n+x\n" % ((written,) * 3)
    assert [patch.path for patch in patches_of(diff)] == [path]
