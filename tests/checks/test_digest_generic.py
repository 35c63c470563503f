"""The generic path: what opens a finding, what belongs to it, and what comes first."""

import re
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase

import pytest

from mulligan.checks.digest import Digest, digest
from mulligan.checks.digest.blocks import traceback_at
from mulligan.domain.result import Finding

pytestmark = pytest.mark.pure

OUTPUTS = Path(__file__).parents[1] / "fixtures" / "digest"


def told(output: str) -> Digest:
    return digest(output, exit_code=1)


def only(output: str) -> Finding:
    (finding,) = told(output).findings
    return finding


def first_line(found: Finding) -> str:
    return found.message.partition("\n")[0]


def of_tool(name: str) -> tuple[Finding, ...]:
    return told((OUTPUTS / f"{name}.txt").read_text()).findings


def test_a_test_takes_message_and_place_from_what_is_said_beneath_it() -> None:
    finding, other = of_tool("jest")
    assert finding.test_id == "src/sum.test.js › sum › adds"
    assert finding.message.startswith("expect(received).toBe(expected)")
    assert (finding.file, finding.line, finding.column) == ("src/sum.test.js", 5, 23)
    assert (other.file, other.line) == ("src/sum.js", 9)


def test_a_test_takes_what_was_said_between_its_start_and_its_end() -> None:
    first, *_ = of_tool("gtest")
    assert first.test_id == "MathTest.Adds"
    assert (first.file, first.line) == ("math_test.cc", 7)
    first, *_ = of_tool("go_v")
    assert (first.test_id, first.file, first.line) == (
        "example.com/calc.TestAdd",
        "calc_test.go",
        8,
    )


PARALLEL = """\
=== RUN   TestMany
=== RUN   TestMany/1
=== PAUSE TestMany/1
=== RUN   TestMany/2
=== PAUSE TestMany/2
=== CONT  TestMany/1
    n_test.go:13: one is not wanted
=== CONT  TestMany/2
    n_test.go:15: two is not wanted
--- FAIL: TestMany (0.00s)
    --- FAIL: TestMany/1 (0.00s)
    --- FAIL: TestMany/2 (0.00s)
FAIL
"""


def test_parallel_tests_take_what_was_said_in_their_turn() -> None:
    found = [(one.test_id, one.line, one.message) for one in told(PARALLEL).findings]
    assert found == [
        ("TestMany/1", 13, "one is not wanted"),
        ("TestMany/2", 15, "two is not wanted"),
    ]


def test_a_test_that_stands_in_a_list_above_its_error_and_below_it_is_one_finding() -> None:
    """In the list, unittest may give its description alone."""
    assert {one.test_id: (one.file, one.line) for one in of_tool("unittest")} == {
        "test_broken (unittest.loader._FailedTest.test_broken)": ("/repo/test_broken.py", 1),
        "test_chain (test_cart.TestCart.test_chain)": ("/repo/test_cart.py", 28),
        "test_share (test_cart.TestCart.test_share)": ("/repo/shop/cart.py", 2),
        "test_too_good (test_cart.TestCart.test_too_good)": (None, None),
        "test_lists (test_cart.TestCart.test_lists)": ("/repo/test_cart.py", 10),
        "test_parts (test_cart.TestCart.test_parts) [part] (number=1)": ("/repo/test_cart.py", 18),
        "setUpClass (test_cart.TestShop)": ("/repo/test_cart.py", 33),
    }
    assert len(of_tool("unittest")) == 7
    tests = [(one.test_id, first_line(one)) for one in of_tool("tcltest")]
    assert tests == [("add-1.0", "adds small"), ("add-1.1", "adds big"), ("add-1.2", "raises")]


def test_a_test_that_is_named_twice_is_one_finding() -> None:
    names = [finding.test_id for finding in of_tool("cargo_test")]
    assert names == [f"crt::bin/crt::tests::{name}" for name in ("sp", "adds", "unwraps")]
    by_id = {finding.test_id: finding for finding in of_tool("cargo_test")}
    assert by_id["crt::bin/crt::tests::adds"].message.startswith(
        "assertion `left == right` failed\nleft: -1\nright: 3"
    )
    assert by_id["crt::bin/crt::tests::adds"].line == 5
    assert [finding.test_id for finding in of_tool("maven_test")] == [
        "com.example.AppTest.testAdd",
        "com.example.AppTest.testNull",
    ]


def test_the_place_of_one_mention_serves_the_other() -> None:
    output = """\
test adds ... FAILED

FAILED adds::x - why
---- adds stdout ----
thread 'adds' panicked at src/lib.rs:3:5:
"""
    by_id = {finding.test_id: finding for finding in told(output).findings}
    assert by_id["src/lib.rs › adds"].line == 3


def test_names_in_numbered_lists_are_put_together() -> None:
    assert [finding.test_id for finding in of_tool("mocha")] == ["test/calc.js › Calculator adds"]
    assert [finding.test_id for finding in of_tool("minitest")] == ["TestCalc#test_add"]
    assert [finding.test_id for finding in of_tool("rspec")] == ["Calc adds numbers"]


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (["  1) one", "       two:", "", "      Error: no"], "one two"),
        (["  1) one", "       two:", "       not a gap"], "one"),
        (["  1) one", "     Error: no"], "one"),
        (["  1) one"], "one"),
        (["  1) Failure:"], "Failure"),
        (["  1) one ──────────"], "one"),
    ],
)
def test_numbered_names_end_where_they_should(lines: list[str], name: str) -> None:
    assert told("\n".join(["Failures:", "", *lines])).findings[0].test_id == name


def test_rows_are_read_with_the_file_above_them() -> None:
    first, second = of_tool("eslint")
    assert (first.file, first.line, first.column) == ("/home/u/app/src/a.js", 3, 5)
    assert first.code == "no-undef"
    assert second.file == "/home/u/app/src/b.js"
    assert [finding.line for finding in of_tool("stylelint")] == [3, 5]


def test_rows_without_a_file_are_no_findings() -> None:
    assert not told("no file here\n  3:5  error  no\n").findings[0].file


def test_lines_over_an_arrow_take_its_place() -> None:
    mismatch, _ = of_tool("cargo_build")
    assert (mismatch.code, mismatch.file, mismatch.line) == ("E0308", "src/main.rs", 1)
    assert len(of_tool("ruff_full")) == 13
    assert [finding.line for finding in of_tool("gleam")] == [3]


def test_an_arrow_under_a_note_or_another_arrow_opens_nothing() -> None:
    output = "error[E1]: no\n  --> a.rs:1:2\nnote: here\n  --> b.rs:3:4\n  --> c.rs:5:6\n"
    assert only(output).file == "a.rs"


def test_warnings_are_findings_only_where_nothing_is_worse() -> None:
    warning = "a.c:1:2: warning: unused variable\n"
    worse = "b.c:3:4: error: no\n"
    assert only(warning + worse).file == "b.c"
    assert only(warning).file == "a.c"
    assert told("warning: careful\n").findings == ()
    assert only("warning: unused\n --> a.rs:1:2\n").line == 1


def test_aftermath_is_told_only_where_nothing_else_is() -> None:
    after = "make: *** [Makefile:3: all] Error 2\n"
    assert only(f"a.c:1:2: error: no\n{after}").file == "a.c"
    assert only(after).message == after.strip()


def test_what_a_program_logs_all_the_time_does_not_hide_what_is_rare() -> None:
    log = "".join(f"ERROR: attempt {n} of the request failed\n" for n in range(50))
    found = told(f"{log}Error: the schema is missing a table\n{log}")
    assert [finding.message for finding in found.findings] == [
        "Error: the schema is missing a table"
    ]
    assert len(told(log).findings) == 50


def test_hundreds_of_lines_alike_are_not_all_told() -> None:
    many = "".join(f"FAILED (odd) number {n}\n" for n in range(500))
    assert 0 < len(told(many).findings) <= 100


def test_lines_that_go_on_with_an_error_are_part_of_it() -> None:
    output = "npm ERR! code ERESOLVE\nnpm ERR! unable to resolve\nnpm ERR! see the log\n"
    found = told(output)
    assert found.count == 1
    assert "unable to resolve" in found.text
    first, *rest = of_tool("sbt")
    assert first.line == 5
    assert [finding.message for finding in rest] == [
        "[error] (Compile / compileIncremental) Compilation failed"
    ]


@pytest.mark.parametrize(
    ("tool", "file", "line"),
    [
        ("node_syntax", "/home/ada/project/syn.js", 1),
        ("node_throw", "/home/ada/project/n.js", 1),
        ("shellcheck", "deploy.sh", 3),
        ("python_syntax", "/home/ada/project/bad.py", 1),
        ("dune", "bin/main.ml", 3),
        ("gpp_template", "t.cpp", 6),
        ("black_err", "src/bad.py", None),
        ("isort", "/home/u/p/a.py", None),
        ("prettier", "src/a.ts", None),
        ("prettier_syntax", "src/a.ts", 3),
        ("docker", "Dockerfile", 4),
        ("hspec", "test/Spec.hs", 12),
        ("terraform", "main.tf", 5),
        ("sql", "migrate.sql", 3),
        ("kotlin", "/home/u/p/src/main/kotlin/Main.kt", 12),
        ("valgrind", "san.c", 3),
    ],
)
def test_the_place_is_found_near_the_message(tool: str, file: str, line: int | None) -> None:
    first, *_ = of_tool(tool)
    assert (first.file, first.line) == (file, line)


def test_the_projects_own_caller_is_named_where_the_error_is_in_a_library() -> None:
    _, library = of_tool("gpp_template")
    assert (library.file, library.line) == ("t.cpp", 6)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("a.hs:3:1: error:\n    Could not find it\n", "error: Could not find it"),
        ("not ok 1 - x\n  ---\n  error: |-\n    no\n    way\n  code: 1\n", "error: no way"),
        ("error: |-\n\nnothing deeper\n", "error:"),
        ("a.cc:7: Failure\nExpected equality\n", "Failure Expected equality"),
    ],
)
def test_a_message_that_starts_on_the_next_line_is_read_there(output: str, message: str) -> None:
    assert first_line(told(output).findings[0]) == message


def test_a_step_with_many_findings_is_no_test() -> None:
    lint = "".join(f"  a.py:{n}:1: E302 expected 2 blank lines\n" for n in range(1, 9))
    assert len(told(f"lint/style FAILED\n{lint}").findings) == 9


def test_what_follows_a_gap_belongs_to_something_else() -> None:
    output = "test a ... FAILED\n\nall is said\n"
    assert only(output).message == "a"
    output = "Error: no\n  because\n\nall is said at src/a.rs:1:2\n"
    assert only(output).file is None


def test_where_nothing_is_certain_the_strongest_lines_are_told() -> None:
    assert only("one\nthe value cannot be read at lib/A.pm line 12.\ntwo\n").line == 12
    assert told("nothing of interest\n").findings == ()


def test_tests_are_told_apart_by_their_whole_names() -> None:
    output = "    ✕ adds\n\n  ● sum › adds\n\n    no\n\nA.adds FAILED\nB.adds FAILED\nadds FAILED\n"
    names = [finding.test_id for finding in told(output).findings]
    assert names == ["sum › adds", "A.adds", "B.adds"]


TRACE = """\
Traceback (most recent call last):
  File "/home/ada/app.py", line 3, in main
    load()
  File "/usr/lib/python3.11/json/decoder.py", line 353, in raw_decode
    raise JSONDecodeError
json.decoder.JSONDecodeError: Expecting value
"""


def test_tracebacks_are_recognised_anywhere() -> None:
    found = told(f"starting\n{TRACE}\nafterwards\n")
    (finding,) = found.findings
    assert finding.message == "json.decoder.JSONDecodeError: Expecting value"
    assert (finding.file, finding.line) == ("/home/ada/app.py", 3)
    assert "load()" in found.text


def test_chained_exceptions_are_one_finding_with_its_causes() -> None:
    linked = TRACE + "\nDuring handling of the above exception, another exception occurred:\n\n"
    output = linked + TRACE.replace("json.decoder.JSONDecodeError: Expecting value", "KeyError: 1")
    assert only(output).message == (
        "KeyError: 1\nafter json.decoder.JSONDecodeError: Expecting value"
    )


@pytest.mark.parametrize(
    ("lines", "message", "end"),
    [
        (TRACE.splitlines(), "json.decoder.JSONDecodeError: Expecting value", 6),
        (TRACE.splitlines()[:4], None, None),
        (["no traceback"], None, None),
        (["Traceback (most recent call last):", "KeyboardInterrupt"], "KeyboardInterrupt", 2),
        ([*TRACE.splitlines(), "", "During handling of the above exception,", "", "x"], "json", 6),
        (
            [
                *TRACE.splitlines(),
                "The above exception was the direct cause",
                "Traceback (most recent call last):",
            ],
            "json",
            6,
        ),
        (
            [
                "  + Exception Group Traceback (most recent call last):",
                '  |   File "a.py", line 3, in f',
                "  |     raise group",
                "  | ExceptionGroup: two (2 sub-exceptions)",
            ],
            "ExceptionGroup: two",
            4,
        ),
        (["Traceback (most recent call last):", '  File "a.py", line 1'], None, None),
    ],
)
def test_a_traceback_ends_with_its_exception(
    lines: list[str], message: str | None, end: int | None
) -> None:
    trace = traceback_at(lines, 0)
    assert (trace.end if trace else None) == end
    assert re.match(message or "", trace.message if trace else "")


def test_the_text_names_first_what_must_be_mended() -> None:
    output = (OUTPUTS / "eslint.txt").read_text()
    lines = told(output).short.splitlines()
    assert lines[0].startswith("- /home/u/app/src/a.js:3:5: 'x' is not defined [no-undef]")
    assert lines[1].startswith("- /home/u/app/src/b.js:1:10: 'y' is assigned")
    (totals,) = lines[2:]
    assert totals.startswith("Totals: ✖ 3 problems (2 errors, 1 warning)")


def test_after_five_findings_come_ids_and_then_a_count() -> None:
    many = "".join(f"FAILED tests/test_{n}.py::test_of_something_long - no\n" for n in range(200))
    text = told(f"{many}200 failed in 1.0s\n").short
    assert text.count("    no\n") == 5
    assert "- tests/test_5.py::test_of_something_long\n" in text
    shown = text.count("::test_of_something_long\n") - text.count("FAILED tests")
    assert f"(+ {200 - shown} more)" in text
    assert "Totals: 200 failed in 1.0s" in text


@pytest.mark.parametrize("size", [0, 1, 10, 40, 120, 300])
def test_small_limits_leave_the_most_important(size: int) -> None:
    found = digest("src/a.c:3:5: error: expected ';'\n" * 3, exit_code=1, max_chars=size)
    assert len(found.short) <= size
    assert "src/a.c"[: max(0, size - 3)] in found.short


WORDS = [f"{one}{two}" for one in "abcdefghijklmnopqrstuvwxyz" for two in "aeiouz"]


def test_findings_that_explain_the_failure_are_told_once() -> None:
    """Its traceback, its verdict and the totals stand in the output as well."""
    output = (
        "test_adds (tests.test_cart.CartTest.test_adds) ... FAIL\n\n"
        f"{'=' * 70}\nFAIL: test_adds (tests.test_cart.CartTest.test_adds)\n{'-' * 70}\n"
        "Traceback (most recent call last):\n"
        '  File "tests/test_cart.py", line 20, in test_adds\n'
        "    self.assertEqual(3, add(1, 1))\nAssertionError: 3 != 2\n\n"
        f"{'-' * 70}\nRan 11 tests in 0.004s\n\nFAILED (failures=1)\n"
    )
    text = told(output).text
    assert "In the output:" not in text
    assert text.count("AssertionError: 3 != 2") == text.count("FAILED (failures=1)") == 1


def test_the_end_of_an_unexplained_output_has_no_logs_and_passing_tests() -> None:
    logs = "".join(f"fetched page number {n} of the catalogue\n" for n in range(200))
    output = f"{logs}setting up\nnot a word about it\nok 1 - adds\nthe run has ended\n"
    found = told(output).text
    assert "not a word about it" in found
    assert "the run has ended" in found
    assert "ok 1" not in found
    assert found.count("fetched page") < 20


def test_passing_tests_after_a_finding_take_no_room() -> None:
    passed = "".join(f"ok {n} - fine {n}\n" for n in range(3, 300))
    output = f"1..300\nok 1 - adds\nnot ok 2 - keeps\nDubious, the limit is 5\n{passed}It died.\n"
    found = told(output).text
    assert "the limit is 5" in found
    assert "ok 3 - fine 3" not in found


@pytest.mark.parametrize(
    "shape", ["FAIL tests/mod_{0}.py:{0}: wrong value", "src/mod_{0}.py:{0}:1: error: wrong"]
)
@pytest.mark.parametrize("number", [150, 290, 400, 20_000])
def test_failures_that_are_alike_are_counted_also_where_they_are_not_listed(
    shape: str, number: int
) -> None:
    found = digest("\n".join(shape.format(n) for n in range(number)), exit_code=1)
    assert number <= found.count <= 1.02 * number


def test_more_failures_than_are_told_are_counted() -> None:
    names = ["".join(letters) for letters in islice(product(ascii_lowercase, repeat=3), 1104)]
    lines = [f"src/{name}.py:1:1: F401 `{name}` imported but unused\n" for name in names]
    found = digest("".join(lines), exit_code=1)
    assert (found.count, len(found.findings)) == (1104, 1000)


GO_CUT = """\
--- FAIL: TestA (0.00s)
    a_test.go:3: boom
FAIL
--- FAIL: TestB (0.00s)
    b_test.go:3: bang
FAIL
FAIL\tx/a\t0.1s
"""
CRATES = """\
     Running unittests src/main.rs (target/debug/deps/tool-0123456789abcdef)

running 1 test
test tests::adds ... FAILED

---- tests::adds stdout ----
thread 'tests::adds' panicked at src/main.rs:9:5:
boom

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out

     Running unittests src/lib.rs (target/debug/deps/core-fedcba9876543210)

running 1 test
test tests::adds ... FAILED

---- tests::adds stdout ----
thread 'tests::adds' panicked at src/lib.rs:4:5:
bang
"""


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("Failure:\nno name of a test\n", [(None, "Failure: no name of a test")]),
        # The end of the second package is missing.
        (GO_CUT, [("x/a.TestA", "boom"), ("x/a.TestB", "bang")]),
        (
            CRATES,
            [("tool::bin/tool::tests::adds", "boom"), ("core::tests::adds", "bang")],
        ),
    ],
)
def test_a_failure_has_the_name_that_its_tool_gives_it(
    output: str, found: list[tuple[str | None, str]]
) -> None:
    told = digest(output, exit_code=1).findings
    assert [(each.test_id, first_line(each)) for each in told] == found
