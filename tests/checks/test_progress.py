"""What two attempts at an issue fixed, broke and left as it was (CONTEXT-8)."""

from collections.abc import Mapping

import pytest

from mulligan.checks.progress import MAX_NAMES, failure_hash, with_progress
from mulligan.domain.result import CheckKind, CheckResult, Finding, OnBase, Progress, RanTests

pytestmark = pytest.mark.pure

X = Finding(summary="x", message="1 != 2", test_id="t.py::x", file="t.py", line=3)
Y = Finding(summary="y", message="3 != 4", test_id="t.py::y", file="t.py", line=9)
STYLE = Finding(summary="style", message="unused import", code="F401", file="a.py", line=1)
LONG = Finding(summary="long", message="line too long", code="E501", file="b.py", line=1)
SYNTAX = Finding(summary="syntax", message="invalid syntax", file="a.py", line=1)
NOT_LOADED = Finding(summary="t.py", message="No module named 'a'", test_id="t.py", file="t.py")


def red(*findings: Finding, ran: RanTests | None = None, **values: object) -> CheckResult:
    """Make a failed check; with `ran`, it has a report."""
    return CheckResult(
        name="tests",
        kind=CheckKind.TEST,
        command="test",
        passed=False,
        exit_code=1,
        findings=findings,
        count=len(findings),
        tests=ran,
    ).model_copy(update=values)


def green(ran: RanTests | None = None, **values: object) -> CheckResult:
    return red(ran=ran, passed=True, exit_code=0).model_copy(update=values)


def ran(*names: str, stopped: tuple[str, ...] = (), skipped: tuple[str, ...] = ()) -> RanTests:
    return RanTests(ran=names, stopped=stopped, skipped=skipped)


def progress(before: CheckResult, now: CheckResult) -> Progress:
    found = with_progress(now, before, 7).progress
    assert found
    assert found.since == 7
    return found


BOTH = ran("t.py::x", "t.py::y")
FIXED: Mapping[str, tuple[CheckResult, CheckResult, tuple[str, ...]]] = {
    "it passed in a report": (red(X), red(Y, ran=BOTH), ("t.py::x",)),
    "everything passed in a report": (red(X, Y), green(BOTH), ("t.py::x", "t.py::y")),
    "it did not run": (red(X), red(Y, ran=ran("t.py::y")), ()),
    "the suite did not compile": (red(X), red(SYNTAX), ()),
    "the suite did not load": (red(X), red(NOT_LOADED, ran=ran(stopped=("t.py",))), ()),
    "the suite did not load, without a report": (red(X), red(NOT_LOADED), ()),
    "it stopped before its end": (red(X), red(Y, ran=ran("t.py::y", stopped=("t.py::x",))), ()),
    "it stopped in another environment": (
        red(X),
        red(Y, ran=ran("t.py::x", "t.py::y", stopped=("t.py::x",))),
        (),
    ),
    "it was skipped": (red(X), green(ran("t.py::y", skipped=("t.py::x",))), ()),
    "it failed with another message": (red(X), red(X.model_copy(update={"message": "?"})), ()),
    "it fails without the change too": (red(X), red(Y, known=(X,)), ()),
    "it is unsteady": (red(X), green(unsteady=(X,)), ()),
    "another test fails": (red(X), red(Y), ("t.py::x",)),
    "the check passed": (red(X, STYLE), green(), ("t.py::x", "style")),
    "the check passed without the report that it had": (red(X, ran=BOTH), green(), ()),
    "the check passed without the report on record": (red(X, tests_artifact="a"), green(), ()),
    "not all failures are named": (red(X), red(Y, count=2), ()),
    "the check was killed": (red(X), red(Y, exit_code=137), ()),
    "the check timed out": (red(X), red(Y, timed_out=True), ()),
    "the tool stopped early": (red(X), red(Y, cut_short=True), ()),
    "fewer of another tool": (red(STYLE, LONG), red(LONG), ("style",)),
    "others of another tool": (red(STYLE), red(LONG), ()),
    "a compiler's error, since tests ran": (red(SYNTAX), red(X), ("syntax",)),
    "the check was optional": (red(X, required=False), green(), ()),
    "named as in the output": (red(X), red(Y, ran=ran("t::x", "t::y")), ("t.py::x",)),
    "named as two others are": (red(X), red(Y, ran=ran("a.t::x", "b.t::x", "t::y")), ()),
}


@pytest.mark.parametrize(("before", "now", "fixed"), FIXED.values(), ids=FIXED)
def test_only_what_ran_in_both_attempts_is_fixed(
    before: CheckResult, now: CheckResult, fixed: tuple[str, ...]
) -> None:
    assert progress(before, now).fixed == fixed


NEW: Mapping[str, tuple[CheckResult, CheckResult, tuple[str, ...]]] = {
    "it passed in a report": (red(X, ran=BOTH), red(Y, ran=BOTH), ("t.py::y",)),
    "it did not run before": (red(X, ran=ran("t.py::x")), red(Y, ran=BOTH), ()),
    "nothing compiled before": (red(SYNTAX), red(Y, ran=BOTH), ()),
    "it failed before, too": (red(X, Y, ran=BOTH), red(Y, ran=BOTH), ()),
    "it failed before without the change": (red(X, known=(Y,)), red(Y), ()),
    "without reports": (red(X), red(Y), ("t.py::y",)),
    "the list of tests is lost": (red(X, tests_artifact="gone"), red(Y, ran=BOTH), ()),
    "no report any more": (red(X), red(Y, ran=BOTH), ()),
    "the check passed before": (green(), red(Y), ("t.py::y",)),
    "the check was killed before": (red(X, exit_code=137), red(Y), ()),
    "the check is optional": (green(), red(Y, required=False), ()),
}


@pytest.mark.parametrize(("before", "now", "new"), NEW.values(), ids=NEW)
def test_only_what_passed_before_is_new(
    before: CheckResult, now: CheckResult, new: tuple[str, ...]
) -> None:
    assert progress(before, now).new == new


def test_a_first_attempt_has_no_progress() -> None:
    assert with_progress(red(X), None, 0).progress is None


def test_many_names_are_recorded_in_part() -> None:
    many = tuple(X.model_copy(update={"test_id": f"t.py::x{n}"}) for n in range(MAX_NAMES + 9))
    assert len(progress(red(*many), green()).fixed) == MAX_NAMES
    assert len(progress(green(), red(*many)).new) == MAX_NAMES


# Whether two failures are the same

ALIKE = {
    "the same": red(X, Y),
    "another order": red(Y, X),
    "another line": red(X.model_copy(update={"line": 90}), Y),
}
PLACED = "1 != 2 in a.py:{}"


@pytest.mark.parametrize("other", ALIKE.values(), ids=ALIKE)
def test_the_same_failures_have_the_same_hash(other: CheckResult) -> None:
    assert failure_hash(red(X, Y)) == failure_hash(other) != ""


def test_positions_are_no_part_of_the_hash() -> None:
    one, other = (X.model_copy(update={"message": PLACED.format(line)}) for line in (3, 44))
    assert failure_hash(red(one)) == failure_hash(red(other)) != ""


OTHERS = {
    "another message": red(X.model_copy(update={"message": "1 != 3"}), Y),
    "fewer": red(X),
    "more": red(X, Y, STYLE),
    "other lines about it": red(X, Y, evidence="1a2b3c4d"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_failures_have_another_hash(other: CheckResult) -> None:
    assert failure_hash(other) not in {failure_hash(red(X, Y)), ""}


UNKNOWN = {
    "passed": green(),
    "optional": red(X, required=False),
    "preexisting": red(X, preexisting=True),
    "not all named": red(X, count=2),
    "timed out": red(X, timed_out=True),
    "cut short": red(X, cut_short=True),
    "no program": red(exit_code=127, evidence="1a"),
    "a program that cannot run": red(exit_code=126, evidence="1a"),
    "killed": red(X, exit_code=137),
    "killed by a signal": red(X, exit_code=-9),
    "never ended": red(X, exit_code=None),
    "cannot run on the base either": red(X, on_base=OnBase.CANNOT_RUN),
    "nothing on record": red(),
    "no finding, but some are counted": red(count=2, evidence="1a"),
    "a full disk": red(X.model_copy(update={"message": "OSError: No space left on device"})),
    "a full disk in the digest": red(X, digest="write error: ENOSPC"),
    "a full disk in the long digest": red(X, long_digest="cp: Disk quota exceeded"),
    "no memory": red(X, digest="fork: Cannot allocate memory"),
    "a program below make": red(X, digest="make: *** [Makefile:3: test] Error 127"),
    "killed below make": red(X, digest="make: *** [Makefile:3: test] Error 137"),
}


@pytest.mark.parametrize("result", UNKNOWN.values(), ids=UNKNOWN)
def test_a_failure_that_is_not_known_in_full_has_no_hash(result: CheckResult) -> None:
    assert failure_hash(result) == ""


WITHOUT_FINDINGS = [
    {"evidence": "2b"},
    {"fingerprint": "f2"},
    {"digest": "It stopped in a.sh:7 of bash."},
]


@pytest.mark.parametrize("values", WITHOUT_FINDINGS)
def test_without_findings_the_digest_and_the_lines_about_failures_count(
    values: dict[str, str],
) -> None:
    known = {"evidence": "1a", "fingerprint": "f1", "digest": "It stopped in a.sh:3 of sh."}
    one = red().model_copy(update=known)
    same = one.model_copy(update={"digest": "It stopped in a.sh:5 of sh."})
    assert failure_hash(one) == failure_hash(same) != ""
    assert failure_hash(one.model_copy(update=values)) not in {failure_hash(one), ""}
