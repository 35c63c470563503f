"""Record what the real agents print: `python -m world.record_agents PLACE [KIND…]`, in tests/."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentRun, Task
from mulligan.sandbox.process import Command, run
from world.model import serve_model
from world.model_script import (
    BAD_KEY,
    BROKEN,
    CUT_CONNECTION,
    HANG,
    NO_CREDIT,
    NO_QUOTA,
    RATE_LIMITED,
    Step,
    Turn,
    conversation,
)
from world.real_agents import (
    EDIT,
    PACKAGES,
    WRITE,
    change,
    environment,
    install,
    opencode,
    settings,
)

STREAMS = Path(__file__).parents[1] / "agents" / "streams"
LOOK_TURN = Turn("Looking.", "ls")
FAILED_EDIT_TURN = Turn(EDIT.replace("SEARCH\n", "SEARCH\nnot there\n"))
ALIKE = {
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "0" * 8,
    r"\b(ses|msg|prt)_[0-9a-zA-Z]{10,}": r"\1_0",
    r"127\.0\.0\.1:\d+": "127.0.0.1:80",
    r"\b20\d\d-\d\d-\d\dT[\d:.]+Z": "2026-01-01T00:00:00Z",
}
"""The parts that differ in each run and have no meaning."""

WITHOUT_PERMISSIONS = {"aider", "mini"}
"""They ask nobody, and nobody can refuse them a tool."""


@dataclass(frozen=True)
class Situation:
    """The script of the model, and the settings of the agent."""

    steps: Callable[[str], tuple[Step, ...]]
    limit: int | None = None
    stall: float = 100
    refuses: bool = False


def _always(*steps: Step) -> Callable[[str], tuple[Step, ...]]:
    return lambda kind: steps


def _no_credit(kind: str) -> tuple[Step, ...]:
    return (NO_CREDIT if kind == "claude" else NO_QUOTA,)


def _limit(kind: str) -> tuple[Step, ...]:
    return (FAILED_EDIT_TURN,) if kind == "aider" else (LOOK_TURN,) * 9


def _hang(kind: str) -> tuple[Step, ...]:
    return (HANG,) if kind == "aider" else (LOOK_TURN, HANG)


SITUATIONS: Mapping[str, Situation] = {
    "success": Situation(change),
    "nothing": Situation(_always(Turn("There is nothing to be done."))),
    "refused": Situation(_always(Turn("I shall.", WRITE), Turn("I could not.")), refuses=True),
    "401": Situation(_always(BAD_KEY)),
    "credit": Situation(_no_credit),
    "429": Situation(_always(RATE_LIMITED), stall=40),
    "500": Situation(_always(BROKEN), stall=40),
    "hang": Situation(_hang, stall=25),
    "limit": Situation(_limit, limit=2),
    "cut": Situation(_always(CUT_CONNECTION), stall=40),
}


def refusing(kind: str, given: AgentSettings) -> AgentSettings:
    """Set an agent up so that it may not write."""
    more = {
        "claude": ("--permission-mode", "default", "--disallowedTools", "Bash(echo:*)"),
    }
    return given.model_copy(update={"arguments": (*given.arguments, *more.get(kind, ()))})


def record(kind: str, name: str, path: str) -> dict[str, object]:
    """Run an agent in a situation; store its output, and return how it ended."""
    situation = SITUATIONS[name]
    own = Path(tempfile.mkdtemp(prefix="recording-"))
    worktree = own / "worktree"
    worktree.mkdir()
    _git(worktree)
    if kind == "gemini":
        _of_the_project(situation, worktree)
    with serve_model(conversation(*situation.steps(kind))) as model:
        given = settings(kind, *_alone(kind, situation), limit=situation.limit)
        given = given.model_copy(update={"stall_timeout": timedelta(seconds=situation.stall)})
        around = environment(kind, model.address, path)
        if situation.refuses:
            given = refusing(kind, given)
            asking = opencode(model.address, permission={"bash": {"echo *": "deny"}})
            around = {**around, **_only_opencode(kind, asking)}
        agent = CommandAgent(given, around)
        task = Task("o/r#1", 1, 0, "Write mended.txt.", worktree, own / "private", own / "log", "")
        told = agent.run(task)
    _keep(kind, name, own)
    changed = (worktree / "mended.txt").exists()
    shutil.rmtree(own)
    return _ending(told, changed=changed)


def _keep(kind: str, name: str, own: Path) -> None:
    """Keep what a run printed, and the record that it wrote."""
    place = STREAMS / kind
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.txt").write_text(_alike((own / "log").read_text(errors="replace"), own))
    for found in own.glob("private/*/home/trajectory.json"):
        (place / f"{name}.record.json").write_text(_alike(_trimmed(found.read_text()), own))


def _alone(kind: str, situation: Situation) -> tuple[str, ...]:
    """Switch Codex's sandbox off, unless that is what is to refuse."""
    is_off = kind == "codex" and not situation.refuses
    return ("-c", 'sandbox_mode="danger-full-access"') if is_off else ()


def _only_opencode(kind: str, asking: dict[str, object]) -> dict[str, str]:
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(asking)} if kind == "opencode" else {}


def _ending(told: AgentRun, *, changed: bool) -> dict[str, object]:
    stopped = told.stopped_by
    return {
        "exit_code": told.exit_code,
        "stopped": stopped.value if stopped and stopped != "own_limit" else None,
        "changed": changed,
    }


def _of_the_project(situation: Situation, worktree: Path) -> None:
    """Gemini takes no limit and no refusal as an argument, but from the project's settings."""
    refused = {"tools": {"exclude": ["run_shell_command"]}} if situation.refuses else {}
    limited = {"model": {"maxSessionTurns": situation.limit}} if situation.limit else {}
    (worktree / ".gemini").mkdir()
    (worktree / ".gemini/settings.json").write_text(json.dumps({**refused, **limited}))


def _git(worktree: Path) -> None:
    line = "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    argv = ("/bin/sh", "-c", line)
    run(Command(argv, worktree, {"PATH": os.environ["PATH"]}, timedelta(minutes=1)))


def _alike(text: str, own: Path) -> str:
    for pattern, instead in ALIKE.items():
        text = re.sub(pattern, instead, text)
    text = re.sub(r"-[\w-]*-recording-[\w-]*?-worktree", "-srv-worktree", text)
    text = re.sub(r"/[\w./]*/lib/python3\.\d+/", "", text.replace(str(own), "/srv"))
    return re.sub(r"(?:file://)?(?:/[\w.@+-]+)+/(?=node_modules|site-packages)", "", text)


def _trimmed(text: str) -> str:
    """Remove the copies of configuration and prompt from mini's trajectory."""
    whole = json.loads(text)
    whole["info"]["config"] = {
        "model": {"model_name": whole["info"]["config"]["model"]["model_name"]}
    }
    for message in whole["messages"][:2]:
        message["content"] = ""
    return json.dumps(whole, indent=1)


def main() -> None:
    place, *kinds = sys.argv[1:]
    for package in PACKAGES:
        if kinds and package.kind not in kinds:
            continue
        path = f"{install(package, Path(place))}:{os.environ['PATH']}"
        endings = {
            name: record(package.kind, name, path)
            for name, situation in SITUATIONS.items()
            if not (situation.refuses and package.kind in WITHOUT_PERMISSIONS)
        }
        told = json.dumps(endings, indent=1) + "\n"
        (STREAMS / package.kind / "endings.json").write_text(told)


if __name__ == "__main__":
    main()
