"""Write as Markdown what GitHub shows of a text, and count what is left out (TRUST-4). Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mulligan.text.escape import visible
from mulligan.text.hidden import Counts, Hidden, strip_invisible

KEPT = frozenset({Hidden.COLLAPSED, Hidden.TARGET})
"""Content that GitHub shows after a click: it stays, and is counted."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """What GitHub shows of a text, as Markdown, and the counts of what is left out."""

    text: str
    counts: Mapping[Hidden, int]


MOST_BYTES = 64 * 1024
"""Limit of a body or comment to read."""

NONE: Mapping[str, str] = MappingProxyType({})

MOST_HTML = 16
"""How many times as long GitHub's rendering of a text may be."""


def visible_text(
    markdown: str,
    html: str = "",
    *,
    most: int = MOST_BYTES,
    attachments: Mapping[str, str] = NONE,
) -> VisibleText:
    """Return what GitHub shows of a text; of one over `most` bytes, only the beginning.

    `html` is GitHub's own rendering of it, if that is known. `attachments` are words for each, by
    its address without a query.
    """
    within, over = cut(markdown, most)
    counts: Counts = Counter({Hidden.CUT: over} if over else {})
    page = "" if over or len(html) > MOST_HTML * most else html
    # Imported only where a text is read: the libraries take 60 ms.
    from mulligan.text.markdown_writer import MarkdownWriter  # noqa: PLC0415
    from mulligan.text.rendered import rendered  # noqa: PLC0415

    shown = MarkdownWriter(counts, attachments).convert_soup(rendered(within, counts, page))
    text = visible(strip_invisible(shown, counts)).strip("\n")
    counts[Hidden.WORD] += _unseen_words(within, text)
    if over:
        text = f"{text}\n\n[... {over} bytes omitted]".lstrip()
    return VisibleText(text, _found(counts))


def visible_title(title: str, most: int = 1024) -> VisibleText:
    """Return the visible part of a title, which is not Markdown."""
    within, over = cut(title, most)
    counts: Counts = Counter({Hidden.CUT: over} if over else {})
    text = visible(strip_invisible(within, counts))
    return VisibleText(f"{text}…" if over else text, _found(counts))


WORD = re.compile(r"[^\W\d_]{3,}")


def _unseen_words(markdown: str, shown: str) -> int:
    """Count the words of a source that a reader does not see, those of markup included."""
    return (Counter(WORD.findall(markdown)) - Counter(WORD.findall(shown))).total()


def _found(counts: Counts) -> dict[Hidden, int]:
    return {kind: counts[kind] for kind in Hidden if counts[kind]}


def cut(text: str, most: int) -> tuple[str, int]:
    """Return the beginning of a text, and the number of bytes cut off."""
    content = text.encode(errors="replace")
    within = content[:most].decode(errors="ignore")
    over = len(content) - len(within.encode())
    return (within, over) if over else (text, 0)
