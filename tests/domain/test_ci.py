"""What the checks that GitHub runs on a head come to together, and what of them is noise."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.events import FailedCheck
from mulligan.domain.feedback import (
    CheckRun,
    Feedback,
    HeadChecks,
    describe_checks,
    describe_failed_checks,
    judge_checks,
    latest,
    passed_of,
    unique_names,
    without_ignored,
)

pytestmark = pytest.mark.pure


def run(number: int, name: str, conclusion: str | None, app: str = "github-actions") -> CheckRun:
    return CheckRun(number, app, name, conclusion)


@pytest.mark.parametrize(
    ("conclusion", "failed", "passed"),
    [
        ("success", 0, 2),
        ("failure", 1, 0),
        ("error", 1, 0),
        ("timed_out", 1, 0),
        ("startup_failure", 1, 0),
        ("neutral", 0, 1),
        ("skipped", 0, 1),
        ("cancelled", 0, 0),
        ("stale", 0, 0),
        ("action_required", 0, 0),
        ("of another time", 0, 0),
        (None, 0, 0),
    ],
)
def test_only_what_the_change_may_be_to_blame_for_is_a_failure(
    conclusion: str | None, failed: int, passed: int
) -> None:
    runs = [run(1, "lint", "success"), run(2, "tests", conclusion)]
    assert (len(judge_checks(runs, ()).failed), passed_of(runs)) == (failed, passed)


@pytest.mark.parametrize(
    ("runs", "kept"),
    [
        ((), ()),
        ((run(1, "a", "failure"), run(2, "a", "success")), (2,)),
        ((run(2, "a", None), run(1, "a", "failure")), (2,)),
        ((run(1, "a", "failure"), run(2, "b", "success")), (1, 2)),
        ((run(1, "a", "failure"), run(2, "a", "success", "other")), (1, 2)),
        ((run(3, "a", "cancelled"), run(1, "a", "failure"), run(2, "b", "failure")), (3, 2)),
    ],
)
def test_a_rerun_takes_the_place_of_the_run_before(
    runs: tuple[CheckRun, ...], kept: tuple[int, ...]
) -> None:
    assert {each.id for each in latest(runs)} == set(kept)


def test_jobs_of_two_workflows_that_bear_one_name_are_both_there() -> None:
    runs = [replace(run(at, "tests", of), suite=at) for at, of in ((1, "failure"), (2, "success"))]
    assert [each.id for each in latest(runs)] == [1, 2]
    assert [each.id for each in judge_checks(latest(runs), ()).failed] == [1]


def test_runs_that_bear_one_name_are_told_apart() -> None:
    runs = [run(1, "tests", "failure"), run(2, "lint", "failure"), run(3, "tests", "failure")]
    assert unique_names(runs) == ("tests", "lint", "tests (2)")


def test_nothing_has_passed_before_all_are_complete() -> None:
    runs = (run(1, "a", "success"), run(2, "b", None))
    assert passed_of(runs) == 0
    assert judge_checks(runs, ()) == HeadChecks(pending=(runs[1],))


def test_a_head_without_checks_has_neither_passed_nor_failed() -> None:
    assert (judge_checks((), ()), passed_of(())) == (HeadChecks(), 0)


@pytest.mark.parametrize(
    ("runs", "base", "failed", "on_base", "pending"),
    [
        ([("a", "failure")], [], ["a"], [], []),
        ([("a", "failure")], [("a", "success")], ["a"], [], []),
        ([("a", "failure")], [("a", "failure")], [], ["a"], []),
        ([("a", "failure")], [("a", "timed_out")], [], ["a"], []),
        ([("a", "failure"), ("b", "failure")], [("b", "failure")], ["a"], ["b"], []),
        ([("a", "failure"), ("a", "failure")], [("a", "failure")], ["a"], ["a"], []),
        ([("a", "success")], [("a", "failure")], [], [], []),
        ([("a", "failure"), ("b", None)], [], ["a"], [], ["b"]),
        ([("a", "failure")], [("a", None)], ["a"], [], ["a (base branch)"]),
        ([("a", "failure")], [("b", None)], ["a"], [], []),
    ],
)
def test_a_check_that_fails_on_the_base_too_is_not_the_changes(
    runs: list[tuple[str, str | None]],
    base: list[tuple[str, str | None]],
    failed: list[str],
    on_base: list[str],
    pending: list[str],
) -> None:
    made, of_base = ([run(at, *each) for at, each in enumerate(some)] for some in (runs, base))
    found = judge_checks(made, of_base)
    names = [[each.name for each in some] for some in (found.failed, found.on_base, found.pending)]
    assert names == [failed, on_base, pending]


def test_a_check_of_another_app_on_the_base_is_another_check() -> None:
    found = judge_checks([run(1, "a", "failure")], [run(2, "a", "failure", "other")])
    assert [each.name for each in found.failed] == ["a"]


NOON = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
RED = replace(run(1, "build", "failure"), at=NOON)
SLOW = replace(run(2, "tide", None), at=NOON - timedelta(minutes=89))
HALF = timedelta(minutes=30)


@pytest.mark.parametrize(
    ("found", "at"),
    [
        (HeadChecks((RED,), (), (SLOW,)), NOON + HALF),
        (HeadChecks((RED, replace(RED, at=NOON + HALF)), (), (SLOW,)), NOON + 2 * HALF),
        (HeadChecks((RED,), (), ()), None),
        (HeadChecks((), (RED,), (SLOW,)), None),
        (HeadChecks((replace(RED, at=None),), (), (SLOW,)), None),
    ],
)
def test_failures_wait_for_pending_checks_for_a_time(
    found: HeadChecks, at: datetime | None
) -> None:
    assert found.acts_at(HALF) == at


@pytest.mark.parametrize(
    ("found", "acts_at", "told"),
    [
        (HeadChecks(), None, ""),
        (HeadChecks((RED,), (), (SLOW,)), None, ""),
        (
            HeadChecks((RED,), (), (SLOW,)),
            NOON + HALF,
            (
                "Waits for `tide` since 10:31 UTC; `build` failed. Mulligan acts on the failure "
                "after 12:30 UTC."
            ),
        ),
        (
            HeadChecks((RED,), (), (replace(SLOW, at=None, name="ti`de"),)),
            NOON,
            "Waits for `ti'de`; `build` failed. Mulligan acts on the failure after 12:00 UTC.",
        ),
        (
            HeadChecks((), (RED,) * 7, ()),
            None,
            (
                "`build`, `build`, `build`, `build`, `build`, 2 more failed on GitHub, and on the "
                "base commit `0123456789` too, so Mulligan makes no attempt for that."
            ),
        ),
    ],
)
def test_what_is_waited_for_and_what_is_not_the_changes_is_told(
    found: HeadChecks, acts_at: datetime | None, told: str
) -> None:
    assert describe_checks(found, "0123456789abcdef", acts_at) == told


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        ((), ["tide", "codecov/patch", "build"]),
        (("tide", "codecov/*"), ["build"]),
        (("TIDE", "b?ild"), ["tide", "codecov/patch"]),
    ],
)
def test_ignored_checks_are_named_by_patterns(ignored: tuple[str, ...], left: list[str]) -> None:
    runs = [run(at, name, None) for at, name in enumerate(("tide", "codecov/patch", "build"))]
    assert [each.name for each in without_ignored(runs, ignored)] == left


@pytest.mark.parametrize(
    ("checks", "told"),
    [((), ""), ((FailedCheck(name="build"),), "`build` failed on GitHub.")],
)
def test_the_failed_checks_that_wait_for_an_attempt_are_named(
    checks: tuple[FailedCheck, ...], told: str
) -> None:
    assert describe_failed_checks(Feedback(at=NOON, checks=checks)) == told
    assert describe_failed_checks(None) == ""
