"""What the runner is told cannot be turned into something else by what an issue or a check says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.daemon.once import PassResult
from mulligan.daemon.worker import Visit
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import Finding
from mulligan.domain.status import PullStatus, SeenText
from mulligan.interfaces.action.inputs import Runner
from mulligan.interfaces.action.report import (
    MAX_SUMMARY_CHARS,
    IssueReport,
    annotations,
    cleaned,
    outputs,
    summary,
    with_commands_stopped,
)
from mulligan.interfaces.bootstrap.redaction import without_machine_paths
from mulligan.text.redact import Redactor
from world.stories import attempt, case, red_check

RUNNER = Runner("octo/calc", "schedule", "run-1", Path("/runner/temp"))
EVIL = "%0A::error::no\n::error::no\r::no , : | <img src=x> @ada"

pytestmark = pytest.mark.pure


def told(
    *outcomes: Outcome, stage: Stage = Stage.READY, reason: str = "2 attempts left."
) -> IssueReport:
    history = [attempt(number, each) for number, each in enumerate(outcomes, start=1)]
    status = case(*history, stage=stage, reason=reason).status
    return IssueReport(status, history, len(history))


def failing(*findings: Finding) -> IssueReport:
    found = told(Outcome.CHECKS_FAILED)
    checks = (red_check().model_copy(update={"findings": findings}),)
    return replace(found, history=[found.history[0].model_copy(update={"checks": checks})])


def test_commands_are_stopped_by_a_token_and_go_on_by_it() -> None:
    assert with_commands_stopped("abc") == ("::stop-commands::abc", "::abc::")


def test_a_finding_stands_at_its_line() -> None:
    found = Finding(summary="assert 3 == -3", file="tests/test_add.py", line=8, column=5)
    (line,) = annotations([failing(found)], [])
    title = "octo/calc#12%2C attempt 1%3A tests"
    assert line == f"::error title={title},file=tests/test_add.py,line=8,col=5::assert 3 == -3"


def test_a_finding_without_a_place_is_told_too() -> None:
    (line,) = annotations([failing(Finding(summary="no tests ran"))], [])
    assert line == "::error title=octo/calc#12%2C attempt 1%3A tests::no tests ran"
    (line,) = annotations([failing(Finding(summary="no tests ran", file="a.py"))], [])
    assert line.endswith(",file=a.py::no tests ran")


def test_nothing_gets_out_of_an_annotation() -> None:
    lines = list(annotations([failing(Finding(summary=EVIL, file=EVIL, line=1))], [EVIL]))
    assert len(lines) == 2
    for line in lines:
        assert len(line.splitlines()) == 1
        assert line.startswith("::error ")
        assert "%250A" in line
    assert lines[1].count(",") == 2 + lines[1].partition("::no")[2].count(",")


def test_ten_annotations_of_a_kind_are_enough() -> None:
    many = [Finding(summary=f"{number}") for number in range(30)]
    assert len(list(annotations([failing(*many)], ["problem"] * 30))) == 20


def test_where_an_issue_ended_is_told() -> None:
    asked = told(Outcome.CHECKS_FAILED, stage=Stage.HITL, reason="All 3 attempts failed.")
    asked = replace(asked, history=[])
    review = told(Outcome.SUCCEEDED, stage=Stage.REVIEW)
    url = "https://github.com/octo/calc/pull/13"
    review = replace(review, status=replace(review.status, pull=PullStatus(url)))
    assert list(annotations([asked, review, told()], [])) == [
        "::warning title=octo/calc#12 needs human review::All 3 attempts failed.",
        f"::notice title=octo/calc#12 is in review::{url}",
    ]


def test_outputs_are_those_of_the_issue_worked_on_last() -> None:
    first = told(Outcome.CHECKS_FAILED)
    last = told(Outcome.CHECKS_FAILED, Outcome.SUCCEEDED, stage=Stage.REVIEW)
    url = "https://github.com/octo/calc/pull/13"
    last = replace(last, status=replace(last.status, pull=PullStatus(url)))
    written = outputs([first, last], "/runner/temp/artifacts", "END")
    blocks = [block.split("<<END\n") for block in written.split("\nEND\n") if block]
    found = dict(blocks)
    assert json.loads(found.pop("results"))[0]["outcome"] == "CHECKS_FAILED"
    assert found == {
        "issue": "octo/calc#12",
        "stage": "review",
        "outcome": "SUCCEEDED",
        "attempts": "2",
        "pull-request": url,
        "cost": "0.42",
        "artifacts": "/runner/temp/artifacts",
    }


def test_without_an_issue_the_outputs_are_empty() -> None:
    written = outputs([], "/runner/temp/artifacts", "END")
    assert "stage<<END\n\nEND\n" in written
    assert "results<<END\n[]\nEND\n" in written


def test_what_was_never_attempted_has_no_outcome_and_no_cost() -> None:
    written = outputs([told()], "/runner/temp/artifacts", "END")
    assert "outcome<<END\n\nEND\n" in written
    assert "cost<<END\n\nEND\n" in written


def test_the_summary_shows_the_attempts() -> None:
    text = summary([told(Outcome.INTERRUPTED, Outcome.CHECKS_FAILED)], PassResult(), RUNNER)
    assert "`schedule`" in text
    assert "[octo/calc#12](https://github.com/octo/calc/issues/12)" in text
    assert "| 1\\* | 2025-03-04 12:00 | Interrupted |" in text
    assert "| 2 | 2025-03-04 12:10 | Checks failed |" in text
    assert "\\* not counted as an attempt." in text


def test_the_summary_says_what_did_not_work() -> None:
    alone = Visit(IssueRef("octo/calc", 13), skipped="Another worker has it.")
    worked = Visit(IssueRef("octo/calc", 12), attempts=1, skipped="It is closed.")
    text = summary([told()], PassResult((alone, worked), ("octo/calc: GitHub is away.",)), RUNNER)
    assert "- octo/calc#13 was skipped: Another worker has it." in text
    assert "octo/calc#12 was skipped" not in text
    assert "- **Failed:** octo/calc: GitHub is away." in text


def test_a_run_without_work_says_so() -> None:
    assert summary([], PassResult(), RUNNER).endswith("No issue is due.\n")


def test_a_title_is_text_and_nothing_else() -> None:
    found = told(Outcome.SUCCEEDED, stage=Stage.REVIEW, reason=EVIL)
    url = "https://github.com/octo/calc/pull/13"
    found = replace(found, status=replace(found.status, text=SeenText(EVIL), pull=PullStatus(url)))
    text = summary([found], PassResult(), RUNNER)
    assert "<img" not in text.replace("\\<img", "")
    assert f"Pull request: {url}" in text
    assert "\n::error" not in text


def test_a_summary_that_is_too_long_is_cut() -> None:
    problems = tuple(f"problem {number} " + "x" * 400 for number in range(3000))
    assert len(summary([], PassResult(problems=problems), RUNNER)) < MAX_SUMMARY_CHARS + 100


def test_a_failed_attempt_that_has_no_failing_check_names_nothing() -> None:
    assert list(annotations([told(Outcome.ZERO_COMMIT)], [])) == []


def test_a_failure_shows_no_secret_and_no_path_that_markdown_would_escape() -> None:
    root = Path("/opt/_runner/mulligan_state/work")
    known = Redactor(("a_secret_with_underscores",))
    clean = without_machine_paths(known, root, root.parent).text
    said = f"{root}/octo/calc: a_secret_with_underscores was refused"
    skipped = Visit(IssueRef("octo/calc", 7), skipped=f"Less is free for {root}.")
    text = summary([], cleaned(PassResult((skipped,), (said,)), clean), RUNNER)
    assert "\\$WORKSPACE/octo/calc: \\[redacted\\] was refused" in text
    assert "Less is free for \\$WORKSPACE." in text
    assert "runner" not in text
    assert "underscores" not in text
