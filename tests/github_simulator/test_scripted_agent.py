"""The demo's agent mends what its prompt names, whatever the attempt's number."""

import json
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.seed import REPORTS, SCRIPTED_AGENT, make_repository
from mulligan.sandbox.process import Command, Finished, run
from mulligan.text.escape import enclose, fence
from world.processes import PATH, output_of

POWER, AVERAGE, SUMS, USAGE, SERVICE, REMAINDER = (
    f"# {report.title}\n\n{report.body}" for report in REPORTS
)
NOTHING_CHANGED = "The agent changed nothing (zero commits). It asked: Shall I?"
FAILED = """
FAIL: test_divide_by_zero (tests.test_operations.ArithmeticTest.test_divide_by_zero)
AssertionError: CalculatorError not raised : dividing by zero must stay an error
"""
TESTS = "python3 -m unittest discover -v"


@dataclass(frozen=True)
class Desk:
    """A fresh clone for the agent to work in."""

    tree: Path
    home: Path

    def work(self, prompt: str, *, attempt: int = 1) -> Finished:
        """Run the agent as a `command` agent is run."""
        environment = {
            **PATH,
            "HOME": str(self.home),
            "MULLIGAN_ISSUE": "acme/calculator#2",
            "MULLIGAN_ATTEMPT": str(attempt),
            "MULLIGAN_REPORT": str(self.home / "report.json"),
        }
        agent = (sys.executable, str(SCRIPTED_AGENT))
        within = timedelta(seconds=20)
        return run(Command(agent, self.tree, environment, within, stdin=prompt.encode()))

    def check(self) -> Finished:
        """Run the tests of the repository."""
        line = ("/bin/sh", "-c", TESTS)
        return run(Command(line, self.tree, PATH, timedelta(seconds=20)))

    def reset(self) -> None:
        output_of("git reset -q --hard origin/main && git clean -qfdx", self.tree)

    def diff(self) -> str:
        return output_of(
            "git add -A . ':!command.log' && git diff --cached --stat origin/main", self.tree
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    bare = make_repository(tmp_path)
    output_of(f"git clone -q {bare} tree && mkdir home", tmp_path)
    return Desk(tmp_path / "tree", tmp_path / "home")


def test_the_first_issue_is_done_at_once(desk: Desk) -> None:
    assert desk.work(POWER).exit_code == 0
    checked = desk.check()
    assert checked.exit_code == 0, checked.text
    assert "test_power_on_the_command_line" in checked.text
    assert output_of("python3 -m calculator 2 ^ 10", desk.tree) == "1024"


def test_the_second_issue_fails_on_a_test_that_its_text_does_not_name(desk: Desk) -> None:
    assert desk.work(AVERAGE).exit_code == 0
    checked = desk.check()
    assert checked.exit_code == 1
    assert "FAILED (failures=1)" in checked.text
    assert "test_divide_by_zero" in checked.text
    assert "CalculatorError not raised : dividing by zero must stay an error" in checked.text
    assert "test_divide_by_zero" not in AVERAGE
    assert "CalculatorError not raised" not in AVERAGE


@pytest.mark.parametrize("attempt", [1, 2])
def test_only_the_prompt_decides_and_never_the_attempt(desk: Desk, attempt: int) -> None:
    desk.work(AVERAGE, attempt=attempt)
    assert desk.check().exit_code == 1
    desk.reset()
    desk.work(AVERAGE + FAILED, attempt=attempt)
    checked = desk.check()
    assert checked.exit_code == 0, checked.text
    assert "test_average_of_no_values" in checked.text


def test_half_of_the_failure_is_not_enough(desk: Desk) -> None:
    for line in FAILED.strip().splitlines():
        desk.work(AVERAGE + line)
        assert desk.check().exit_code == 1
        desk.reset()


def test_the_third_issue_leaves_commits_but_no_change(desk: Desk) -> None:
    for prompt in (SUMS, SUMS + "## Retry context\n\nThe tree equals the base: no change."):
        assert desk.work(prompt).exit_code == 0
        assert output_of("git rev-list --count origin/main..HEAD", desk.tree) == "2"
        assert desk.diff() == ""
        desk.reset()


@pytest.mark.parametrize("attempt", [1, 2])
def test_the_fourth_issue_is_done_once_it_is_told_that_asking_changed_nothing(
    desk: Desk, attempt: int
) -> None:
    asked = desk.work(USAGE, attempt=attempt)
    assert (asked.exit_code, desk.diff()) == (0, "")
    assert asked.text.strip().endswith("?")
    assert desk.work(f"{USAGE}\n{NOTHING_CHANGED}", attempt=attempt).exit_code == 0
    checked = desk.check()
    assert checked.exit_code == 0, checked.text
    assert "test_missing_words" in checked.text


@pytest.mark.deep
def test_the_fifth_issue_takes_some_seconds_and_is_done_in_the_end(desk: Desk) -> None:
    finished = desk.work(SERVICE)
    assert finished.duration > timedelta(seconds=4)
    assert desk.check().exit_code == 0
    asked = "import calculator.service as s; print(s.Calculator.__name__)"
    assert output_of(f"python3 -c '{asked}'", desk.tree) == "Calculator"


def test_the_sixth_issue_is_done_at_once(desk: Desk) -> None:
    assert desk.work(REMAINDER).exit_code == 0
    checked = desk.check()
    assert checked.exit_code == 0, checked.text
    assert output_of("python3 -m calculator 7 % 4", desk.tree) == "3"


def test_a_task_that_it_does_not_know_is_reported(desk: Desk) -> None:
    assert desk.work("# Make coffee").exit_code == 0
    report = json.loads((desk.home / "report.json").read_text())
    assert report["status"] == "blocked"
    assert desk.diff() == ""


def test_it_tells_what_it_does(desk: Desk) -> None:
    finished = desk.work(POWER)
    assert len(finished.text.splitlines()) >= 3
    assert "power" in finished.text


def test_an_instruction_settles_what_cannot_be_had_both_ways(desk: Desk) -> None:
    decided = enclose("guidance", "a trusted maintainer", "Round to ten digits.")
    assert desk.work(f"{decided}\n\n{SUMS}").exit_code == 0
    assert "test_exact_sum" in desk.diff()
    checked = desk.check()
    assert checked.exit_code == 0, checked.text


@pytest.mark.parametrize("is_there", [False, True])
def test_a_review_is_answered_on_either_tree(desk: Desk, *, is_there: bool) -> None:
    if is_there:
        desk.work(POWER)
    review = fence("the review", "maya on calculator/operations.py:30:\nSay so in the usage.")
    assert desk.work(f"{POWER}\n\n{review}").exit_code == 0
    text = (desk.tree / "calculator" / "operations.py").read_text()
    assert text.count("def power(") == 1
    assert "From the review: Say so in the usage." in (desk.tree / "README.md").read_text()
    assert desk.check().exit_code == 0
