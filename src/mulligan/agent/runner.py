"""Run any program as the coding agent: prompt in, files changed, nothing of it left afterwards."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from mulligan.agent.reading import facts_of, read_report, summary_of
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentReport, AgentRun, Task, TimeLimit
from mulligan.errors import MisconfiguredError, UnavailableError
from mulligan.process import Command, run

REPORT = "report.json"
HOME = "home"
REPORT_BYTES = 64 * 1024

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """The port CodingAgent for a `command` agent (DESIGN 10).

    Of `environment` the agent gets PATH and the variables that the settings name.
    """

    settings: AgentSettings
    environment: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name the agent as events and manifests do."""
        return self.settings.kind

    def run(self, task: Task) -> AgentRun:
        """Let the program work until it ends or is stopped."""
        report = task.private / REPORT
        command = Command(
            argv=self.settings.command,
            directory=task.directory,
            environment=self._environment(task, report),
            timeout=self.settings.timeout,
            stall=self.settings.stall_timeout,
            stdin=task.prompt.encode(),
            log=task.log,
        )
        ended = run(command)
        limits = {
            TimeLimit.TIMEOUT: self.settings.timeout,
            TimeLimit.STALL_TIMEOUT: self.settings.stall_timeout,
        }
        return AgentRun(
            exit_code=ended.exit_code,
            duration=ended.duration,
            facts=facts_of(self.name, ended.text, ended.exit_code),
            stopped_by=ended.stopped_by,
            limit=limits[ended.stopped_by] if ended.stopped_by else None,
            report=_read_report(report),
            summary=summary_of(ended.text),
        )

    def _environment(self, task: Task, report: Path) -> dict[str, str]:
        home = task.private / HOME
        try:
            report.unlink(missing_ok=True)
            home.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            message = f"{task.private} cannot be prepared for the agent: {error.strerror}."
            raise UnavailableError(message) from error
        given = {
            **{name: self._named(name) for name in self.settings.env},
            "PATH": self.environment.get("PATH", os.defpath),
            "HOME": str(home),
            "MULLIGAN_ISSUE": task.issue,
            "MULLIGAN_ATTEMPT": str(task.attempt),
            "MULLIGAN_FIX_ROUND": str(task.fix_round),
            "MULLIGAN_REPORT": str(report),
        }
        if task.previous_diff:
            given["MULLIGAN_PREVIOUS_DIFF"] = str(task.previous_diff)
        return given

    def _named(self, name: str) -> str:
        if name not in self.environment:
            message = f"agent.env names {name}, which is not set; set it or take it out."
            raise MisconfiguredError(message)
        return self.environment[name]


def _read_report(path: Path) -> AgentReport | None:
    """Read what the agent wrote as data: never through a link, never from anything but a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("report_ignored", reason=error.strerror)
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - it is open already
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = file.read(REPORT_BYTES + 1) if regular else b""
    found = read_report(content) if len(content) <= REPORT_BYTES else None
    if found is None:
        log.warning("report_ignored", reason="it is not the JSON that docs/agents.md describes")
    return found
