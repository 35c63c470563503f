"""Which lines belong to a finding, and which of them are worth showing. Pure."""

import re
from collections.abc import Iterable, Sequence

from mulligan.verification.digest.locations import is_foreign, pointed_at
from mulligan.verification.digest.signals import PASSING, Weight
from mulligan.verification.digest.totals import ends_results

LONGEST = 60
RULE = re.compile(r"^\W*[=_─━*-]{12,}")
MEANS = re.compile(r"\w|[~^]")
ROUTINE = re.compile(r"\[?(?:INFO|DEBUG|TRACE)\b", re.IGNORECASE)
FRAME = re.compile(r'^\s*(?:File "|at |from |#\d+ |\d+: |❯ |\w[\w.]*\()')


def block_end(lines: Sequence[str], start: int, limit: int) -> int:
    """Find where the block of a named test ends: a rule, totals, a test that passed, or the limit."""
    limit = min(limit, start + LONGEST, len(lines))
    if _is_cut_off(lines[start : start + 3]):
        return start + 1
    for at in range(start + 1, limit):
        line = lines[at]
        if (RULE.match(line) and at > start + 3) or PASSING.search(line) or ends_results(line):
            return at
    return limit


def _is_cut_off(lines: Sequence[str]) -> bool:
    """Tell whether a gap and then something as little indented follows on a line."""
    if len(lines) < 3 or lines[1].strip():
        return False
    return bool(lines[2].strip()) and depth_of(lines[2]) <= depth_of(lines[0])


def paragraph_end(lines: Sequence[str], weights: Sequence[Weight], start: int, limit: int) -> int:
    """Find where what is said of one error ends: also where, after a gap, something else begins."""
    limit = block_end(lines, start, limit)
    for at in range(start + 1, limit):
        starts_anew = not lines[at - 1].strip() and lines[at][:1].strip()
        if starts_anew and not weights[at]:
            return at
    return limit


def worth_showing(lines: Iterable[str]) -> tuple[str, ...]:
    """Drop blank lines and the stack frames, with their source, of code that is not the project's."""
    shown, hidden_depth = list[str](), None
    for line in lines:
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
        shown.append(line)
    return dedent(shown)


def depth_of(line: str) -> int:
    """Count the blanks that a line begins with."""
    return len(line) - len(line.lstrip())


def dedent(lines: Sequence[str]) -> tuple[str, ...]:
    """Take off the indentation that all lines share."""
    depth = min(map(depth_of, lines), default=0)
    return tuple(line[depth:].rstrip() for line in lines)
