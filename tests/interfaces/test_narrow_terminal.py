"""On a terminal of 80 columns addresses, words and figures stay whole."""

import io
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.console import Console

from mulligan.config.policy import Escalation
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.result import AttemptTimes, CheckKind, SkippedCheck
from mulligan.domain.stats import summarise
from mulligan.domain.status import IssueStatus, Phase, PullStatus
from mulligan.github.escalation import escalation_comment
from mulligan.interfaces.cli.inspect import print_attempt, print_decisions
from mulligan.interfaces.cli.stats import print_figures
from mulligan.interfaces.cli.status import print_statuses
from mulligan.interfaces.cli.terminal import show_comment
from world.dashboards import tried
from world.escalations import red_three_times
from world.sample_history import END, sample_month
from world.stories import green_check, red_check

REVIEW = IssueStatus(
    IssueRef("acme/calculator", 1),
    stage=Stage.REVIEW,
    epoch=1,
    attempt=2,
    pull=PullStatus("https://github.com/acme/calculator/pull/7", 7),
)
ASKED = replace(
    REVIEW, stage=Stage.HITL, pull=PullStatus(), reason="All 3 attempts failed: " + "why " * 20
)


def terminal(width: int = 80) -> Console:
    return Console(width=width, file=io.StringIO())


def lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_an_address_that_a_column_would_break_stands_below_its_row() -> None:
    console = terminal()
    print_statuses([REVIEW, ASKED], console)
    shown = lines(console)
    assert shown[0] == "issue              stage               attempt  outcome"
    assert shown[2] == "  https://github.com/acme/calculator/pull/7"
    assert shown[4].startswith("  All 3 attempts failed: why")
    assert shown[5].startswith("  why")


def test_a_wide_terminal_has_it_in_one_row() -> None:
    console = terminal(120)
    print_statuses([REVIEW], console)
    assert lines(console)[1].endswith("https://github.com/acme/calculator/pull/7")


def test_below_the_address_of_a_pull_request_stands_what_was_verified() -> None:
    console = terminal(120)
    print_statuses([replace(REVIEW, reason="No test verified the change.")], console)
    assert lines(console)[1].endswith("https://github.com/acme/calculator/pull/7")
    assert lines(console)[2].strip() == "No test verified the change."


def test_where_a_person_is_asked_the_reason_comes_before_the_draft() -> None:
    console = terminal(120)
    print_statuses(
        [replace(ASKED, pull=PullStatus("https://x.example/pull/8"), reason="Why.")], console
    )
    assert lines(console)[1].endswith("Why.")


def test_what_wraps_of_an_attempt_stays_below_its_own_text() -> None:
    console = terminal(40)
    print_attempt(tried(1), console)
    assert all(line.startswith("  ") for line in lines(console)[2:])


def test_figures_of_repositories_are_shared_out_to_two_tables() -> None:
    console = terminal()
    month = sample_month()
    labels = {each.issue: ("enhancement",) for each in month.attempts}
    print_figures(summarise(replace(month, labels=labels), END), console)
    shown = lines(console)
    heads = shown[shown.index("Repositories") : shown.index("Agents")]
    assert sum(line.startswith("repository") for line in heads) == 2
    assert all(len(line) <= 80 for line in shown)
    assert sum(line.startswith("enhancement ") for line in shown) == 2


def test_a_running_attempt_says_when_it_began() -> None:
    console = terminal(160)
    running = replace(REVIEW, stage=Stage.RUNNING, phase=Phase.ATTEMPTING, started_at=END)
    print_statuses([running], console)
    assert lines(console)[2].split() == f"Attempt 2 began at {END:%Y-%m-%d %H:%M:%S} UTC.".split()


def test_nothing_to_show_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["mulligan"])
    console = terminal()
    print_statuses([], console)
    assert lines(console) == ["No issues yet. Add the label to one, then run `mulligan once`."]


def test_an_attempt_says_where_its_time_went() -> None:
    times = AttemptTimes(waited_ms=1_200_000, agent_ms=161_000, checks_ms=34_000)
    often = red_check().model_copy(update={"runs": 4, "wall_ms": 34_000, "digest": ""})
    old = green_check("old").model_copy(update={"duration_ms": 0})
    console, meta = terminal(), tried(1).model_copy(update={"times": times})
    print_attempt(meta.model_copy(update={"checks": (often, old)}), console)
    shown = lines(console)
    assert shown[2] == "  Total time 23m15s: 20m waiting to start, 2m41s in the agent"
    assert shown[-2:] == ["  ✗ tests  4 runs, 34.0 s", "  ✓ old"]


def test_a_check_that_was_not_run_has_its_own_line() -> None:
    web = SkippedCheck(name="web", kind=CheckKind.TEST, command="npm test")
    console, meta = terminal(), tried(1).model_copy(update={"skipped_checks": (web,)})
    print_attempt(meta, console)
    assert lines(console)[-1] == "  – web: not run: the change touches none of its paths"


def test_a_decision_is_told_in_words() -> None:
    console = terminal()
    reason = "The check 'tests' passed."
    row: dict[str, object] = {"number": 2, "decision": "open_pull_request", "reason": reason}
    print_decisions([row], console)
    assert lines(console)[-1] == "  attempt 2: open the pull request. The check 'tests' passed."


def test_a_comment_in_a_frame_shows_no_marks_and_no_gaps_in_place_of_folds() -> None:
    console = terminal()
    comment = escalation_comment(red_three_times(), Escalation())
    show_comment(console, comment)
    shown = lines(console)
    assert not any("<" in line for line in shown if "what to" not in line)
    blank = [not line.strip("│ ") for line in shown]
    assert not any(first and second for first, second in pairwise(blank))
