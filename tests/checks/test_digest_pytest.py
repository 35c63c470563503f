"""What is read out of pytest, from runs of the real one."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from mulligan.checks.digest import Digest, digest
from mulligan.checks.digest.pytest import block_name, split_entry
from world.tools import PASSING, run_pytest, write_files

PROJECT = {
    "shop/__init__.py": "",
    "shop/cart.py": """\
def total(prices):
    if not prices:
        raise ValueError("an empty cart has no total")
    return sum(prices) - 1
""",
    "tests/test_cart.py": """\
import json
import pytest
from shop.cart import total

def test_sums():
    print("said on the way")
    assert total([1, 2]) == 3

@pytest.mark.parametrize("text", ["a b", "c - d", "x]y", "fine"])
def test_words(text):
    assert text == "fine"

class TestCart:
    @pytest.fixture
    def broken(self):
        raise RuntimeError("fixture broke")

    def test_with_fixture(self, broken):
        pass

    def test_chain(self):
        try:
            total([])
        except ValueError as error:
            raise KeyError("no cart") from error

    def test_outside(self):
        json.loads("{")

@pytest.mark.xfail(strict=True)
def test_too_good():
    pass

@pytest.fixture
def closing():
    yield
    raise OSError("teardown broke")

def test_then_closes(closing):
    pass

def test_passes():
    pass
""",
}
HERE = "tests/test_cart.py::"
FAILING = {
    f"{HERE}test_sums",
    f"{HERE}test_words[a b]",
    f"{HERE}test_words[c - d]",
    f"{HERE}test_words[x]y]",
    f"{HERE}TestCart::test_with_fixture",
    f"{HERE}TestCart::test_chain",
    f"{HERE}TestCart::test_outside",
    f"{HERE}test_too_good",
    f"{HERE}test_then_closes",
}
STYLES = ("", "-v", "-q", "--tb=short", "--tb=line", "--tb=native", "--tb=no", "-v -n 2")

WITH_PLACES = {"", "--tb=short"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "project", PROJECT)


def told(project: Path, options: str = "") -> Digest:
    ran = run_pytest(project, *options.split())
    return digest(ran.output, command=f"pytest {options}", exit_code=ran.exit_code)


def some(names: Iterable[str], every_run: set[str]) -> list[object]:
    """Leave the others to `make test-deep`: each starts a pytest of its own."""
    return [
        name if name in every_run else pytest.param(name, marks=pytest.mark.deep) for name in names
    ]


@pytest.mark.parametrize("style", some(STYLES, {"", "-q", "--tb=no"}))
def test_every_style_of_output_names_all_failing_tests(project: Path, style: str) -> None:
    found = told(project, style)
    assert {finding.test_id for finding in found.findings} == FAILING
    assert found.count == len(FAILING)
    assert found.fingerprint == digest_of_ids()
    assert all(test_id in found.text for test_id in FAILING)
    assert "7 failed, 3 passed, 2 errors" in found.text
    if style in WITH_PLACES:
        assert_message_and_place_come_with_the_first(found)


def assert_message_and_place_come_with_the_first(found: Digest) -> None:
    by_id = {finding.test_id: finding for finding in found.findings}
    sums = by_id[f"{HERE}test_sums"]
    assert sums.message.startswith(("assert 2 == 3", "AssertionError: assert 2 == 3"))
    assert (sums.file or "").endswith("tests/test_cart.py")
    assert sums.line == 7
    chain = by_id[f"{HERE}TestCart::test_chain"]
    assert chain.message.startswith("KeyError: 'no cart'")
    assert chain.line == 25


def digest_of_ids() -> str:
    lines = "".join(f"FAILED {test_id} - why\n" for test_id in FAILING)
    return digest(f"==== short test summary info ====\n{lines}", exit_code=1).fingerprint


def test_blocks_alone_are_enough_to_name_the_tests(project: Path) -> None:
    ran = run_pytest(project, "-q", "-rN", "-k", "sums or words or chain")
    assert {finding.test_id for finding in digest(ran.output, exit_code=1).findings} == {
        f"{HERE}test_sums",
        f"{HERE}test_words[a b]",
        f"{HERE}test_words[c - d]",
        f"{HERE}test_words[x]y]",
        f"{HERE}TestCart::test_chain",
    }


def test_a_block_without_a_place_is_named_as_it_is() -> None:
    title, block = "=" * 9 + " FAILURES " + "=" * 9, "_" * 9 + " test_x " + "_" * 9
    output = f"{title}\n{block}\nE   boom\n1 failed in 0.1s\n"
    (finding,) = digest(output, exit_code=1).findings
    assert (finding.test_id, finding.message, finding.file) == ("test_x", "boom", None)


BEGINS = "===== test session starts =====\n"
SUMMARY = "===== short test summary info =====\n"
COLLECTED = """\
===== ERRORS =====
_____ ERROR collecting tests/test_a.py _____
E   Traceback (most recent call last):
E     File "/x/src/a.py", line 7, in load
E       return 1 / 0
E   ZeroDivisionError: division by zero
"""


@pytest.mark.pure
def test_the_traceback_of_a_file_that_cannot_be_imported_is_its_message() -> None:
    output = f"{BEGINS}{COLLECTED}{SUMMARY}ERROR tests/test_a.py - ZeroDivisionError\n"
    (finding,) = digest(output, exit_code=1).findings
    assert (finding.test_id, finding.file) == ("tests/test_a.py", "/x/src/a.py")
    assert finding.message == (
        "ZeroDivisionError: division by zero\nTraceback (most recent call last):\n"
        '  File "/x/src/a.py", line 7, in load\n    return 1 / 0'
    )


def test_a_place_is_in_the_project_though_the_error_came_from_a_library(project: Path) -> None:
    by_id = {finding.test_id: finding for finding in told(project).findings}
    outside = by_id[f"{HERE}TestCart::test_outside"]
    assert (outside.file, outside.line) == ("tests/test_cart.py", 28)
    assert "Expecting property name" in outside.message


def test_what_led_to_an_exception_is_told(project: Path) -> None:
    ran = run_pytest(project, "-k", "chain")
    text = digest(ran.output, exit_code=1).short
    assert "KeyError: 'no cart'" in text
    assert "after ValueError: an empty cart has no total" in text
    assert "> raise KeyError" in text or "> except ValueError as error" in text


def test_one_failure_is_found_among_twenty_thousand_passing_lines(project: Path) -> None:
    ran = run_pytest(project, "-v", "-k", "sums or passes")
    noise = b"".join(b"tests/test_more.py::test_%d PASSED  [ 50%%]\n" % n for n in range(10_000))
    found = digest(noise + ran.output + noise, exit_code=1)
    (finding,) = found.findings
    assert finding.test_id == f"{HERE}test_sums"
    assert "assert 2 == 3" in found.text
    assert "tests/test_cart.py:7" in found.text
    assert len(found.text) <= 2000
    assert found.text.count("PASSED") < 20


@pytest.mark.deep
def test_hundreds_of_failures_are_counted_and_the_first_ones_told(tmp_path: Path) -> None:
    many = """\
import pytest
@pytest.mark.parametrize("number", range(300))
def test_number(number):
    assert number < 0, f"{number} is not negative"
"""
    found = told(write_files(tmp_path, {"test_many.py": many}), "-q")
    assert found.count == len(found.findings) == 300
    assert "test_many.py::test_number[0] (test_many.py:4)" in found.short
    assert "AssertionError: 0 is not negative" in found.short
    assert "test_many.py::test_number[9]" in found.short
    assert "(+ 2" in found.short
    assert "300 failed" in found.short


def test_messages_are_taken_whole_though_the_summary_cuts_them(tmp_path: Path) -> None:
    long = "def test_long():\n    assert 0, 'the whole message ' * 8 + 'has an end'\n"
    found = told(write_files(tmp_path, {"test_long.py": long}))
    assert "has an end" in found.findings[0].message


CASES: dict[str, tuple[dict[str, str], str, str]] = {
    "an import that fails": (
        {"test_a.py": "import nothere\ndef test_x(): pass\n"},
        "",
        "test_a.py: ModuleNotFoundError: No module named 'nothere'",
    ),
    "a syntax error": (
        {"test_a.py": "def test_y( : pass\n"},
        "",
        "test_a.py: SyntaxError: invalid syntax",
    ),
    "a conftest that fails": (
        {"conftest.py": "import nothere\n", "test_a.py": ""},
        "",
        "conftest.py:1: ImportError while loading conftest",
    ),
    "an unknown option": ({"test_a.py": ""}, "--nope", "unrecognized arguments: --nope"),
    "a file that is not there": ({}, "nope.py", "file or directory not found: nope.py"),
    "a test that is not there": ({"test_a.py": ""}, "test_a.py::nope", "not found: "),
    "nothing selected": ({"test_a.py": "def test_x(): pass\n"}, "-k nope", "1 deselected"),
    "an error in pytest itself": (
        {
            "conftest.py": "def pytest_collection_modifyitems():\n    raise ValueError('in')\n",
            "test_a.py": "def test_x(): pass\n",
        },
        "",
        "INTERNALERROR",
    ),
    "an exit": ({"test_a.py": "import pytest\ndef test_x(): pytest.exit('now')\n"}, "", "now"),
    "a crash": (
        {"test_a.py": "import ctypes\ndef test_x(): ctypes.string_at(0)\n"},
        "",
        "Fatal Python error: Segmentation fault",
    ),
    "a worker that crashes": (
        {"test_a.py": "import ctypes\ndef test_x(): ctypes.string_at(0)\n"},
        "-n 1",
        "test_a.py::test_x: worker 'gw0' crashed",
    ),
    "a time-out": (
        {"test_a.py": "import time\ndef test_x(): time.sleep(9)\n"},
        "--timeout 0.3 --timeout-method=thread",
        "+ Timeout +",
    ),
    "a subtest": (
        {
            "test_a.py": """\
def test_x(subtests):
    with subtests.test("part", number=1):
        assert 1 == 2
"""
        },
        "",
        "test_a.py::test_x [part] (number=1): assert 1 == 2",
    ),
}


@pytest.mark.parametrize("name", some(CASES, {"an import that fails", "a crash", "a subtest"}))
def test_what_is_no_ordinary_failure_is_told_too(name: str, tmp_path: Path) -> None:
    files, options, expected = CASES[name]
    found = told(write_files(tmp_path, files), options)
    assert all(part in found.short for part in expected.split(": "))
    assert expected.rpartition(": ")[2] in found.text
    assert not found.passed


def test_too_little_coverage_is_told_though_all_tests_pass() -> None:
    output = """\
============================= test session starts ==============================
collected 1 item

test_a.py .                                                              [100%]
ERROR: Coverage failure: total of 50 is less than fail-under=90

FAIL Required test coverage of 90% not reached. Total coverage: 50.00%
============================== 1 passed in 0.22s ===============================
"""
    found = digest(output, command="pytest --cov", exit_code=1)
    assert "Coverage failure: total of 50 is less than fail-under=90" in found.text
    assert "1 passed" in found.text


def test_another_tool_in_the_same_output_is_not_passed_over(project: Path) -> None:
    ran = run_pytest(project, "-k", "sums")
    lint = b"shop/cart.py:4:12: E225 missing whitespace around operator\n"
    for output in (ran.output + lint, lint + ran.output):
        found = digest(output, exit_code=1)
        assert [finding.file for finding in found.findings] == [
            "tests/test_cart.py",
            "shop/cart.py",
        ]


def test_noise_after_the_run_is_no_finding(project: Path) -> None:
    ran = run_pytest(project, "-k", "sums")
    assert len(digest(ran.output + PASSING.encode(), exit_code=1).findings) == 1


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("a.py::test_x - why", ("a.py::test_x", "why")),
        ("a.py::test_x", ("a.py::test_x", "")),
        ("a.py", ("a.py", "")),
        ("a.py::test_x[a - b] - why - not", ("a.py::test_x[a - b]", "why - not")),
        ("a.py::test_x[a - b]", ("a.py::test_x[a - b]", "")),
        ("a.py::test_x[a - b", ("a.py::test_x[a - b", "")),
    ],
)
def test_ids_may_hold_what_separates_them(entry: str, expected: tuple[str, str]) -> None:
    assert split_entry(entry) == expected


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ("a.py::test_x", "test_x"),
        ("a.py::TestA::test_x", "TestA.test_x"),
        ("a.py::test_x[a::b]", "test_x[a::b]"),
        ("dir/a.py", "dir/a.py"),
    ],
)
def test_blocks_are_named_by_the_inner_part(node: str, name: str) -> None:
    assert block_name(node) == name
