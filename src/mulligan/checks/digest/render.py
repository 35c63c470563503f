"""Write the text of a digest: findings, totals, and a window of the output. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mulligan.checks.digest.blocks import MEANINGFUL, relevant_indices
from mulligan.checks.digest.clean import NOISE, CleanLog
from mulligan.checks.digest.findings import FindingBlock, Reading, clip
from mulligan.checks.digest.locations import (
    FILE,
    file_in,
    find_lone_place,
    find_place,
    is_foreign,
)
from mulligan.checks.digest.signals import (
    NUMBER,
    QUIET,
    Weight,
    is_aftermath,
    is_passing,
    is_total,
    weigh,
)
from mulligan.text.escape import omitted

# The text of a digest

IN_FULL = 5
CHARS_IN_FULL = 400
"""The characters for each finding in full; a short digest has IN_FULL of them."""
HEADING_KNOWN = 60
DETAIL_LINES = 14
HEADING_CHARS, HEADING_LEAST = 360, 60
DETAIL_CHARS = 240
DETAIL_LEAST = 20
IDS_SHARE = 0.45
TOTALS_SHARE = 0.2
MORE_ROOM = 20
END_SHARE = 0.5
"""The share of the window for the last lines, if the findings do not explain the output."""
WINDOW_TITLE = "In the output:"
WINDOW_LEAST = 100


@dataclass(slots=True)
class _Page:
    """Lines that fit; `room` is the number of characters left, newlines included.

    `is_cut` is set if a finding lacks its name, or a part of its details.
    """

    room: int
    is_cut: bool = False
    lines: list[str] = field(default_factory=list[str])

    def add(self, line: str) -> bool:
        if len(line) >= self.room:
            return False
        self.lines.append(line)
        self.room -= len(line) + 1
        return True


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of a digest; `is_cut` as in _Page."""

    text: str
    is_cut: bool = False


def render(reading: Reading, log: CleanLog, max_chars: int, note: str = "") -> Rendered:
    """Write the text of a failing check's digest, of at most `max_chars` characters.

    If no finding is certainly a failure, show the whole output if it fits.
    """
    page = _Page(max_chars + 1)
    if note:
        page.add(note)
    explained = explains(reading, log)
    placed = any(block.finding.file for block in reading.found)
    if reading.doubtful and not placed and (whole := _whole(log, page.room)):
        return Rendered("\n".join([*page.lines, *whole]))
    totals = f"Totals: {'; '.join(reading.totals)}" if reading.totals else ""
    count = max(reading.count, len(reading.found))
    if not totals and count > IN_FULL:
        totals = f"Totals: {count} failures"
    totals = clip(totals, int(max_chars * TOTALS_SHARE))
    _add_findings(page, reading, len(totals) + 1)
    if totals:
        page.add(totals)
    _add_window(page, reading, log, explained=explained)
    return Rendered("\n".join(page.lines) or clip(_least(reading, log), max_chars), page.is_cut)


def explains(reading: Reading, log: CleanLog) -> bool:
    """Return whether the findings account for all failures that the output reports.

    The totals of the output decide. Without totals, no other line may be about a failure.
    """
    if reading.structured and reading.found:
        return True
    named = [block for block in reading.found if block.finding.file or block.finding.test_id]
    if not named or reading.doubtful:
        return False
    if reading.count:
        return reading.count == len(reading.found) == len(named)
    lines = (line for block in reading.found for line in (block.heading, *block.detail))
    known = _words("\n".join(lines))
    shown = {block.at for block in reading.found}
    others = (at for at in range(len(log.lines)) if at not in shown and at not in log.common)
    return all(_words(log.lines[at]) <= known for at in others if _speaks(log, at))


VERDICTS = frozenset(
    {
        *("at", "call", "e", "error", "errors", "fail", "failed", "failing", "failures", "file"),
        *("in", "last", "line", "most", "panicked", "recent", "stdout", "test", "tests", "thread"),
        "traceback",
    }
)
"""Words that only report that something failed, or where."""

WORD = re.compile(r"\w+")
DURATION = re.compile(r"\(?\b\d+(?:\.\d+)? ?m?s\b\)?")


def _words(text: str) -> frozenset[str]:
    """Return the words and numbers that distinguish failures, in lower case."""
    return frozenset(WORD.findall(DURATION.sub("", text).lower())) - VERDICTS


def _whole(log: CleanLog, room: int) -> list[str]:
    """Return all non-empty lines of an output; none if they do not fit."""
    if log.total > len(log.lines):
        return []
    lines = [line.rstrip() for line in log.lines if line.strip()]
    return lines if _size(lines) <= room else []


def _is_complete(block: FindingBlock) -> bool:
    known = block.finding
    message = known.message.partition("\n")[0]
    says = message not in {"", "failed", known.test_id} or bool(block.detail)
    return says and known.file is not None and known.line is not None


def _add_findings(page: _Page, reading: Reading, reserved: int) -> None:
    """Add the first findings in full, then ids while there is room, then the count of others."""
    most_in_full = max(IN_FULL, page.room // CHARS_IN_FULL)
    full, rest = reading.found[:most_in_full], reading.found[most_in_full:]
    most = int(page.room * IDS_SHARE)
    ways = ([_in_short(found, chars) for found in rest] for chars in SHORT_CHARS)
    ids = next((way for way in ways if _size(way) <= most), [_in_short(found, 0) for found in rest])
    needed = _size(ids)
    after = reserved + (MORE_ROOM if ids else 0) + min(needed, most)
    added = 0
    for position, found in enumerate(full):
        share = (page.room - after) // (len(full) - position)
        added += _add_in_full(page, found, share)
    for left, line in enumerate(ids, start=1 - len(ids)):
        if len(line) >= page.room - reserved - (MORE_ROOM if left else 0):
            break
        added += page.add(line)
    count = max(reading.count, len(reading.found))
    if added < count:
        page.add(f"(+ {count - added} more)")
    page.is_cut |= bool(rest) or added < len(reading.found)


SHORT_CHARS = (160, 110)
"""The characters of each further finding, if all of them fit."""


def _in_short(found: FindingBlock, chars: int) -> str:
    """Name a finding on one line of at most `chars` characters, its place and message included."""
    known = found.finding
    if not known.test_id or not chars:
        return f"- {known.name}"
    place = f"{known.file}:{known.line}" if known.file and known.line else known.file or ""
    where = f" ({place})" if place and place not in known.test_id else ""
    message = known.message.partition("\n")[0]
    said = f": {message}" if message not in {"", known.test_id} else ""
    return f"- {clip(f'{known.test_id}{where}{said}', chars)}"


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _add_in_full(page: _Page, found: FindingBlock, share: int) -> bool:
    room = min(HEADING_CHARS, max(share, HEADING_LEAST), page.room - 1)
    hint = f" [{found.finding.hint}]" if found.finding.hint and room >= HEADING_LEAST else ""
    code = found.finding.code or ""
    end = f" [{code}]" if code and code not in found.heading[: room - len(hint) - 3] else ""
    end = (end if len(end) < room // 2 else "") + hint
    heading = f"- {clip(found.heading, room - len(end) - 2)}{end}"
    if not page.add(heading):
        return False
    share -= len(heading) + 1
    for line in found.detail[:DETAIL_LINES]:
        text = "    " + clip(line, min(DETAIL_CHARS, share - 5))
        if share < DETAIL_LEAST or not page.add(text):
            page.is_cut = True
            break
        share -= len(text) + 1
    return True


def _add_window(page: _Page, reading: Reading, log: CleanLog, *, explained: bool) -> None:
    """Show the lines around the first finding, and other lines about failures.

    Where the findings do not explain the failure, the end of the output gets its share.
    """
    room = page.room - len(WINDOW_TITLE) - 1
    if room < WINDOW_LEAST:
        return
    shown = set(_shown(reading.found[:IN_FULL], log, page))
    covered = _words("\n".join(page.lines)) if explained else frozenset[str]()
    if explained and len(reading.found) <= IN_FULL and all(map(_is_complete, reading.found)):
        lines = rest_of(log, room, shown, covered, is_counted=bool(reading.count))
    else:
        at = reading.found[0].at if reading.found else None
        end = 0 if explained else int(room * END_SHARE)
        lines = window(log, at, room, shown, end=end, covered=covered)
    if lines:
        page.add(WINDOW_TITLE)
        for line in lines:
            page.add(line)


def _shown(findings: Iterable[FindingBlock], log: CleanLog, page: _Page) -> Iterable[str]:
    """Yield the lines of the output that are already on the page."""
    for found in findings:
        line = log.lines[found.at] if found.at is not None else ""
        if line and found.heading.startswith(" ".join(line.split())[:HEADING_KNOWN]):
            yield line.strip()
    for line in page.lines:
        yield line.strip()


def _least(reading: Reading, log: CleanLog) -> str:
    """Return a minimal text, for an empty output or if nothing fits."""
    if reading.found:
        return reading.found[0].finding.summary
    return next((line.strip() for line in log.lines if line.strip()), "No output.")


def render_passed(totals: Iterable[str], max_chars: int) -> str:
    """Return the one line of a check that passed."""
    message = "; ".join(totals)
    return clip(f"Passed: {message}" if message else "Passed.", min(max_chars, 200))


# Lines of the output around a finding

BEFORE, AFTER = 6, 14
LINE_CHARS = 240
MARK_ROOM = 28
MAX_MISSES = 50


def window(
    log: CleanLog,
    at: int | None,
    room: int,
    shown: Collection[str] = (),
    *,
    end: int = 0,
    covered: frozenset[str] = frozenset(),
) -> list[str]:
    """Pick lines around index `at`, then the relevant lines elsewhere, then the ends.

    Together they have at most `room` characters, newlines included. The last lines of the output
    get `end` of these, and the rest that the others leave. Omits lines in `shown` (stripped), and
    lines whose words are all in `covered`; marks gaps.
    """
    picked = _Picked(log, room - end, set(shown), covered)
    picked.take(_by_worth(log, at))
    if end:
        picked.room += end
        picked.take(_last(log))
    return [*with_marks(log, sorted(picked.indices), picked.said)] if picked.indices else []


@dataclass(slots=True)
class _Picked:
    """The picked lines; `room` is the number of characters left, newlines and marks included."""

    log: CleanLog
    room: int
    said: set[str]
    covered: frozenset[str]
    indices: set[int] = field(default_factory=set[int])

    def take(self, indices: Iterable[int]) -> None:
        """Pick the lines that fit and add something new; stop when many do not fit."""
        misses = 0
        for index in indices:
            line = self.log.lines[index]
            text = line.strip()
            if not MEANINGFUL.search(text) or text in self.said or _words(text) <= self.covered:
                continue
            alone = _stands_alone(index, self.indices)
            cost = min(len(line), LINE_CHARS) + 1 + MARK_ROOM * alone
            if cost > self.room:
                misses += 1
                if misses == MAX_MISSES:
                    return
            else:
                self.room -= cost
                self.indices.add(index)
                self.said.add(text)


def _last(log: CleanLog) -> Iterator[int]:
    """Yield indices from the last line up, without logs, passing tests and foreign frames."""
    alike = Counter[str]()
    for at in reversed(range(len(log.lines))):
        line = log.lines[at]
        if at in log.common or QUIET.match(line) or is_passing(line):
            continue
        shape = NUMBER.sub("1", line)
        alike[shape] += 1
        if alike[shape] <= NOISE and not is_foreign(line, find_place(line)):
            yield at


def rest_of(
    log: CleanLog,
    room: int,
    shown: Collection[str],
    covered: frozenset[str],
    *,
    is_counted: bool = False,
) -> list[str]:
    """Pick the lines about failure that have a word not in `covered`; usually none.

    If totals tell that the findings are all, warnings and mere names of files are left out.
    """
    picked, shown_lines = list[int](), set(shown)
    for index, line in enumerate(log.lines):
        text = " ".join(line.split())
        if not text or text in shown_lines or not _speaks(log, index) or _words(line) <= covered:
            continue
        if is_counted and (weigh(line) is Weight.WARNING or FILE.fullmatch(line.strip())):
            continue
        above = (
            [index - 1] if find_lone_place(line) and index and log.lines[index - 1].strip() else []
        )
        cost = min(len(line), LINE_CHARS) + 1 + MARK_ROOM + LINE_CHARS * len(above)
        if cost > room:
            break
        room -= cost
        shown_lines.add(text)
        picked += [at for at in (*above, index) if at not in picked]
    ended = next(
        (at for at in reversed(range(len(log.lines))) if is_aftermath(log.lines[at])), None
    )
    if ended is not None and min(len(log.lines[ended]), LINE_CHARS) + MARK_ROOM < room:
        picked = sorted({*picked, *([] if _words(log.lines[ended]) <= covered else [ended])})
    chosen = [at for at in range(len(log.lines)) if at in picked]
    return list(with_marks(log, chosen, shown_lines)) if chosen else []


def _speaks(log: CleanLog, index: int) -> bool:
    """Return whether a line may be about a failure: by its words, or as a frame of a stack."""
    if index in log.noise:
        return False
    line, weight = log.lines[index], weigh(log.lines[index])
    if is_aftermath(line) or is_total(line) or is_passing(line):
        return False
    if weight in {Weight.NOTHING, Weight.MENTION, Weight.PLACE}:
        place = file_in(line) if FILE.fullmatch(line.strip()) else find_place(line)
        return place is not None and index not in log.common and not is_foreign(line, place)
    return True


def _by_worth(log: CleanLog, at: int | None) -> Iterator[int]:
    """Yield line indices, the most informative first."""
    last = len(log.lines)
    if at is not None:
        after = relevant_indices(log.lines, range(at, min(at + AFTER, last)))
        yield from (index for index in after if not is_passing(log.lines[index]))
        yield from reversed(list(relevant_indices(log.lines, range(max(0, at - BEFORE), at))))
    weights = [
        Weight.NOTHING if at in log.noise else weigh(line) for at, line in enumerate(log.lines)
    ]
    telling = (index for index, weight in enumerate(weights) if weight >= Weight.WARNING)
    for index in sorted(telling, key=lambda index: -weights[index]):
        yield from relevant_indices(log.lines, (index,))
    if at is None:
        yield from range(min(AFTER, last))


def _stands_alone(index: int, picked: set[int]) -> bool:
    return index - 1 not in picked and index + 1 not in picked


def with_marks(log: CleanLog, indices: Sequence[int], shown: Collection[str]) -> Iterator[str]:
    """Yield the lines at these indices, and marks for omitted lines that are not in `shown`."""
    before = -1
    for index in [*indices, len(log.lines)]:
        if gap := _gap(log, before + 1, index, shown):
            yield gap
        before = index
        if index < len(log.lines):
            line = log.lines[index]
            yield line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"


def _gap(log: CleanLog, start: int, end: int, shown: Collection[str]) -> str:
    """Mark the number of omitted lines with content; show a single one that is as short."""
    unseen = sum(log.omitted_before(index) for index in range(start, min(end + 1, len(log.lines))))
    if end == len(log.lines):
        unseen += log.total - (log.numbers[-1] if log.numbers else 0)
    lines = [
        log.lines[index]
        for index in range(start, end)
        if MEANINGFUL.search(log.lines[index]) and log.lines[index].strip() not in shown
    ]
    count = unseen + len(lines)
    mark = omitted(count) if count else ""
    if count == len(lines) == 1 and len(lines[0]) <= len(mark) and not is_passing(lines[0]):
        return lines[0]
    return mark
