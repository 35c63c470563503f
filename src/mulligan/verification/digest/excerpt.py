"""Show a window of the output around its most telling places. Pure."""

from collections.abc import Collection, Iterator, Sequence

from mulligan.verification.digest.blocks import MEANS, telling_indices
from mulligan.verification.digest.log import Log
from mulligan.verification.digest.signals import Weight, weigh

LINE_CHARS = 240
BEFORE, AFTER = 6, 14
MARK = "[... {} lines omitted]"
MARK_ROOM = 28


def window(log: Log, at: int | None, room: int, shown: Collection[str] = ()) -> list[str]:
    """Pick lines around index `at`, then the telling lines elsewhere, then the ends.

    Together they take at most `room` characters, each line's end included. Lines in `shown`
    (stripped) are left out; gaps are marked.
    """
    said = set(shown)
    picked = set[int]()
    for index in _by_worth(log, at):
        text = log.lines[index].strip()
        if not MEANS.search(text) or text in said:
            continue
        cost = min(len(log.lines[index]), LINE_CHARS) + 1 + MARK_ROOM * _stands_alone(index, picked)
        if cost > room:
            continue
        room -= cost
        picked.add(index)
        said.add(text)
    return list(_with_marks(log, sorted(picked), said))


def _by_worth(log: Log, at: int | None) -> Iterator[int]:
    """Yield line indices, the most telling first."""
    last = len(log.lines)
    if at is not None:
        yield from telling_indices(log.lines, range(at, min(at + AFTER, last)))
        yield from reversed(list(telling_indices(log.lines, range(max(0, at - BEFORE), at))))
    weights = [weigh(line) for line in log.lines]
    telling = (index for index, weight in enumerate(weights) if weight >= Weight.WARNING)
    for index in sorted(telling, key=lambda index: -weights[index]):
        yield from telling_indices(log.lines, (index,))
    if at is None:
        yield from reversed(range(max(0, last - 2 * AFTER), last))
        yield from range(min(AFTER, last))


def _stands_alone(index: int, picked: set[int]) -> bool:
    return index - 1 not in picked and index + 1 not in picked


def _with_marks(log: Log, indices: Sequence[int], said: Collection[str]) -> Iterator[str]:
    before = -1
    for index in [*indices, len(log.lines)]:
        if omitted := _omitted(log, before + 1, index, said):
            yield MARK.format(omitted)
        before = index
        if index < len(log.lines):
            line = log.lines[index]
            yield line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"


def _omitted(log: Log, start: int, end: int, said: Collection[str]) -> int:
    """Count the lines of the output that say something and are shown nowhere."""
    unseen = sum(log.omitted_before(index) for index in range(start, min(end + 1, len(log.lines))))
    if end == len(log.lines):
        unseen += log.total - (log.numbers[-1] if log.numbers else 0)
    texts = (log.lines[index].strip() for index in range(start, end))
    return unseen + sum(bool(MEANS.search(text)) and text not in said for text in texts)
