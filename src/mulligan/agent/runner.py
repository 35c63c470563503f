"""Run a coding agent that is a program: the prompt goes in, git tells what came of it (SPEC A6)."""

import os
import stat
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import structlog

from mulligan.agent.reading import facts_of, read_output, read_report
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentReport, AgentRun, Task, TimeLimit
from mulligan.errors import MisconfiguredError, UnavailableError
from mulligan.process import Command
from mulligan.sandbox.confinement import Network
from mulligan.sandbox.sandbox import Reach, Sandbox, Unconfined
from mulligan.text.redact import Redactor

REPORT_BYTES = 64 * 1024

log = structlog.get_logger()


class CommandAgent:
    """Any program that reads its prompt on standard input; docs/agents.md is its contract."""

    def __init__(
        self,
        settings: AgentSettings,
        environment: Mapping[str, str],
        redactor: Redactor | None = None,
        sandbox: Sandbox | None = None,
        network: Network = Network.OPEN,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._redactor = redactor or Redactor()
        self._sandbox = sandbox or Unconfined()
        self._network = network

    @property
    def name(self) -> str:
        return self._settings.kind

    def run(self, task: Task) -> AgentRun:
        """Let the agent work until it ends or is stopped; nothing it started is left.

        Raises MisconfiguredError when its program or a variable it is to have is missing.
        """
        named = self._named()
        home, report = _make_own(task.private)
        environment = {
            "PATH": self._environment.get("PATH", os.defpath),
            "HOME": str(home),
            **named,
            **_told(task, report),
        }
        command = Command(
            argv=self._settings.command,
            directory=task.directory,
            environment=environment,
            timeout=self._settings.timeout,
            stall=self._settings.stall_timeout,
            stdin=task.prompt.encode(),
            log=task.log,
            redactor=self._redactor,
        )
        reach = Reach(
            read=(*task.readable, *([task.previous_diff] if task.previous_diff else ())),
            write=(task.directory, home.parent, *task.writable),
            network=self._network,
        )
        finished = self._sandbox.run(command, reach)
        said = read_output(finished.tail)
        return AgentRun(
            exit_code=finished.exit_code,
            duration=finished.duration,
            facts=facts_of(said, self.name, finished.exit_code, finished.stopped_by),
            stopped_by=finished.stopped_by,
            limit=self._limit(finished.stopped_by),
            report=_report(report, task),
            summary=said.summary,
            question=said.question,
        )

    def _named(self) -> dict[str, str]:
        """Take the variables that agent.env names."""
        wanted = self._settings.env
        missing = [name for name in wanted if name not in self._environment]
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            message = (
                f"agent.env names {', '.join(missing)}, which {verb} not set where Mulligan runs;"
                " set it there or take it out."
            )
            raise MisconfiguredError(message)
        return {name: self._environment[name] for name in wanted}

    def _limit(self, stopped_by: TimeLimit | None) -> timedelta | None:
        limits = {
            TimeLimit.TIMEOUT: self._settings.timeout,
            TimeLimit.STALL_TIMEOUT: self._settings.stall_timeout,
        }
        return limits[stopped_by] if stopped_by else None


def _told(task: Task, report: Path) -> dict[str, str]:
    """Name what the agent may know of its task; no variable of an operator goes before these."""
    told = {
        "MULLIGAN_ISSUE": task.issue,
        "MULLIGAN_ATTEMPT": str(task.attempt),
        "MULLIGAN_FIX_ROUND": str(task.fix_round),
        "MULLIGAN_REPORT": str(report),
    }
    if task.previous_diff:
        told["MULLIGAN_PREVIOUS_DIFF"] = str(task.previous_diff)
    return told


def _make_own(private: Path) -> tuple[Path, Path]:
    """Make a home that no earlier run has touched; give it and the place of the report."""
    try:
        private.mkdir(parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(prefix="agent-", dir=private))
        home = own / "home"
        home.mkdir(mode=0o700)
    except OSError as error:
        message = f"No home for the agent can be made in {private}: {error.strerror}; make room."
        raise UnavailableError(message) from error
    return home, own / "report.json"


def _report(path: Path, task: Task) -> AgentReport | None:
    """Read the agent's report, if it wrote one that can be read."""
    try:
        return read_report(_content(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        log.warning("report_ignored", issue=task.issue, attempt=task.attempt, reason=reason)
        return None


def _content(path: Path) -> bytes:
    """Read a file that an agent may have made anything of: a link, a pipe, a device, a flood."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            message = "it is not a file"
            raise ValueError(message)
        content = os.read(descriptor, REPORT_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > REPORT_BYTES:
        message = f"it is larger than {REPORT_BYTES} bytes"
        raise ValueError(message)
    return content
