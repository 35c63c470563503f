"""Keep what went out, and what was refused."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from mulligan.egress.rules import Refused
from mulligan.text.escape import one_line

MOST_LINES = 10_000
MOST_HOSTS = 20
LINE_CHARS = 300


class Journal:
    """Writes a line for each request; `hosts` are those that were refused, in order.

    Every line goes through `clean` first. A full disk ends the journal, and nothing else.
    """

    def __init__(self, file: IO[str], clean: Callable[[str], str] = str) -> None:
        self._file = file
        self._clean = clean
        self._started = time.monotonic()
        self._lines = 0
        self._hosts = dict[str, None]()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._hosts)

    def passed(self, what: str) -> None:
        """Tell of a request that went out."""
        self._write("passed", what)

    def failed(self, what: str) -> None:
        """Tell of one that was allowed and did not succeed."""
        self._write("failed", what)

    def refused(self, refusal: Refused) -> None:
        """Tell of one that was not allowed."""
        if refusal.host and len(self._hosts) < MOST_HOSTS:
            self._hosts[self._clean(refusal.host)] = None
        self._write("refused", refusal.host or refusal.said)

    def _write(self, verb: str, what: str) -> None:
        self._lines += 1
        if self._lines > MOST_LINES:
            return
        seconds = time.monotonic() - self._started
        with suppress(OSError):
            said = one_line(self._clean(what), LINE_CHARS)
            self._file.write(f"{seconds:9.3f} s  {verb:7}  {said}\n")
            self._file.flush()
