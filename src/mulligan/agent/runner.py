"""Run a coding agent that is a program: the prompt goes in, git tells what came of it (SPEC A6)."""

import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from mulligan.agent.reading import facts_of, read_output, read_report
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentReport, AgentRun, Task, TimeLimit
from mulligan.errors import MisconfiguredError, UnavailableError
from mulligan.process import Command, Finished, run

REPORT_BYTES = 64 * 1024

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Own:
    """What one run has to itself: a home, and the place of its report."""

    home: Path
    report: Path


class CommandAgent:
    """Any program that reads its prompt on standard input; docs/agents.md is its contract."""

    def __init__(self, settings: AgentSettings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = environment

    @property
    def name(self) -> str:
        return self._settings.kind

    def run(self, task: Task) -> AgentRun:
        """Let the agent work until it ends or is stopped; nothing it started is left.

        Raises MisconfiguredError when the program or a variable it is to have is missing,
        ShutdownError when Mulligan was told to stop.
        """
        passed_on = self._passed_on()
        own = _make_own(task.private)
        command = Command(
            argv=self._settings.command,
            directory=task.directory,
            environment={**passed_on, **told(task, own.report)}
            if "HOME" in passed_on
            else {**passed_on, "HOME": str(own.home), **told(task, own.report)},
            timeout=self._settings.timeout,
            stall=self._settings.stall_timeout,
            stdin=task.prompt.encode(),
            log=task.log,
        )
        return self._run_of(run(command), _read(own.report, task))
