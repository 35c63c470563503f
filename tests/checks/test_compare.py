"""What counts of a failing check, beside a second run and beside the tree before the change."""

import pytest

from mulligan.checks.compare import (
    BASELINE_CANNOT_RUN,
    BASELINE_INCOMPARABLE,
    BASELINE_MISSING,
    FLAKY,
    Comparison,
    Run,
    Verdict,
    apply_rerun,
    compare,
    keep_reproduced,
    subtract_baseline,
)
from mulligan.checks.digest.identity import ANY
from mulligan.domain.result import (
    CheckKind,
    CheckResult,
    Finding,
    OnBase,
    RanTests,
    SourceExcerpt,
)

pytestmark = pytest.mark.pure


def broken(name: str, message: str = "assert 1 == 2", line: int = 3) -> Finding:
    test_id = f"tests/test_cart.py::{name}"
    return Finding(
        summary=f"{test_id}: {message}"[:100],
        message=message,
        file="tests/test_cart.py",
        line=line,
        test_id=test_id,
    )


def lint(message: str, line: int = 1) -> Finding:
    summary = f"cart.py:{line}:1: {message}"
    return Finding(summary=summary, message=message, file="cart.py", line=line, code="F401")


A, B, C = broken("test_a"), broken("test_b"), broken("test_c", "boom", line=9)


def red(
    *findings: Finding, exit_code: int | None = 1, count: int = 0, evidence: str = ""
) -> CheckResult:
    return CheckResult(
        name="tests",
        kind=CheckKind.TEST,
        command="pytest",
        passed=False,
        exit_code=exit_code,
        duration_ms=100,
        digest="all of it",
        findings=findings,
        count=count or len(findings),
        source=tuple(
            SourceExcerpt(file=found.file or "", line=found.line or 0, text=found.summary)
            for found in findings
        ),
        fingerprint="of all",
        evidence=evidence,
    )


GREEN = red(exit_code=0).model_copy(update={"passed": True, "digest": "Passed."})
LATE = red(A).model_copy(update={"timed_out": True})


def test_a_check_that_passes_the_second_time_is_flaky() -> None:
    first = LATE.model_copy(update={"long_digest": "more", "unsteady": (C,)})
    result = apply_rerun(first, GREEN)
    assert (result.passed, result.flaky) == (True, True)
    assert (result.fails, result.timed_out) == (False, False)
    assert (result.exit_code, result.duration_ms, result.digest) == (0, 200, FLAKY)
    assert (result.findings, result.unsteady, result.source) == ((), (C, A), ())
    assert (result.long_digest, result.count, result.fingerprint) == ("", 0, "")


def test_what_failed_once_of_two_runs_does_not_count() -> None:
    again = red(B, A).model_copy(update={"long_digest": "more"})
    result = apply_rerun(red(A, C), again)
    assert (result.passed, result.flaky, result.fails) == (False, False, True)
    assert (result.findings, result.unsteady) == ((A,), (C, B))
    assert result.digest == "- tests/test_cart.py::test_a: assert 1 == 2 (tests/test_cart.py:3)"
    assert (result.count, result.long_digest) == (1, "")


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (red(A), red(A)),
        (red(A), red(B)),
        (red(), red(A)),
        (red(A), red()),
        (red(A, B), red(A, count=5)),
        (red(A, B, count=5), red(A)),
        (LATE, red(A, B)),
        (red(A, B), red(A, exit_code=137)),
        (red(A, B), red(A, exit_code=-9)),
    ],
)
def test_runs_that_have_nothing_sure_in_common_leave_the_second(
    first: CheckResult, again: CheckResult
) -> None:
    assert apply_rerun(first, again) == again


def test_what_was_flaky_before_stays_flaky() -> None:
    first = red(A).model_copy(update={"unsteady": (C,)})
    assert apply_rerun(first, red(B)) == red(B).model_copy(update={"unsteady": (C,)})


def test_what_failed_before_the_change_does_not_count() -> None:
    result = subtract_baseline(red(A, B), red(B, A))
    assert (result.preexisting, result.passed, result.fails) == (True, False, False)
    assert (result.findings, result.known, result.source) == ((), (A, B), ())
    assert (result.count, result.fingerprint) == (0, "")
    assert result.digest == "It fails in the same way without this change."


def test_only_what_the_change_added_counts_and_is_told() -> None:
    moved = broken("test_a", line=40)
    result = subtract_baseline(red(moved, B, C), red(A, B))
    assert (result.preexisting, result.fails) == (False, True)
    assert (result.findings, result.known, result.count) == ((C,), (moved, B), 1)
    assert result.digest == (
        "- tests/test_cart.py::test_c: boom (tests/test_cart.py:9)\n"
        "(2 more failed without this change too, and do not count.)"
    )
    assert [at.line for at in result.source] == [9]
    assert result.fingerprint not in {"", "of all"}


def test_a_test_that_fails_in_another_way_counts() -> None:
    other = broken("test_a", "assert 3 == 2")
    result = subtract_baseline(red(other, B), red(A, B))
    assert (result.findings, result.known) == ((other,), (B,))


def test_a_second_finding_like_the_first_counts() -> None:
    again = lint("`os` imported but unused", line=7)
    result = subtract_baseline(
        red(lint("`os` imported but unused"), again), red(lint(again.message))
    )
    assert (result.findings, result.preexisting) == ((again,), False)


def test_mending_some_of_it_is_no_failure() -> None:
    assert subtract_baseline(red(A, exit_code=1), red(A, B, exit_code=2)).preexisting


@pytest.mark.parametrize(
    ("failed", "before"),
    [
        (red(), red()),
        (red(A), red()),
        (red(), red(A)),
        (LATE, red(A)),
        (red(A), LATE),
        (red(A, exit_code=139), red(A)),
        (red(A, exit_code=None), red(A)),
        (red(A), red(A, exit_code=-11)),
        (red(A, count=3), red(A, count=2)),
        (red(A, count=3), red(A, count=3)),
        (red(A, count=3, evidence="1b 1c"), red(A, count=3, evidence="1c 1d")),
        (red(A, exit_code=2), red(A, exit_code=1)),
    ],
)
def test_what_cannot_be_told_apart_counts(failed: CheckResult, before: CheckResult) -> None:
    result = subtract_baseline(failed, before)
    assert (result.fails, result.findings, result.known) == (True, failed.findings, ())
    assert result.digest == f"all of it\n{BASELINE_INCOMPARABLE}"
    long = failed.model_copy(update={"long_digest": "more of it"})
    noted = subtract_baseline(long, before).long_digest
    assert noted == f"more of it\n{BASELINE_INCOMPARABLE}"


def test_failures_without_a_name_must_be_the_same_by_the_lines_about_them() -> None:
    failed = red(A, count=3, evidence="b and c fail")
    assert subtract_baseline(failed, failed).preexisting


def test_more_failures_without_a_name_than_before_count() -> None:
    before = red(A, count=2, evidence="a and b fail")
    assert not subtract_baseline(red(A, count=3, evidence="a and b fail"), before).preexisting


def test_what_an_output_says_of_no_failure_before_excuses_nothing() -> None:
    before = red(A, B, evidence="1a 1b 1c")
    assert subtract_baseline(red(A, evidence="1a 1c"), before).preexisting
    other = subtract_baseline(red(A, evidence="1a 1d"), before)
    assert (other.fails, other.known) == (True, ())
    assert BASELINE_INCOMPARABLE in other.digest
    assert not subtract_baseline(red(A, evidence=""), before).preexisting
    # Beside a new failure, everything is told anyway.
    assert subtract_baseline(red(A, C, evidence="1a 1d"), before).known == (A,)


def test_as_many_lines_may_differ_as_without_a_change() -> None:
    before = keep_reproduced(red(A, evidence="1a 1b 1c"), red(A, evidence="1a 2b 2c 2d"))
    assert (before.evidence, before.varying) == ("1a", 3)
    assert subtract_baseline(red(A, evidence="1a 3b 3c 3d"), before).preexisting
    assert not subtract_baseline(red(A, evidence="1a 3b 3c 3d 3e"), before).preexisting
    assert keep_reproduced(red(A), red(A, evidence="1a")).evidence == ""


@pytest.mark.parametrize(
    ("first", "again", "after", "is_old"),
    [
        ("got 17 of 20", "got 92 of 20", "got 5 of 20", True),
        ("got 17 of 20", "got 92 of 20", "got 5 of 30", False),
        ("got 17 of 20", "got 17 of 20", "got 5 of 20", False),
        ("id 3f25-11 is gone", "id 9a-x-1 is gone", "id b is gone", True),
        ("id 3f25-11 is gone", "id 9a-x-1 is gone", "id b has gone", False),
        ("no", "yes", "maybe", False),
        ("late at 12:30:05", "late at 12:30:09", "late at 12:31:00", True),
        ("a: no", "a: yes", "a: maybe", True),
        ("one two three", "four five six", "one two three", False),
        ("x 1 y 2 z", "x 3 y 4 z", "x 5 z", False),
        ("x 1 y 2 z", "x 3 y 4 z", "x 5 y z", False),
        ("<A at 0x7f12ab34cd56>", "<A at 0x7f99deadbeef>", "<A at 0x7f0000000000>", True),
        (" ".join(f"a{n}" for n in range(300)), " ".join(f"b{n}" for n in range(300)), "a0", False),
    ],
)
def test_what_differs_between_two_runs_of_the_start_tree_may_differ(
    first: str, again: str, after: str, *, is_old: bool
) -> None:
    before = keep_reproduced(*(red(broken("test_a", message)) for message in (first, again)))
    assert subtract_baseline(red(broken("test_a", after)), before).preexisting == is_old


def test_an_equal_message_belongs_to_its_own_failure_first() -> None:
    first = red(lint("a 1 b"), lint("a 2 b"), lint("c 1"))
    again = red(lint("a 2 b"), lint("a 7 b"), lint("c 1"))
    before = keep_reproduced(first, again)
    assert sorted(found.message for found in before.findings) == ["a 2 b", f"a {ANY} b", "c 1"]
    assert subtract_baseline(red(lint("a 2 b"), lint("a 9 b")), before).preexisting
    assert subtract_baseline(red(lint("a 8 b"), lint("a 9 b")), before).fails


def test_only_tests_that_ran_in_both_runs_of_the_start_tree_ran() -> None:
    one = red(A).model_copy(update={"tests": RanTests(ran=("a", "a", "b"))})
    other = red(A).model_copy(update={"tests": RanTests(ran=("a", "a", "c"), skipped=("b",))})
    assert keep_reproduced(one, other).tests == RanTests(ran=("a", "a"), skipped=("b",))
    assert keep_reproduced(one, red(A)).tests is None
    passed = other.model_copy(update={"passed": True})
    assert keep_reproduced(one, passed).tests == RanTests(ran=("a", "a"), skipped=("b",))


def test_where_the_check_could_not_run_before_everything_counts() -> None:
    result = subtract_baseline(red(A), None)
    assert (result.fails, result.digest) == (True, f"all of it\n{BASELINE_MISSING}")


@pytest.mark.parametrize("before", [GREEN, red(B)])
def test_a_failure_that_is_all_new_is_told_as_it_is(before: CheckResult) -> None:
    result = subtract_baseline(red(A), before)
    assert result.model_copy(update={"on_base": None}) == red(A)
    assert result.on_base is (OnBase.PASSES if before.passed else OnBase.FAILS)


def test_many_new_failures_are_told_in_the_usual_size() -> None:
    new = [broken(f"test_{number:03}", f"{'x' * 150}\nline {number}") for number in range(200)]
    result = subtract_baseline(red(A, *new), red(A))
    assert len(result.digest) <= 2000
    assert result.digest.startswith(
        "- tests/test_cart.py::test_000 (tests/test_cart.py:3)\n    xxx"
    )
    assert "\n- tests/test_cart.py::test_005\n" in result.digest
    named = result.digest.count("- tests/test_cart.py::")
    assert f"\n(+ {200 - named} more)\n(1 more failed without this change" in result.digest


def test_a_test_that_fails_in_another_file_counts() -> None:
    moved = A.model_copy(update={"file": "tests/test_price.py"})
    assert subtract_baseline(red(moved, B), red(A, B)).findings == (moved,)


def test_a_note_leaves_the_digests_in_their_size() -> None:
    long = red(A).model_copy(update={"digest": "x" * 2000, "long_digest": "y" * 6000})
    result = subtract_baseline(long, None)
    assert result.digest == f"{'x' * (2000 - len(BASELINE_MISSING) - 2)}…\n{BASELINE_MISSING}"
    assert result.long_digest == f"{'y' * 6000}\n{BASELINE_MISSING}"
    assert subtract_baseline(red(A), None).long_digest == ""


def test_a_message_of_several_lines_is_told_below_the_name() -> None:
    new = C.model_copy(update={"message": "boom\n  at one\nat two"})
    assert subtract_baseline(red(A, new), red(A)).digest == (
        "- tests/test_cart.py::test_c (tests/test_cart.py:9)\n"
        "    boom\n      at one\n    at two\n"
        "(1 more failed without this change too, and do not count.)"
    )


@pytest.mark.parametrize(
    ("message", "again", "is_old"),
    [
        ("Extra items:\n'a'\n'b'", "Extra items:\n'b'\n'a'", True),
        ('left: {"a": 1, "b": 2}', 'left: {"b": 2, "a": 1}', True),
        ('left: {"a": 1, "b": 2}', 'left: {"b": 1, "a": 2}', False),
        ("assert [1, 2] == []", "assert [2, 1] == []", False),
        ("{'a', 'b, c'}", "a, {'b, c'}", False),
        ("Left:\n'b'\n'a'\nRight:\n'c'", "Left:\n'a'\n'b'\nRight:\n'c'", True),
        ("Left:\n'z'\nRight:\n'c'", "Left:\nRight:\n'z'\n'c'", False),
        ("Two\n\tlines", "Two\n  lines", False),
        ("Only left:\n'a'\nOnly right:\n'b'", "Only left:\n'b'\nOnly right:\n'a'", False),
    ],
)
def test_the_order_of_a_set_makes_no_other_failure(
    message: str, again: str, *, is_old: bool
) -> None:
    result = subtract_baseline(red(broken("test_a", message)), red(broken("test_a", again)))
    assert result.preexisting == is_old


def test_a_new_failure_without_a_place_keeps_the_output() -> None:
    new = Finding(summary="Bad plan.", message="Bad plan.")
    result = subtract_baseline(red(A, new), red(A))
    assert result.long_digest == (
        "- Bad plan.\n(1 more failed without this change too, and do not count.)\nall of it"
    )
    assert subtract_baseline(red(A, B), red(A)).long_digest == ""


def test_lint_findings_are_told_by_their_line() -> None:
    new = lint("undefined name `y`", line=4)
    result = subtract_baseline(red(lint("a"), new), red(lint("a")))
    assert result.digest.splitlines()[0] == "- cart.py:4:1: undefined name `y`"


def test_only_what_fails_twice_on_the_start_tree_is_old() -> None:
    before = keep_reproduced(red(A, B), red(B, C))
    assert subtract_baseline(red(A, B, C), before).findings == (A, C)
    assert not subtract_baseline(red(A, B), before).preexisting
    assert subtract_baseline(red(B), before).preexisting


def test_a_failure_that_is_worded_otherwise_the_second_time_is_not_old() -> None:
    before = keep_reproduced(red(A, B), red(broken("test_a", "another word"), B))
    assert subtract_baseline(red(A, B), before).findings == (A,)


@pytest.mark.parametrize(("first", "again"), [(GREEN, red(A)), (red(A), GREEN)])
def test_a_start_tree_that_passes_once_excuses_nothing(
    first: CheckResult, again: CheckResult
) -> None:
    result = subtract_baseline(red(A), keep_reproduced(first, again))
    assert result == red(A).model_copy(update={"on_base": OnBase.PASSES})


def test_two_runs_that_have_nothing_in_common_excuse_nothing() -> None:
    result = subtract_baseline(red(A), keep_reproduced(red(A), red(B)))
    assert (result.findings, result.preexisting) == ((A,), False)
    assert BASELINE_INCOMPARABLE in result.digest


def test_failures_that_neither_run_names_stay_unnamed() -> None:
    assert keep_reproduced(red(A, B, count=9), red(A, C, count=5)).count == 1 + 3


# Checks that cannot run, with or without the change.

SAID = "/bin/sh: 1: jest: not found"
ABSENT = red(exit_code=127).model_copy(update={"digest": SAID})
BARRED = red(exit_code=126).model_copy(update={"digest": "./run: Permission denied"})
HUNG = red(exit_code=-9).model_copy(update={"timed_out": True, "digest": "Timed out after 10m."})


@pytest.mark.parametrize(
    "stuck", [ABSENT, BARRED, HUNG, HUNG.model_copy(update={"findings": (A,)})]
)
def test_a_check_that_cannot_run_without_the_change_is_not_the_agents(stuck: CheckResult) -> None:
    result = subtract_baseline(stuck, keep_reproduced(stuck, stuck))
    assert (result.is_broken, result.fails, result.preexisting) == (True, False, False)
    assert result.on_base is OnBase.CANNOT_RUN
    assert result.digest == f"{stuck.digest}\n{BASELINE_CANNOT_RUN}"


@pytest.mark.parametrize(
    ("failed", "first", "again"),
    [
        (ABSENT, HUNG, HUNG),
        (HUNG, ABSENT, ABSENT),
        (HUNG, HUNG, red(A)),
        (HUNG, red(A), HUNG),
        (ABSENT, ABSENT, BARRED),
        (ABSENT, BARRED, BARRED),
        (ABSENT.model_copy(update={"digest": "sh: vite: not found"}), ABSENT, ABSENT),
        (HUNG.model_copy(update={"findings": (A,), "count": 1}), HUNG, HUNG),
        (red(exit_code=137), red(exit_code=137), red(exit_code=137)),
        (red(exit_code=2), red(exit_code=2), red(exit_code=2)),
    ],
)
def test_a_check_that_ends_otherwise_without_the_change_counts(
    failed: CheckResult, first: CheckResult, again: CheckResult
) -> None:
    result = subtract_baseline(failed, keep_reproduced(first, again))
    assert (result.is_broken, result.fails, result.on_base) == (False, True, OnBase.FAILS)


def test_a_check_that_is_not_required_is_never_broken() -> None:
    loose = HUNG.model_copy(update={"required": False})
    result = subtract_baseline(loose, keep_reproduced(loose, loose))
    assert (result.is_broken, result.fails) == (False, False)


# The verdict as a function


def junit(*cases: tuple[str, str]) -> bytes:
    """Write a report of tests of `test_a.py`, each with what its result is."""
    listed = "".join(
        f'<testcase classname="test_a" name="{name}" file="test_a.py" line="1">{result}</testcase>'
        for name, result in cases
    )
    return f"<testsuites><testsuite name='pytest'>{listed}</testsuite></testsuites>".encode()


BAD = '<failure message="assert 1 == 2"/>'
WORSE = '<failure message="assert 1 == 3"/>'
SKIPPED = '<skipped message="no"/>'
OLD, NEW, FIXED = ("test_old", BAD), ("test_new", BAD), ("test_old", "")


def run(*cases: tuple[str, str], exit_code: int | None = None) -> Run:
    failed = any("failure" in result for _, result in cases)
    code = int(failed) if exit_code is None else exit_code
    return Run(b"", code, [junit(*cases)])


def run_in(file: str, *cases: tuple[str, str]) -> Run:
    module = file.removesuffix(".py").encode()
    made = run(*cases)
    return Run(b"", made.exit_code, [made.reports[0].replace(b"test_a", module)])


ERROR = '<error message="no database"/>'
MOVED = (("b", BAD), ("c", WORSE))
OLDS, NEWS = ("test_a.py::test_old",), ("test_a.py::test_new",)
COMPARED: dict[str, tuple[list[Run], list[Run], Comparison]] = {
    "passed": ([run(FIXED)], [run(OLD)], Comparison(Verdict.PASSED)),
    "passed, the first time": ([run(FIXED), run(OLD)], [run(OLD)], Comparison(Verdict.PASSED)),
    "flaky": (
        [run(NEW), run(("test_new", ""))],
        [],
        Comparison(Verdict.FLAKY, flaky=NEWS),
    ),
    "flaky in turn": (
        [run(OLD, ("test_new", "")), run(FIXED, NEW)],
        [],
        Comparison(Verdict.FLAKY, flaky=("test_a.py::test_old", "test_a.py::test_new")),
    ),
    "old": (
        [run(OLD)],
        [run(OLD)] * 2,
        Comparison(Verdict.PREEXISTING, preexisting=OLDS),
    ),
    "new": (
        [run(FIXED, NEW)],
        [run(OLD)] * 2,
        Comparison(Verdict.NEW, new=NEWS),
    ),
    "new, where nothing failed": (
        [run(NEW)],
        [run(FIXED)],
        Comparison(Verdict.NEW, new=NEWS, missing=OLDS),
    ),
    "both": (
        [run(OLD, NEW)],
        [run(OLD)] * 2,
        Comparison(Verdict.MIXED, new=NEWS, preexisting=OLDS),
    ),
    "another message": (
        [run(("test_old", WORSE))],
        [run(OLD)] * 2,
        Comparison(Verdict.NEW, new=OLDS),
    ),
    "without a base": ([run(NEW)], [], Comparison(Verdict.UNKNOWN)),
    "killed": ([run(OLD, exit_code=137)], [run(OLD)], Comparison(Verdict.UNKNOWN)),
    "killed after a new failure": (
        [run(OLD, NEW, exit_code=137)],
        [run(OLD)],
        Comparison(Verdict.MIXED, new=NEWS, preexisting=OLDS),
    ),
    "moved": (
        [run_in("test_b.py", OLD)],
        [run(OLD)] * 2,
        Comparison(Verdict.PREEXISTING, preexisting=("test_b.py::test_old",)),
    ),
    "moved, with another message": (
        [run_in("test_b.py", ("test_old", WORSE))],
        [run(OLD)] * 2,
        Comparison(Verdict.NEW, new=("test_b.py::test_old",)),
    ),
    "moved, beside a new one of its title": (
        [Run(b"", 1, [run_in(f"test_{n}.py", ("test_old", how)).reports[0] for n, how in MOVED])],
        [run(OLD)] * 2,
        Comparison(
            Verdict.MIXED, new=("test_c.py::test_old",), preexisting=("test_b.py::test_old",)
        ),
    ),
    "another test, while the old one stops with an error": (
        [Run(b"", 1, [junit(("test_old", ERROR)), run_in("test_b.py", OLD).reports[0]])],
        [run(OLD)] * 2,
        Comparison(Verdict.NEW, new=("test_a.py::test_old", "test_b.py::test_old")),
    ),
    "beside one that stays": (
        [Run(b"", 1, [junit(OLD), run_in("test_b.py", OLD).reports[0]])],
        [run(OLD)] * 2,
        Comparison(Verdict.MIXED, new=("test_b.py::test_old",), preexisting=OLDS),
    ),
    "red in the report alone": (
        [run(NEW, exit_code=0)],
        [run(("test_new", ""))],
        Comparison(Verdict.NEW, new=NEWS),
    ),
    "left out": (
        [run(("test_b", ""))],
        [run(("test_b", ""), OLD)] * 2,
        Comparison(Verdict.PASSED, missing=OLDS),
    ),
    "skipped": (
        [run(("test_b", ""), ("test_old", SKIPPED))],
        [run(("test_b", ""), OLD)] * 2,
        Comparison(Verdict.PASSED, missing=OLDS),
    ),
    "no report": (
        [Run(b"", 0)],
        [run(FIXED)],
        Comparison(Verdict.PASSED, missing=OLDS),
    ),
}


@pytest.mark.parametrize("case", COMPARED)
def test_runs_with_and_without_a_change_are_compared(case: str) -> None:
    change, base, expected = COMPARED[case]
    assert compare(change=change, base=base) == expected


def test_a_test_of_a_changed_file_may_have_another_name() -> None:
    change, base = [run(("test_b", ""))], [run(FIXED)]
    assert compare(change=change, base=base, changed_files=["test_a.py"]).missing == ()
    assert compare(change=change, base=base, changed_files=["test_b.py"]).missing


def test_a_test_that_passed_when_it_ran_again_in_the_same_check_did_not_fail() -> None:
    again = Run(b"", 0, [junit(OLD), junit(FIXED)])
    assert compare(change=[again], base=[run(FIXED)]).verdict is Verdict.PASSED
    still = Run(b"", 0, [junit(FIXED), junit(OLD)])
    assert compare(change=[still], base=[run(FIXED)]).verdict is Verdict.NEW


# The same test in two packages


def two_packages(*failing: str) -> CheckResult:
    """Name each failing test with its package, as npm's output does, and the reports without."""
    tests = {name: f"packages/{name}/cart.test.js › discount" for name in ("a", "b")}
    found = [
        Finding(
            summary="discount",
            message="0 == 1",
            file=f"packages/{name}/cart.test.js",
            test_id=f"[@shop/{name}] {tests[name]}",
        )
        for name in failing
    ]
    ran = (*tests.values(),)
    failed = tuple(tests[name] for name in failing)
    return red(*found).model_copy(update={"tests": RanTests(ran=ran, failed=failed)})


def test_the_same_test_of_another_package_has_not_moved() -> None:
    base = two_packages("a")
    fixed_and_broke = subtract_baseline(two_packages("b"), base)
    assert (fixed_and_broke.preexisting, fixed_and_broke.known) == (False, ())
    assert subtract_baseline(two_packages("a"), base).preexisting
    both = subtract_baseline(two_packages("a", "b"), base)
    assert [found.file for found in both.findings] == ["packages/b/cart.test.js"]


def test_a_name_that_the_output_shortens_is_that_of_the_report() -> None:
    tests = RanTests(ran=("a/test_cart.py::test_x",), failed=("a/test_cart.py::test_x",))
    name, file = "a/test_cart.py::test_x", "a/test_cart.py"
    long = Finding(summary="x", message="0 == 1", file=file, test_id=name)
    short = long.model_copy(update={"test_id": "[run 1] a/test_cart.py::test_x"})
    base, change = (red(each).model_copy(update={"tests": tests}) for each in (short, long))
    assert subtract_baseline(change, base).preexisting
    elsewhere = tests.model_copy(update={"ran": ("b/test_cart.py::test_x",)})
    lost = change.model_copy(update={"tests": elsewhere})
    assert not subtract_baseline(lost, base).preexisting
