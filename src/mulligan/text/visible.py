"""Give of a Markdown text what a person sees on GitHub, and count what not (SPEC T4). Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mulligan.text.escape import visible
from mulligan.text.fence import code_block
from mulligan.text.hidden import KEPT, Counts, Hidden, without_unseen
from mulligan.text.page import Page

MOST_BYTES = 64 * 1024
"""Of a title, a body or a comment."""

MOST_BRACKETS = 4000
"""Each may begin a link, whose end is looked for to the end of the text: so many take a second."""

PASSES = 6


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of a text, still as Markdown, and how much of what kind was taken out."""

    text: str
    counts: Mapping[Hidden, int]


def seen_in(markdown: str, most: int = MOST_BYTES) -> Sight:
    """Read a text as its Markdown is shown; of one over `most` bytes only the beginning.

    Reading the result again changes nothing, as long as it is within `most`: what is left has
    nothing hidden, whoever renders it.
    """
    within, over = _cut(markdown, most)
    counts: Counts = Counter()
    text = _settled(within, counts)
    if over:
        counts[Hidden.CUT] += over
        text = f"{text}\n\n[... {over} bytes omitted]".lstrip()
    return Sight(text, _found(counts))


def seen_in_title(title: str, most: int = 1024) -> Sight:
    """Read a title, which is not Markdown."""
    within, over = _cut(title, most)
    counts: Counts = Counter({Hidden.CUT: over} if over else {})
    text = visible(without_unseen(within, counts))
    return Sight(f"{text}…" if over else text, _found(counts))


def _found(counts: Counts) -> dict[Hidden, int]:
    return {kind: counts[kind] for kind in Hidden if counts[kind]}


def _settled(text: str, counts: Counts) -> str:
    """Read a text until nothing of it changes; what never settles is shown as code."""
    for again in range(PASSES):
        found: Counts = Counter()
        shown = Page(found).show(text)
        counts.update({kind: n for kind, n in found.items() if not again or kind not in KEPT})
        if shown == text:
            return text
        text = shown
    return code_block(text)


def _cut(text: str, most: int) -> tuple[str, int]:
    """Give the beginning of a text, and how many bytes follow it."""
    content = text.encode(errors="replace")
    within = content[:most].decode(errors="ignore")
    before = within.split("[", MOST_BRACKETS)
    if len(before) > MOST_BRACKETS:
        within = "[".join(before[:-1])
    over = len(content) - len(within.encode())
    return (within, over) if over else (text, 0)
