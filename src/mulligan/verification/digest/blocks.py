"""Which lines belong to a finding, and which of them are worth showing. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence

from mulligan.verification.digest.locations import is_foreign, pointed_at
from mulligan.verification.digest.signals import PASSING, Weight
from mulligan.verification.digest.totals import ends_results
from mulligan.verification.digest.units import SUITE

LONGEST = 60
RULE = re.compile(r"^\W*[=_─━*-]{12,}")
MEANS = re.compile(r"\w|[~^]")
ROUTINE = re.compile(r"\[?(?:INFO|DEBUG|TRACE)\b\]?(?! {2})", re.IGNORECASE)
STEP_FAILED = re.compile(r"(?<!\.)\.{3,}Failed$")
STACK = re.compile(r"goroutine \d+ \[|(?:stack )?(?:back)?trace\b|call stack", re.IGNORECASE)
"""What stands over a stack trace that a gap parts from its error."""
FRAME = re.compile(r'^\s*(?:File "|at |from |#\d+ |\d+: |❯ |(?:[\w.]+/)?\w[\w.$]*\(|\S+:\d+: in )')


def block_end(lines: Sequence[str], start: int, limit: int) -> int:
    """Find where the block of a named test ends: a rule, totals, or a test that passed."""
    limit = min(limit, start + LONGEST, len(lines))
    if _is_cut_off(lines[start : start + 3]):
        return start + 1
    for at in range(start + 1, limit):
        line = lines[at]
        is_rule = RULE.match(line) and at > start + 3
        if is_rule or PASSING.search(line) or SUITE.match(line) or ends_results(line):
            return at
    return limit


def _is_cut_off(lines: Sequence[str]) -> bool:
    """Tell whether a gap and then something as little indented follows on a line."""
    match lines:
        case [head, gap, after] if not gap.strip() and after.strip() and not STACK.match(after):
            return depth_of(after) <= depth_of(head)
        case _:
            return False


def paragraph_end(lines: Sequence[str], weights: Sequence[Weight], start: int, limit: int) -> int:
    """Find where what is said of one error ends: also where, after a gap, something else begins.

    All that follows the name of a step that failed is of that step.
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
    """Drop blank lines, and the stack frames, with their source, of code from elsewhere."""
    return dedent([lines[at] for at in telling_indices(lines, range(len(lines)))])


def telling_indices(lines: Sequence[str], indices: Iterable[int]) -> Iterator[int]:
    """Yield those of the indices whose line is worth showing."""
    hidden_depth: int | None = None
    for at in indices:
        line = lines[at]
        text = line.strip()
        if not MEANS.search(text) or ROUTINE.match(text):
            continue
        depth = depth_of(line)
        if hidden_depth is not None and depth > hidden_depth:
            continue
        hidden_depth = None
        if FRAME.match(line) and is_foreign(line, pointed_at(line)):
            hidden_depth = depth
            continue
        yield at


def depth_of(line: str) -> int:
    """Count the blanks that a line begins with."""
    return len(line) - len(line.lstrip())


def dedent(lines: Sequence[str]) -> tuple[str, ...]:
    """Take off the indentation that all lines share."""
    depth = min(map(depth_of, lines), default=0)
    return tuple(line[depth:].rstrip() for line in lines)
