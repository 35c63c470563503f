"""The check run with Mulligan's verdict says what was verified, and marks lines."""

import pytest

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckResult, Finding
from mulligan.github.check_run import check_run_text
from world.attempts import REF, attempt, case, check, failing_test

pytestmark = pytest.mark.pure

FOUND = Finding(
    summary="E501 line too long", message="E501 line\u202e too long", file="a.py", line=7
)


def found(path: str | None = "a.py", line: int | None = 7) -> Finding:
    return FOUND.model_copy(update={"file": path, "line": line})


def verdict(*checks: CheckResult) -> list[tuple[str | int, ...]]:
    shown = check_run_text(case(attempt(2, Outcome.SUCCEEDED, "", *checks)))
    keys = ("annotation_level", "path", "start_line", "end_line", "title", "message")
    return [tuple(each[key] for key in keys) for each in shown.annotations]


@pytest.mark.parametrize(
    ("facts", "level", "title"),
    [
        ({"findings": (FOUND,)}, "warning", "lint failed, but is not required"),
        (
            {"unsteady": (FOUND,), "passed": True, "flaky": True},
            "warning",
            "lint failed, and passed when it ran again",
        ),
        (
            {"known": (FOUND,), "preexisting": True},
            "notice",
            "lint failed before the change, too",
        ),
    ],
)
def test_failures_that_did_not_stop_the_change_are_marked(
    facts: dict[str, object], level: str, title: str
) -> None:
    one = check("lint", required=False).model_copy(update=facts)
    assert verdict(one) == [(level, "a.py", 7, 7, title, " E501 line too long")]


@pytest.mark.parametrize("place", [(None, 7), ("a.py", None), ("/usr/lib/a.py", 7), ("../a.py", 7)])
def test_a_failure_without_a_line_of_the_repository_is_not_marked(
    place: tuple[str | None, int | None],
) -> None:
    assert verdict(check().model_copy(update={"findings": (found(*place),)})) == []


def test_no_more_are_marked_than_github_takes() -> None:
    many = tuple(found(line=number) for number in range(1, 80))
    assert len(verdict(check().model_copy(update={"findings": many}))) == 50


def test_it_says_what_passed() -> None:
    tests, lint = check(passed=True), check("lint", required=False)
    shown = check_run_text(case(attempt(2, Outcome.SUCCEEDED, "", tests, lint)))
    assert (shown.conclusion, shown.title) == ("success", "Attempt 2: 1 check passed")
    assert shown.external_id == f"mulligan:{REF}/1.2"
    assert "lint" in shown.summary


def test_without_checks_it_is_neutral() -> None:
    shown = check_run_text(case(attempt(1, Outcome.SUCCEEDED)))
    title = "No check is configured: nothing was verified"
    assert (shown.conclusion, shown.title) == ("neutral", title)


def test_where_no_test_passed_it_is_neutral_and_says_so() -> None:
    lint, old = check("lint", passed=True), failing_test().model_copy(update={"preexisting": True})
    shown = check_run_text(case(attempt(1, Outcome.SUCCEEDED, "", lint, old)))
    title = "No test verified the change"
    assert (shown.conclusion, shown.title) == ("neutral", title)
    assert "The check `lint` passed." in shown.summary
