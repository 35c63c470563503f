"""Play a recorded run of a real agent again: the same output, the same record, the same end."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentRun, AttemptState, Change, Task

STREAMS = Path(__file__).parents[1] / "agents" / "streams"
PATH = {"PATH": "/usr/bin:/bin"}
MODELS = {"codex": "gpt-5"}
"""It does not name the one that it uses."""


class Ending(BaseModel):
    """How a recorded run ended."""

    exit_code: int
    stopped: str | None
    changed: bool


ENDINGS: TypeAdapter[dict[str, Ending]] = TypeAdapter(dict[str, Ending])


def endings(kind: str) -> Mapping[str, Ending]:
    return ENDINGS.validate_json((STREAMS / kind / "endings.json").read_bytes())


@dataclass(frozen=True)
class Replay:
    """One recorded run."""

    kind: str
    situation: str

    @property
    def ending(self) -> Ending:
        return endings(self.kind)[self.situation]

    def line(self, *, waits: bool) -> str:
        """Return the shell line that replays the agent; with `waits`, it hangs until stopped."""
        place, code = STREAMS / self.kind, self.ending.exit_code
        parts = [f"cat {shlex.quote(str(place / f'{self.situation}.txt'))}"]
        record = place / f"{self.situation}.record.json"
        if record.exists():
            name = BUILT_IN[self.kind].record
            parts.append(f"cp {shlex.quote(str(record))} $HOME/{name}")
        if waits:
            parts.append("sleep 30")
        parts.append(f"kill {code} $$" if code < 0 else f"exit {code}")
        return "; ".join(parts)

    def run(self, task: Task, *, somebody_else: bool = False) -> AgentRun:
        """Run it; what was stopped by a limit is ended by `somebody_else` instead."""
        waits = bool(self.ending.stopped) and not somebody_else
        settings = AgentSettings(
            kind=self.kind,
            model=MODELS.get(self.kind, ""),
            command=("/bin/sh", "-c", self.line(waits=waits)),
            stall_timeout=timedelta(seconds=0.5 if waits else 20),
        )
        return CommandAgent(settings, PATH).run(task)

    def evidence(self, task: Task, *, somebody_else: bool = False) -> AttemptState:
        """Give what would be known of the attempt before any check."""
        head = "c0ffee" if self.ending.changed else None
        run = self.run(task, somebody_else=somebody_else)
        return AttemptState(run=run, change=Change("5ta27", head, int(bool(head))))


def task_in(directory: Path) -> Task:
    worktree = directory / "worktree"
    worktree.mkdir()
    return Task(
        issue="o/r#1",
        attempt=1,
        fix_round=0,
        prompt="Write mended.txt.",
        directory=worktree,
        private=directory / "private",
        log=directory / "agent.log",
        manifest_hash="",
    )
