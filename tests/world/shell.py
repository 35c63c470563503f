"""A person at a shell: types commands on a terminal of 80 columns and reads what they print."""

import re
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from world.pseudo_terminal import PseudoTerminal, on_a_terminal

PROMPT = re.compile(r"READY-(\d+)- $")


@dataclass(frozen=True)
class Typed:
    """A command with its exit code and output, and how many seconds it took."""

    line: str
    code: int
    text: str
    seconds: float


@dataclass
class Shell:
    """An interactive bash."""

    terminal: PseudoTerminal

    def type(self, line: str, *answers: tuple[str, str]) -> Typed:
        """Type a command, answer its questions (what it asks, what to press), and wait for it."""
        began, start = time.monotonic(), len(self.terminal.text)
        self.terminal.press(f"{line}\n")
        for question, answer in answers:
            self.terminal.wait_for(question, start)
            self.terminal.press(answer)
        found = self.terminal.wait_for(PROMPT, start)
        text = self.terminal.text[start : found.start()].partition("\n")[2]
        return Typed(line, int(found[1]), text, time.monotonic() - began)


@contextmanager
def shell(directory: Path, environment: Mapping[str, str]) -> Generator[Shell]:
    """Start bash in a directory, with nothing of the user's own."""
    plain = directory / ".inputrc"
    plain.write_text("set enable-bracketed-paste off\n")
    own = {"PS1": "READY-$?- ", "INPUTRC": str(plain), "LANG": "C.UTF-8", **environment}
    with on_a_terminal(["bash", "--noprofile", "--norc", "-i"], directory, own) as terminal:
        terminal.wait_for(PROMPT)
        yield Shell(terminal)
