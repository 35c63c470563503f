"""What a coding agent may do, once for both agents: called in this process, or run as a program.

As a program it is started with the name of a behaviour, by the standard library alone.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


def _say(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - an agent's transcript


@dataclass(frozen=True)
class AgentInput:
    """The input of an agent, and its possible actions."""

    prompt: str
    directory: Path
    environment: Mapping[str, str]
    say: Callable[[str], None] = _say
    wait: Callable[[float], None] = time.sleep

    def write(self, path: str, content: str) -> None:
        place = self.directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode())

    def report(self, status: str, reason: str, evidence: str = "") -> None:
        said = {"status": status, "reason": reason, "evidence": evidence}
        Path(self.environment["MULLIGAN_REPORT"]).write_text(json.dumps(said), encoding="utf-8")


Behaviour = Callable[[AgentInput], int | None]
"""Works in the directory; returns the exit code, None for 0."""


def keep_what_was_given(given: AgentInput) -> None:
    """Write down the prompt, the environment and the state of what was prepared."""
    given.write("prompt", given.prompt)
    given.write("environment", json.dumps(dict(given.environment)))
    home = Path(given.environment["HOME"])
    given.write("home", f"{home.stat().st_mode & 0o777:o} {[*home.iterdir()]}")
    given.write("report", str(Path(given.environment["MULLIGAN_REPORT"]).exists()))


def read_the_previous_diff(given: AgentInput) -> None:
    place = given.environment.get("MULLIGAN_PREVIOUS_DIFF")
    given.write("previous", Path(place).read_text() if place else "none")


def look_at_the_attachments(given: AgentInput) -> None:
    place = given.environment.get("MULLIGAN_ATTACHMENTS")
    listed = sorted(Path(place).iterdir()) if place else []
    given.write("seen", str([(each.name, each.read_text()) for each in listed]))


def be_blocked(given: AgentInput) -> None:
    given.report("blocked", "The database is missing.", "é: connection refused")


def find_nothing_to_do(given: AgentInput) -> None:
    given.report("nothing_to_do", "It is done already.")


def report_nonsense(given: AgentInput) -> None:
    Path(given.environment["MULLIGAN_REPORT"]).write_text("all is well")


def work_too_long(given: AgentInput) -> None:
    for step in range(100):
        given.say(f"step {step}")
        given.wait(0.1)


def fall_silent(given: AgentInput) -> None:
    given.say("thinking")
    given.wait(60)


def crash(given: AgentInput) -> int:
    given.say("Traceback: out of ideas")
    return 3


def tell_what_was_used(given: AgentInput) -> None:
    given.say("\x1b[1mAll\x1b[0m done.")
    used = {"input_tokens": 12, "output_tokens": 3, "cost_usd": 0.5, "turns": 2, "model": "m"}
    given.say(json.dumps({**used, "session_id": "s", "stop_reason": "end", "result": "Did it."}))


ALL: dict[str, Behaviour] = {
    behaviour.__name__: behaviour
    for behaviour in (
        keep_what_was_given,
        read_the_previous_diff,
        look_at_the_attachments,
        be_blocked,
        find_nothing_to_do,
        report_nonsense,
        work_too_long,
        fall_silent,
        crash,
        tell_what_was_used,
    )
}

if __name__ == "__main__":
    asked = sys.stdin.buffer.read().decode()
    sys.exit(ALL[sys.argv[1]](AgentInput(asked, Path.cwd(), dict(os.environ))))
