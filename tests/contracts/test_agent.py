"""What any coding agent does: it is given the task, and its run is told as it was."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentReport, AgentRun, ReportedStatus, Task, TimeLimit
from mulligan.implement.ports import CodingAgent
from world import behaviours
from world.behaviours import Behaviour
from world.scripted_agent import ScriptedAgent

Play = Callable[..., AgentRun]
PROMPT = "Mend it.\r\n\tÄ \N{SNOWMAN} \N{PILE OF POO}\0 $(touch x) `y` \\\n"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    return Task(
        issue="octocat/hello-world#7",
        attempt=2,
        fix_round=1,
        prompt=PROMPT,
        directory=worktree,
        private=tmp_path / "private",
        log=tmp_path / "artifacts" / "agent.log",
        manifest_hash="0" * 64,
    )


def scripted(behaviour: Behaviour, timeout: timedelta, stall: timedelta) -> CodingAgent:
    return ScriptedAgent(behaviour, timeout=timeout, stall=stall)


def command(behaviour: Behaviour, timeout: timedelta, stall: timedelta) -> CodingAgent:
    program = (sys.executable, "-I", "-S", behaviours.__file__, behaviour.__name__)
    settings = AgentSettings(command=program, timeout=timeout, stall_timeout=stall)
    return CommandAgent(settings, {"PATH": os.defpath})


@pytest.fixture(params=[scripted, command])
def play(request: pytest.FixtureRequest) -> Play:
    """Let an agent do something with a task; limits are seconds."""
    make: Callable[[Behaviour, timedelta, timedelta], CodingAgent] = request.param

    def play(behaviour: Behaviour, task: Task, timeout: float = 20, stall: float = 20) -> AgentRun:
        agent = make(behaviour, timedelta(seconds=timeout), timedelta(seconds=stall))
        return agent.run(task)

    return play


def test_what_it_writes_is_in_the_worktree(play: Play, task: Task) -> None:
    run = play(behaviours.keep_what_was_given, task)
    assert (run.exit_code, run.stopped_by, run.limit, run.report) == (0, None, None, None)
    assert (task.directory / "prompt").exists()


def test_the_prompt_is_delivered_byte_for_byte(play: Play, task: Task) -> None:
    play(behaviours.keep_what_was_given, task)
    assert (task.directory / "prompt").read_bytes() == PROMPT.encode()


def test_it_is_told_what_it_works_on(play: Play, task: Task) -> None:
    play(behaviours.keep_what_was_given, task)
    given: dict[str, str] = json.loads((task.directory / "environment").read_bytes())
    assert given["MULLIGAN_ISSUE"] == "octocat/hello-world#7"
    assert given["MULLIGAN_ATTEMPT"] == "2"
    assert given["MULLIGAN_FIX_ROUND"] == "1"
    # Python itself adds LC_CTYPE where no locale is set (PEP 538).
    assert given.keys() - {"LC_CTYPE"} == {
        "PATH",
        "HOME",
        "MULLIGAN_ISSUE",
        "MULLIGAN_ATTEMPT",
        "MULLIGAN_FIX_ROUND",
        "MULLIGAN_REPORT",
    }


def test_its_home_is_private_and_empty_each_time(play: Play, task: Task) -> None:
    for _ in range(2):
        play(behaviours.keep_what_was_given, task)
        assert (task.directory / "home").read_text() == "700 []"
        assert (task.directory / "report").read_text() == "False"
        assert list(task.private.rglob("home")) == []


def test_a_retry_can_read_the_previous_diff(play: Play, task: Task) -> None:
    task.private.mkdir()
    diff = task.private / "previous.diff"
    diff.write_text("-old\n+new\n")
    play(behaviours.read_the_previous_diff, replace(task, previous_diff=diff))
    assert (task.directory / "previous").read_text() == "-old\n+new\n"


def test_the_attachments_of_an_issue_can_be_read(play: Play, task: Task) -> None:
    play(behaviours.look_at_the_attachments, task)
    assert (task.directory / "seen").read_text() == "[]"
    place = task.private / "attachments"
    place.mkdir(parents=True)
    (place / "1.txt").write_text("a log")
    play(behaviours.look_at_the_attachments, replace(task, attachments=place))
    assert (task.directory / "seen").read_text() == "[('1.txt', 'a log')]"


def test_a_first_attempt_hears_of_no_previous_diff(play: Play, task: Task) -> None:
    play(behaviours.read_the_previous_diff, task)
    assert (task.directory / "previous").read_text() == "none"


def test_that_it_is_blocked_is_read(play: Play, task: Task) -> None:
    run = play(behaviours.be_blocked, task)
    reason, evidence = "The database is missing.", "é: connection refused"
    assert run.report == AgentReport(ReportedStatus.BLOCKED, reason, evidence)


def test_that_there_is_nothing_to_do_is_read(play: Play, task: Task) -> None:
    run = play(behaviours.find_nothing_to_do, task)
    assert run.report == AgentReport(ReportedStatus.NOTHING_TO_DO, "It is done already.")


def test_a_report_that_makes_no_sense_is_passed_over(play: Play, task: Task) -> None:
    assert play(behaviours.report_nonsense, task).report is None


def test_a_time_out_is_told_with_its_limit(play: Play, task: Task) -> None:
    run = play(behaviours.work_too_long, task, timeout=0.5)
    assert (run.stopped_by, run.limit) == (TimeLimit.TIMEOUT, timedelta(seconds=0.5))
    assert run.exit_code == -15
    assert run.facts.stop_reason == "timeout"
    assert (run.facts.last_activity or "").startswith("step ")


def test_silence_is_told_with_its_limit(play: Play, task: Task) -> None:
    run = play(behaviours.fall_silent, task, stall=0.5)
    assert (run.stopped_by, run.limit) == (TimeLimit.STALL_TIMEOUT, timedelta(seconds=0.5))
    assert (run.facts.stop_reason, run.facts.last_activity) == ("stall_timeout", "thinking")


def test_a_crash_is_told(play: Play, task: Task) -> None:
    run = play(behaviours.crash, task)
    assert (run.exit_code, run.facts.exit_code, run.stopped_by) == (3, 3, None)
    assert run.summary == "Traceback: out of ideas"


def test_all_that_it_prints_is_in_the_log(play: Play, task: Task) -> None:
    play(behaviours.crash, task)
    assert task.log.read_bytes() == b"Traceback: out of ideas\n"


def test_what_it_used_is_read_from_its_last_line(play: Play, task: Task) -> None:
    run = play(behaviours.tell_what_was_used, task)
    facts = run.facts
    assert (facts.input_tokens, facts.output_tokens, facts.cost_usd) == (12, 3, 0.5)
    assert (facts.turns, facts.model, facts.session_id) == (2, "m", "s")
    assert (facts.stop_reason, facts.last_activity) == ("end", "All done.")
    assert run.summary == "Did it."


@pytest.mark.parametrize("make", [scripted, command])
def test_it_says_which_it_is(
    make: Callable[[Behaviour, timedelta, timedelta], CodingAgent],
) -> None:
    agent = make(behaviours.crash, timedelta(seconds=1), timedelta(seconds=1))
    assert agent.identity.kind == agent.name
    assert agent.identity.sandbox == "off"


def test_it_has_a_name(play: Play, task: Task) -> None:
    assert play(behaviours.crash, task).facts.kind in {"command", "scripted"}
