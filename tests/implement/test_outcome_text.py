"""Every sentence about an outcome, as a person and an agent read it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.domain.attempt import (
    NO_TEXT,
    SHUTDOWN,
    AgentReport,
    AgentRun,
    AttemptState,
    Change,
    Fault,
    ReportedStatus,
    ReviewerResult,
    TimeLimit,
    classify,
)
from mulligan.domain.events import AttemptCompleted
from mulligan.domain.fold import advance
from mulligan.domain.outcome import Outcome, ZeroKind
from mulligan.domain.result import (
    AgentFacts,
    AttemptTimes,
    CheckResult,
    Finding,
    OnBase,
    SetUpFiles,
)
from mulligan.domain.status import IssueStatus
from mulligan.implement.prompt.outcome_text import (
    DIED,
    NOT_VERIFIED,
    SHUT_DOWN,
    TITLES,
    ZERO_ADVICE,
    ZERO_FINDINGS,
    attempt_error,
    duration_text,
    error_line,
    explain,
    failing,
    failure_reason,
    pluralize,
    run_text,
    seconds_text,
    set_up_files_text,
    status_title,
    times_text,
    title_of,
    took_text,
    verdict,
    zero_advice,
)
from world import stories
from world.attempts import REF, attempt, broken_rules, check

pytestmark = pytest.mark.pure

CHANGED = Change("base", "head", 1)
NO_CHANGE = Change("base", None, 0)
NOTHING_LEFT = "The agent changed nothing (zero commits)."
KILLED = "The agent was killed by SIGKILL and changed nothing."
CUT_OFF = "The agent was cut off: its final record is missing, and it changed nothing."
KILLED_IN_ITS_SHELL = "The agent ended with exit code 137 (killed by SIGKILL) and changed nothing."
FIVE_CHECKS = " ".join(f"Check 'check {n}' failed with exit code 1." for n in range(1, 6))


REFUSED_HOSTS = ("a.example", "b.example:22", "c.example", "d.example")
TRIED = (
    "The sandbox blocked the agent's access to a.example. If the agent needs it, add it to "
    "sandbox.hosts."
)


def led(hosts: tuple[str, ...], fault: Fault | None = None) -> AgentRun:
    """Give a run that ended in failure and was not let through to some hosts."""
    run = ended(1)
    facts = run.facts.model_copy(update={"refused_hosts": hosts})
    return replace(run, facts=facts, fault=fault)


def test_who_came_to_nothing_is_told_what_was_out_of_reach() -> None:
    known = AttemptState(run=led(REFUSED_HOSTS[:1]), change=NO_CHANGE)
    assert f"changed nothing. {TRIED}" in failure_reason(Outcome.AGENT_CRASHED, known)
    failed = Fault(Outcome.INFRASTRUCTURE, "The model's service failed: it gave no answer.")
    known = AttemptState(run=led(REFUSED_HOSTS[:1], failed), change=NO_CHANGE)
    assert failure_reason(Outcome.INFRASTRUCTURE, known).startswith(f"{failed.reason} {TRIED}")


def test_of_many_hosts_the_first_are_named() -> None:
    known = AttemptState(run=led(REFUSED_HOSTS), change=NO_CHANGE)
    told = "a.example, b.example:22, c.example and more. If the agent needs them"
    assert told in failure_reason(Outcome.AGENT_CRASHED, known)


def test_who_made_a_change_was_not_held_up() -> None:
    known = AttemptState(run=led(REFUSED_HOSTS), change=CHANGED, checks=(check(passed=False),))
    assert "a.example" not in failure_reason(Outcome.CHECKS_FAILED, known)


def ended(
    exit_code: int | None = 0,
    stopped_by: TimeLimit | None = None,
    limit: float | None = None,
    doing: str | None = None,
) -> AgentRun:
    return AgentRun(
        exit_code=exit_code,
        duration=timedelta(seconds=1),
        facts=AgentFacts(kind="command", last_activity=doing),
        stopped_by=stopped_by,
        limit=None if limit is None else timedelta(seconds=limit),
    )


def with_stop_reason(run: AgentRun, reason: str) -> AgentRun:
    return replace(run, facts=run.facts.model_copy(update={"stop_reason": reason}))


def reported(status: ReportedStatus, reason: str, evidence: str = "") -> AgentRun:
    report = AgentReport(status, reason, evidence)
    return AgentRun(0, timedelta(seconds=1), AgentFacts(kind="command"), report=report)


def left(run: AgentRun, commits: int = 0, ignored: tuple[str, ...] = ()) -> AttemptState:
    return AttemptState(run=run, change=Change("base", None, commits, ignored_files=ignored))


def checked(*checks: CheckResult) -> AttemptState:
    return AttemptState(run=ended(), change=CHANGED, checks=checks)


def fault(outcome: Outcome, reason: str) -> AttemptState:
    return AttemptState(fault=Fault(outcome, reason))


CANNOT_RUN = {"on_base": OnBase.CANNOT_RUN, "exit_code": 127, "digest": "sh: jest: not found\nx"}
ABSENT = check("tests").model_copy(update=CANNOT_RUN)
HUNG = ABSENT.model_copy(update={"name": "e2e", "timed_out": True, "duration_ms": 600_213})
SET_UP = check("setup").model_copy(update={"is_set_up": True, "command": "npm ci"})
NO_START = "The check 'tests' cannot start on the base branch either (exit code 127)."
NO_END = "The check 'e2e' does not finish on the base branch either: it timed out after 10m."

TABLE = [
    (checked(check(passed=True)), Outcome.SUCCEEDED, "", ""),
    (
        replace(checked(), review=ReviewerResult(None, unreadable="The reviewer\nfailed.")),
        Outcome.MISCONFIGURED,
        "The reviewer failed.",
        "",
    ),
    (checked(ABSENT, HUNG), Outcome.MISCONFIGURED, f"{NO_START} sh: jest: not found {NO_END}", ""),
    (
        checked(ABSENT.model_copy(update={"digest": "", "findings": ()})),
        Outcome.MISCONFIGURED,
        NO_START,
        "",
    ),
    (
        checked(check("lint"), HUNG),
        Outcome.CHECKS_FAILED,
        f"{NO_END} Check 'lint' failed with exit code 1.",
        "",
    ),
    (
        checked(SET_UP),
        Outcome.CHECKS_FAILED,
        "The setup command 'npm ci' failed with exit code 1.",
        "",
    ),
    (
        checked(check("ruff", passed=True), check("pytest")),
        Outcome.CHECKS_FAILED,
        "Check 'pytest' failed with exit code 1.",
        "",
    ),
    (
        checked(
            check("tests").model_copy(update={"timed_out": True, "duration_ms": 600_213}),
            check("docs", required=False),
            check("lint", exit_code=-11),
        ),
        Outcome.CHECKS_FAILED,
        "Check 'tests' timed out after 10m. Check 'lint' was killed by SIGSEGV.",
        "",
    ),
    (
        checked(*(check(f"check {number}") for number in range(1, 8))),
        Outcome.CHECKS_FAILED,
        f"{FIVE_CHECKS[:199]}…",
        f"{FIVE_CHECKS} (+ 2 more)",
    ),
    (
        checked(check("types", exit_code=None)),
        Outcome.CHECKS_FAILED,
        "Check 'types' failed without an exit code.",
        "",
    ),
    (
        AttemptState(
            run=ended(),
            change=CHANGED,
            violations=broken_rules("a.yml is out of scope.", "b is a link"),
        ),
        Outcome.SCOPE_VIOLATION,
        "Scope violation detected: a.yml is out of scope; b is a link.",
        "",
    ),
    (
        left(ended()),
        Outcome.ZERO_COMMIT,
        "The agent changed nothing (zero commits).",
        "",
    ),
    (
        left(ended(), commits=1),
        Outcome.ZERO_DIFF,
        "The agent made 1 commit, but the files equal the base branch (zero diff).",
        "",
    ),
    (
        left(ended(), commits=2),
        Outcome.ZERO_DIFF,
        "The agent made 2 commits, but the files equal the base branch (zero diff).",
        "",
    ),
    (
        replace(left(ended()), change=Change("a", None, 1, is_proposed=True)),
        Outcome.ZERO_DIFF,
        "The agent made 1 commit, but the pull request's files are unchanged (zero diff).",
        "",
    ),
    (
        left(replace(ended(), question="Which\nrounding?"), ignored=("a.log",)),
        Outcome.ZERO_COMMIT,
        f"{NOTHING_LEFT} It asked: Which rounding?",
        "",
    ),
    (
        left(replace(ended(), question="Shall I go on?"), commits=1),
        Outcome.ZERO_DIFF,
        (
            "The agent made 1 commit, but the files equal the base branch (zero diff). It asked: "
            "Shall I go on?"
        ),
        "",
    ),
    (
        left(ended(), ignored=("build/a.o", "b\nc.log")),
        Outcome.ZERO_COMMIT,
        f"{NOTHING_LEFT} It wrote only files that git ignores or tools leave: build/a.o, b c.log.",
        "",
    ),
    (
        left(ended(), ignored=("a", "b", "c", "d")),
        Outcome.ZERO_COMMIT,
        f"{NOTHING_LEFT} It wrote only files that git ignores or tools leave: a, b, c and more.",
        "",
    ),
    (
        left(ended(137)),
        Outcome.AGENT_CRASHED,
        KILLED_IN_ITS_SHELL,
        f"{KILLED_IN_ITS_SHELL} Last observed activity: none",
    ),
    (
        left(ended(3)),
        Outcome.AGENT_CRASHED,
        "The agent ended with exit code 3 and changed nothing.",
        "The agent ended with exit code 3 and changed nothing. Last observed activity: none",
    ),
    (
        left(ended(-9, doing="reading\nsrc/a.py")),
        Outcome.AGENT_CRASHED,
        KILLED,
        f"{KILLED} Last observed activity: reading src/a.py",
    ),
    (
        left(replace(ended(), is_cut_off=True, reported_error="err.")),
        Outcome.AGENT_CRASHED,
        "The agent reported an error (err), and it changed nothing.",
        "The agent reported an error (err), and it changed nothing. Last observed activity: none",
    ),
    (
        left(replace(ended(), is_cut_off=True)),
        Outcome.AGENT_CRASHED,
        CUT_OFF,
        f"{CUT_OFF} Last observed activity: none",
    ),
    (
        left(ended(1, TimeLimit.OWN_LIMIT)),
        Outcome.AGENT_TIMED_OUT,
        "The agent reached its own limit.",
        "The agent reached its own limit. Last observed activity: none",
    ),
    (
        left(with_stop_reason(ended(1, TimeLimit.OWN_LIMIT), "error_max_turns")),
        Outcome.AGENT_TIMED_OUT,
        "The agent reached its own limit (error_max_turns).",
        "The agent reached its own limit (error_max_turns). Last observed activity: none",
    ),
    (
        left(replace(ended(), refusal="The agent was refused Bash; allow it.")),
        Outcome.MISCONFIGURED,
        "The agent was refused Bash; allow it.",
        "",
    ),
    (
        left(replace(ended(1), fault=Fault(Outcome.DENIED, "The service refused."))),
        Outcome.DENIED,
        "The service refused.",
        "",
    ),
    (
        left(ended(-99)),
        Outcome.AGENT_CRASHED,
        "The agent was killed by signal 99 and changed nothing.",
        "The agent was killed by signal 99 and changed nothing. Last observed activity: none",
    ),
    (
        left(ended(-15, TimeLimit.TIMEOUT, 300, "pytest -x")),
        Outcome.AGENT_TIMED_OUT,
        "Attempt timed out after 300 seconds.",
        "Attempt timed out after 300 seconds. Last observed activity: pytest -x",
    ),
    (
        left(ended(-15, TimeLimit.STALL_TIMEOUT, 900)),
        Outcome.AGENT_TIMED_OUT,
        "Attempt was stopped after 900 seconds without output.",
        "Attempt was stopped after 900 seconds without output. Last observed activity: none",
    ),
    (
        left(ended(-15, TimeLimit.TIMEOUT)),
        Outcome.AGENT_TIMED_OUT,
        "Attempt timed out after 1 second.",
        "Attempt timed out after 1 second. Last observed activity: none",
    ),
    (
        left(reported(ReportedStatus.BLOCKED, "Which\nformat?")),
        Outcome.BLOCKED,
        "The agent is blocked: Which format?",
        "",
    ),
    (
        left(reported(ReportedStatus.BLOCKED, " ")),
        Outcome.BLOCKED,
        "The agent is blocked: it gave no reason.",
        "",
    ),
    (
        left(reported(ReportedStatus.NOTHING_TO_DO, "It works.", "See test_old_dates.")),
        Outcome.NOTHING_TO_DO,
        "The agent reports that there is nothing to do: It works. Evidence: See test_old_dates.",
        "",
    ),
    (
        AttemptState(fault=NO_TEXT),
        Outcome.BLOCKED,
        "The issue has no title and no text; write what should change.",
        "",
    ),
    (
        fault(Outcome.INTERRUPTED, SHUTDOWN),
        Outcome.INTERRUPTED,
        "Mulligan was shut down during the attempt.",
        "shutdown",
    ),
    (AttemptState(), Outcome.INTERRUPTED, "Interrupted.", "-"),
    (fault(Outcome.DENIED, "The token is bad."), Outcome.DENIED, "The token is bad.", ""),
    (fault(Outcome.MISCONFIGURED, "No npm."), Outcome.MISCONFIGURED, "No npm.", ""),
    (fault(Outcome.INFRASTRUCTURE, "No disk."), Outcome.INFRASTRUCTURE, "No disk.", ""),
    (fault(Outcome.CANCELLED, "Label taken off."), Outcome.CANCELLED, "Label taken off.", ""),
    (fault(Outcome.OVER_BUDGET, "5 USD spent."), Outcome.OVER_BUDGET, "5 USD spent.", ""),
]
"""What is known, the outcome, its error line, and its reason where that says more."""


@pytest.mark.parametrize(("known", "outcome", "error", "reason"), TABLE)
def test_what_an_attempt_came_to_in_words(
    known: AttemptState, outcome: Outcome, error: str, reason: str
) -> None:
    assert classify(known) is outcome
    assert error_line(outcome, known) == error
    assert failure_reason(outcome, known) == {"": error, "-": ""}.get(reason, reason)


def test_the_table_has_every_outcome_but_the_reviewers() -> None:
    assert {row[1] for row in TABLE} == set(Outcome) - {Outcome.REJECTED}
    assert failure_reason(Outcome.REJECTED, checked()) == "The reviewer rejected the change."


@pytest.mark.parametrize("kind", ZeroKind)
def test_every_kind_of_no_change_says_what_was_expected_what_was_found_and_what_to_do(
    kind: ZeroKind,
) -> None:
    advice = zero_advice(kind)
    assert advice.startswith("Expected: changed files")
    assert f"Found: {ZERO_FINDINGS[kind]}. {ZERO_ADVICE[kind]}" in advice
    assert "answer BLOCKED or NOTHING_TO_DO with your reason" in advice
    assert len(set(ZERO_FINDINGS.values())) == len(set(ZERO_ADVICE.values())) == len(ZeroKind)


@pytest.mark.parametrize(
    ("checks", "title"),
    [
        ((), NOT_VERIFIED),
        ((check(required=False),), NOT_VERIFIED),
        ((check(passed=True),), "Succeeded"),
    ],
)
def test_a_change_that_no_check_passed_on_has_not_succeeded(
    checks: tuple[CheckResult, ...], title: str
) -> None:
    made = attempt(1, Outcome.SUCCEEDED, "", *checks)
    status = advance(IssueStatus(REF), AttemptCompleted(meta=made), made.finished_at)
    assert (title_of(made), status_title(status)) == (title, title)


def test_every_outcome_has_a_title_of_its_own() -> None:
    assert set(TITLES) == set(Outcome)
    assert len(set(TITLES.values())) == len(Outcome)


@pytest.mark.parametrize("outcome", Outcome)
@given(
    known=st.builds(
        AttemptState,
        fault=st.none() | st.builds(Fault, st.sampled_from(Outcome), st.text()),
        run=st.none()
        | st.builds(
            AgentRun,
            exit_code=st.none() | st.integers(-70, 300),
            duration=st.timedeltas(timedelta(0)),
            facts=st.builds(AgentFacts, kind=st.just("x"), last_activity=st.none() | st.text()),
            stopped_by=st.none() | st.sampled_from(TimeLimit),
            report=st.none()
            | st.builds(AgentReport, st.sampled_from(ReportedStatus), st.text(), st.text()),
        ),
        change=st.none(),
        violations=st.lists(st.text(), max_size=3).map(lambda told: broken_rules(*told)),
    )
)
def test_an_error_is_always_one_line_of_at_most_200_characters(
    outcome: Outcome, known: AttemptState
) -> None:
    line = error_line(outcome, known)
    assert len(line) <= 200
    assert len(line.splitlines()) <= 1
    assert isinstance(failure_reason(outcome, known), str)


def test_a_recorded_reason_becomes_a_sentence() -> None:
    assert explain(Outcome.INTERRUPTED, SHUTDOWN) == SHUT_DOWN
    assert explain(Outcome.INTERRUPTED, DIED) == DIED
    assert explain(Outcome.CANCELLED, "") == "Withdrawn."
    assert explain(Outcome.CHECKS_FAILED, SHUTDOWN) == SHUTDOWN


def test_only_required_checks_fail_an_attempt() -> None:
    red, green, optional = check("a"), check("b", passed=True), check("c", required=False)
    assert failing((red, green, optional)) == (red,)


def test_verdicts() -> None:
    assert verdict(check("types", passed=True)) == "Check 'types' passed."
    assert verdict(check("types", exit_code=0)) == (
        "Check 'types' failed, although its command ended with exit code 0."
    )
    assert verdict(check("a\nb", exit_code=2)) == "Check 'a b' failed with exit code 2."


@pytest.mark.parametrize(
    ("milliseconds", "told"),
    [(0, "0s"), (12, "12ms"), (499, "499ms"), (800, "1s"), (61_400, "1m1s"), (5_400_000, "1h30m")],
)
def test_spans(milliseconds: int, told: str) -> None:
    assert duration_text(milliseconds) == told


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0, "0.0 s"), (340, "0.3 s"), (34_000, "34.0 s"), (61_200, "1m1s"), (5_400_000, "1h30m")],
)
def test_a_terminal_shows_tenths_of_seconds_up_to_a_minute(milliseconds: int, shown: str) -> None:
    assert seconds_text(milliseconds) == shown


def test_a_count_has_its_plural_and_its_thousands() -> None:
    assert [pluralize(count, "line") for count in (0, 1, 12_345)] == [
        "0 lines",
        "1 line",
        "12,345 lines",
    ]


@pytest.mark.parametrize(
    ("runs", "wall_ms", "words"),
    [
        (0, 0, "3s"),
        (1, 4000, "4s"),
        (3, 34_000, "3 runs, 34s"),
        (2, 0, "2 runs, 3s"),
        (1, 0, "3s"),
    ],
)
def test_the_time_of_a_check_is_that_of_all_its_runs(runs: int, wall_ms: int, words: str) -> None:
    found = check("tests").model_copy(
        update={"duration_ms": 3100, "runs": runs, "wall_ms": wall_ms}
    )
    assert took_text(found) == words


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (None, ""),
        (AttemptTimes(waited_ms=25_000, agent_ms=34_999), ""),
        (
            AttemptTimes(waited_ms=25_000, agent_ms=35_000),
            "Total time 1m: 25s waiting to start, 35s in the agent",
        ),
        (AttemptTimes(agent_ms=610_000, checks_ms=30_000), ""),
        (
            AttemptTimes(waited_ms=1_200_000, worktree_ms=4000, agent_ms=300_000, other_ms=9000),
            "Total time 25m13s: 20m waiting to start, 5m in the agent",
        ),
        (
            AttemptTimes(
                worktree_ms=9000,
                set_up_ms=20_000,
                checks_ms=34_000,
                reviewer_ms=8000,
                other_ms=8000,
            ),
            (
                "Total time 1m19s: 9s preparing the files, 20s in setup commands, 34s in checks, "
                "8s in the reviewer command, 8s for everything else"
            ),
        ),
    ],
)
def test_the_main_parts_of_a_long_time_are_named_in_order(
    times: AttemptTimes | None, words: str
) -> None:
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(update={"times": times})
    assert times_text([meta]) == words


def test_what_copies_of_the_setup_files_cost_and_why_there_are_some() -> None:
    assert set_up_files_text(SetUpFiles(copied_ms=900)) == "setup files: as layers"
    copied = SetUpFiles(copied_ms=12_340, copied_because="there is no sandbox")
    expected = "setup files: copied for each command (12.3 s in total): there is no sandbox"
    assert set_up_files_text(copied) == expected


def test_counts() -> None:
    assert [pluralize(n, "file") for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]


@pytest.mark.parametrize(
    ("runs", "took", "command", "words"),
    [
        (1, 300, 300, "0.3 s"),
        (1, 1_200, 300, "0.3 s"),
        (1, 1_300, 300, "0.3 s, and 1.0 s to prepare its files"),
        (3, 34_000, 9_000, "3 runs, 34.0 s"),
    ],
)
def test_the_time_of_a_check_on_a_terminal(runs: int, took: int, command: int, words: str) -> None:
    found = check("tests").model_copy(
        update={"runs": runs, "wall_ms": took, "duration_ms": command}
    )
    assert run_text(found) == words


NEGATIVE = Finding(
    summary="t.py::test_a: assert 3 == -3",
    message="assert 3 == -3\n + where",
    test_id="t.py::test_a",
)
STYLE = Finding(summary="a.py:3:1: F401 unused", message="F401 unused", file="a.py", line=3)
BARE = Finding(summary="make: *** Error 2")


@pytest.mark.parametrize(
    ("finding", "count", "expected"),
    [
        (NEGATIVE, 1, "tests: t.py::test_a: assert 3 == -3"),
        (NEGATIVE, 4, "tests: t.py::test_a: assert 3 == -3 (and 3 more)"),
        (STYLE, 1, "tests: a.py:3: F401 unused"),
        (BARE, 0, "tests: make: *** Error 2"),
    ],
)
def test_a_failed_attempt_names_what_failed(finding: Finding, count: int, expected: str) -> None:
    check = stories.red_check().model_copy(update={"findings": (finding,), "count": count})
    meta = stories.attempt(1).model_copy(update={"checks": (check,)})
    assert attempt_error(meta) == expected
    assert attempt_error(stories.attempt(1)) == "Check 'tests' failed with exit code 1."
    other = meta.model_copy(update={"outcome": Outcome.REJECTED, "error": "No."})
    assert attempt_error(other) == "No."
