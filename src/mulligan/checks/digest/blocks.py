"""Find the lines that belong to a finding, tracebacks, and the lines worth showing. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mulligan.checks.digest.locations import Place, find_place, is_foreign, number
from mulligan.checks.digest.signals import Weight, ends_results, is_passing

MAX_BLOCK_LINES = 60

RULE = re.compile(r"^\W*[=_─━*-]{12,}")

MEANINGFUL = re.compile(r"\w|[~^]")

ROUTINE = re.compile(
    r"\[?(?:INFO|DEBUG|TRACE)\b\]?(?! {2})"
    r'|\{.{0,300}"(?:level|levelname|severity)": ?"(?:info|debug|trace)',
    re.IGNORECASE,
)

STEP_FAILED = re.compile(r"(?<!\.)\.{3,}Failed$")

STACK = re.compile(r"goroutine \d+ \[|(?:stack )?(?:back)?trace\b|call stack", re.IGNORECASE)
"""The line above a stack trace that a blank line separates from its error."""

FRAME = re.compile(r'^\s*+(?:File "|at |from |#\d+ |\d+: |❯ |(?:[\w.]+/)?\w[\w.$]*\(|\S+:\d+: in )')

START = re.compile(
    r"^(?P<indent>[\s|+-]*)(?:Exception Group |[\w.]+: )?Traceback \(most recent call last\):"
)

TRACEBACK_FRAME = re.compile(
    r'^[\s|]*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<name>\w+))?'
)

EXCEPTION = re.compile(r"^[\s|]*(?P<name>[A-Za-z_][\w.]*)(?:: .*|:?)$")

LINK = re.compile(r"^[\s|]*(?:During handling of the above|The above exception was the direct)")

LONGEST_TRACEBACK = 300

SUITE = re.compile(
    r"^\s*(?:FAIL|PASS)\s+(?P<file>(?:\S+ )*\S+\.\w+)(?: \([\d.]+ ?m?s\))?$"
    r"|^(?P<file2>\S+\.t) \.{2,}|^[Rr]unning \d+ tests? (?:from|in) (?P<file3>\S+\.\w+)$"
    r"|^Test project (?P<group>\S.*)$|^> Task (?P<group2>:\S+)"
)
"""A line above its tests: the file as Jest and prove name it, ctest's directory, Gradle's task."""


def block_end(lines: Sequence[str], start: int, limit: int) -> int:
    """Find where the block of a named test ends: a rule, totals, or a test that passed."""
    limit = min(limit, start + MAX_BLOCK_LINES, len(lines))
    if _is_cut_off(lines[start : start + 3]):
        return start + 1
    for at in range(start + 1, limit):
        line = lines[at]
        is_rule = RULE.match(line) and at > start + 3
        if is_rule or is_passing(line) or SUITE.match(line) or ends_results(line):
            return at
    return limit


def _is_cut_off(lines: Sequence[str]) -> bool:
    """Return whether a blank line follows, and then a line with no deeper indentation."""
    match lines:
        case [head, gap, after] if not gap.strip() and after.strip() and not STACK.match(after):
            return depth_of(after) <= depth_of(head)
        case _:
            return False


def paragraph_end(lines: Sequence[str], weights: Sequence[Weight], start: int, limit: int) -> int:
    """Find the end of the text about one error; a blank line before another subject also ends it.

    All lines after the name of a failed step belong to that step.
    """
    limit = block_end(lines, start, limit)
    if STEP_FAILED.search(lines[start]):
        return limit
    for at in range(start + 1, limit):
        starts_anew = not lines[at - 1].strip() and lines[at][:1].strip()
        if starts_anew and not weights[at] and not STACK.match(lines[at]):
            return at
    return limit


def worth_showing(lines: Sequence[str]) -> tuple[str, ...]:
    """Drop blank lines, and the stack frames of foreign code with their source."""
    return dedent([lines[at] for at in relevant_indices(lines, range(len(lines)))])


def relevant_indices(lines: Sequence[str], indices: Iterable[int]) -> Iterator[int]:
    """Yield the indices of lines that are worth showing."""
    hidden_depth: int | None = None
    for at in indices:
        line = lines[at]
        text = line.strip()
        if not MEANINGFUL.search(text) or ROUTINE.match(text):
            continue
        depth = depth_of(line)
        if hidden_depth is not None and depth > hidden_depth:
            continue
        hidden_depth = None
        if FRAME.match(line) and (
            is_foreign(line, find_place(line)) or _place_is_foreign(lines, at + 1, depth)
        ):
            hidden_depth = depth
            continue
        yield at


def _place_is_foreign(lines: Sequence[str], at: int, depth: int) -> bool:
    """Return whether a deeper line, as below a frame of Go, names a place in foreign code."""
    below = lines[at] if at < len(lines) else ""
    place = find_place(below) if depth_of(below) > depth else None
    return place is not None and not place.is_own


def depth_of(line: str) -> int:
    """Count the leading spaces of a line."""
    return len(line) - len(line.lstrip())


def dedent(lines: Sequence[str]) -> tuple[str, ...]:
    """Remove the common indentation of the lines."""
    depth = min(map(depth_of, lines), default=0)
    return tuple(line[depth:].rstrip() for line in lines)


@dataclass(frozen=True, slots=True)
class Traceback:
    """A chain of exceptions: the `message` of the last one, and the earlier ones as `causes`.

    `source` is the code at `place`. The lines are `start` up to, not including, `end`; `at` is the
    exception's line.
    """

    start: int
    at: int
    end: int
    message: str
    place: Place | None
    causes: tuple[str, ...] = ()
    source: str = ""


def traceback_at(lines: Sequence[str], start: int, stop: int | None = None) -> Traceback | None:
    """Read the traceback that starts at a line, and the ones chained to it before `stop`."""
    stop = len(lines) if stop is None else stop
    first = _one(lines, start, stop)
    if first is None:
        return None
    chain = [first]
    while (following := _linked(lines, chain[-1].end, stop)) is not None:
        following = _one(lines, following, stop)
        if following is None:
            break
        chain.append(following)
    last = chain[-1]
    best = next((found for found in reversed(chain) if _is_own(found.place)), last)
    causes = tuple(found.message for found in chain[:-1])
    return replace(last, start=start, place=best.place, source=best.source, causes=causes)


def _one(lines: Sequence[str], start: int, stop: int) -> Traceback | None:
    opening = START.match(lines[start])
    if opening is None:
        return None
    depth = len(opening["indent"])
    frames = list[tuple[Place, str]]()
    for at in range(start + 1, min(start + LONGEST_TRACEBACK, stop)):
        line = lines[at]
        if frame := TRACEBACK_FRAME.match(line):
            below = lines[at + 1] if at + 1 < stop else ""
            place = Place(frame["file"], number(frame["line"]))
            frames.append((place, "" if TRACEBACK_FRAME.match(below) else below.strip(" |+-")))
        elif line[depth : depth + 1].strip(" |+-") and EXCEPTION.match(line):
            own = [frame for frame in frames if frame[0].is_own]
            place, source = (own or frames)[-1] if frames else (None, "")
            message = line.strip(" |+-")
            return Traceback(start, at, at + 1, message, place, source=source)
    return None


def _linked(lines: Sequence[str], end: int, stop: int) -> int | None:
    """Find the next traceback of a chain: a few lines below, after a linking sentence."""
    near = range(end, min(end + 12, stop))
    link = next((at for at in near if lines[at].strip(" |")), None)
    if link is None or not LINK.match(lines[link]):
        return None
    return next((at for at in range(link, min(link + 4, stop)) if START.match(lines[at])), None)


def _is_own(place: Place | None) -> bool:
    return place is not None and place.is_own


# What a failure says

PYTEST_SAYS = re.compile(r"E(?: {3}|$)")
FRAMES = re.compile(
    r"\s+at |\W{0,4}\d+ [|│]|\s*\.\.\. \d+ more$|\s*#\d+ |\s*File \"|Traceback \("
    r"|note: (?:run with|Some details) |stack backtrace:"
)
PYTHON_TRACE = "Traceback (most recent call last)"


def said_in(lines: Sequence[str]) -> Iterator[str]:
    """Yield what a failure says, without the frames and the source code around it."""
    if any(map(PYTEST_SAYS.match, lines)):
        yield from (line[4:] for line in lines if PYTEST_SAYS.match(line))
    elif any(PYTHON_TRACE in line for line in lines):
        yield from (line for line in lines if not line.startswith((" ", "Traceback")))
    else:
        yield from (line for line in lines if not FRAMES.match(line))
