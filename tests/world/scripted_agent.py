"""A coding agent that is a Python function of this process; time-outs pass in no time."""

import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from mulligan.agents.output import facts_of, read_learned, read_output, read_report
from mulligan.domain.attempt import AgentReport, AgentRun, Task, TimeLimit
from mulligan.domain.host import AgentIdentity
from mulligan.domain.image import Image
from mulligan.sandbox.egress_rules import NO_MODEL
from world.behaviours import AgentInput, Behaviour


class TimeIsUpError(Exception):
    """The behaviour ran into a limit, as if it had been killed there."""


@dataclass
class Transcript:
    """The output of a behaviour, and its duration."""

    timeout: timedelta
    stall: timedelta
    said: list[str] = field(default_factory=list[str])
    spent: timedelta = timedelta()
    silent: timedelta = timedelta()
    stopped_by: TimeLimit | None = None

    def say(self, words: str) -> None:
        self.said.append(words + "\n")
        self.silent = timedelta()

    def wait(self, seconds: float) -> None:
        left = min((self.timeout - self.spent, TimeLimit.TIMEOUT),
                   (self.stall - self.silent, TimeLimit.STALL_TIMEOUT))  # fmt: skip
        asked = timedelta(seconds=seconds)
        if asked > left[0]:
            self.spent += left[0]
            self.stopped_by = left[1]
            raise TimeIsUpError
        self.spent += asked
        self.silent += asked


class ScriptedAgent:
    """Plays one behaviour per run, the last one repeatedly; `tasks` lists its tasks."""

    name = "scripted"
    limits = None
    account = ""
    model = NO_MODEL

    def __init__(
        self,
        *behaviours: Behaviour,
        timeout: timedelta = timedelta(hours=1),
        stall: timedelta = timedelta(minutes=15),
    ) -> None:
        self.behaviours = behaviours
        self.timeout = timeout
        self.stall = stall
        self.tasks: list[Task] = []

    @property
    def identity(self) -> AgentIdentity:
        return AgentIdentity(self.name, "1.0", "off")

    def runs_in(self, image: Image) -> bool:
        del image
        return False

    def run(self, task: Task) -> AgentRun:
        behaviour = self.behaviours[min(len(self.tasks), len(self.behaviours) - 1)]
        self.tasks.append(task)
        heard = Transcript(self.timeout, self.stall)
        environment = _environment(task)
        code = -15
        with suppress(TimeIsUpError):
            given = AgentInput(task.prompt, task.directory, environment, heard.say, heard.wait)
            code = behaviour(given) or 0
        output = "".join(heard.said).encode()
        task.log.parent.mkdir(parents=True, exist_ok=True)
        task.log.write_bytes(output)
        limits = {TimeLimit.TIMEOUT: self.timeout, TimeLimit.STALL_TIMEOUT: self.stall}
        said = read_output(output)
        return AgentRun(
            exit_code=code,
            duration=heard.spent,
            facts=facts_of(said, self.name, code, heard.stopped_by),
            stopped_by=heard.stopped_by,
            limit=limits[heard.stopped_by] if heard.stopped_by else None,
            report=_report(Path(environment["MULLIGAN_REPORT"])),
            summary=said.summary,
            learned=_learned(Path(environment["MULLIGAN_REPORT"])),
        )


def _environment(task: Task) -> dict[str, str]:
    task.private.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(dir=task.private))
    paths = {
        "MULLIGAN_PREVIOUS_DIFF": task.previous_diff,
        "MULLIGAN_ATTACHMENTS": task.attachments,
    }
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": tempfile.mkdtemp(dir=own),
        "MULLIGAN_ISSUE": task.issue,
        "MULLIGAN_ATTEMPT": str(task.attempt),
        "MULLIGAN_FIX_ROUND": str(task.fix_round),
        "MULLIGAN_REPORT": str(own / "report"),
        **{name: str(path) for name, path in paths.items() if path},
    }


def _learned(place: Path) -> tuple[str, ...]:
    try:
        return read_learned(place.read_bytes())
    except FileNotFoundError:
        return ()


def _report(place: Path) -> AgentReport | None:
    try:
        return read_report(place.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
