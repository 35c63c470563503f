"""Show the parts of an output that are about failures, with the lines around them. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mulligan.checks.digest.clean import VARIABLE, CleanLog
from mulligan.checks.digest.findings import relevant_part
from mulligan.checks.digest.locations import FILE
from mulligan.checks.digest.signals import (
    Weight,
    count_bad,
    is_aftermath,
    is_passing,
    is_total,
    weigh,
)
from mulligan.text.escape import omitted

WHOLE_CHARS = 3000
"""An output of at most this size is shown whole, without blank lines."""

BEFORE, AFTER = 3, 12
"""The lines around one about a failure; a line of a passed test ends them."""

ALIKE = 4
"""How many lines of one shape come before lines of other shapes."""

END_CHARS = 1500
"""The end of an output is always shown: totals, and what the command said last."""

LINE_CHARS = 400


def windows(log: CleanLog, room: int, said: Collection[str] = ()) -> list[str]:
    """Choose lines of at most `room` characters, newlines and marks included, in their order.

    Lines in `said` (without white space at the ends) are left out.
    """
    picked = _Picked([_shown(line) for line in log.lines], room, said)
    if log.total == len(log.lines) and picked.cost_of_all() <= min(WHOLE_CHARS, room):
        picked.take(range(len(log.lines)))
    else:
        picked.take(_last_before(log, len(log.lines), END_CHARS))
        picked.take(_last_before(log, _aftermath(log), END_CHARS))
        picked.take(_totals(log))
        for at, is_repeated in _by_weight(log):
            if not picked.take([at] if is_repeated else _around(log, at)):
                break
        picked.take(_last_before(log, len(log.lines), max(0, WHOLE_CHARS - room + picked.room)))
    return [*picked.marked(log)]


def _shown(line: str) -> str:
    return line.rstrip() if len(line) <= LINE_CHARS else relevant_part(line)[:LINE_CHARS] + "…"


MARK_CHARS = 28


@dataclass(slots=True)
class _Picked:
    """The lines that were picked; `room` is the number of characters left."""

    lines: Sequence[str]
    room: int
    said: Collection[str]
    indices: set[int] = field(default_factory=set[int])

    def cost_of_all(self) -> int:
        return sum(len(line) + 1 for line in self.lines if line.strip())

    def take(self, indices: Sequence[int] | range) -> bool:
        """Pick lines until one doesn't fit; return whether all did."""
        for at in indices:
            text = self.lines[at].strip()
            if at in self.indices or not text or text in self.said:
                continue
            is_alone = not {at - 1, at + 1} & self.indices
            cost = len(self.lines[at]) + 1 + MARK_CHARS * is_alone
            if cost > self.room:
                return False
            self.room -= cost
            self.indices.add(at)
        return True

    def marked(self, log: CleanLog) -> Iterator[str]:
        """Yield the lines, with a mark where others are left out."""
        before = -1
        for at in [*sorted(self.indices), len(self.lines)]:
            between = range(before + 1, at)
            left = sum(bool(self.lines[n].strip()) for n in between)
            left += sum(
                log.omitted_before(n) for n in range(before + 1, min(at + 1, len(log.lines)))
            )
            if left and self.indices:
                yield omitted(left)
            if at < len(self.lines):
                yield self.lines[at]
            before = at


def _totals(log: CleanLog) -> list[int]:
    """Return the last lines that count failures."""
    counting = (at for at in reversed(range(len(log.lines))) if is_total(log.lines[at]))
    return [*islice((at for at in counting if count_bad(log.lines[at])), MOST_TOTALS)]


MOST_TOTALS = 5


def _last_before(log: CleanLog, end: int, most: int) -> list[int]:
    """Return the lines before a place, of `most` characters, the last one first.

    Lines of passed tests are left out, and most of many that are alike.
    """
    found, size, alike = list[int](), 0, Counter[str]()
    for at in reversed(range(end)):
        line = log.lines[at]
        if not line.strip() or is_passing(line) or at in log.noise:
            continue
        shape = VARIABLE.sub("1", line)
        alike[shape] += 1
        if alike[shape] > ALIKE:
            continue
        size += min(len(line), LINE_CHARS) + 1
        if size > most:
            break
        found.append(at)
    return found


def _aftermath(log: CleanLog) -> int:
    """Return the place after the last line that says that a command failed."""
    lines = reversed(range(len(log.lines)))
    return next((at + 1 for at in lines if is_aftermath(log.lines[at])), 0)


def _by_weight(log: CleanLog) -> list[tuple[int, bool]]:
    """Return the lines about failures, the heaviest first; many of one shape come later.

    With each comes whether it is one of these many. Of the clear ones the first is nearest to the
    cause, of the others the last.
    """
    alike, ranked = Counter[str](), list[tuple[bool, bool, int, int]]()
    for at, line in enumerate(log.lines):
        weight = Weight.NOTHING if at in log.noise or is_passing(line) else weigh(line)
        if weight < Weight.WARNING or is_total(line):
            continue
        shape = VARIABLE.sub("1", line)
        alike[shape] += 1
        is_clear = weight >= Weight.PLACE
        number = alike[shape]
        ranked.append((number > ALIKE, number > 1, -weight, at if is_clear else -at))
    return [(abs(at), is_repeated) for is_repeated, *_, at in sorted(ranked)]


def _around(log: CleanLog, at: int) -> list[int]:
    """Return a line, those below it, and those above it; of a warning, the file above it.

    What stands right above may be the program's own log: the step that failed.
    """
    if weigh(log.lines[at]) is Weight.WARNING:
        return [at, *_file_above(log, at)]
    below = range(at + 1, min(at + 1 + AFTER, len(log.lines)))
    above = range(at - 1, max(at - 1 - BEFORE, -1), -1)
    near = (n for n in _until_passed(log, below) if n not in log.noise)
    return [at, *near, *_until_passed(log, above)]


FAR_ABOVE = 20


def _file_above(log: CleanLog, at: int) -> list[int]:
    """Return the nearest line that is only the name of a file, as linters print it over rows."""
    above = range(at - 1, max(at - 1 - FAR_ABOVE, -1), -1)
    return [*islice((n for n in above if FILE.fullmatch(log.lines[n].strip())), 1)]


def _until_passed(log: CleanLog, indices: range) -> Iterator[int]:
    for at in indices:
        if is_passing(log.lines[at]):
            return
        yield at
