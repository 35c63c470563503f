"""The same failure has the same fingerprint on another day and in another directory."""

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from mulligan.checks.digest import digest
from mulligan.checks.digest.identity import fingerprint, without_positions
from mulligan.domain.result import Finding
from world.tools import run_tool, write_files


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a.py:3:5: no", "a.py:30:15: no"),
        ("a.py(3,5): no", "a.py(4,6): no"),
        ("at Makefile:3", "at Makefile:12"),
        ("CartTest.addsAllPrices:5 no", "CartTest.addsAllPrices:17 no"),
        ("at line 12, column 3", "at line 7, column 44"),
        (" 12 | let x", " 13 | let x"),
        ("[ 50%] linking", "[ 75%] linking"),
        ("adds (0.31s)", "adds (12 ms)"),
        ("finished in 0.31s", "finished in 12.1 s"),
        ("2024-05-01 12:00:00.123 lost", "2025-11-30T01:02:03Z lost"),
        ("--- a.txt\t2024-05-01 12:00:00.123 +0200", "--- a.txt\t2025-01-02 03:04:05.678 +0000"),
        ("<A object at 0x7f12ab34cd56>", "<A object at 0x7f99deadbeef>"),
        ("a   b  c", "a b c"),
        ("FAIL\tm/a\t0.001s", "FAIL\tm/a\t12.2s"),
    ],
)
@pytest.mark.pure
def test_positions_progress_and_durations_are_left_out(text: str, same: str) -> None:
    assert without_positions(text) == without_positions(same)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("assert 1 == 2", "assert 1 == 3"),
        ("src/a/b.py failed", "src/c/b.py failed"),
        ("E302 no", "E303 no"),
        ("no rate for 2026-01-05", "no rate for 2026-02-07"),
        ("at 0x10", "at 0x20"),
        ("order 100234", "order 100999"),
        ("db.example.com:5432 refused", "db.example.com:5433 refused"),
        ("10.0.0.1:80", "10.0.0.1:81"),
        ("timed out after 10 s", "timed out after 20 s"),
        ("/etc/a/x.conf is gone", "/etc/b/x.conf is gone"),
        ("commit 3a5f9c2d", "commit 9b1e77aa"),
        ("row 3", "row 4"),
        ("pid 1234", "pid 1235"),
        ("at 12:00:00", "at 13:00:00"),
    ],
)
@pytest.mark.pure
def test_every_other_value_is_kept(text: str, other: str) -> None:
    assert without_positions(text) != without_positions(other)


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


@pytest.mark.pure
def test_without_findings_the_telling_lines_decide() -> None:
    assert fingerprint([], ["took 1.5 s"]) == fingerprint([], ["took 2.1 s"])
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
