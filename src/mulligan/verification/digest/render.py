"""Write a digest: what identifies the failure first, then totals, then a window (SPEC D2, D5). Pure."""

from collections.abc import Sequence

from mulligan.verification.digest.excerpt import window
from mulligan.verification.digest.family import Found, Reading
from mulligan.verification.digest.findings import clip
from mulligan.verification.digest.log import Log

IN_FULL = 5
DETAIL_LINES = 14
HEADING_CHARS = 360
DETAIL_CHARS = 240
SHARE_OF_IDS = 0.35
WINDOW_LEAST = 80
AROUND = "In the output:"


def render(reading: Reading, log: Log, max_chars: int, note: str = "") -> str:
    """Give the text of a failing check's digest, of at most `max_chars` characters."""
    page = _Page(max_chars)
    if note:
        page.add(note)
    totals = f"Totals: {'; '.join(reading.totals)}" if reading.totals else ""
    full, rest = reading.found[:IN_FULL], reading.found[IN_FULL:]
    ids = [f"- {found.finding.test_id or found.finding.summary}" for found in rest]
    room = page.room - min(len(totals) + 1, page.room // 4)
    room -= min(sum(len(line) + 1 for line in ids), int(room * SHARE_OF_IDS))
    for position, found in enumerate(full):
        page.add_all(_in_full(found, room // (len(full) - position)))
        room = min(room, page.room)
    return page.text()
