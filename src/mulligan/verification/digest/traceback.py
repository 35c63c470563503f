"""Python tracebacks, wherever they stand in an output. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mulligan.verification.digest.locations import Place, number

START = re.compile(
    r"^(?P<indent>[\s|+-]*)(?:Exception Group )?Traceback \(most recent call last\):"
)
FRAME = re.compile(r'^[\s|]*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<name>\w+))?')
EXCEPTION = re.compile(r"^[\s|]*(?P<name>[A-Za-z_][\w.]*)(?:: .*|:?)$")
LINK = re.compile(r"^[\s|]*(?:During handling of the above|The above exception was the direct)")
LONGEST = 300


@dataclass(frozen=True, slots=True)
class Traceback:
    """A chain of exceptions: `message` is the last one's, `causes` are the earlier ones'.

    `source` is the code at `place`. It takes the lines from `start` up to, and not with, `end`;
    `at` is the exception's line.
    """

    start: int
    at: int
    end: int
    message: str
    place: Place | None
    causes: tuple[str, ...] = ()
    source: str = ""


def traceback_at(lines: Sequence[str], start: int) -> Traceback | None:
    """Read the traceback that starts at a line, with all that it is chained to."""
    first = _one(lines, start)
    if first is None:
        return None
    chain = [first]
    while (following := _linked(lines, chain[-1].end)) is not None:
        following = _one(lines, following)
        if following is None:
            break
        chain.append(following)
    last = chain[-1]
    best = next((found for found in reversed(chain) if _is_own(found.place)), last)
    causes = tuple(found.message for found in chain[:-1])
    return replace(last, start=start, place=best.place, source=best.source, causes=causes)


def _one(lines: Sequence[str], start: int) -> Traceback | None:
    opening = START.match(lines[start])
    if opening is None:
        return None
    depth = len(opening["indent"])
    frames = list[tuple[Place, str]]()
    for at in range(start + 1, min(start + LONGEST, len(lines))):
        line = lines[at]
        if frame := FRAME.match(line):
            below = lines[at + 1] if at + 1 < len(lines) else ""
            place = Place(frame["file"], number(frame["line"]))
            frames.append((place, "" if FRAME.match(below) else below.strip(" |+-")))
        elif line[depth : depth + 1].strip(" |+-") and EXCEPTION.match(line):
            own = [frame for frame in frames if frame[0].is_own]
            place, source = (own or frames)[-1] if frames else (None, "")
            message = line.strip(" |+-")
            return Traceback(start, at, at + 1, message, place, source=source)
    return None


def _linked(lines: Sequence[str], end: int) -> int | None:
    """Find the traceback that goes on with a chain: a few lines on, behind a linking sentence."""
    near = range(end, min(end + 12, len(lines)))
    link = next((at for at in near if LINK.match(lines[at])), None)
    if link is None:
        return None
    return next(
        (at for at in range(link, min(link + 4, len(lines))) if START.match(lines[at])), None
    )


def _is_own(place: Place | None) -> bool:
    return place is not None and place.is_own
