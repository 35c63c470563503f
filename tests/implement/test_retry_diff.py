"""A diff is told in few lines, without what no agent reads."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.implement.prompt.diff import Location, readable
from world.attempts import DIFF


def lines(diff: bytes, most: int = 500) -> list[str]:
    return str(readable(diff, most)).split("\n")


def changed(path: str, body: str = "@@ -1 +1 @@\n-a\n+b\n") -> bytes:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{body}".encode()


@pytest.mark.pure
def test_lock_files_are_one_line() -> None:
    told = lines(DIFF)
    assert told[:-1] == DIFF.decode().split("\n")[:9]
    assert told[-1] == "uv.lock: lock or generated file, 7 lines of diff, not shown"


@pytest.mark.pure
@pytest.mark.parametrize(
    "path",
    [
        "package-lock.json",
        "web/pnpm-lock.yaml",
        "Cargo.lock",
        "go.sum",
        "static/app.min.js",
        "api/service_pb2.py",
        "dist/main.js",
        "src/node_modules/x/index.js",
        "ui/__snapshots__/a.snap",
    ],
)
def test_generated_files_are_one_line(path: str) -> None:
    assert lines(changed(path)) == [f"{path}: lock or generated file, 6 lines of diff, not shown"]


@pytest.mark.pure
@pytest.mark.parametrize("path", ["src/lock.py", "distance.py", "locks/README.md", "with space.py"])
def test_other_files_are_shown(path: str) -> None:
    assert lines(changed(path)) == changed(path).decode().rstrip("\n").split("\n")


@pytest.mark.pure
def test_too_many_lines_are_counted() -> None:
    told, whole = readable(DIFF, 3), readable(DIFF, 500)
    assert told.lines == whole.lines[:3]
    assert told.left_out == 7
    assert told == whole.head(3)
    assert str(readable(DIFF, 0)) == "[... 10 lines omitted]"


@pytest.mark.pure
def test_long_lines_are_cut() -> None:
    assert max(map(len, lines(changed("a.js", f"@@ -1 +1 @@\n+{'x' * 9000}\n")))) == 400


@pytest.mark.pure
def test_no_diff_is_no_lines() -> None:
    assert readable(b"", 10).lines == ()


@pytest.mark.pure
def test_text_that_is_no_diff_is_shown_as_it_is() -> None:
    assert lines(b"hello\nworld\n") == ["hello", "world"]


@pytest.mark.pure
def test_a_binary_file_is_one_line() -> None:
    diff = b"diff --git a/logo.png b/logo.png\nBinary files a/logo.png and b/logo.png differ\n"
    assert lines(diff) == ["logo.png: binary file, not shown"]


@pytest.mark.pure
def test_bytes_that_are_not_utf8_are_survived() -> None:
    assert "+\ufffd" in lines(changed("a.txt").replace(b"+b", b"+\xff"))


@pytest.mark.pure
@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from(DIFF.splitlines(keepends=True))).map(b"".join)
)
def test_any_bytes_are_survived(diff: bytes) -> None:
    assert len(readable(diff, 5).lines) <= 5


def test_what_git_prints_is_understood(tmp_path: Path) -> None:
    def git(*arguments: str) -> bytes:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout

    git("init", "-q")
    for name, content in {
        "kept.py": "a\n",
        "gone.lock": "a\n",
        "old.lock": "a\n" * 50,
        "umläut file.py": "a\n",
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "logo.png").write_bytes(b"\x00\x01")
    git("add", ".")
    git("commit", "-qm", "base")
    (tmp_path / "kept.py").write_text("b\n")
    (tmp_path / "gone.lock").unlink()
    (tmp_path / "old.lock").rename(tmp_path / "new.lock")
    (tmp_path / "logo.png").write_bytes(b"\x00\x02")
    (tmp_path / "umläut file.py").write_text("b\n")
    (tmp_path / "empty.lock").touch()
    git("add", ".")
    told = lines(git("diff", "--cached", "-M"))
    collapsed = [line.partition(",")[0] for line in told if "not shown" in line]
    assert collapsed == [
        "empty.lock: lock or generated file",
        "gone.lock: lock or generated file",
        "logo.png: binary file",
        "new.lock: lock or generated file",
    ]
    assert [line for line in told if line.startswith("+")].count("+b") == 2
    assert lines(git("diff", "--cached", "--binary", "logo.png")) == [
        "logo.png: binary file, not shown"
    ]


ROWS = "".join(f"+row {number}\n" for number in range(200))
BULKY = (
    "diff --git a/aaa_rows.py b/aaa_rows.py\nnew file mode 100644\nindex 0000000..1111111\n"
    f"--- /dev/null\n+++ b/aaa_rows.py\n@@ -0,0 +1,200 @@\n{ROWS}"
)
FIX = (
    "diff --git a/src/z.py b/src/z.py\nindex 1111111..2222222 100644\n--- a/src/z.py\n"
    "+++ b/src/z.py\n@@ -1 +1 @@\n-old\n+the fix\n"
)


@pytest.mark.pure
def test_a_bulky_new_file_is_folded_and_comes_last() -> None:
    told = readable((BULKY + FIX).encode(), 500).lines
    assert "+the fix" in told[:8]
    assert told[-1] == "aaa_rows.py: new file, 196 more lines, not shown"


@pytest.mark.pure
def test_files_that_failures_name_come_first_and_whole() -> None:
    told = readable((FIX + BULKY).encode(), 500, [Location("./aaa_rows.py")]).lines
    assert told[0].startswith("diff --git a/aaa_rows.py")
    assert "+row 199" in told
    assert "+the fix" in readable((BULKY + FIX).encode(), 7, [Location("z.py")]).lines


def hunk(line: int, word: str, size: int = 4) -> str:
    """Make a hunk that adds `size` lines from this line on."""
    added = "".join(f"+{word} {number}\n" for number in range(size))
    return f"@@ -{line},0 +{line},{size} @@ def {word}():\n{added}"


LONG = changed("src/a.py", hunk(10, "first") + hunk(200, "second") + hunk(400, "third"))
OTHER = changed("src/b.py", hunk(10, "fourth") + hunk(300, "fifth"))


def order_of(
    diff: bytes, named: Sequence[Location] = (), before: Sequence[Location] = ()
) -> list[str]:
    """Return the word of each hunk in the order shown."""
    shown = readable(diff, 500, named, before).lines
    return [line.split()[-1][:-3] for line in shown if line.startswith("@@ ")]


ORDERS: Mapping[str, tuple[list[Location], list[Location], str]] = {
    "nothing is named": ([], [], "first second third fourth fifth"),
    "a line in a hunk": ([Location("a.py", 402)], [], "third first second fourth fifth"),
    "a line near a hunk": ([Location("a.py", 191)], [], "second first third fourth fifth"),
    "a line after a hunk": ([Location("a.py", 213)], [], "second first third fourth fifth"),
    "a line far from all": ([Location("b.py", 100)], [], "fourth fifth first second third"),
    "a file without a line": ([Location("b.py")], [], "fourth fifth first second third"),
    "two files": (
        [Location("a.py", 400), Location("b.py", 300)],
        [],
        "third fifth first second fourth",
    ),
    "named before": ([], [Location("b.py", 301)], "fifth first second third fourth"),
    "a file named before": ([], [Location("b.py")], "fourth fifth first second third"),
    "named now and before": (
        [Location("a.py", 11)],
        [Location("b.py", 301), Location("a.py", 401)],
        "first second third fifth fourth",
    ),
}


@pytest.mark.pure
@pytest.mark.parametrize(("named", "before", "order"), ORDERS.values(), ids=ORDERS)
def test_the_hunks_that_failures_name_come_first(
    named: list[Location], before: list[Location], order: str
) -> None:
    assert order_of(LONG + OTHER, named, before) == order.split()


@pytest.mark.pure
def test_each_group_of_hunks_stands_below_its_file() -> None:
    named = [Location("a.py", 400), Location("b.py", 300)]
    told = readable(LONG + OTHER, 500, named).lines
    above = {line.split()[-1][:-3]: told[at - 1] for at, line in enumerate(told) if "@@ " in line}
    assert above["third"] == above["first"] == "+++ b/src/a.py"
    assert above["fifth"] == above["fourth"] == "+++ b/src/b.py"


@pytest.mark.pure
def test_what_is_cut_is_not_what_failures_name() -> None:
    told = readable(LONG + OTHER, 8, [Location("src/b.py", 302)])
    assert told.lines[3:] == tuple(hunk(300, "fifth").rstrip().split("\n"))
    whole = readable(LONG + OTHER, 500, [Location("src/b.py", 302)])
    assert told.left_out == len(whole.lines) - 8
    assert told == whole.head(8)


@pytest.mark.pure
def test_a_change_without_lines_is_shown_by_its_head() -> None:
    moved = "diff --git a/x.py b/y.py\nsimilarity index 100%\nrename from x.py\nrename to y.py\n"
    told = readable((FIX + moved).encode(), 500, [Location("y.py")]).lines
    assert told[:4] == tuple(moved.rstrip().split("\n"))
