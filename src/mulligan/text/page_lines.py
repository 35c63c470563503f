"""Read the lines of a text as GitHub shows it, with the lists and paragraphs around them. Pure."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from bs4 import Tag
from bs4.element import PageElement

from mulligan.text.rendered import rendered


class Line(NamedTuple):
    """A line of a text, as it is shown; `blocks` are its list, item and paragraph, outermost first.

    `is_done` is set for a checked item of a task list.
    """

    text: str
    blocks: tuple[int, ...]
    is_done: bool


def lines_of(markdown: str, address: re.Pattern[str]) -> Iterator[Line]:
    """Yield the lines of paragraphs, headings and list items, without quotations and tables.

    A link counts as its address, if `address` matches that.
    """
    return _Reader(address).lines(rendered(markdown, Counter()), ())


BLOCKS = frozenset({"ul", "ol", "li", "p", "h1", "h2", "h3", "h4", "h5", "h6"})
"""Elements whose lines belong together."""

ALIKE = frozenset({"div", "section", "details", "summary", "dl", "dt", "dd"})
"""Elements that stand for their content."""

PASSED_OVER = frozenset({"blockquote", "table", "pre", "hr"})
STRUCK = frozenset({"s", "del", "strike"})
NOTES = "footnotes"

TASK = re.compile(r"\s*\[([ x])\] ")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the lines of one page, and numbers its blocks."""

    address: re.Pattern[str]
    numbers: Iterator[int] = field(default_factory=count)

    def lines(self, block: Tag, around: tuple[int, ...]) -> Iterator[Line]:
        """Yield the lines in a block; `around` are the numbers of it and of those around it."""
        text = list[str]()
        for part in block.children:
            if not (isinstance(part, Tag) and part.name in BLOCKS | ALIKE | PASSED_OVER):
                text += self._shown(part)
                continue
            yield from self._split(text, block, around)
            text.clear()
            if part.name not in PASSED_OVER and NOTES not in (part.get("class") or ()):
                own = (next(self.numbers),) if part.name in BLOCKS else ()
                yield from self.lines(part, (*around, *own))
        yield from self._split(text, block, around)

    def _split(self, text: list[str], block: Tag, around: tuple[int, ...]) -> Iterator[Line]:
        """Yield the lines of a paragraph's text."""
        shown = "".join(text)
        is_item = any(each and each.name == "li" for each in (block, block.parent))
        task = TASK.match(shown) if is_item else None
        is_done = bool(task) and task[1] != " "
        blocks = (*around, next(self.numbers))
        for line in shown[task.end() if task else 0 :].strip("\n").split("\n"):
            if shown.strip():
                yield Line(line.strip(), blocks, is_done)

    def _shown(self, part: PageElement) -> Iterator[str]:
        """Yield the text of a part, without text that is struck out; code keeps its marks."""
        if not isinstance(part, Tag):
            yield str(part)
        elif part.name == "br":
            yield "\n"
        elif part.name == "input":
            yield "[x] " if part.has_attr("checked") else "[ ] "
        elif part.name == "code":
            yield f"`{part.get_text()}`"
        elif part.name == "a" and self.address.fullmatch(target := str(part.get("href") or "")):
            yield target
        elif part.name not in STRUCK:
            for inner in part.children:
                yield from self._shown(inner)
