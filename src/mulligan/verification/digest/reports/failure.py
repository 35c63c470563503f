"""Make a finding of a test's name and of all that a report says of its failure. Pure."""

import re
from collections.abc import Sequence

from mulligan.domain.result import names_unit
from mulligan.verification.digest.blocks import worth_showing
from mulligan.verification.digest.families.pytest_blocks import SAID, why
from mulligan.verification.digest.family import Found
from mulligan.verification.digest.findings import finding
from mulligan.verification.digest.locations import Place, best_place
from mulligan.verification.digest.traceback import START, traceback_at

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
DETAIL = 30
MESSAGE_LINES = 8
FRAME = re.compile(r"^\s+at |^\s*File \"|^\s*#\d+ ")


def of_file(name: str, file: str) -> str:
    """Name a test with its file, unless its name says what it belongs to."""
    file = file.removeprefix("./")
    return f"{file} › {name}" if file and name and not names_unit(name) else name or file


def failure(name: str, text: str, place: Place | None = None) -> Found:
    """Read message and place out of what was said; `place` is where the test is, if known."""
    lines = [line for line in COLOURS.sub("", text).splitlines() if line.strip()]
    message, inner = _why(lines)
    where = inner or place
    said = "\n".join(message)
    told = finding(said or "failed", where, test_id=name)
    heading = f"{name} ({where})" if where and str(where) not in name else name
    rest = [line for line in lines if line not in message]
    return Found(told, None, heading, (*message, *worth_showing(rest)[:DETAIL]))


def _why(lines: Sequence[str]) -> tuple[tuple[str, ...], Place | None]:
    """Give the lines of the message, and the place in the project's own code."""
    if any(SAID.match(line) for line in lines):
        reason = why(lines, 0, len(lines))
        return reason.message, reason.place
    opening = next((at for at, line in enumerate(lines) if START.match(line)), None)
    trace = traceback_at(lines, opening) if opening is not None else None
    if trace:
        return (trace.message,), trace.place
    told = [line for line in lines if not FRAME.match(line)]
    place = best_place(lines)
    return tuple(told[:MESSAGE_LINES]), place
