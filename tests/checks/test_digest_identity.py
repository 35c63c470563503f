"""A test is known by its package, crate, project or file and its name, in what every tool prints.

Each sample is what the tool prints of one package whose test fails; two of them follow each other.
The two tests have one name and fail with one message.
"""

import json
import re

import pytest

from mulligan.checks.compare import (
    BASELINE_INCOMPARABLE,
    apply_rerun,
    keep_reproduced,
    subtract_baseline,
)
from mulligan.checks.digest import digest
from mulligan.domain.result import CheckKind, CheckResult, Finding

pytestmark = pytest.mark.pure

GO = """\
--- FAIL: TestOpen (0.00s)
    store_test.go:5: got 1
FAIL
FAIL\texample.com/m/{0}\t0.003s
"""
GO_PARTS = """\
--- FAIL: TestOpen (0.00s)
    --- FAIL: TestOpen/twice (0.00s)
        store_test.go:5: got 1
FAIL
coverage: 50.0% of statements
FAIL\texample.com/m/{0}\t0.003s
"""
GO_V = """\
=== RUN   TestOpen
    store_test.go:5: got 1
--- FAIL: TestOpen (0.00s)
=== RUN   TestFine
--- PASS: TestFine (0.00s)
FAIL
FAIL\texample.com/m/{0}\t0.003s
"""
GO_PANIC = """\
--- FAIL: TestOpen (0.00s)
panic: ouch [recovered]
\tpanic: ouch

goroutine 18 [running]:
example.com/m/{0}.TestOpen(0x0?)
\t/w/{0}/store_test.go:3 +0x27
FAIL\texample.com/m/{0}\t0.004s
"""
GO_MAIN = "exit status 1\nFAIL\texample.com/m/{0}\t0.003s\n"
GO_JSON = (
    "".join(
        json.dumps({"Action": action, "Package": "example.com/m/{0}", "Test": "TestOpen", **more})
        + "\n"
        for action, more in (
            ("run", {}),
            ("output", {"Output": "    s_test.go:5: got 1\n"}),
            ("fail", {}),
        )
    )
    .replace('{"Action', '{{"Action')
    .replace("}\n", "}}\n")
)
CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/{0}-3110576fc3c3c96d)

running 2 tests
test tests::fine ... ok
test tests::opens ... FAILED

failures:

---- tests::opens stdout ----

thread 'tests::opens' (6505) panicked at {0}/src/lib.rs:8:18:
assertion `left == right` failed
  left: 2
 right: 5

failures:
    tests::opens

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.09s

error: test failed, to rerun pass `-p {0} --lib`
error: 1 target failed:
    `-p {0} --lib`
"""
CARGO_IT = """\
     Running tests/it.rs (target/debug/deps/it-{1}9084a9c25208d2e)

running 1 test
test opens ... FAILED

failures:

---- opens stdout ----

thread 'opens' (6507) panicked at {0}/tests/it.rs:2:14:
assertion `left == right` failed

failures:
    opens

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.06s

error: test failed, to rerun pass `-p {0} --test it`
error: 1 target failed:
    `-p {0} --test it`
"""
CARGO_OLD = CARGO_IT.partition("\nerror:")[0]
CARGO_QUIET = """\

running 2 tests
. 1/2
tests::opens --- FAILED

failures:

---- tests::opens stdout ----

thread 'tests::opens' (6554) panicked at {0}/src/lib.rs:8:18:
assertion `left == right` failed

failures:
    tests::opens

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.06s

"""
NEXTEST = """\
        FAIL [   0.005s] {0}::it opens
  stdout ───

    running 1 test
    test opens ... FAILED

──── STDERR:             {0}::it opens
thread 'opens' panicked at {0}/tests/it.rs:2:14:
assertion `left == right` failed
"""
JEST = """\
FAIL src/{0}.test.js
  Store
    ✕ opens (3 ms)

  ● Store › opens

    expect(received).toBe(expected) // Object.is equality

    Expected: "c"

      at Object.toBe (lib/compare.js:1:61)

"""
JEST_BROKEN = """\
FAIL src/{0}.test.js
  ● Test suite failed to run

    Cannot find module 'gone' from 'lib/store.js'

      at Object.<anonymous> (lib/store.js:1:1)

"""
JEST_JSON = (
    '{{"testResults":[{{"name":"/w/src/{0}.test.js","assertionResults":[{{"ancestorTitles":'
    '["Store"],"fullName":"Store opens","title":"opens","status":"failed","failureMessages":'
    '["Error: no\\n    at f (/w/lib/compare.js:1:61)"]}}]}}]}}\n'
)
VITEST = """\
 FAIL  src/{0}.test.ts > Store > opens
AssertionError: expected 'a' to be 'c' // Object.is equality
 ❯ lib/compare.ts:2:59

"""
MOCHA = """\
  {1} failing

  {1}) Store
       opens:
     AssertionError: expected 1 to equal 2
      at compare (lib/compare.js:4:9)
      at Context.<anonymous> (test/{0}.js:6:12)
      at process.processImmediate (node:internal/timers:476:21)

"""
MOCHA_LATE = """\
  {1} failing

  {1}) Store
       opens:
     Error: Timeout of 20ms exceeded. For async tests and hooks, ensure "done()" is called. (/w/test/{0}.js)
      at listOnTimeout (node:internal/timers:581:17)

"""  # noqa: E501
MOCHA_JSON = (
    '{{"tests":[{{"title":"opens","fullTitle":"Store opens","file":"/w/test/{0}.js",'
    '"err":{{"message":"no","stack":"Error: no\\n    at f (lib/compare.js:4:9)"}}}}]}}\n'
)
NODE_TAP = """\
# Subtest: opens
not ok {1} - opens
  ---
  duration_ms: 2.062555
  location: '/w/{0}/index.test.js:2:1'
  failureType: 'testCodeFailure'
  error: 'no'
  code: 'ERR_ASSERTION'
  stack: |-
    compare (/w/lib/compare.js:2:30)
    TestContext.<anonymous> (/w/{0}/index.test.js:2:30)
  ...
"""
NODE_SPEC = """\
▶ suite
  ✖ opens (1.962777ms)
✖ suite (6.638637ms)

✖ failing tests:

test at {0}/index.test.js:2:1
✖ opens (1.962777ms)
  AssertionError [ERR_ASSERTION]: no
      at compare (/w/lib/compare.js:2:30)
      at TestContext.<anonymous> (/w/{0}/index.test.js:2:30)
      at Test.run (node:internal/test_runner/test:796:25)

"""
TAPE = """\
# opens
not ok {1} should be equal
  ---
    operator: equal
    expected: 2
    actual:   1
    at: Test.<anonymous> (/w/test/{0}.js:5:7)
  ...
"""
JASMINE = """\
Failures:
{1}) Store opens
  Message:
    Expected 1 to be 2.
  Stack:
        at compare (/w/lib/compare.js:2:30)
        at UserContext.<anonymous> (/w/spec/{0}.spec.js:5:15)

"""
RSPEC = """\
Failures:

  {1}) Store opens
     Failure/Error: expect(1).to eq(2)

       expected: 2
            got: 1
     # ./{0}/spec/store_spec.rb:3:in `block (2 levels) in <top (required)>'

"""
MINITEST = """\
  {1}) Failure:
StoreTest#test_opens [{0}/test/store_test.rb:5]:
Expected: 2
  Actual: 1

"""
PHPUNIT = """\
There was 1 failure:

{1}) Shop\\{0}\\StoreTest::testOpens
Failed asserting that 1 matches expected 2.

/w/{0}/tests/StoreTest.php:12

"""
UNITTEST = """\
======================================================================
FAIL: test_opens (__main__.StoreTest)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/w/{0}/test_store.py", line 5, in test_opens
    self.assertEqual(1, 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 1 test in 0.001s

FAILED (failures=1)
"""
PYTEST = """\
============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-8.3.3, pluggy-1.5.0
rootdir: /w/{0}
collected 1 item

tests/test_store.py F                                                    [100%]

=================================== FAILURES ===================================
__________________________________ test_opens __________________________________

    def test_opens():
>       assert 1 == 2
E       assert 1 == 2

tests/test_store.py:2: AssertionError
=========================== short test summary info ============================
FAILED tests/test_store.py::test_opens - assert 1 == 2
============================== 1 failed in 0.01s ===============================
"""
CTEST = """\
Test project /w/{0}/build
    Start 1: opens
1/1 Test #1: opens ............................***Failed    0.00 sec

0% tests passed, 1 tests failed out of 1

The following tests FAILED:
\t  1 - opens (Failed)
"""
GRADLE = """\
> Task :{0}:test FAILED

StoreTest > opens() FAILED
    org.opentest4j.AssertionFailedError: expected: <2> but was: <1>
        at StoreTest.opens(StoreTest.java:9)

"""
PROVE = """\
t/{0}.t .. 
#   Failed test 'opens'
#   at lib/Compare.pm line 3.
"""  # noqa: W291
MAKE = """\
make[1]: Entering directory '/w/{0}'
FAIL src/store.test.js
  ● Store › opens

    expect(received).toBe(expected)

      at Object.toBe (src/store.test.js:1:61)

make[1]: *** [Makefile:2: test] Error 1
make[1]: Leaving directory '/w/{0}'
"""
NPM = """\

> @shop/{0}@1.0.0 test
> mocha

  1 failing

  1) Store
       opens:
     AssertionError: expected 1 to equal 2
      at Context.<anonymous> (test/store.js:6:12)

"""
MAVEN = """\
[INFO] Building {0} 1.0                                                  [2/3]
[INFO] --------------------------------[ jar ]---------------------------------
[INFO] Running app.CartTest
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 4.770 s <<< FAILURE! -- in app.CartTest
[ERROR] app.CartTest.adds -- Time elapsed: 2.043 s <<< FAILURE!
org.opentest4j.AssertionFailedError: expected: <2> but was: <1>
\tat org.junit.jupiter.api.Assertions.assertEquals(Assertions.java:531)
\tat app.CartTest.adds(CartTest.java:5)

[INFO] Results:
[ERROR] Failures:\x20
[ERROR]   CartTest.adds:5 expected: <2> but was: <1>
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0
[INFO]\x20
"""  # noqa: E501
MAVEN_QUIET = (
    "".join(f"{line}\n" for line in MAVEN.splitlines() if not line.startswith("[INFO]"))
    + "[ERROR] Failed to execute goal org.apache:maven-surefire-plugin:3.2.5:test (default-test) "
    "on project {0}: There are test failures.\n"
)
JUNIT = (
    '<testsuites><testsuite name="{0}/store.spec.js"><testcase classname="Store" name="opens">'
    '<failure message="no">at f (lib/compare.js:1:2)</failure></testcase></testsuite></testsuites>'
)
GO_JUNIT = (
    '<testsuites><testsuite name="example.com/m/{0}"><testcase classname="{0}" name="TestOpen">'
    '<failure message="Failed">    store_test.go:5: got 1</failure></testcase></testsuite>'
    "</testsuites>"
)
RSPEC_JSON = (
    '{{"examples":[{{"full_description":"Store opens","status":"failed",'
    '"file_path":"./{0}/spec/store_spec.rb","line_number":3,'
    '"exception":{{"message":"expected 2"}}}}]}}\n'
)

NAMED = {
    "go": (GO, "example.com/m/{0}.TestOpen"),
    "go, parts": (GO_PARTS, "example.com/m/{0}.TestOpen/twice"),
    "go -v": (GO_V, "example.com/m/{0}.TestOpen"),
    "go, panic": (GO_PANIC, "example.com/m/{0}.TestOpen"),
    "go, no test": (GO_MAIN, "example.com/m/{0} (package)"),
    "go -json": (GO_JSON, "example.com/m/{0}.TestOpen"),
    "cargo": (CARGO, "{0}::tests::opens"),
    "cargo, integration": (CARGO_IT, "{0}::it::opens"),
    "cargo, no hint": (CARGO_OLD, "{0}/tests/it.rs › opens"),
    "cargo -q": (CARGO_QUIET, "{0}/src/lib.rs › tests::opens"),
    "nextest": (NEXTEST, "{0}::it::opens"),
    "jest": (JEST, "src/{0}.test.js › Store › opens"),
    "jest, suite": (JEST_BROKEN, "src/{0}.test.js › Test suite failed to run"),
    "jest json": (JEST_JSON, "src/{0}.test.js › Store opens"),
    "vitest": (VITEST, "src/{0}.test.ts > Store > opens"),
    "mocha": (MOCHA, "test/{0}.js › Store opens"),
    "mocha, late": (MOCHA_LATE, "test/{0}.js › Store opens"),
    "mocha json": (MOCHA_JSON, "test/{0}.js › Store opens"),
    "node, tap": (NODE_TAP, "{0}/index.test.js › opens"),
    "node, spec": (NODE_SPEC, "{0}/index.test.js › suite › opens"),
    "tape": (TAPE, "test/{0}.js › should be equal"),
    "jasmine": (JASMINE, "spec/{0}.spec.js › Store opens"),
    "rspec": (RSPEC, "Store opens"),
    "rspec json": (RSPEC_JSON, "{0}/spec/store_spec.rb › Store opens"),
    "minitest": (MINITEST, "StoreTest#test_opens"),
    "phpunit": (PHPUNIT, "Shop\\{0}\\StoreTest::testOpens"),
    "unittest": (UNITTEST, "test_opens (__main__.StoreTest)"),
    "pytest": (PYTEST, "[{0}] tests/test_store.py::test_opens"),
    "ctest": (CTEST, "[{0}/build] opens"),
    "gradle": (GRADLE, "[:{0}:test] StoreTest > opens()"),
    "prove": (PROVE, "t/{0}.t › opens"),
    "make": (MAKE, "[{0}] src/store.test.js › Store › opens"),
    "maven": (MAVEN, "[{0}] app.CartTest.adds"),
    "maven -q": (MAVEN_QUIET, "[{0}] app.CartTest.adds"),
    "npm": (NPM, "[@shop/{0}] test/store.js › Store opens"),
    "junit": (JUNIT, "{0}/store.spec.js::Store opens"),
    "junit of go": (GO_JUNIT, "example.com/m/{0}::{0} TestOpen"),
}
IN_ONE_PROJECT = {"pytest", "make", "maven", "maven -q", "npm"}
"""Whose project is told only where there are several."""


def checked(*outputs: str) -> CheckResult:
    output = "".join(outputs)
    if output.startswith("<"):
        output = output.replace("</testsuites><testsuites>", "")
    told = digest(output, exit_code=1, root="/w")
    return CheckResult(
        name="tests",
        kind=CheckKind.TEST,
        command="make test",
        passed=told.passed,
        exit_code=1,
        digest=told.short,
        findings=told.findings,
        count=told.count,
        fingerprint=told.fingerprint,
        evidence=told.evidence,
        cut_short=told.cut_short,
    )


def ids(findings: tuple[Finding, ...]) -> list[str | None]:
    return [found.test_id for found in findings]


@pytest.mark.parametrize("tool", NAMED)
def test_two_tests_of_one_name_are_told_apart(tool: str) -> None:
    output, name = NAMED[tool]
    a, b = output.format("a", "1"), output.format("b", "2")
    both = checked(a, b)
    names = [re.sub(r"^\[run \d\] ", "", test_id or "") for test_id in ids(both.findings)]
    assert names == [name.format("a"), name.format("b")]
    assert both.count == 2
    # One in a package that is no longer red excuses none in another.
    before = checked(a)
    if tool not in IN_ONE_PROJECT:
        assert before.fingerprint != checked(b).fingerprint
        assert [found.name for found in subtract_baseline(checked(b), before).findings] == [
            found.name for found in checked(b).findings
        ]
        assert not apply_rerun(before, checked(b)).unsteady
    counted = subtract_baseline(both, before)
    assert len(counted.findings) >= 1
    assert counted.findings[-1] == both.findings[-1]
    # It is red as before where the same package is.
    assert subtract_baseline(checked(a), before).preexisting


INTERLEAVED = (
    "--- FAIL: TestOpen (0.00s)\n    store_test.go:5: got 1\n"
    "--- FAIL: TestOpen (0.00s)\n    store_test.go:7: got 3\n"
    "FAIL\nFAIL\nFAIL\texample.com/m/a\t0.1s\nFAIL\texample.com/m/b\t0.1s\nFAIL\n"
)
WITHOUT_PACKAGES = INTERLEAVED.partition("FAIL\nFAIL\n")[0]


def test_packages_that_print_between_each_other_are_named_together() -> None:
    both = checked(INTERLEAVED)
    assert ids(both.findings) == ["example.com/m/a or example.com/m/b.TestOpen"] * 2
    assert subtract_baseline(both, checked(GO.format("a"))).findings == both.findings


def test_a_bare_name_excuses_nothing() -> None:
    red = checked(WITHOUT_PACKAGES)
    assert ids(red.findings) == ["TestOpen", "TestOpen"]
    again = subtract_baseline(red, red)
    assert again.fails
    assert BASELINE_INCOMPARABLE in again.digest


CARGO_STOPS = (
    "running 1 test\ntest tests::opens ... FAILED\n\nfailures:\n\n---- tests::opens stdout ----\n"
    "thread 'tests::opens' panicked at src/lib.rs:5:9:\nleft: 1\n\nfailures:\n    tests::opens\n\n"
    "test result: FAILED. 0 passed; 1 failed; 0 ignored\n\n"
    "error: test failed, to rerun pass `--lib`\n"
)
GO_TEN = "# example.com/m\n" + "".join(f"./a.go:{n}:2: undefined: x{n}\n" for n in range(3, 13))
STOPPED = {
    "pytest": "tests/test_a.py::test_x FAILED\n=== short test summary info ===\n"
    "FAILED tests/test_a.py::test_x - assert 1 == 2\n!!!! stopping after 1 failures !!!!\n"
    "==== 1 failed, 3 passed in 0.10s ====\n",
    "pytest collection": "ERROR tests/test_a.py - ImportError: no x\n"
    "!!!! Interrupted: 1 error during collection !!!!\n==== 1 error in 0.10s ====\n",
    "go build": f"{GO_TEN}./a.go:12:2: too many errors\n",
    "cargo test": CARGO_STOPS,
    "clang": "a.c:3:2: error: no x\nfatal error: too many errors emitted, stopping now\n",
    "a list": "src/a.ts:3:5: error: no x\n... and 37 more errors\n",
    "a limit": "src/a.ts:3:5: error: no x\nMaximum number of errors reached.\n",
    "tap": "not ok 1 - a/b.t opens\nBail out!\n",
    "gcc": "a.c:3:2: fatal error: no x\ncompilation terminated due to -Wfatal-errors.\n",
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_tool_that_stops_early_excuses_nothing(name: str) -> None:
    red = checked(STOPPED[name])
    assert red.findings
    again = subtract_baseline(red, red)
    assert (again.fails, again.known) == (True, ())
    assert BASELINE_INCOMPARABLE in again.digest


NESTED_SUITE = (
    "▶ sums\n  ✖ adds (1.1ms)\n✖ sums (1.8ms)\nℹ tests 3\nℹ pass 1\nℹ fail 2\n\n"
    "✖ failing tests:\n\ntest at test/sum.test.js:5:11\n✖ adds (1.1ms)\n"
    "  AssertionError: 3 !== 4\n      at TestContext.<anonymous> (test/sum.test.js:5:37)\n"
)


def test_a_failure_that_is_counted_and_not_named_must_have_failed_before() -> None:
    red = checked(NESTED_SUITE)
    assert red.unnamed
    assert subtract_baseline(red, checked(NESTED_SUITE.replace("1.1ms", "2.3ms"))).preexisting
    other = checked(NESTED_SUITE.replace("✖ sums", "✖ prices"))
    assert subtract_baseline(red, other).fails


def test_what_an_older_version_kept_under_a_bare_name_excuses_nothing() -> None:
    old = Finding(
        summary="TestOpen: got 1", message="got 1", file="store_test.go", test_id="TestOpen"
    )
    before = checked(GO.format("a")).model_copy(update={"findings": (old,)})
    counted = subtract_baseline(checked(GO.format("b")), before)
    assert ids(counted.findings) == ["example.com/m/b.TestOpen"]


def test_a_package_that_dies_without_a_test_is_beside_those_that_fail() -> None:
    both = checked(GO.format("a"), GO_MAIN.format("b"))
    assert ids(subtract_baseline(both, checked(GO.format("a"))).findings) == [
        "example.com/m/b (package)"
    ]


def test_a_module_and_a_package_in_it_may_have_one_name() -> None:
    module, inner = (GO.replace("example.com/m/{0}", name) for name in ("shop", "shop/shop"))
    assert ids(checked(module, inner).findings) == ["shop.TestOpen", "shop/shop.TestOpen"]


def test_the_same_title_twice_in_one_list_is_two_failures() -> None:
    listed = '  {0}) Store\n       opens:\n     Error: the string "no" was thrown\n\n'
    both = checked("  2 failing\n\n", listed.format(1), listed.format(2))
    assert (ids(both.findings), both.count) == (["Store opens", "Store opens"], 2)


def test_a_list_of_names_tells_whose_they_are() -> None:
    output, _ = NAMED["rspec"]
    many = checked(*(output.format(f"part_{n}", n) for n in range(1, 9)))
    assert "- Store opens (./part_8/spec/store_spec.rb:3)" in many.digest


def test_a_report_lends_its_package_to_the_output_that_names_none() -> None:
    report = "".join(GO_JUNIT.format(name) for name in "ab").replace(
        "</testsuites><testsuites>", ""
    )
    output = WITHOUT_PACKAGES.replace("store_test.go:7: got 3", "store_test.go:5: got 1")
    told = digest(output, exit_code=1, report=report.encode())
    assert ids(told.findings)[:2] == [f"example.com/m/{name}::{name} TestOpen" for name in "ab"]


def pytest_run(test_id: str, message: str = "no") -> str:
    file, _, name = test_id.partition("::")
    return (
        f"F\n=== FAILURES ===\n____ {name} ____\n\n>   assert ok\nE   AssertionError: {message}\n\n"
        f"{file}:9: AssertionError\n=== short test summary info ===\n"
        f"FAILED {test_id} - AssertionError: {message}\n1 failed, 3 passed in 0.12s\n"
    )


UNITTEST_RUN = (
    "F\n======\nFAIL: test_adds (test_cart.CartTest)\n------\nTraceback (most recent call last):\n"
    '  File "test_cart.py", line 5, in test_adds\n    self.fail()\nAssertionError: None\n\n------\n'
    "Ran 1 test in 0.001s\n\nFAILED (failures=1)\n"
)
GREEN_UNITTEST = ".\n------\nRan 1 test in 0.001s\n\nOK\n"
GREEN_PYTEST = "....\n4 passed in 0.10s\n"
RED_GTEST = (
    "[ RUN      ] Cart.Adds\ncart_test.cc:5: Failure\nExpected 1\n[  FAILED  ] Cart.Adds (0 ms)\n"
    "[==========] 4 tests from 1 test suite ran. (3 ms total)\n"
)
GREEN_GTEST = "[==========] 4 tests from 1 test suite ran. (3 ms total)\n"


def npm_lint(red: str) -> str:
    problem = "src/index.js:3:5: error 'x' is not defined [no-undef]\n"
    return "".join(
        f"> @shop/{name}@1.0.0 lint\n> eslint .\n\n{problem if name == red else ''}\n"
        for name in ("a", "b")
    )


def make_in(red: str) -> str:
    problem = "src/main.c:3:5: error: 'x' undeclared\n"
    return "".join(
        f"make[1]: Entering directory '/repo/{name}'\ncc -c src/main.c\n"
        f"{problem if name == red else ''}make[1]: Leaving directory '/repo/{name}'\n"
        for name in ("a", "b")
    )


def prefixed(red: str, prefix: str) -> str:
    lines = ["3 passed in 0.1s", "all is well"]
    failed = ["FAILED test_cart.py::test_adds - assert 5 == 6", "1 failed, 2 passed in 0.1s"]
    return "".join(
        f"{prefix.format(name)}{line}\n"
        for name in ("a", "b")
        for line in (failed if name == red else lines)
    )


def tap_at(directory: str) -> str:
    return f"not ok 1 - adds\n  ---\n  at: /repo/{directory}/cart.test.js:5:3\n  error: no\n  ...\n"


OTHER_FAILURES = {
    **{
        f"parameter {first}": (
            pytest_run(f"test_a.py::test_a[{first}]"),
            pytest_run(f"test_a.py::test_a[{other}]"),
        )
        for first, other in (
            *(("row 3", "row 4"), ("port 8080", "port 9090"), ("2024-01-01", "2025-06-07")),
            *(("5s", "10s"), ("1000000", "2000000"), ("0x10", "0x11"), ("deadbee1", "deadbee2")),
            ("/etc/a/x.conf", "/etc/b/x.conf"),
        )
    },
    "two quiet runs of pytest": (
        pytest_run("test_cart.py::test_adds") + GREEN_PYTEST,
        GREEN_PYTEST + pytest_run("test_cart.py::test_adds"),
    ),
    "two runs of unittest": (UNITTEST_RUN + GREEN_UNITTEST, GREEN_UNITTEST + UNITTEST_RUN),
    "two programs of GoogleTest": (RED_GTEST + GREEN_GTEST, GREEN_GTEST + RED_GTEST),
    "two runs of minitest": tuple(
        "".join(
            f"{MINITEST.format('.', 1) if name == red else ''}2 runs, 2 assertions, 0 skips\n"
            for name in "ab"
        )
        for red in "ab"
    ),
    "environments of tox": tuple(
        "".join(
            f"{name}: commands[0]> pytest -q\n"
            + (pytest_run("test_c.py::test_a") if name == red else GREEN_PYTEST)
            for name in ("py310", "py311")
        )
        for red in ("py310", "py311")
    ),
    "environments of tox that tell the directory": tuple(
        "".join(
            f"{name}: commands[0]> pytest -v\nrootdir: /mulligan/worktree\n"
            + (pytest_run("test_c.py::test_a") if name == red else GREEN_PYTEST)
            for name in ("py310", "py311")
        )
        for red in ("py310", "py311")
    ),
    "linters of two packages": (npm_lint("a"), npm_lint("b")),
    "compilers in two directories": (make_in("a"), make_in("b")),
    "files of one name": (tap_at("packages/a"), tap_at("packages/b")),
    **{
        f"prefix {prefix!r}": (prefixed("a", prefix), prefixed("b", prefix))
        for prefix in ("{}-1  | ", "@shop/{}:test: ", "packages/{} test: ", "@shop/{}: ", "{}\t")
    },
    "a crash after a known failure": (
        pytest_run("test_a.py::test_x"),
        pytest_run("test_a.py::test_x") + "Segmentation fault (core dumped)\n",
    ),
    "a crash before any test": (
        pytest_run("test_a.py::test_x"),
        (
            "ImportError while loading conftest '/repo/conftest.py'.\nconftest.py:1: in <module>\n"
            "    import shop\nE   ModuleNotFoundError: No module named 'shop'\n"
        ),
    ),
    "numbers without names": ("Tests: 3 failed, 4 passed\n", "Tests: 3 failed, 4 passed\n"),
    "another failure of one test": (
        pytest_run("test_a.py::test_x", "the price is wrong"),
        pytest_run("test_a.py::test_x", "the cart has no owner"),
    ),
}


@pytest.mark.parametrize("case", OTHER_FAILURES)
def test_a_failure_is_not_excused_by_one_that_only_looks_like_it(case: str) -> None:
    before, after = map(checked, OTHER_FAILURES[case])
    assert subtract_baseline(after, before).fails
    if case != "numbers without names":
        assert subtract_baseline(before, before).preexisting


MAVEN_IN_TURN = {
    red: "".join(
        MAVEN.format(name) if name == red else f"[INFO] Building {name} 1.0  [2/3]\n"
        for name in ("cart", "price")
    )
    for red in ("cart", "price")
}
MAVEN_IN_PARALLEL = {
    red: "[INFO] Using the MultiThreadedBuilder implementation with a thread count of 2\n"
    "[INFO] Building cart 1.0  [2/3]\n[INFO] Building price 1.0  [3/3]\n"
    + MAVEN.partition("\n")[2]
    + f"[ERROR] Failed to execute goal a:b (default-test) on project {red}: Tests failed.\n"
    for red in ("cart", "price")
}
MAVEN_QUIET_ALONE = {red: MAVEN_QUIET.format(red) for red in ("cart", "price")}
MODULES = [
    f"{name}/src/{of}"
    for name in ("cart", "price")
    for of in ("main/Cart.java", "test/app/CartTest.java")
]
TWO_PYTHON = ["a/tests/test_store.py", "b/tests/test_store.py", "setup.py"]
STORE_LINE = "src/store.ts(1,14): error TS2322: Type 'string' is not assignable to type 'number'.\n"
STORE_FILES = ["a/src/store.ts", "b/src/store.ts"]
COPIED_MODULES = ["a/store_test.go", "b/store_test.go", "a/go.mod", "b/go.mod"]
MAKE_IN_PARALLEL = (
    "make[1]: Entering directory '/w/a'\nmake[1]: Entering directory '/w/b'\n"
    f"{STORE_LINE}make[1]: Leaving directory '/w/b'\nmake[1]: Leaving directory '/w/a'\n"
)
NPM_IN_PARALLEL = f"\n> @shop/a@1.0.0 lint\n> tsc\n\n\n> @shop/b@1.0.0 lint\n> tsc\n\n{STORE_LINE}"
UNCERTAIN = {
    "maven, in parallel": (*MAVEN_IN_PARALLEL.values(), MODULES),
    "maven -q, one module": (*MAVEN_QUIET_ALONE.values(), MODULES),
    "pytest, one of two directories": (pytest_run("tests/test_store.py::test_a"),) * 2
    + (TWO_PYTHON,),
    "a silent compiler in two directories": (STORE_LINE, STORE_LINE, STORE_FILES),
    "go, two modules of one path": (GO.format("x"), GO.format("x"), COPIED_MODULES),
    "make -j": (MAKE_IN_PARALLEL, MAKE_IN_PARALLEL, STORE_FILES),
    "npm scripts side by side": (NPM_IN_PARALLEL, NPM_IN_PARALLEL, STORE_FILES),
}


@pytest.mark.parametrize("case", UNCERTAIN)
def test_a_name_that_two_files_of_the_repository_have_excuses_nothing(case: str) -> None:
    before, after, files = UNCERTAIN[case]
    counted = subtract_baseline(checked(after), checked(before), files)
    assert counted.fails
    assert counted.findings == checked(after).findings
    # In a repository with one such file, it can be no other.
    single = [name for name in files if not name.startswith(("b/", "price/"))]
    assert subtract_baseline(checked(before), checked(before), single).preexisting


NAMED_IN_FULL = {
    "maven": (MAVEN_IN_TURN["cart"], MODULES),
    "go": (GO.format("a"), ["a/store_test.go", "b/store_test.go"]),
    "go, directories of one name": (GO.format("a/x"), ["a/x/store_test.go", "b/x/store_test.go"]),
    "cargo, root and member": (
        CARGO.replace("{0}/src", "src").format("a"),
        ["src/lib.rs", "b/src/lib.rs"],
    ),
    "pytest": (pytest_run("a/tests/test_store.py::test_a"), TWO_PYTHON),
    "pytest, no such file": (pytest_run("made/test_store.py::test_a"), TWO_PYTHON),
    "a class": (PHPUNIT.partition("\n/w/")[0].format("A", 1), ["a/StoreTest.php"]),
}


@pytest.mark.parametrize("case", NAMED_IN_FULL)
def test_a_name_that_one_file_of_the_repository_has_excuses_the_failure(case: str) -> None:
    output, files = NAMED_IN_FULL[case]
    assert subtract_baseline(checked(output), checked(output), files).preexisting


def test_one_module_of_maven_excuses_no_other() -> None:
    before, after = (checked(MAVEN_IN_TURN[red]) for red in ("cart", "price"))
    assert ids(after.findings) == ["[price] app.CartTest.adds"]
    assert subtract_baseline(after, before, MODULES).findings == after.findings


def test_directories_of_make_may_contain_each_other() -> None:
    def nested(red: str) -> str:
        inner = "".join(
            f"make[2]: Entering directory '/w/{name}'\n{STORE_LINE if name == red else ''}"
            f"make[2]: Leaving directory '/w/{name}'\n"
            for name in ("a", "b")
        )
        return f"make[1]: Entering directory '/w'\n{inner}make[1]: Leaving directory '/w'\n"

    before, after = (checked(nested(red)) for red in ("a", "b"))
    assert after.findings[0].message.startswith("[b] ")
    assert subtract_baseline(after, before, STORE_FILES).fails
    assert subtract_baseline(after, after, STORE_FILES).preexisting


QUIET_PYTEST = (
    "F.  [100%]\n=== FAILURES ===\nE   assert 1 == 2\n/w/{0}/tests/test_cart.py:2: assert 1 == 2\n"
    "=== short test summary info ===\nFAILED tests/test_cart.py::test_adds - assert 1 == 2\n"
)


def test_a_run_without_totals_is_no_part_of_the_run_before() -> None:
    a, b = QUIET_PYTEST.format("a"), QUIET_PYTEST.format("b")
    both = checked(a, b)
    assert ids(both.findings) == ["tests/test_cart.py::test_adds"] * 2
    assert subtract_baseline(both, checked(a)).findings == both.findings[1:]


TURBO = (
    "   • Packages in scope: @shop/a, @shop/b\n   • Running test in 2 packages\n"
    "   • Remote caching disabled\n\n"
    + "".join(
        f"@shop/{name}:test: {line}\n"
        for name, lines in (
            ("b", ("> mocha", "  Cart", "    ✔ adds", "  2 passing (3ms)")),
            ("a", ("> mocha", *MOCHA.format("cart", "1").splitlines())),
        )
        for line in lines
    )
    + "@shop/a#test:  WARNING  command finished with error, but continuing...\n"
    "@shop/a#test:  ERROR  command (/w/packages/a) /usr/bin/npm run test exited (1)\n\n"
    " Tasks:    1 successful, 2 total\nCached:    0 cached, 2 total\n  Time:    19.582s\n"
    "Failed:    @shop/a#test\n\n ERROR  run failed: command  exited (1)\n"
)


def test_a_runner_may_say_much_before_and_after_the_lines_with_its_prefix() -> None:
    told = checked(TURBO)
    assert ids(told.findings) == ["[@shop/a:test] test/cart.js › Store opens"]
    assert told.count == 1
    assert "Cached" not in told.digest


IMPORT = """\
E
======================================================================
ERROR: test_b (unittest.loader._FailedTest.test_b)
----------------------------------------------------------------------
ImportError: Failed to import test module: test_b
Traceback (most recent call last):
  File "/usr/lib/python3.11/unittest/loader.py", line 407, in _find_test_path
    module = self._get_module_from_name(name)
  File "test_b.py", line 1, in <module>
    import {}
ModuleNotFoundError: No module named '{}'


----------------------------------------------------------------------
Ran 1 test in 0.000s

FAILED (errors=1)
"""
JEST_VALUE = """\
FAIL test/a.test.js
  ● adds

    expect(received).toBe(expected) // Object.is equality

    Expected: 2
    Received: {}

      at toBe (test/a.test.js:1:69)

Tests:       1 failed, 1 total
"""
RSPEC_VALUE = """\
Failures:

  1) Cart adds
     Failure/Error: RSpec.describe('Cart') {{ it('adds') {{ expect(N).to eq 2 }} }}

       expected: 2
            got: {}

       (compared using ==)
     # ./spec/a_spec.rb:2:in `block (2 levels) in <top (required)>'

1 example, 1 failure
"""
GTEST_VALUE = """\
[ RUN      ] Cart.Adds
a.cc:3: Failure
Expected equality of these values:
  n()
    Which is: {}
  2

[  FAILED  ] Cart.Adds (0 ms)
[==========] 1 test from 1 test suite ran. (0 ms total)
[  PASSED  ] 0 tests.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Cart.Adds

 1 FAILED TEST
"""
JAVAC = """\
a/Cart.java:2: error: cannot find symbol
class Cart {{ int n() {{ return it; }} }}
                             ^
  symbol:   variable {}
  location: class Cart
1 error
"""
OTHER_WAY = {
    "unittest": (IMPORT, ("gone_one", "gone_two")),
    "jest": (JEST_VALUE, ("3", "7")),
    "rspec": (RSPEC_VALUE, ("3", "7")),
    "gtest": (GTEST_VALUE, ("3", "7")),
    "javac": (JAVAC, ("foo", "bar")),
}


@pytest.mark.parametrize("tool", OTHER_WAY)
def test_one_test_that_fails_in_another_way_is_not_excused(tool: str) -> None:
    """The first line of each complaint is the same; the values are below it."""
    output, values = OTHER_WAY[tool]
    before, after = (
        checked(output.replace("{}", value).replace("{{", "{").replace("}}", "}"))
        for value in values
    )
    assert subtract_baseline(before, before).preexisting
    assert subtract_baseline(after, before).fails
    assert values[1] in after.findings[0].message


TWO_SUITES = """\
TAP version 13
# Subtest: One
    # Subtest: adds
    {0} 1 - adds
      ---
{1}
      ...
    1..1
{0} 1 - One
  ---
  failureType: 'subtestsFailed'
  ...
# Subtest: Two
    # Subtest: adds
    {2} 1 - adds
      ---
{3}
      ...
    1..1
{2} 2 - Two
  ---
  failureType: 'subtestsFailed'
  ...
1..2
# fail 1
"""
TAP_DETAIL = """\
      location: 'test/a.test.js:{0}:25'
      failureType: 'testCodeFailure'
      error: '1 == 2'"""
NODE_TREE = """\
▶ One
{0}
▶ Two
{1}
ℹ fail 1

✖ failing tests:

test at test/a.test.js:{2}:25
✖ adds (1.5ms)
  AssertionError [ERR_ASSERTION]: 1 == 2
      at TestContext.<anonymous> (test/a.test.js:{2}:51)
"""
TREE_RED = """\
  ✖ adds (1.5ms)
    AssertionError [ERR_ASSERTION]: 1 == 2
        at TestContext.<anonymous> (test/a.test.js:{0}:51)

✖ {1} (1.9ms)"""
TREE_GREEN = "  ✔ adds (5.2ms)\n✔ {0} (9.3ms)"
TAPE_TESTS = """\
TAP version 13
# One
{0}
# Two
{1}
1..2
# tests 2
# fail  1
"""
TAPE_RED = """\
not ok {0} should be equal
  ---
    operator: equal
    expected: 2
    actual:   1
    at: Test.<anonymous> (test/a.test.js:{1}:24)
  ..."""
SUITES = {
    "tape": (
        TAPE_TESTS.format(TAPE_RED.format(1, 2), "ok 2 should be equal"),
        TAPE_TESTS.format("ok 1 should be equal", TAPE_RED.format(2, 3)),
    ),
    "tap": (
        TWO_SUITES.format("not ok", TAP_DETAIL.format(2), "ok", "      duration_ms: 1"),
        TWO_SUITES.format("ok", "      duration_ms: 1", "not ok", TAP_DETAIL.format(3)),
    ),
    "spec": (
        NODE_TREE.format(TREE_RED.format(2, "One"), TREE_GREEN.format("Two"), 2),
        NODE_TREE.format(TREE_GREEN.format("One"), TREE_RED.format(3, "Two"), 3),
    ),
}


@pytest.mark.parametrize("reporter", SUITES)
def test_two_suites_of_one_file_are_told_apart(reporter: str) -> None:
    before, after = map(checked, SUITES[reporter])
    name = "should be equal" if reporter == "tape" else "adds"
    assert ids(before.findings) == [f"test/a.test.js › One › {name}"]
    assert ids(after.findings) == [f"test/a.test.js › Two › {name}"]
    assert subtract_baseline(after, before).fails


def test_tests_of_one_name_and_message_in_one_file_are_counted() -> None:
    block = JEST_VALUE.partition("Tests:")[0].replace("{}", "3")
    again = block.partition("\n")[2]
    before = checked(f"{block}Tests:       1 failed, 3 passed, 4 total\n")
    after = checked(f"{block}{again}Tests:       2 failed, 2 passed, 4 total\n")
    assert subtract_baseline(after, before).fails


NEXT_TO_IT = {
    "vet after a test": (
        GO.format("a"),
        """\
# example.com/m/b
b/s.go:3:18: fmt.Printf format %d has arg of wrong type string
FAIL\texample.com/m/b [build failed]
FAIL
""",
        "b/s.go",
    ),
    "exception at the end of a program": (
        "",
        """\
.F/w/m.rb:1:in `block in <top (required)>': leaked (RuntimeError)
\tfrom /usr/lib/minitest.rb:79:in `reverse_each'

""",
        "m.rb",
    ),
    "plain console of gradle": (
        "a.CartTest > adds FAILED\n    java.lang.AssertionError at CartTest.java:5\n\n",
        "b.CartTest > adds FAILED\n    java.lang.AssertionError at CartTest.java:5\n\n",
        "CartTest.java",
    ),
}
ENDS = {
    "exception at the end of a program": "  1) Failure:\nCartTest#test_adds [test/a_test.rb:4]:\n"
    "Expected: 1\n  Actual: 2\n\n2 runs, 2 assertions, 1 failures, 0 errors, 0 skips\n",
    "plain console of gradle": ":test FAILED\n\nFAILURE: Build failed with an exception.\n",
}


@pytest.mark.parametrize("case", NEXT_TO_IT)
def test_what_is_new_is_named_beside_an_old_failure(case: str) -> None:
    old, new, file = NEXT_TO_IT[case]
    end = ENDS.get(case, "")
    before, after = (checked(text) for text in (old + end, old + new + end))
    assert subtract_baseline(before, before).preexisting
    result = subtract_baseline(after, before)
    assert result.fails
    assert [found.file for found in result.findings] == [file]
    assert len(result.known) == 1


def test_output_above_the_line_of_its_suite_is_not_of_the_suite_before() -> None:
    of_test = "#   Failed test 'adds'\n#   at t/{0}.t line 2.\n#          got: '1'\n"
    of_suite = "t/{0}.t ..\nDubious, test returned 1 (wstat 256, 0x100)\n"
    output = "".join(text.format(name) for name in "ab" for text in (of_test, of_suite))
    assert ids(checked(output).findings) == ["t/a.t › adds", "t/b.t › adds"]


def test_a_program_that_a_signal_ended_is_one_failure_of_its_test() -> None:
    output = (
        "    Start 2: two\n"
        "2/2 Test #2: two ..............Subprocess aborted***Exception:   0.00 sec\n"
        "two: two.c:2: main: Assertion `3 == 2' failed.\n\n"
        "0% tests passed, 1 tests failed out of 1\n"
    )
    (found,) = checked(output).findings
    assert (found.test_id, found.file) == ("two", "two.c")
    assert "3 == 2" in found.message


def test_what_a_failed_assertion_of_tap_says_is_in_no_name() -> None:
    red = "not ok {0} tests/test_a.py::test_{1}\n# Expected 1\n# --- Captured Err ---\n# {2}\n"
    output = "TAP version 13\n" + red.format(1, "one", "late") + red.format(2, "two", "lost")
    assert ids(checked(f"{output}1..2\n").findings) == [
        "tests/test_a.py::test_one",
        "tests/test_a.py::test_two",
    ]


def test_the_directory_of_one_environment_of_tox_is_in_no_name() -> None:
    output = "py: commands[0]> pytest -v\nrootdir: /w\n" + pytest_run("test_c.py::test_a")
    assert ids(checked(output).findings) == ["test_c.py::test_a"]
    two = output + "rootdir: /w/b\n" + pytest_run("test_c.py::test_a")
    assert ids(checked(two).findings) == ["[py] test_c.py::test_a", "[b] test_c.py::test_a"]


TOX = """\
py: commands[0]> python -m unittest
F
======================================================================
FAIL: test_old (test_a.T.test_old)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "test_a.py", line 4, in test_old
    self.assertEqual(0, 1)
AssertionError: 0 != 1

----------------------------------------------------------------------
Ran 2 tests in 0.000s

FAILED (failures=1)
py: exit 1 (0.09 seconds) . python -m unittest pid={0}
{1}  py: FAIL code 1 (3.{0}=setup[3.86]+cmd[0.09] seconds)
{2}  evaluation failed :( (4.{0} seconds)
"""
LINT = "lint: commands[0]> check\n"


def test_what_tox_says_about_a_named_failure_is_none_of_its_own() -> None:
    first, again, after = (checked(TOX.format(pid, "", "")) for pid in (11, 22, 33))
    before = keep_reproduced(first, again)
    assert [found.test_id for found in after.findings] == ["test_old (test_a.T.test_old)"]
    assert subtract_baseline(after, before, ["test_a.py"]).preexisting


def test_an_environment_of_tox_that_names_no_failure_is_one() -> None:
    lint = "  lint: FAIL code 1 (0.25=setup[0.05]+cmd[0.20] seconds)\n"
    before = checked(TOX.format(11, "", ""))
    after = checked(TOX.format(22, LINT, lint))
    assert not subtract_baseline(after, before, ["test_a.py"]).preexisting
    assert "lint: FAIL code 1" in after.findings[-1].message
    assert len(after.findings) == 2


SESSION = """\
{}: commands[0]> pytest
=================================== FAILURES ===================================
___________________________________ test_bad ___________________________________

    def test_bad():
>       assert 0
E       assert 0

test_a.py:2: AssertionError
=========================== short test summary info ============================
FAILED test_a.py::test_bad - assert 0
============================== 1 failed in 0.02s ===============================
"""
REPORT = """<testsuite><testcase classname="test_a" name="test_bad" file="test_a.py" line="0">
<failure message="assert 0">test_a.py:2: AssertionError</failure></testcase></testsuite>
"""


def test_the_tests_of_one_environment_do_not_stand_for_those_of_another() -> None:
    output = SESSION.format("a") + SESSION.format("b")
    found = digest(output, exit_code=1, report=[REPORT.encode()])
    names = [each.test_id for each in found.findings]
    assert names == ["[a] test_a.py::test_bad", "[b] test_a.py::test_bad"]
