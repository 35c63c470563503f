"""A failure among much that only looks like one: own logs, dates, frames of others."""

import pytest

from mulligan.checks.digest import digest
from mulligan.checks.digest.identity import without_positions
from mulligan.checks.digest.signals import total_lines

pytestmark = pytest.mark.pure

GO_PANIC = """\
panic: runtime error: index out of range [5] with length 3

goroutine 19 [running]:
example.com/w/w.Work.func1()
\t/repo/w/w.go:8 +0x45
FAIL\texample.com/w/w\t0.017s
"""
MAVEN = """\
[ERROR] sendsMail(app.MailTest)  Time elapsed: 0.148 s  <<< FAILURE!
org.junit.ComparisonFailure: expected:<[sent]> but was:<[queued]>
\tat app.MailTest.sendsMail(MailTest.java:17)

[ERROR] Failures:
[ERROR]   MailTest.sendsMail:17 expected:<[sent]> but was:<[queued]>
[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0
[ERROR]
[ERROR] Please refer to /repo/target/surefire-reports for the individual test results.
"""
CTEST = """\
41/43 Test #41: bad ..............................***Failed    0.00 sec
t.c:6: expected 4 but got 3

42/43 Test #42: crash ............................***Exception: SegFault  0.00 sec
"""
JUPITER = """\
Failures (1):
  JUnit Jupiter:CartTest:addsPrices()
    MethodSource [className = 'CartTest', methodName = 'addsPrices']
    => org.opentest4j.AssertionFailedError: total ==> expected: <6> but was: <5>
       org.junit.jupiter.api.AssertionFailureBuilder.build(AssertionFailureBuilder.java:151)
       CartTest.addsPrices(CartTest.java:10)
       java.base/java.lang.reflect.Method.invoke(Method.java:569)
"""


def logged(stamp: str, count: int) -> str:
    return "".join(f"{stamp} error: retry {n} failed\n" for n in range(count))


@pytest.mark.parametrize("stamp", ["2026/11/21 04:04:27", "2026-11-21 04:04:27.123", "service:"])
def test_a_crash_is_told_before_the_programs_own_log(stamp: str) -> None:
    found = digest(logged(stamp, 60) + GO_PANIC, exit_code=2)
    assert found.short.startswith("- panic: runtime error: index out of range [5] with length 3")
    assert (found.findings[0].file, found.findings[0].line) == ("/repo/w/w.go", 8)


def test_a_date_is_no_place() -> None:
    found = digest("x\n2026/11/21 04:04:27 error: no room\n", exit_code=1)
    assert found.findings[0].file is None


def test_a_numbered_log_counts_nothing() -> None:
    log = [f"ERROR {n} failed (expected)" for n in range(40)]
    assert total_lines([*log, "82 examples, 2 failures"]) == ("82 examples, 2 failures",)


def test_a_java_test_is_told_once_by_whatever_name() -> None:
    found = digest(MAVEN, exit_code=1)
    assert [finding.test_id for finding in found.findings] == ["sendsMail(app.MailTest)"]


def test_a_test_that_crashed_says_how() -> None:
    found = digest(CTEST, exit_code=8)
    told = [(finding.test_id, finding.message) for finding in found.findings]
    assert told == [("bad", "expected 4 but got 3"), ("crash", "Exception: SegFault")]


def test_a_console_of_junit_is_read_past_frames_of_junit_and_java() -> None:
    found = digest(JUPITER, exit_code=1)
    assert found.findings[0].test_id == "CartTest:addsPrices()"
    assert (found.findings[0].file, found.findings[0].line) == ("CartTest.java", 10)
    assert "AssertionFailureBuilder.java" not in found.short.partition("In the output:")[0]
    assert "Method.invoke" not in found.short.partition("In the output:")[0]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("✓ adds (12 ms)", "✓ adds"),
        ("2026/11/21 04:04:27 no room", "2025/01/02 14:44:07 no room"),
    ],
)
def test_what_differs_between_runs_is_left_out(text: str, same: str) -> None:
    assert without_positions(text) == without_positions(same)


def test_a_run_that_was_ended_has_one_fingerprint_whatever_passed_before() -> None:
    one, other = (
        "PASS ./a.test.js\n✓ one (3 ms)\n✓ two\n",
        "PASS ./a.test.js\n✓ one\n✓ two\n✓ x\n",
    )
    assert digest(one, exit_code=124).fingerprint == digest(other, exit_code=124).fingerprint


def test_a_check_that_passed_is_no_failure_beside_one_that_failed() -> None:
    told = digest(
        "50%: Checks: 2, Failures: 1, Errors: 0\ntests.c:7: P:part1:fine_1:0: Passed\n"
        "tests.c:9: F:part1:adds_1:0: Assertion 'total == 5' failed: total == 4\n",
        exit_code=1,
    )
    assert [found.line for found in told.findings] == [9]


MOCHA_TREE = """\
  app
    .param
      1) should set the name
      ✔ should map
  2) should not be listed here

  3 passing (9ms)
  2 failing

  1) app
       .param
         should set the name:
     AssertionError [ERR_ASSERTION]: 1 == 2
      at Context.<anonymous> (test/app.param.js:9:12)

  2) res should send:
     Error: no
      at Context.<anonymous> (test/res.js:3:1)

  1) steps of a recipe

"""


def test_mocha_lists_its_failures_below_their_number() -> None:
    found = digest(MOCHA_TREE, exit_code=2)
    assert [each.test_id for each in found.findings] == [
        "test/app.param.js › app .param should set the name",
        "test/res.js › res should send",
    ]
    assert found.count == 2


JEST_PRINTS = """\
FAIL ./stock.test.js
  ● Console

    console.log
      ● stock › looks like a failure

  console.error
    ● stock › looks like another

      at Object.error (stock.test.js:5:13)

  ● stock › refuses

    expect(received).toThrow(expected)

      at Object.toThrow (stock.test.js:15:51)

Tests:       1 failed, 2 passed, 3 total
"""


def test_what_a_test_of_jest_prints_is_no_failure() -> None:
    found = digest(JEST_PRINTS, exit_code=1)
    assert [each.test_id for each in found.findings] == ["stock.test.js › stock › refuses"]
