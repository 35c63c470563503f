"""The same failure has the same fingerprint on another day and in another directory."""

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from mulligan.checks.digest import digest
from mulligan.checks.digest.findings import fingerprint, normalise
from mulligan.domain.result import Finding
from world.tools import run_tool, write_files

TEMPORARY = "/tmp"  # noqa: S108 - a name in an output


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("<A object at 0x7f12ab>", "<A object at 0xdeadbeef>"),
        ("took 0.31s", "took 12 s"),
        ("in 5 ms", "in 17ms"),
        ("at 2024-05-01 12:00:00.123", "at 2025-11-30T01:02:03Z"),
        ("at 12:00:00", "at 23:59:59"),
        ("on Wed Nov 19 12:00:00 2025 it", "on Thu Jan 1 00:00:01 2026 it"),
        ("/scratch/x1/a.txt is gone", "/var/folders/qq/a.txt is gone"),
        ("/scratch/tmpab12cd3x is gone", "/scratch/tmpzz98yx7w is gone"),
        (r"C:\Users\ada\a.txt", r"D:\b\a.txt"),
        ("a.py:3:5: no", "a.py:30:15: no"),
        ("a.py(3,5): no", "a.py(4,6): no"),
        ("at line 12, column 3", "at line 7, column 44"),
        ("pid 1234 died", "pid 99 died"),
        ("port=8080", "port=40123"),
        ("worker 'gw1' crashed", "worker 'gw3' crashed"),
        ("==123==ERROR", "==99==ERROR"),
        ("id 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "id 00000000-4f89-11d3-9a0c-0305e82c3301"),
        ("commit 3a5f9c2d", "commit 9b1e77aa"),
        ("request 1234567", "request 7654321"),
        ("at 1795625880.5239", "at 1795625881.18"),
        (f"{TEMPORARY}/8hmx08xm7G is gone", f"{TEMPORARY}/Hal_UzbA_t is gone"),
        ("a  b\tc", "a b c"),
    ],
)
@pytest.mark.pure
def test_what_differs_between_runs_is_left_out(text: str, same: str) -> None:
    assert normalise(text) == normalise(same)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("assert 1 == 2", "assert 1 == 3"),
        ("src/a/b.py failed", "src/c/b.py failed"),
        ("E302 no", "E303 no"),
        ("expected 4", "expected 5"),
        (f"{TEMPORARY}/output is gone", f"{TEMPORARY}/result is gone"),
    ],
)
@pytest.mark.pure
def test_what_tells_failures_apart_is_kept(text: str, other: str) -> None:
    assert normalise(text) != normalise(other)


def found(**fields: str | int) -> Finding:
    return Finding.model_validate({"summary": "s", **fields})


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (found(test_id="a::b", message="x"), found(test_id="a::b", message="y"), True),
        (found(test_id="a::b"), found(test_id="a::c"), False),
        (found(file="a.py", line=1, message="x"), found(file="a.py", line=9, message="x"), True),
        (found(file="./a.py", message="x"), found(file="a.py", message="x"), True),
        (found(file="a.py", message="x"), found(file="b.py", message="x"), False),
        (found(file="a.py", code="E1", message="x"), found(file="a.py", message="x"), False),
        (found(message="x"), found(message="y"), False),
        (found(file="/x/p/a.py", message="x"), found(file="/y/q/r/a.py", message="x"), True),
    ],
)
@pytest.mark.pure
def test_a_finding_is_its_test_or_its_file_code_and_message(
    one: Finding, other: Finding, *, alike: bool
) -> None:
    assert (fingerprint([one]) == fingerprint([other])) is alike


@pytest.mark.pure
def test_order_and_repetition_do_not_matter() -> None:
    a, b = found(test_id="a"), found(test_id="b")
    assert fingerprint([a, b]) == fingerprint([b, a, b])
    assert fingerprint([a]) != fingerprint([a, b])


@pytest.mark.pure
def test_directories_within_the_project_are_kept() -> None:
    here = [found(file="/x/p/src/a.py", message="m"), found(file="/x/p/lib/b.py", message="m")]
    there = [found(file="/y/src/a.py", message="m"), found(file="/y/lib/b.py", message="m")]
    assert fingerprint(here) == fingerprint(there)
    assert fingerprint(here[:1]) != fingerprint(here)
    library = found(file="/usr/lib/python3.11/json.py", message="m")
    assert fingerprint([library]) == fingerprint(
        [found(file="/opt/lib/python3.11/json.py", message="m")]
    )


@pytest.mark.pure
def test_without_findings_the_telling_lines_decide() -> None:
    assert fingerprint([], ["took 1 s"]) == fingerprint([], ["took 2 s"])
    assert fingerprint([], ["one"]) != fingerprint([], ["two"])
    assert len(fingerprint([])) == 16


FILES = {
    "a.py": "import os\nx = undefined_name\n",
    "broken.py": "x = = 1\n",
    "crash.py": "import json\njson.loads('{')\n",
    "test_a.py": """\
import unittest

class TestA(unittest.TestCase):
    def test_object(self):
        self.assertIs(object(), object())

    def test_place(self):
        open("nowhere.txt").close()
""",
    "a.c": "int main(void) { return undeclared; }\n",
    "Makefile": "all: a.o\na.o: a.c\n\tgcc -c a.c\n",
    "throw.js": "function boom() { return null.x; }\nboom();\n",
    "now.sh": 'f=$(mktemp); rm "$f"; echo "error: no $f at $(date) in process $$"; exit 1\n',
}
PYTHON = (sys.executable, "-B")
TOOLS = {
    "pytest": (*PYTHON, "-m", "pytest", "-pno:cacheprovider", "-pno:hypothesispytest", "test_a.py"),
    "unittest": (*PYTHON, "-m", "unittest"),
    "syntax": (*PYTHON, "broken.py"),
    "traceback": (*PYTHON, "crash.py"),
    "ruff": (str(Path(sys.executable).with_name("ruff")), "check", "--isolated", "a.py"),
    "make": ("make",),
    "gcc": ("gcc", "-c", "{directory}/a.c"),
    "node": ("node", "throw.js"),
    "shell": ("sh", "-c", "nope --really"),
    "script": ("sh", "now.sh"),
}


def fingerprint_in(directory: Path, argv: Sequence[str]) -> str:
    write_files(directory, FILES)
    ran = run_tool(directory, *(word.format(directory=directory) for word in argv))
    assert ran.exit_code != 0
    return digest(ran.output, exit_code=ran.exit_code).fingerprint


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Give the fingerprint of a tool's first run, which all tests of this module share."""

    def of(tool: str) -> str:
        return fingerprint_in(tmp_path_factory.mktemp(tool), TOOLS[tool])

    return cache(of)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_run_elsewhere_and_later_fails_alike(
    tool: str, tmp_path: Path, first: Callable[[str], str]
) -> None:
    argv = TOOLS[tool]
    if not shutil.which(argv[0]):
        pytest.skip(f"{argv[0]} is not on this machine")
    assert first(tool) == fingerprint_in(tmp_path / "another" / "place" / "deeper", argv)


def test_different_failures_of_a_tool_differ(first: Callable[[str], str]) -> None:
    marks = {
        tool: first(tool)
        for tool, argv in TOOLS.items()
        if shutil.which(argv[0]) and tool not in {"make", "unittest"}
    }
    assert len(set(marks.values())) == len(marks)
