"""Write the text of a digest: findings, totals, and a window of the output. Pure."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mulligan.checks.digest.blocks import MEANINGFUL, relevant_indices
from mulligan.checks.digest.clean import CleanLog
from mulligan.checks.digest.findings import FindingBlock, Reading, clip
from mulligan.checks.digest.signals import Weight, weigh

# The text of a digest

IN_FULL = 5
HEADING_KNOWN = 60
DETAIL_LINES = 14
HEADING_CHARS, HEADING_LEAST = 360, 60
DETAIL_CHARS = 240
DETAIL_LEAST = 20
IDS_SHARE = 0.35
TOTALS_SHARE = 0.2
MORE_ROOM = 20
WINDOW_TITLE = "In the output:"
WINDOW_LEAST = 100


@dataclass(slots=True)
class _Page:
    """Lines that fit; `room` is what is left, each line's end included."""

    room: int
    lines: list[str] = field(default_factory=list[str])

    def add(self, line: str) -> bool:
        if len(line) >= self.room:
            return False
        self.lines.append(line)
        self.room -= len(line) + 1
        return True


def render(reading: Reading, log: CleanLog, max_chars: int, note: str = "") -> str:
    """Give the text of a failing check's digest, of at most `max_chars` characters."""
    page = _Page(max_chars + 1)
    if note:
        page.add(note)
    totals = f"Totals: {'; '.join(reading.totals)}" if reading.totals else ""
    totals = clip(totals, int(max_chars * TOTALS_SHARE))
    _add_findings(page, reading, len(totals) + 1)
    if totals:
        page.add(totals)
    _add_window(page, reading, log)
    return "\n".join(page.lines) or clip(_least(reading, log), max_chars)


def _add_findings(page: _Page, reading: Reading, reserved: int) -> None:
    """Add the first findings in full, then ids while there is room, then how many more."""
    full, rest = reading.found[:IN_FULL], reading.found[IN_FULL:]
    ids = [f"- {found.finding.name}" for found in rest]
    needed = sum(len(line) + 1 for line in ids)
    after = reserved + MORE_ROOM + min(needed, int(page.room * IDS_SHARE))
    told = 0
    for position, found in enumerate(full):
        share = (page.room - after) // (len(full) - position)
        told += _add_in_full(page, found, share)
    floor = reserved + MORE_ROOM
    for line in ids:
        if len(line) >= page.room - floor:
            break
        told += page.add(line)
    count = max(reading.count, len(reading.found))
    if told < count:
        page.add(f"(+ {count - told} more)")


def _add_in_full(page: _Page, found: FindingBlock, share: int) -> bool:
    room = min(HEADING_CHARS, max(share, HEADING_LEAST), page.room - 1)
    hint = f" [{found.finding.hint}]" if found.finding.hint and room >= HEADING_LEAST else ""
    heading = f"- {clip(found.heading, room - len(hint) - 2)}{hint}"
    if not page.add(heading):
        return False
    share -= len(heading) + 1
    for line in found.detail[:DETAIL_LINES]:
        text = "    " + clip(line, min(DETAIL_CHARS, share - 5))
        if share < DETAIL_LEAST or not page.add(text):
            break
        share -= len(text) + 1
    return True


def _add_window(page: _Page, reading: Reading, log: CleanLog) -> None:
    """Show the lines around the first finding, and other lines about failures."""
    room = page.room - len(WINDOW_TITLE) - 1
    if room < WINDOW_LEAST:
        return
    at = reading.found[0].at if reading.found else None
    lines = window(log, at, room, set(_shown(reading.found[:IN_FULL], log, page)))
    if lines:
        page.add(WINDOW_TITLE)
        for line in lines:
            page.add(line)


def _shown(findings: Iterable[FindingBlock], log: CleanLog, page: _Page) -> Iterable[str]:
    """Yield the lines of the output that the page has already."""
    for found in findings:
        line = log.lines[found.at] if found.at is not None else ""
        if line and found.heading.startswith(" ".join(line.split())[:HEADING_KNOWN]):
            yield line.strip()
    for line in page.lines:
        yield line.strip()


def _least(reading: Reading, log: CleanLog) -> str:
    """Give a last resort if nothing fits, or the output is empty."""
    if reading.found:
        return reading.found[0].finding.summary
    return next((line.strip() for line in log.lines if line.strip()), "No output.")


def render_passed(totals: Iterable[str], max_chars: int) -> str:
    """Give the one line of a check that passed."""
    said = "; ".join(totals)
    return clip(f"Passed: {said}" if said else "Passed.", min(max_chars, 200))


# Lines of the output around a finding

BEFORE, AFTER = 6, 14
LINE_CHARS = 240
MARK = "[... {} lines omitted]"
MARK_ROOM = 28


def window(log: CleanLog, at: int | None, room: int, shown: Collection[str] = ()) -> list[str]:
    """Pick lines around index `at`, then the relevant lines elsewhere, then the ends.

    Together they take at most `room` characters, each line's end included. Lines in `shown`
    (stripped) are left out; gaps are marked.
    """
    said = set(shown)
    picked = set[int]()
    for index in _by_worth(log, at):
        text = log.lines[index].strip()
        if not MEANINGFUL.search(text) or text in said:
            continue
        cost = min(len(log.lines[index]), LINE_CHARS) + 1 + MARK_ROOM * _stands_alone(index, picked)
        if cost > room:
            continue
        room -= cost
        picked.add(index)
        said.add(text)
    return list(_with_marks(log, sorted(picked), said))


def _by_worth(log: CleanLog, at: int | None) -> Iterator[int]:
    """Yield line indices, the most telling first."""
    last = len(log.lines)
    if at is not None:
        yield from relevant_indices(log.lines, range(at, min(at + AFTER, last)))
        yield from reversed(list(relevant_indices(log.lines, range(max(0, at - BEFORE), at))))
    weights = [weigh(line) for line in log.lines]
    telling = (index for index, weight in enumerate(weights) if weight >= Weight.WARNING)
    for index in sorted(telling, key=lambda index: -weights[index]):
        yield from relevant_indices(log.lines, (index,))
    if at is None:
        yield from reversed(range(max(0, last - 2 * AFTER), last))
        yield from range(min(AFTER, last))


def _stands_alone(index: int, picked: set[int]) -> bool:
    return index - 1 not in picked and index + 1 not in picked


def _with_marks(log: CleanLog, indices: Sequence[int], said: Collection[str]) -> Iterator[str]:
    before = -1
    for index in [*indices, len(log.lines)]:
        if omitted := _omitted(log, before + 1, index, said):
            yield MARK.format(omitted)
        before = index
        if index < len(log.lines):
            line = log.lines[index]
            yield line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"


def _omitted(log: CleanLog, start: int, end: int, said: Collection[str]) -> int:
    """Count the lines of the output that say something and are shown nowhere."""
    unseen = sum(log.omitted_before(index) for index in range(start, min(end + 1, len(log.lines))))
    if end == len(log.lines):
        unseen += log.total - (log.numbers[-1] if log.numbers else 0)
    texts = (log.lines[index].strip() for index in range(start, end))
    return unseen + sum(bool(MEANINGFUL.search(text)) and text not in said for text in texts)
