"""The blocks beneath pytest's FAILURES and ERRORS: the reason and the place of each. Pure."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.verification.digest.blocks import dedent
from mulligan.verification.digest.locations import Place, number
from mulligan.verification.digest.traceback import FRAME, START, traceback_at

TITLE = re.compile(
    r"^=+ (?P<name>test session starts|FAILURES|ERRORS|PASSES|XPASSES|XFAILURES"
    r"|short test summary info|rerun test summary info|warnings summary.*|slowest .*"
    r"|tests? coverage|.* in [\d.]+s.*) =+$"
)
HEADER = re.compile(
    r"^_{3,} (?:ERROR (?:at (?:setup|teardown) of|collecting) )?(?P<name>\S.*?) _{3,}$"
)
CAPTURED = re.compile(r"^-{3,} (?:Captured|live log) .* -{3,}$")
SAID = re.compile(r"^E(?:   |$)")
PLACE = re.compile(r"""^(?P<file>[^\s:'"=][^:'"=]*\.\w+):(?P<line>\d+): ?""")
"""The last line of a block, `file:line: Error`; with --tb=short, the first of each frame."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a test failed; `at` is the index of the line that says it, `origin` the test's file."""

    at: int
    message: tuple[str, ...] = ()
    place: Place | None = None
    source: tuple[str, ...] = ()
    origin: str = ""


def blocks(lines: Sequence[str]) -> dict[str, list[Why]]:
    """Read the blocks, by the names over them; tests of the same name follow each other."""
    found = defaultdict[str, list[Why]](list)
    header: tuple[str, int] | None = None
    section = ""
    for at, line in enumerate([*lines, "= short test summary info ="]):
        title = TITLE.match(line)
        opening = HEADER.match(line) if section in {"FAILURES", "ERRORS"} else None
        if header and (title or opening):
            found[header[0]].append(why(lines, header[1], at))
        if title or opening:
            header = (block_key(section, opening["name"]), at) if opening else None
        section = title["name"] if title else section
    return found


def block_key(kind: str, name: str) -> str:
    """Tell a test's failure from an error around it: they are told apart by their first letter."""
    return f"{kind.removeprefix('SUB')[0]} {name}"


def why(lines: Sequence[str], start: int, end: int) -> Why:
    """Read one block: its last exception, and the last place in it that is the project's own."""
    stop = next((at for at in range(start, end) if CAPTURED.match(lines[at])), end)
    found = (PLACE.match(lines[at]) for at in range(start, stop))
    places = [Place(place["file"], number(place["line"])) for place in found if place]
    own = [place for place in places if place.is_own]
    origin = (own or places)[0].file if places else ""
    plain = Why(start, place=own[-1] if own else None, origin=origin)
    said = [at for at in range(start, stop) if SAID.match(lines[at])]
    if not said:
        return _native(lines, start, stop, plain)
    return _with_said(lines, said, plain)


def _with_said(lines: Sequence[str], said: Sequence[int], plain: Why) -> Why:
    """Take the message from the last run of lines that begin with an E."""
    runs = [at for at in said if at - 1 not in said]
    message = dedent([lines[at][4:] for at in said if at >= runs[-1]])
    inner = [frame for text in message if (frame := FRAME.match(text))]
    place = Place(inner[-1]["file"], number(inner[-1]["line"])) if inner else plain.place
    if inner:
        message = message[-1:] + message[:-1]
    marked = [line for line in lines[plain.at : runs[-1]] if line.startswith(">")]
    source = [f"> {line[1:].strip()}" for line in marked[-1:]]
    causes = [f"after {lines[at][4:].strip()}" for at in runs[:-1]]
    return Why(runs[-1], message, place, (*source, *causes), plain.origin)


def _native(lines: Sequence[str], start: int, end: int, plain: Why) -> Why:
    """Read a block of `--tb=native`, which is a traceback."""
    opening = next((at for at in range(start, end) if START.match(lines[at])), None)
    trace = traceback_at(lines[:end], opening) if opening is not None else None
    if trace is None:
        return plain
    beneath = [line for line in lines[trace.at + 1 : end] if line.strip()]
    source = (f"> {trace.source}",) if trace.source else ()
    return Why(trace.at, (trace.message, *beneath), trace.place, source, plain.origin)
