"""The digest as a function: whatever goes in, something short and valid comes out."""

import codecs
import io
import signal
from pathlib import Path
from time import perf_counter, process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulligan.checks.digest import Digest, digest
from mulligan.checks.digest.findings import (
    FindingBlock,
    clip,
    finding,
    spread,
)
from mulligan.checks.digest.identity import fingerprint, identity
from mulligan.checks.digest.locations import Place

pytestmark = pytest.mark.pure

PIECES = (
    "FAILED tests/test_a.py::test_x[a - b] - assert 1 == 2",
    "=================================== FAILURES ===================================",
    "___________________________________ test_x ___________________________________",
    "E       assert 1 == 2",
    "=========================== short test summary info ============================",
    "1 failed, 2 passed in 0.12s",
    "INTERNALERROR> Traceback (most recent call last):",
    "Traceback (most recent call last):",
    '  File "a.py", line 3, in f',
    "ValueError: no",
    "During handling of the above exception, another exception occurred:",
    "======================================================================",
    "FAIL: test_x (a.TestA.test_x)",
    "----------------------------------------------------------------------",
    "Ran 2 tests in 0.001s",
    "FAILED (failures=1)",
    "error[E0308]: mismatched types",
    "  --> src/main.rs:2:18",
    "src/a.ts(3,5): error TS2322: no",
    "--- FAIL: TestA (0.00s)",
    "=== RUN   TestA",
    "    a_test.go:3: got 1, want 2",
    "not ok 3 - name",
    "Failures:",
    "  1) one",
    "       two:",
    "/home/ada/a.js",
    "   3:5  error  'x' is not defined  no-undef",
    "npm ERR! code 1",
    "make: *** [Makefile:3: all] Error 2",
    "Caused by: java.lang.Error: no",
    "+++ b/a.py",
    "--- a/a.py",
    "@@ -1,2 +1,2 @@",
    "error: |-",
    "\x1b[31mred\x1b[0m\x1b[2K\x1b[1A\x1b]8;;http://x\x07link\x1b\\",
    "10%\r20%\rerror: torn\r30%",
    "a\bb\0c",
    "\u202e✗ right to left 💥",
    "",
)
shreds = st.one_of(st.sampled_from(PIECES), st.text(max_size=60))
texts = st.lists(shreds, max_size=40).map("\n".join)
outputs = st.one_of(
    texts, texts.map(str.encode), texts.map(lambda t: t.encode("utf-16")), st.binary()
)


@settings(max_examples=300, deadline=None)
@given(
    output=outputs,
    exit_code=st.none() | st.integers(-70, 260),
    max_chars=st.integers(-5, 2500),
    patterns=st.lists(
        st.sampled_from(["(", "(?P<file>\\w+)", "(?P<message>.*)", "x*"]), max_size=2
    ),
)
def test_anything_becomes_a_short_valid_text(
    output: bytes | str, exit_code: int | None, max_chars: int, patterns: list[str]
) -> None:
    found = digest(output, exit_code=exit_code, max_chars=max_chars, patterns=patterns)
    assert len(found.text) <= max(0, max_chars)
    found.text.encode()
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in found.text)
    assert found.passed == (exit_code == 0) or exit_code is None
    assert found.count >= len(found.findings) or not found.count
    for each in found.findings:
        assert len(each.summary) <= 100
        assert "\n" not in each.summary
    assert bool(found.fingerprint) != found.passed


@settings(max_examples=50, deadline=None)
@given(output=texts)
def test_bytes_text_and_file_tell_the_same(output: str) -> None:
    data = output.encode(errors="replace")
    assert digest(data, exit_code=1) == digest(data.decode(), exit_code=1)
    assert digest(data, exit_code=1) == digest(io.BytesIO(data), exit_code=1)


ONE = "src/a.c:3:5: error: expected ';' before 'return'\n"


def told(output: bytes | str) -> Digest:
    return digest(output, exit_code=1)


@pytest.mark.parametrize(
    "output",
    [
        ONE,
        ONE.encode(),
        ONE.encode("utf-16"),
        codecs.BOM_UTF16_BE + ONE.encode("utf-16-be"),
        ONE.encode("utf-16-le"),
        ONE.encode("utf-16-be"),
        codecs.BOM_UTF8 + ONE.encode(),
        b"\xff\xfe\xfa" + b"x" * 40 + b"\n" + ONE.encode(),
        b"\0".join([b"nul", b"nul\n"]) + ONE.encode(),
        b"\x1b[1m\x1b[31msrc/a.c:3:5: \x1b[0merror: expected ';' before 'return'\x1b[K\n",
        b"building 10%\rbuilding 90%\r" + ONE.encode(),
        ONE.replace("\n", "\r\n").encode() * 2,
        b"x" * 1_000_000 + b"\n" + ONE.encode(),
        ONE.encode() + b"y " * 2_000_000,
        bytearray(ONE.encode()),
        memoryview(ONE.encode()),
    ],
    ids=lambda output: type(output).__name__,
)
def test_no_encoding_or_terminal_trick_hides_a_failure(output: bytes | str) -> None:
    found = told(output)
    (finding,) = found.findings
    assert (finding.file, finding.line, finding.column) == ("src/a.c", 3, 5)
    assert "expected ';' before 'return'" in found.text


def test_a_failure_in_the_middle_of_a_line_of_a_megabyte_is_seen() -> None:
    line = "a" * 500_000 + " fatal error: the disk is full " + "b" * 500_000
    assert "the disk is full" in told(line).text


NASTY = (
    "error" + " " * 2000 + "x",
    "error " + "-" * 2000,
    "error " + "=" * 2000,
    "error at in on line 3 " * 90,
    "thread 'a' " + "panicked at " * 160,
    "error a." * 250,
    "error (1,2)" * 180,
    "a" + "." * 2000 + "x failed",
    "1 error " * 250,
    "[[[[ error " + "[" * 2000,
    "✗ " + "a " * 1000 + "|",
    "FAILED a.py::t[" + " - " * 600,
    "error C:\\" * 220,
)
"""Lines on which a careless pattern would try for minutes."""


@pytest.mark.parametrize("line", NASTY, ids=range(len(NASTY)))
def test_no_line_keeps_the_digest_busy(line: str) -> None:
    started = perf_counter()
    told("\n".join(f"{line}{chr(97 + number)}" for number in range(26)))
    assert perf_counter() - started < 8


def test_nothing_at_all_is_told_as_such() -> None:
    assert told(b"").text == "No output."
    assert told(b"\n \n\t\n").text == "No output."
    assert digest(b"", exit_code=3).fingerprint


@pytest.mark.parametrize(
    ("exit_code", "note"),
    [
        (-9, "Ended by SIGKILL."),
        (-signal.SIGSEGV, "Ended by SIGSEGV."),
        (139, "Ended by SIGSEGV."),
        (-200, ""),
        (1, ""),
        (250, ""),
    ],
)
def test_a_signal_is_named(exit_code: int, note: str) -> None:
    text = digest("step 1\nstep 2\n", exit_code=exit_code).text
    assert text.startswith(note)
    assert note or not text.startswith("Ended")
    assert "step 2" in text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("", "Passed."),
        ("all good", "Passed."),
        ("=== 17 passed in 0.31s ===\n", "Passed: 17 passed in 0.31s"),
        ("Found 0 errors, 3 warnings\n" * 3, "Passed: Found 0 errors, 3 warnings"),
        ("error: but it went on\nTests: 3 passed, 3 total\n", "Passed: Tests: 3 passed, 3 total"),
    ],
)
def test_a_passing_check_is_one_short_line(output: str, text: str) -> None:
    found = digest(output, exit_code=0)
    assert (found.text, found.findings, found.count, found.fingerprint) == (text, (), 0, "")
    assert found.passed


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        ("=== 2 passed in 0.1s ===", True),
        ("=== 1 failed, 2 passed in 0.1s ===", False),
        ("src/a.c:3:5: error: no", False),
        ("compiled with warnings", True),
        ("", True),
    ],
)
def test_without_an_exit_code_the_output_decides(output: str, *, passed: bool) -> None:
    assert digest(output).passed is passed


class Breaking(io.RawIOBase):
    """A file on a disk that breaks after its first line."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self, size: int = -1) -> bytes:
        self.reads += 1
        if self.reads > 1:
            raise OSError(5, "Input/output error")
        return ONE.encode()


class NoFile:
    """Not a file at all."""

    def read(self, size: int = -1) -> bytes:
        raise RuntimeError(size)


def test_a_file_that_breaks_is_told_as_far_as_it_went() -> None:
    assert [finding.line for finding in told(Breaking()).findings] == [3]  # pyright: ignore[reportArgumentType] - a raw file reads as a buffered one does


def test_nothing_that_can_be_handed_in_raises() -> None:
    for output in (None, 7, NoFile()):
        found = digest(output, exit_code=1)  # pyright: ignore[reportArgumentType] - this is what is tried
        assert found.text == "No output."
        assert not found.passed
        assert digest(output, exit_code=0).passed  # pyright: ignore[reportArgumentType] - as above


def test_a_text_file_is_taken_too(tmp_path: Path) -> None:
    place = tmp_path / "check.log"
    place.write_text(ONE)
    with place.open() as output:
        assert told(output).findings[0].line == 3  # pyright: ignore[reportArgumentType] - opened as text by mistake


def test_a_report_that_is_not_read_does_no_harm() -> None:
    assert digest(ONE, exit_code=1, report=b"<broken") == told(ONE)


def test_the_patterns_of_a_repository_find_what_nothing_else_would() -> None:
    output = "zork 7 shop/cart.zk grue ahead\nzork 9 shop/cart.zk lamp is out\nall else is fine\n"
    pattern = r"^zork (?P<line>\d+) (?P<file>\S+) (?P<message>.*)"
    found = digest(output, exit_code=1, patterns=[pattern, "(unclosed"])
    assert [(each.file, each.line, each.message) for each in found.findings] == [
        ("shop/cart.zk", 7, "grue ahead"),
        ("shop/cart.zk", 9, "lamp is out"),
    ]
    named = digest(output, exit_code=1, patterns=[r"(?P<test_id>\w+) is (?P<code>out)"])
    assert [(each.test_id, each.code) for each in named.findings] == [("lamp", "out")]
    assert [each.message for each in named.findings] == ["lamp is out"]
    placed = digest(output, exit_code=1, patterns=[r"(?P<column>9) +(?P<file>\S+)"])
    assert [(each.file, each.line, each.column) for each in placed.findings] == [
        ("shop/cart.zk", None, 9)
    ]
    assert "- zork 9 shop/cart.zk lamp is out" in placed.short


@pytest.mark.parametrize(
    ("names", "order"),
    [
        # Suites of JavaScript and Python, classes of Java; a sentence names no class.
        (["a › x", "a › y", "b › z"], ["a › x", "b › z", "a › y"]),
        (["a.py::x", "a.py::B::y", "b.py::z"], ["a.py::x", "b.py::z", "a.py::B::y"]),
        (["m.A.x", "m.A.y", "m.B.z"], ["m.A.x", "m.B.z", "m.A.y"]),
        (["is 1.5 x", "is 1.6 y", "z"], ["is 1.5 x", "is 1.6 y", "z"]),
    ],
)
def test_each_suite_has_one_failure_before_any_has_a_second(
    names: list[str], order: list[str]
) -> None:
    found = [FindingBlock(finding("no", test_id=name), None, name) for name in names]
    assert [block.heading for block in spread(found)] == order


def test_each_file_and_kind_of_complaint_is_shown_before_a_second() -> None:
    found = [
        FindingBlock(finding("m", Place(file, line), code=code), line, f"{file}:{line}")
        for file, line, code in (("a", 1, "X"), ("a", 2, "Y"), ("b", 3, "X"), ("b", 4, "Z"))
    ]
    assert [block.at for block in spread(found)] == [1, 4, 2, 3]


@pytest.mark.parametrize(
    ("size", "cut"), [(5, "abcde"), (6, "abcde"), (4, "abc…"), (1, "…"), (0, "")]
)
def test_what_is_cut_is_marked_and_no_longer_than_allowed(size: int, cut: str) -> None:
    assert clip("abcde", size) == cut


@pytest.mark.parametrize(
    ("test_id", "summary"),
    [
        ("x" * 60, f"{'x' * 60}: no"),
        ("a" + "x" * 60, f"…{'x' * 59}: no"),
        ("test_a (shop." + "x" * 60 + ")", "test_a: no"),
        ("test_a (shop." + "x" * 60, f"…{'x' * 59}: no"),
        ("y" * 61 + " (z)", f"…{'y' * 55} (z): no"),
    ],
)
def test_a_summary_has_the_end_of_a_long_name(test_id: str, summary: str) -> None:
    assert finding("no", test_id=test_id).summary == summary


def test_where_a_repository_lies_is_no_part_of_a_failure() -> None:
    def of(root: str, *names: str) -> str:
        return fingerprint([finding("no", Place(f"{root}{name}", 1)) for name in names])

    assert of("/home/x/shop/", "src/a.py", "src/b/c.py") == of("/w/", "src/a.py", "src/b/c.py")
    assert of("C:\\w\\", "src\\a.py", "src\\b\\c.py") == of("C:/w/", "src/a.py", "src/b/c.py")
    assert of("./", "src/a.py", "src/b/c.py") == of("", "src/a.py", "src/b/c.py")
    assert of("/w/", "src/a.py", "src/d/c.py") != of("/w/", "src/a.py", "src/b/c.py")
    assert identity(finding("no", Place("/w/a.py", 1), code="E1"), "/w/") == "a.py|E1|no"
    assert identity(finding("no", Place("b\\a.py", 1))) == "b/a.py||no"
    assert identity(finding("no", test_id="/w/t.py::a"), "/w/") == "t.py::a"


SIZE = 100_000
SLOWEST = 1.5
"""Seconds; each took from five seconds to minutes while its time grew with its square."""

BUSY = {
    "blank lines": "\n",
    "tabs before a word of failure": "[ERROR] " + "\t" * 1400 + "FAILED x\n",
    "lines of an assertion": "==== FAILURES ====\n____ test_a ____\n" + "E   no\n" * 20_000,
}


@pytest.mark.parametrize("name", BUSY)
def test_the_time_of_a_digest_grows_no_faster_than_the_output(name: str) -> None:
    """More such outputs are in tests/bench/test_hostile_texts_bench.py."""
    output = (BUSY[name] * (SIZE // len(BUSY[name]) + 1))[:SIZE]
    began = process_time()
    told(output)
    assert process_time() - began < SLOWEST


def test_the_time_of_a_report_grows_no_faster_than_it_either() -> None:
    case = '<testcase classname="m" name="t{n}"><failure message="no {n}"/></testcase>'
    report = "".join(case.format(n=n) for n in range(1500))
    output = "".join(f"FAILED b.py::test_{n} - other {n}\n" for n in range(1500))
    began = process_time()
    found = digest(output, exit_code=1, report=f"<testsuite>{report}</testsuite>".encode())
    assert process_time() - began < SLOWEST
    assert found.count >= 2500


def test_more_failures_than_are_listed_are_counted() -> None:
    found = told("".join(f"FAILED b.py::test_{n} - other {n}\n" for n in range(1500)))
    assert (len(found.findings), found.count) == (1000, 1500)
