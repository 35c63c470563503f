"""Write the text of a digest: what reports tell, and windows of the output. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mulligan.checks.digest.clean import CleanLog
from mulligan.checks.digest.findings import FindingBlock, Reading, clip
from mulligan.checks.digest.windows import windows

# The text of a digest

IN_FULL = 5
CHARS_IN_FULL = 400
"""The characters for each finding in full; a short digest has IN_FULL of them."""
DETAIL_LINES = 14
HEADING_CHARS, HEADING_LEAST = 360, 60
DETAIL_CHARS = 240
DETAIL_LEAST = 20
IDS_SHARE = 0.45
TOTALS_SHARE = 0.2
MORE_ROOM = 20
REPORT_SHARE = 0.5
"""The share of what reports tell, where the output has to tell more."""
WINDOW_TITLE = "In the output:"
WINDOW_LEAST = 100
NAMES_CHARS = 1500
"""The room for names of failures that no window shows."""


@dataclass(slots=True)
class _Page:
    """Lines that fit; `room` is the number of characters left, newlines included."""

    room: int
    lines: list[str] = field(default_factory=list[str])

    def add(self, line: str) -> bool:
        if len(line) >= self.room:
            return False
        self.lines.append(line)
        self.room -= len(line) + 1
        return True


def render_text(reading: Reading, log: CleanLog, max_chars: int, note: str = "") -> str:
    """Write what the next agent is given of a failing check, of at most `max_chars` characters.

    What reports tell comes first, then the lines of the output about failures that it lacks.
    """
    page = _Page(max_chars + 1)
    if note:
        page.add(note)
    told = reading.found if reading.structured else ()
    if told:
        left = 0 if reading.is_whole else int(max_chars * (1 - REPORT_SHARE))
        _add_findings(page, replace(reading, found=told), left)
    names = [f"- {block.finding.name}" for block in reading.found]
    reserved = min(NAMES_CHARS, _size(names)) if len(names) > IN_FULL else 0
    room = page.room - len(WINDOW_TITLE) - 1 - reserved
    lines = windows(log, room, {line.strip() for line in page.lines}) if room > 0 else []
    if lines and told:
        page.add(WINDOW_TITLE)
    for line in lines:
        page.add(line)
    _add_names(page, reading)
    return "\n".join(page.lines) or clip(_least(reading, log), max_chars)


def _add_names(page: _Page, reading: Reading) -> None:
    """Name the failures that the page does not show, as far as there is room."""
    shown = "\n".join(page.lines)
    names = dict.fromkeys(
        block.finding.test_id or _place(block) for block in reading.found if not block.is_mild
    )
    missing = [name for name in names if name and name not in shown and not _is_told(name, shown)]
    if not missing or page.room < WINDOW_LEAST:
        return
    page.add("Also:")
    added = 0
    for name in missing:
        if len(name) + 2 >= page.room - MORE_ROOM:
            break
        added += page.add(f"- {name}")
    if added < len(missing):
        page.add(f"(+ {len(missing) - added} more)")


def _place(block: FindingBlock) -> str:
    found = block.finding
    return f"{found.file}:{found.line}" if found.line else found.file or ""


def _is_told(name: str, shown: str) -> bool:
    """Return whether a text has a name without its file, as most tools print it."""
    return bool(end := name.partition(" › ")[2] or name.rpartition("::")[2]) and end in shown


def render_short(reading: Reading, log: CleanLog, max_chars: int, note: str = "") -> str:
    """Write the findings of a failing check for people, of at most `max_chars` characters.

    Without findings that are certain, show the output.
    """
    page = _Page(max_chars + 1)
    if note:
        page.add(note)
    placed = any(block.finding.file or block.finding.test_id for block in reading.found)
    if reading.found and (placed or not reading.doubtful):
        totals = f"Totals: {'; '.join(reading.totals)}" if reading.totals else ""
        totals = clip(totals, int(max_chars * TOTALS_SHARE))
        _add_findings(page, reading, len(totals) + 1)
        if totals:
            page.add(totals)
        return "\n".join(page.lines)
    for line in windows(log, page.room - 1):
        page.add(line)
    return "\n".join(page.lines) or clip(_least(reading, log), max_chars)


def _add_findings(page: _Page, reading: Reading, reserved: int) -> None:
    """Add the first findings in full, then ids while there is room, then the count of others."""
    most_in_full = max(IN_FULL, page.room // CHARS_IN_FULL)
    full, rest = reading.found[:most_in_full], reading.found[most_in_full:]
    most = int(page.room * IDS_SHARE)
    ways = ([_in_short(found, chars) for found in rest] for chars in CHARS_OF_EACH)
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


CHARS_OF_EACH = (160, 110)
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
            break
        share -= len(text) + 1
    return True


def _least(reading: Reading, log: CleanLog) -> str:
    """Return a minimal text, for an empty output or if nothing fits."""
    if reading.found:
        return reading.found[0].finding.summary
    return next((line.strip() for line in log.lines if line.strip()), "No output.")


def render_passed(totals: Iterable[str], max_chars: int) -> str:
    """Return the one line of a check that passed."""
    message = "; ".join(totals)
    return clip(f"Passed: {message}" if message else "Passed.", min(max_chars, 200))
