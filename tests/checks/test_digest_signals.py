"""The tables by which lines are understood: weights, places, names, codes, totals, hints."""

import pytest

from mulligan.checks.digest.findings import clip, code_in, finding, hint_for, relevant_part
from mulligan.checks.digest.heads import named_test, started
from mulligan.checks.digest.locations import (
    Place,
    best_place,
    file_in,
    find_lone_place,
    find_place,
    number,
)
from mulligan.checks.digest.signals import (
    Weight,
    count_bad,
    ends_results,
    is_aftermath,
    is_total,
    total_lines,
    weigh,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("line", "weight"),
    [
        ("--- FAIL: TestAdd (0.00s)", Weight.TEST),
        ("not ok 3 - adds", Weight.TEST),
        ("not ok 3 - adds # TODO later", Weight.NOTHING),
        ("  ✗ adds", Weight.TEST),
        ("test adds ... FAILED", Weight.TEST),
        ("thread 'main' panicked at src/main.rs:3:5:", Weight.CRASH),
        ("Segmentation fault (core dumped)", Weight.CRASH),
        ("main.o: undefined reference to `foo'", Weight.CRASH),
        ("shop.errors.CartError: empty", Weight.CRASH),
        ("error[E0308]: mismatched types", Weight.ERROR),
        ("npm ERR! code E404", Weight.ERROR),
        ("[ERROR] it broke", Weight.ERROR),
        ("2024-05-01 12:00:00 ERROR app: no", Weight.WORD),
        ("sh: 1: foo: not found", Weight.ERROR),
        ("cat: a: No such file or directory", Weight.ERROR),
        ("main.go:5:2: missing return", Weight.PLACE),
        ("main.go:5:2: odd", Weight.PLACE),
        ("the value was rejected", Weight.NOTHING),
        ("cannot go on", Weight.PHRASE),
        ("E302 two blank lines", Weight.PHRASE),
        ("the run failed", Weight.WORD),
        ("warning: careful", Weight.WARNING),
        ("INFO: the last run failed", Weight.MENTION),
        ("compiling error_handler.c", Weight.NOTHING),
        ("test_error_cases PASSED", Weight.NOTHING),
        ("✓ throws an error", Weight.NOTHING),
        ("ok 3 - fails loudly", Weight.NOTHING),
        ("0 errors, 0 warnings", Weight.NOTHING),
        ("no problems found, errors: 0", Weight.NOTHING),
        ("all is well", Weight.NOTHING),
        ("", Weight.NOTHING),
    ],
)
def test_lines_are_weighed_by_how_they_speak_of_failure(line: str, weight: Weight) -> None:
    assert weigh(line) is weight


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("src/a.c:3:5: error: no", "src/a.c:3:5"),
        ("error: src/a.c:3: no", "src/a.c:3"),
        ('  File "/home/ada/a b.py", line 3, in f', "/home/ada/a b.py:3"),
        ("src/a.ts(3,5): error TS1: no", "src/a.ts:3:5"),
        ("[ERROR] /x/App.java:[12,9] cannot find symbol", "/x/App.java:12:9"),
        ("  --> src/main.rs:2:18", "src/main.rs:2:18"),
        ("    at boom (src/sum.js:9:12)", "src/sum.js:9:12"),
        ("    at file:///home/ada/a.mjs:1:2", "/home/ada/a.mjs:1:2"),
        ("   at A.B() in /src/A.cs:line 11", "/src/A.cs:11"),
        ("Can't locate X at lib/A.pm line 12.", "lib/A.pm:12"),
        ("  on main.tf line 5, in resource", "main.tf:5"),
        ("TestA#test_b [test/a_test.rb:5]:", "test/a_test.rb:5"),
        ("Failure → spec/a.lua @ 5", "spec/a.lua:5"),
        ("src/main.js (3:7)", "src/main.js:3:7"),
        ("ERROR in ./src/index.js 1:0-30", "./src/index.js:1"),
        ("[error] src/a.ts: SyntaxError: no. (3:9)", "src/a.ts:3:9"),
        ("l.c:(.text+0x5): undefined reference", "l.c"),
        ("Makefile:3: *** missing separator.", "Makefile:3"),
        ("app/[id]/page.tsx:3:7", "app/[id]/page.tsx:3:7"),
        ("app/(auth)/page.tsx:3:7", "app/(auth)/page.tsx:3:7"),
        (r"C:\src\a.cs:3:5 no", r"C:\src\a.cs:3:5"),
        ("http://localhost:3000/a.js:3:5", None),
        ("connect to example.com:443 failed", None),
        ("expect(sum(1, 2)).toBe(4);", None),
        ("it is 12:30:45", None),
        ("no place at all", None),
    ],
)
def test_places_are_found_in_every_notation(line: str, place: str | None) -> None:
    found = find_place(line)
    assert (str(found) if found else None) == place


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("/home/ada/a.js:3", "/home/ada/a.js:3"),
        ("In deploy.sh line 7:", "deploy.sh:7"),
        ('File "a.ml", line 3, characters 10-13:', "a.ml:3"),
        ("/home/ada/a.js:3 and more", None),
        ("nothing", None),
    ],
)
def test_lines_that_only_name_a_place_are_told_apart(line: str, place: str | None) -> None:
    found = find_lone_place(line)
    assert (str(found) if found else None) == place


def test_the_projects_own_place_is_preferred() -> None:
    stack = [
        "    at fail (node_modules/chai/index.js:5:3)",
        "    at org.junit.Assert.fail(Assert.java:89)",
        "    at Object.<anonymous> (test/a.js:3:1)",
    ]
    assert best_place(stack) == Place("test/a.js", 3, 1)
    assert best_place(stack[:2]) == Place("node_modules/chai/index.js", 5, 3)
    assert best_place(["nothing"]) is None


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("cannot format src/bad.py: Cannot parse", "src/bad.py"),
        ('Could not resolve "./nope" from "src/App.tsx"', "src/App.tsx"),
        ("see node_modules/x/y.js and src/a.js", "src/a.js"),
        ("see https://example.org/a.html", None),
        ("cannot write to run/tmp.Za7QPv9r5Q: no", None),
        ("e.g. this", None),
    ],
)
def test_files_are_found_without_a_number(line: str, file: str | None) -> None:
    found = file_in(line)
    assert (found.file if found else None) == file


@pytest.mark.parametrize(
    ("digits", "value"),
    [
        ("12", 12),
        ("0", None),
        ("", None),
        (None, None),
        ("x", None),
        ("²", None),
        ("9" * 99, 10**9 - 1),
    ],
)
def test_numbers_of_lines_count_from_one(digits: str | None, value: int | None) -> None:
    assert number(digits) == value


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("--- FAIL: TestAdd/zero (0.00s)", "TestAdd/zero"),
        ("not ok 2 - adds # time=1ms", "adds"),
        ("test a::b ... FAILED", "a::b"),
        ("test a::b - should panic ... FAILED", "a::b"),
        ("---- src/lib.rs - add (line 3) stdout ----", "src/lib.rs - add (line 3)"),
        ("thread 'a::b' (12) panicked at src/lib.rs:4:1:", "a::b"),
        ("[  FAILED  ] Math.Adds (0 ms)", "Math.Adds"),
        ("2/3 Test #2: bad ......***Failed    0.00 sec", "bad"),
        ("    ✕ adds (3 ms)", "adds"),
        ("  ● sum › adds", "sum › adds"),
        (" FAIL  a.test.ts > sum > adds", "a.test.ts > sum > adds"),
        ("FAILED a.py::test_x - no", "a.py::test_x"),
        ("FAIL: test_x (a.A.test_x)", "test_x (a.A.test_x)"),
        ("[ERROR]   AppTest.testAdd:12 expected", "AppTest.testAdd"),
        ("AppTest > testAdd() FAILED", "AppTest > testAdd()"),
        ("  Failed A.B.C [12 ms]", "A.B.C"),
        ("A.B.C [FAIL]", "A.B.C"),
        ("a.swift:8: error: -[A testB] : no", "A testB"),
        ("a.swift:8: error: A.testB : no", "A.testB"),
        ("Test Case '-[A testB]' failed (0.1 seconds).", "A testB"),
        ("[info] - adds *** FAILED ***", "adds"),
        ("00:01 +0 -1: adds [E]", "adds"),
        ("── Failure (test-a.R:3:3): adds ──", "adds"),
        ("calc: Test Failed at /x/runtests.jl:5", "calc"),
        ("Adds Numbers       | FAIL |", "Adds Numbers"),
        ("#   Failed test 'adds'", "adds"),
        ("1/2 test.adds... FAIL (X)", "test.adds"),
        ("tests/lint FAILED", "tests/lint"),
        ("not ok 2 - adds # TODO", None),
        ("thread 'main' panicked at a.rs:1:2:", None),
        ("✖ 3 problems (2 errors, 1 warning)", None),
        ("✘ [ERROR] Could not resolve", None),
        ("[  FAILED  ] 1 test, listed below:", None),
        ("  ● Console", None),
    ],
)
def test_runners_name_failing_tests_in_many_ways(line: str, name: str | None) -> None:
    found = named_test(line)
    assert (found["test"] if found else None) == name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("=== RUN   TestAdd", "TestAdd"),
        ("[ RUN      ] Math.Adds", "Math.Adds"),
        ("Test Case '-[A testB]' started.", "A testB"),
        ("running", None),
    ],
)
def test_runners_say_which_test_they_start(line: str, name: str | None) -> None:
    assert started(line) == name


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("error[E0308]: no", "E0308"),
        ("error TS2322: no", "TS2322"),
        ("F401 unused", "F401"),
        ("no  [return-value]", "return-value"),
        ("no (reportMissingImports)", "reportMissingImports"),
        ("no", None),
    ],
)
def test_codes_are_found(text: str, code: str | None) -> None:
    assert code_in(text) == code


@pytest.mark.parametrize(
    "line",
    [
        "make: *** [Makefile:3: all] Error 2",
        "npm ERR! code 1",
        "error: aborting due to 2 previous errors",
        "error: could not compile `a` due to previous error",
        "collect2: error: ld returned 1 exit status",
        "Command 'x' exited with code 3",
        "> Task :test FAILED",
        "[ERROR] -> [Help 1]",
        'ERROR: "style" exited with 1.',
        "@shop/a#test:  ERROR  command (/w/packages/a) /usr/bin/npm run test exited (1)",
        ' ERR_PNPM_RECURSIVE_FAIL  "pnpm recursive run" failed in 4 packages',
    ],
)
def test_aftermath_is_told_from_causes(line: str) -> None:
    assert is_aftermath(line)
    assert not is_aftermath("make: *** No rule to make target 'x'.  Stop.")


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        ("Tests:       2 failed, 3 passed, 5 total", 2),
        ("==== 1 failed, 2 passed in 0.1s ====", 1),
        ("test result: FAILED. 1 passed; 3 failed; 0 ignored", 3),
        ("✖ 3 problems (2 errors, 1 warning)", 2),
        ("✖ 3 problems (0 errors, 3 warnings)", 3),
        ("36 runs, 32 assertions, 4 failures, 4 errors, 0 skips", 8),
        ("FAILED: Cases: 18 Tried: 18 Errors: 4 Failures: 4 Skip:  0", 8),
        ("[ERROR] Tests run: 3, Failures: 1, Errors: 0", 1),
        ("# fail 4", 4),
        ("1 warning and 1 error generated.", 1),
        ("Found 2 errors in 2 files", 2),
        ("33% tests passed, 2 tests failed out of 3", 2),
        ("3 examples, 0 failures", 0),
        ("Executed 18 of 18 specs (12 FAILED) in 0.06 sec.", 12),
        ("Errored » 6 honored ∙ 6 broken ∙ 6 errored", 0),
        ("2 passed", 0),
    ],
)
def test_totals_are_recognised_and_counted(line: str, bad: int) -> None:
    assert is_total(line)
    assert count_bad(line) == bad


@pytest.mark.parametrize(
    "line",
    ["", "2024-05-01 12:00:02 ERROR app: no", "#8 ERROR: process failed", "just text", "1: a"],
)
def test_what_only_looks_like_totals_is_not(line: str) -> None:
    assert not is_total(line)


def test_the_totals_that_count_failures_are_shown() -> None:
    lines = ["5 passed", "1 failed", "Errors: 3", "tests 9", "pass 5", "todo 0"]
    assert total_lines(lines) == ("1 failed", "Errors: 3")
    assert total_lines(lines[3:]) == ("todo 0",)
    assert total_lines(["text"]) == ()
    assert total_lines([f"1 failed after {'9' * 200} s"]) == ()
    assert ends_results("Finished in 0.1 seconds")
    assert ends_results("3 failed")
    assert not ends_results("text")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("ModuleNotFoundError: No module named 'x'", "missing module"),
        ("Cannot find module './b' from 'a.js'", "missing module"),
        ("error[E0432]: unresolved import `x`", "missing module"),
        ("FileNotFoundError: [Errno 2] a.txt", "missing file"),
        ("a.h: No such file or directory", "missing file"),
        ("3 snapshots obsolete, 1 snapshot failed", "snapshot"),
        ("expect(received).toMatchSnapshot()", "snapshot"),
        ("would reformat a.py", "formatting"),
        ("Imports are incorrectly sorted and/or formatted.", "formatting"),
        ("assert 1 == 2", None),
    ],
)
def test_messages_with_a_usual_cure_have_a_hint(message: str, hint: str | None) -> None:
    assert hint_for(message) == hint


def test_a_finding_is_summed_up_in_a_line_of_a_hundred_characters() -> None:
    long = finding("\n\n first  line\nsecond " * 300, Place("a/" * 60 + "b.py", 3), code="X1")
    assert len(long.summary) == 100 or long.summary.endswith("first line")
    assert long.summary.startswith("…")
    assert "b.py:3: X1 first line" in long.summary
    of_class = finding("no", test_id=f"test_zero (tests.{'of_' * 20}numbers.TestZero.test_zero)")
    assert of_class.summary == "test_zero: no"
    assert len(long.message) == 1000
    assert finding("").summary == "failed"
    assert finding("E1 no", code="E1").summary == "E1 no"
    assert finding("no", Place("a.py"), test_id="t" * 400).test_id == "t" * 299 + "…"


@pytest.mark.parametrize(("size", "text"), [(5, "abcde"), (4, "abc…"), (1, "…"), (0, "")])
def test_cut_texts_are_marked(size: int, text: str) -> None:
    assert clip("abcde", size) == text


def test_of_a_long_line_the_telling_part_is_shown() -> None:
    assert relevant_part(" a  b ") == "a b"
    assert relevant_part("error " + "x" * 500).startswith("error")
    assert relevant_part("x" * 500).startswith("xxx")
    assert relevant_part("x" * 500 + " error: no").endswith("x error: no")
    assert len(relevant_part("x" * 500 + " error: no")) < 100
