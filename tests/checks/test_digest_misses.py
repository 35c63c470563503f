"""What digests of unseen outputs got wrong, each kind of miss in an output of its own."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from mulligan.checks.digest import digest
from mulligan.checks.digest.signals import count_bad

pytestmark = pytest.mark.pure


@dataclass(frozen=True)
class Sample:
    """An output, what its digest has to name, and what it must not show."""

    output: str
    names: tuple[str, ...]
    hides: tuple[str, ...] = ()


def mark(number: int, digits: int = 10) -> str:
    """Make a word of letters and digits that no other number has."""
    return f"{(number + 1) * 2654435761 % 16**digits:0{digits}x}"


def suites() -> Sample:
    """Twelve suites fail, each with more than one digest can hold."""
    parts = list[str]()
    for suite in range(12):
        parts.append(f" FAIL  test/s{suite}.spec.ts\n")
        parts += [
            f"  ● suite {suite} › case number {case} of it\n\n    expect(it).toBe(right)\n\n"
            f"    Expected: {case}\n    Received: {suite}\n\n"
            f"      at Object.<anonymous> (test/s{suite}.spec.ts:{case + 4}:15)\n\n"
            for case in range(8)
        ]
    output = (
        "".join(parts) + "\nTest Suites: 12 failed, 12 total\nTests:       96 failed, 96 total\n"
    )
    return Sample(output, (*(f"test/s{suite}.spec.ts" for suite in range(12)), "96 failed"))


def traces() -> Sample:
    """Trace lines look like diagnostics, and passing tests print between their names."""
    lines = [
        line
        for n in range(300)
        for line in (
            f"src/handler_{n % 7}.py({n + 3}): entering step {n}",
            f"tests/test_a.py::test_{n} handled expected input {n}",
            "PASSED",
        )
    ]
    lines[500:500] = ["src/store.py(88): error: cannot open the store: No such file or directory"]
    return Sample("\n".join(lines), ("src/store.py(88)", "cannot open the store"))


def records() -> Sample:
    """Every record of a JSON log has a file and a message; one is an error."""
    rows: list[Mapping[str, object]] = [
        {"ts": n, "level": "info", "file": f"src/a{n % 9}.py", "line": n, "message": f"failed {n}?"}
        for n in range(400)
    ]
    trace = (
        'Traceback (most recent call last):\n  File "src/pay.py", line 41, in charge\n'
        "    gateway.charge(card)\nDeclinedError: card 4242 declined"
    )
    error = {"level": "error", "file": "src/pay.py", "line": 41, "message": "charge failed"}
    rows.insert(200, {**error, "exc_info": trace})
    output = "\n".join(map(json.dumps, rows))
    return Sample(output, ("charge failed", "src/pay.py:41", "card 4242 declined"), ("failed 7",))


def numbered_levels() -> Sample:
    """Levels are numbers, and the stack stands behind a long message."""
    rows: list[Mapping[str, object]] = [
        {"time": n, "level": 30, "msg": f"item {mark(n)} is fine", "pid": 3} for n in range(3000)
    ]
    stack = "Error: ledger is closed\n    at Ledger.write (src/ledger.js:77:13)" + "\n    at x" * 60
    error = {"message": "ledger is closed", "stack": stack}
    rows.insert(1500, {"time": 1, "level": 50, "msg": "x" * 1200, "err": error})
    output = "\n".join(map(json.dumps, rows))
    return Sample(output, ("ledger is closed", "src/ledger.js:77"))


def decoys() -> Sample:
    """Tens of thousands of lines that differ have words of failure, and one traceback none."""
    lines = [
        f"batch {mark(n)} processed by worker-{mark(n, 5)}: errors=0 failed=0 warnings=0"
        for n in range(40_000)
    ]
    lines[20_000:20_000] = [
        "Traceback (most recent call last):",
        '  File "src/batch.py", line 31, in run',
        "    total += row.amount",
        "TypeError: unsupported operand type(s) for +=",
    ]
    return Sample("\n".join(lines), ("src/batch.py:31", "TypeError: unsupported"))


def worried_log() -> Sample:
    """A log that speaks of errors that were none."""
    lines = [
        f"2024-01-01 00:00:{n % 60:02} [worker-{mark(n, 5)}] retrying failed job {mark(n)}: error "
        f"budget 0.{n % 10}, no failures so far, fallback on exception policy {mark(n, 8)}"
        for n in range(3000)
    ]
    lines[1500:1500] = ["src/queue.rs:77:9: error: queue poisoned"]
    return Sample("\n".join(lines), ("src/queue.rs:77:9", "queue poisoned"))


def annotations() -> Sample:
    output = (
        "::group::lint\n::error file=lib/x.js,line=12,col=3::Unexpected console. (no-console)\n"
        "::error file=lib/y.js,line=2,title=ESLint%3A no-undef::'z' is not defined.\n::endgroup::\n"
        "##vso[task.logissue type=error;sourcepath=lib/z.js;linenumber=9;]Missing semicolon\n"
        "::warning file=lib/w.js,line=1::unused\n##[error]Process completed with exit code 1.\n"
    )
    names = (
        "lib/x.js,line=12",
        "no-console",
        "lib/y.js,line=2",
        "no-undef",
        "lib/z.js;linenumber=9",
    )
    return Sample(output, names)


def doctest() -> Sample:
    """A verbose doctest prints every example that passed."""
    fine = "".join(f"Trying:\n    f({n})\nExpecting:\n    {n + 1}\nok\n" for n in range(200))
    stars = "*" * 70
    output = (
        f"{fine}Trying:\n    g('error')\nExpecting:\n    'ok'\n{stars}\n"
        "File \"pkg/calc.py\", line 44, in calc.g\nFailed example:\n    g('error')\n"
        f"Expected:\n    'ok'\nGot:\n    'bad value'\n{fine}{stars}\n1 items had failures:\n"
        "   1 of   1 in calc.g\n401 tests in 4 items.\n400 passed and 1 failed.\n"
        "***Test Failed*** 1 failures.\n"
    )
    return Sample(output, ("pkg/calc.py", "44", "calc.g", "'bad value'"), ("f(7)",))


def php_tables() -> Sample:
    rule = "-" * 60
    output = (
        f"\nFILE: src/A.php\n{rule}\nFOUND 2 ERRORS AFFECTING 2 LINES\n{rule}\n"
        "  3 | ERROR   | [x] Expected 1 space after FUNCTION keyword\n"
        f" 12 | ERROR   | [ ] Missing doc comment\n{rule}\n\n"
        " ------ -----------------\n  Line   src/Cart.php\n ------ -----------------\n"
        "  31     Call to an undefined method App\\Cart::totl().\n"
        "         🪪  method.notFound\n ------ -----------------\n\n [ERROR] Found 1 error\n"
    )
    names = ("src/A.php", "FUNCTION keyword", "src/Cart.php", "Cart::totl()")
    return Sample(output, names)


def prefixed_tap() -> Sample:
    lines = [
        *(f"[unit] ok {n} - fine {n}" for n in range(1, 30)),
        *("[unit] not ok 30 - rejects bad input", "[unit]   ---"),
        *("[unit]   at: Test.<anonymous> (test/in.js:9:5)", "[unit]   ..."),
        *("[e2e] not ok 1 - logs in", "[e2e]   ---", "[e2e]   message: 'timeout'", "[e2e]   ..."),
    ]
    return Sample("\n".join(lines), ("rejects bad input", "test/in.js:9", "logs in", "timeout"))


def programs() -> Sample:
    """Three test programs run after each other, each with its own summary."""
    output = ""
    for name in ("Cart", "Store", "User"):
        output += "[==========] Running 40 tests from 2 test suites.\n"
        for test, line in (("Adds", 24), ("Removes", 27)):
            output += (
                f"[ RUN      ] {name}.{test}\ntest/{name}.cc:{line}: Failure\n"
                f"Expected equality of these values:\n  {name}.size()\n    Which is: 3\n  4\n"
                f"[  FAILED  ] {name}.{test} (0 ms)\n"
            )
        output += f"[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] {name}.Adds\n"
        output += f"[  FAILED  ] {name}.Removes\n\n 2 FAILED TESTS\n"
    names = ("Cart", "Store", "User")
    places = [f"test/{name}.cc:{line}" for name in names for line in (24, 27)]
    return Sample(output, (*(f"{name}.Removes" for name in names), *places))


def long_messages() -> Sample:
    """The code stands behind a message that is cut."""
    tail = "which is told at great length here and there until nobody reads on any more " * 4
    lines = [
        f"src/part_{n}/implementation.py:{n + 10}:5: error: Argument 1 has a type {tail} [arg-{n}]"
        for n in range(9)
    ]
    names = [f"part_{n}/implementation.py:{n + 10}" for n in range(9)]
    return Sample("\n".join([*lines, "Found 9 errors in 9 files"]), (*names, "arg-0", "arg-4"))


def rows_of_runners() -> Sample:
    """Runners with their own ways to name a test."""
    output = (
        "Failure:\nCartTest#test_adds [test/cart_test.rb:5]:\nExpected: 1\n  Actual: 2\n\n"
        "Failure → spec/cart_spec.lua @ 4\ncart removes\nspec/cart_spec.lua:5: Expected 3\n\n"
        "1/2 main.test.parses...FAIL (TestExpectedEqual)\n/repo/src/main.zig:9:5: 0x1 in test\n\n"
        "Chrome 1.0 (Linux) cart sorts FAILED\n\tExpected 1 to be 2.\n"
        "\t    at UserContext.<anonymous> (webpack:///./src/a.spec.ts:4:5)\n"
    )
    names = ("CartTest#test_adds", "spec/cart_spec.lua @ 4", "cart removes", "main.test.parses")
    return Sample(output, (*names, "cart sorts", "src/a.spec.ts:4"))


def errors_over_verdicts() -> Sample:
    """The verdict of each test stands below what it says."""
    output = "".join(
        f"\ntest/part{n}.ts:\n(pass) part {n} > is fine\nerror: expected {n} to be 90{n}\n"
        f"      at <anonymous> (/repo/test/part{n}.ts:5:58)\n(fail) part {n} > adds [0.2ms]\n"
        for n in range(4)
    )
    output += "\n 4 pass\n 4 fail\n"
    names = (f"part {n} > adds" for n in range(4))
    places = (f"test/part{n}.ts:5:58" for n in range(4))
    return Sample(output, (*names, *places, "error: expected 0 to be 900"))


def names_again_over_errors() -> Sample:
    """A list names the tests that failed; their errors stand further down, beneath the names."""
    listed = "".join(f"adds {n} ... ok\nsells {n} ... FAILED (2ms)\n" for n in range(4))
    told = "".join(
        f"\nsells {n} => part{n}.ts:3:6\nerror: got {n}, wanted 60{n}\n" for n in range(4)
    )
    names = (f"sells {n} => part{n}.ts:3:6 error: got {n}, wanted 60{n}" for n in range(4))
    return Sample(f"{listed}\nERRORS\n{told}\nFAILED | 4 passed | 4 failed\n", (*names,))


def files_over_rows() -> Sample:
    """A file stands alone over its complaints, which name a line at most."""
    output = "".join(
        f"\n   pages/p{n}.html\n      L{n + 3} |<div></section>\n"
        "              ^ Tag must be paired, missing: </div> (tag-pair)\n"
        for n in range(5)
    )
    return Sample(output, ("(tag-pair)", *(f"pages/p{n}.html L{n + 3} |" for n in range(5))))


def warnings_alone() -> Sample:
    """Rows that give a range of columns are all warnings; the total says no more than they do."""
    output = "".join(
        f"docs/p{n}.md\n  3:5-3:11  warning  `master` may be insensitive  master  retext\n\n"
        for n in range(4)
    )
    return Sample(f"{output}⚠ 4 warnings\n", tuple(f"docs/p{n}.md 3:5-3:11" for n in range(4)))


def severities() -> Sample:
    """The severity follows a code, or stands last; what is mild gives way to errors."""
    output = "".join(
        f"a{n}/Dockerfile:1 DL3006 warning: tag the image\n"
        f"a{n}/Dockerfile:2 DL3015 info: avoid packages\n"
        f"a{n}/Dockerfile:3 DL4000 error: MAINTAINER is deprecated\n"
        f"  /repo/src/b{n}.js:1:1: Unexpected var. (no-var) (warning)\n"
        f"  /repo/src/b{n}.js:2:44: 'ghost{n}' is not defined. (no-undef)\n"
        for n in range(3)
    )
    errors = (f"a{n}/Dockerfile:3 DL4000" for n in range(3))
    undefined = (f"'ghost{n}' is not defined" for n in range(3))
    return Sample(output, (*errors, *undefined), ("- a0/Dockerfile:2", "- src/b0.js:1:1"))


def progress_with_places() -> Sample:
    """A runner tells each step with its place, and errors among them."""
    output = "".join(
        f't.cc({n}): Entering test case "sum {n}"\nt.cc({n}): error: in "sum {n}": 3 != 70{n}\n'
        f't.cc({n}): Leaving test case "sum {n}"; testing time: 12us\n'
        for n in range(1, 7)
    )
    errors = tuple(f'error: in "sum {n}": 3 != 70{n}' for n in range(1, 7))
    return Sample(output, errors, ('- t.cc(1): Entering test case "sum 1"',))


def list_of_files() -> Sample:
    """Files are listed beneath what is wrong with them."""
    files = tuple(f"src/orphan{n}.js" for n in range(5))
    output = "\n".join(["Unused files (5)", *files, "Unused exports (1)", "size  src/a.js:2:14"])
    return Sample(output, files)


SAMPLES = (
    *(suites, traces, records, numbered_levels, decoys, worried_log, annotations, doctest),
    *(php_tables, prefixed_tap, programs, long_messages, rows_of_runners),
    *(errors_over_verdicts, names_again_over_errors, files_over_rows, warnings_alone),
    *(severities, progress_with_places, list_of_files),
)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.__name__)
def test_what_was_missed_is_named(sample: Callable[[], Sample]) -> None:
    asked = sample()
    found = digest(asked.output, exit_code=1, root="/repo")
    plain = " ".join(found.text.split())
    assert [name for name in asked.names if name not in plain] == []
    assert [name for name in asked.hides if name in plain] == []


def test_where_findings_say_it_all_no_window_is_shown() -> None:
    lines = [f"step {n} is done" for n in range(90)]
    lines[40:40] = ["src/a.c:3:5: error: expected ';'"]
    assert "In the output" not in digest("\n".join(lines), exit_code=1).text
    lines[70:70] = ["the disk is full: cannot write"]
    assert "the disk is full" in digest("\n".join(lines), exit_code=1).text


def test_what_a_tool_names_twice_is_not_counted_for_it() -> None:
    tests = [f"FAIL: test_{n} (shop.Shop.test_{n})" for n in range(7)]
    lines = [*tests, *(f"shop/part_{n}.py:3:1: error: no {n}" for n in range(7))]
    told = digest("\n".join([*lines, "", "FAILED (failures=7)"]), exit_code=1)
    assert (told.count, len(told.findings)) == (0, 14)
    assert "FAILED (failures=7)" in told.short


@pytest.mark.parametrize(
    ("line", "failures"),
    [
        ("FAILURES: 12/18 assertions failed (238ms)", 12),
        ("Result:     failed: 604 != 5 (604 != 5)", 0),
        ("Tests: 3 failed, 2 passed, 5 total", 3),
    ],
)
def test_the_failures_of_a_total_are_read(line: str, failures: int) -> None:
    assert count_bad(line) == failures


def test_the_totals_of_several_runs_count_together() -> None:
    run = "--- FAIL: Test{0}\ntest result: FAILED. 3 passed; 1 failed\n"
    assert digest(run.format("One") + run.format("Two"), exit_code=1).count == 2


def test_a_report_in_the_output_and_its_text_are_one() -> None:
    cases = "".join(
        f'<testcase classname="shop.Part{n}" name="adds"><failure message="no {n}"/></testcase>'
        for n in range(2)
    )
    text = "".join(f"[ FAILED ] Part{n} adds\n" for n in range(2))
    told = digest(f"<testsuite>{cases}</testsuite>\n{text}", exit_code=1)
    assert (told.count, len(told.findings)) == (2, 2)


def test_failures_out_of_all_tests_are_counted_alone() -> None:
    output = "  sums: FAIL\n    src/sum.hs:9:\n    expected: 7\n\n1 out of 88 tests failed (0.1s)\n"
    assert digest(output, exit_code=1).count == 1


def test_a_linker_error_is_shown_beside_warnings() -> None:
    build = [f"cc -c p{n}.c -o p{n}.o" for n in range(90)]
    build[4:4] = ["p3.c:1:15: warning: unused parameter 'x' [-Wunused-parameter]"]
    output = "\n".join([
        *build,
        "/usr/bin/ld: p3.o: in function `total':",
        "p3.c:(.text+0x0): multiple definition of `total'; cart.c:(.text+0x0): first defined here",
        "collect2: error: ld returned 1 exit status",
        "make: *** [Makefile:4: app] Error 1",
    ])  # fmt: skip
    assert "multiple definition of `total'" in digest(output, exit_code=1).text


def test_what_a_test_got_is_told_beneath_its_place() -> None:
    output = "#   Failed test 'has a name'\n#   at t/a.t line 5.\n#          got: 'card'\n"
    output += "#     expected: 'cart'\nnot ok 2 - has a name\n1..2\nDubious, test returned 1\n"
    output += "".join(f"ok {n} - fine {n}\n" for n in range(200)) + "Result: FAIL\n"
    assert "got: 'card'" in digest(output, exit_code=1).text


GO_VERBOSE = (
    "=== RUN   TestMany\n=== RUN   TestMany/1\n=== PAUSE TestMany/1\n=== RUN   TestMany/2\n"
    "=== PAUSE TestMany/2\n=== CONT  TestMany/1\n    n_test.go:15: number 1 is not wanted\n"
    "=== CONT  TestMany/2\n    n_test.go:13: error: looking at 2\n--- FAIL: TestMany (0.05s)\n"
    "    --- FAIL: TestMany/1 (0.00s)\n    --- PASS: TestMany/2 (0.00s)\n=== RUN   TestLast\n"
    "    n_test.go:21: fine\n--- PASS: TestLast (0.00s)\nFAIL\n"
    "FAIL\texample.com/shop\t0.090s\nFAIL\n"
)


def test_the_log_of_a_test_that_passed_is_no_failure() -> None:
    told = digest(GO_VERBOSE, exit_code=1)
    assert [found.test_id for found in told.findings] == ["example.com/shop.TestMany/1"]
    assert (told.findings[0].line, told.count) == (15, 1)
    assert "fine" not in told.text
    assert "looking at 2" not in told.text


@pytest.mark.parametrize(
    ("record", "message", "place"),
    [
        (
            {
                "text": "failed\nTraceback (most recent call last):\n\n"
                '> File "a.py", line 1, in <module>\n\n  File "jobs/part.py", line 3, in work\n'
                "    raise ValueError\n\nValueError: no owner\n",
                "record": {"level": {"icon": "x", "name": "ERROR"}, "message": "failed", "time": 1},
            },
            "ValueError: no owner",
            ("jobs/part.py", 3),
        ),
        (
            {
                "event": "failed",
                "level": "error",
                "timestamp": "2026",
                "exception": [
                    {
                        "exc_type": "KeyError",
                        "exc_value": "'price'",
                        "frames": [{"filename": "jobs/part.py", "lineno": 2, "name": "work"}],
                    }
                ],
            },
            "KeyError: 'price'",
            ("jobs/part.py", 2),
        ),
    ],
)
def test_an_exception_in_a_record_is_read(
    record: object, message: str, place: tuple[str, int]
) -> None:
    quiet = json.dumps({"level": "info", "timestamp": 1, "event": "row read", "errors": 0})
    told = digest("\n".join([*[quiet] * 30, json.dumps(record), *[quiet] * 30]), exit_code=1)
    places = [(found.message, found.file, found.line) for found in told.findings]
    assert (message, *place) in places


def test_a_class_on_the_line_above_is_part_of_a_tests_name() -> None:
    output = "".join(
        f"{name}Test\n  test_adds      FAIL (0.00s)\nMinitest::Assertion:  Expected: {n}\n"
        f"  Actual: 5\n     /repo/tests/{name}_test.rb:4:in `test_adds'\n\n"
        for n, name in enumerate(("Cart", "Shop"))
    )
    told = digest(f"{output}18 tests, 6 assertions, 2 failures, 0 errors, 0 skips\n", exit_code=1)
    names = [found.test_id for found in told.findings]
    assert names == ["CartTest.test_adds", "ShopTest.test_adds"]


@pytest.mark.parametrize(
    "output",
    [
        "src/cart.js\n2:24 Cannot assign a string.   incompatible-type\n",
        f"src/cart.js\n{'─' * 60}\nH013 2:24 Cannot assign a string.\n",
    ],
)
def test_a_place_over_a_complaint_is_its_place(output: str) -> None:
    (found,) = digest(output, exit_code=1).findings
    assert (found.file, found.line, found.column) == ("src/cart.js", 2, 24)
    assert "Cannot assign a string" in found.message
    assert found.code in {"incompatible-type", "H013"}


def test_the_message_of_a_test_stands_before_what_it_printed() -> None:
    rows = "".join(f"row {n} was read\n" for n in range(12))
    output = (
        f"======\nFAIL: shop.Part.test_adds\n------\nrows: {{{{{{\n{rows}}}}}}}\n\n"
        'Traceback (most recent call last):\n  File "shop.py", line 6, in test_adds\n    check()\n'
        "shop.MismatchError: 5 != 601\n------\nRan 1 test in 0.001s\n\nFAILED (failures=1)\n"
    )
    lines = digest(output, exit_code=1).short.split("\n")
    assert lines[0] == "- shop.Part.test_adds (shop.py:6)"
    assert "5 != 601" in lines[1]


def test_warnings_beside_an_error_are_not_counted_with_it() -> None:
    files = "".join(
        f"/repo/m{n}.js\n  1:1  warning  Unexpected console  no-console\n\n" for n in range(30)
    )
    error = "/repo/src/a.js\n  4:1  error  'x' is not defined  no-undef\n\n"
    told = digest(f"{files}{error}✖ 31 problems (1 error, 30 warnings)\n", exit_code=1)
    assert told.count == 1
    assert told.short.split("\n") == [
        "- /repo/src/a.js:4:1: 'x' is not defined [no-undef]",
        "Totals: ✖ 31 problems (1 error, 30 warnings)",
    ]
