"""A command in a real pseudo-terminal, as a person sees it: what it shows, and the keys pressed."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROWS = 24
PATIENCE = 600.0
"""Limit in seconds; an installation takes minutes on a busy machine."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")
"""The sequences that colour text, move the cursor or set a title."""


@dataclass
class PseudoTerminal:
    """A running command; `seen` is all that it has written."""

    process: subprocess.Popen[bytes]
    keyboard: int
    seen: str = ""

    @property
    def text(self) -> str:
        """The output, without colours and movements of the cursor."""
        return CONTROL.sub("", self.seen).replace("\r\n", "\n")

    def press(self, keys: str) -> None:
        os.write(self.keyboard, keys.encode())

    def wait_for(self, pattern: str | re.Pattern[str], start: int = 0) -> re.Match[str]:
        """Read until the text has a pattern, from a place on; it may have come before."""
        wanted = re.compile(pattern)
        self._read(lambda: wanted.search(self.text, start) is not None)
        found = wanted.search(self.text, start)
        assert found, self.text[start:]
        return found

    def end(self) -> int:
        """Read until the command ends; give its exit code."""
        self._read(lambda: False)
        return self.process.wait(PATIENCE)

    def press_until_end(self, keys: str, seconds: float = 5.0) -> int:
        """Press keys again and again until the command ends; give its exit code.

        Python does not notice a signal that comes right before it waits for a line of input.
        """
        while self.process.poll() is None:
            self.press(keys)
            again = time.monotonic() + seconds
            self._read(lambda: time.monotonic() > again or self.process.poll() is not None)  # noqa: B023
        return self.end()

    def _read(self, enough: Callable[[], bool]) -> None:
        timeout = time.monotonic() + PATIENCE
        while not enough():
            assert time.monotonic() < timeout, self.text
            if not select.select([self.keyboard], [], [], 1.0)[0]:
                continue
            try:
                chunk = os.read(self.keyboard, 65536)
            except OSError:  # the last process on the terminal has ended
                return
            if not chunk:
                return
            self.seen += chunk.decode(errors="replace")


@contextmanager
def on_a_terminal(
    argv: Sequence[str | Path], directory: Path, environment: Mapping[str, str], columns: int = 80
) -> Generator[PseudoTerminal]:
    """Run a command on a terminal of its own; it is killed if it runs at the end."""
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    started = subprocess.Popen(
        ["setsid", "--ctty", *argv],  # so that Ctrl-C reaches it
        cwd=directory,
        env={"TERM": "xterm-256color", **environment},
        stdin=screen,
        stdout=screen,
        stderr=screen,
    )
    os.close(screen)
    try:
        yield PseudoTerminal(started, keyboard)
    finally:
        started.kill()
        started.wait()
        os.close(keyboard)
