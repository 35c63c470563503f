"""What any coding agent does: it is given the task, and its run is told as it was."""

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from world import behaviours
from world.behaviours import Behaviour
from world.scripted_agent import ScriptedAgent

from mulligan.agent.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentReport, AgentRun, ReportedStatus, Task, TimeLimit
from mulligan.ports import CodingAgent

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
