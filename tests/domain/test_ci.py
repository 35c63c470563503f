"""What the checks that GitHub runs on a head come to together, and what of them is noise."""

from dataclasses import replace

import pytest

from mulligan.domain.feedback import (
    CheckRun,
    failed_of,
    latest,
    passed_of,
    unique_names,
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
    assert (len(failed_of(runs)), passed_of(runs)) == (failed, passed)


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
    assert [each.id for each in failed_of(latest(runs))] == [1]


def test_runs_that_bear_one_name_are_told_apart() -> None:
    runs = [run(1, "tests", "failure"), run(2, "lint", "failure"), run(3, "tests", "failure")]
    assert unique_names(runs) == ("tests", "lint", "tests (2)")


def test_nothing_is_said_before_all_are_complete() -> None:
    runs = (run(1, "a", "failure"), run(2, "b", "success"), run(3, "c", None))
    assert (failed_of(runs), passed_of(runs)) == ((), 0)


def test_a_head_without_checks_has_neither_passed_nor_failed() -> None:
    assert (failed_of(()), passed_of(())) == ((), 0)
