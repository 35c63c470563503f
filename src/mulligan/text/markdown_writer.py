"""Write Markdown from the HTML that GitHub shows (TRUST-4). Pure."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from textwrap import indent

from bs4 import Tag
from markdownify import MarkdownConverter

from mulligan.text.attachments import without_query
from mulligan.text.escape import code_block
from mulligan.text.hidden import Counts, Hidden
from mulligan.text.rendered import language_of

LONGEST_TARGET = 300
IMAGE = "[image]"
PICTURE = re.compile(r"\[image(: [^\]]+)?\]")

NAMES = frozenset({"user-mention", "team-mention", "issue-link", "commit-link"})
"""Classes of the links that GitHub makes of names such as @ada and #3."""

BACK = frozenset({"footnote-backref", "data-footnote-backref"})
"""Classes of the arrow from a footnote back to the text."""


class MarkdownWriter(MarkdownConverter):
    """Writes Markdown without escapes, since nobody renders it again."""

    def __init__(self, counts: Counts, attachments: Mapping[str, str]) -> None:
        super().__init__(
            heading_style="atx",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            sub_symbol="<sub>",
            sup_symbol="<sup>",
        )
        self._counts = counts
        self._attachments = attachments
        self._items = Counter[int]()

    def _like_the_base(self, name: str, tag: Tag, text: str, parent_tags: set[str]) -> str:
        # Its types leave these methods out.
        convert: Callable[..., str] = getattr(super(), f"convert_{name}")
        return convert(tag, text, parent_tags=parent_tags)

    def convert_li(self, item: Tag, text: str, parent_tags: set[str]) -> str:
        """Number the items of a list; the base class counts those before, for each one."""
        around = item.parent
        if around is None or around.name != "ol":
            return self._like_the_base("li", item, text, parent_tags)
        first, before = str(around.get("start") or ""), self._items[id(around)]
        self._items[id(around)] += 1
        mark = f"{(int(first[:9]) if first.isdecimal() else 1) + before}. "
        return indent(text.strip(), " " * len(mark)).replace(" " * len(mark), mark, 1) + "\n"

    def convert_hN(self, level: int, _heading: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802
        """Write a heading, if something of it is shown."""
        shown = " ".join(text.split())
        return f"\n\n{'#' * level} {shown}\n\n" if shown and "_inline" not in parent_tags else shown

    def convert_img(self, image: Tag, _text: str, **_: object) -> str:
        if words := self._attachments.get(without_query(str(image.get("src") or ""))):
            return f"[image: {words}]"
        self._counts[Hidden.IMAGE] += 1
        return IMAGE

    def convert_a(self, link: Tag, text: str, **_: object) -> str:
        target, shown = str(link.get("href") or ""), text.strip()
        classes = frozenset(link.get("class") or ())
        if classes & BACK:
            return ""
        if not shown:
            self._counts[Hidden.EMPTY_LINK] += 1
            return ""
        if not target or target.startswith("#") or classes & NAMES or PICTURE.fullmatch(shown):
            return text
        if words := self._attachments.get(without_query(target)):
            return f"{shown} [file: {words}]"
        if len(target) > LONGEST_TARGET:
            self._counts[Hidden.LONG_TARGET] += 1
            return text
        self._counts[Hidden.TARGET] += 1
        if target in {shown, f"http://{shown}"}:
            return text
        return text.replace(shown, f"[{shown}]({target})", 1)

    def convert_pre(self, code: Tag, text: str, **_: object) -> str:
        return f"\n\n{code_block(text, language_of(code))}\n\n" if text.strip() else ""

    def convert_input(self, box: Tag, _text: str, **_: object) -> str:
        return "[x]" if box.has_attr("checked") else "[ ]"

    def convert_details(self, details: Tag, text: str, **_: object) -> str:
        self._counts[Hidden.COLLAPSED] += not details.has_attr("open")
        return f"\n\n<details>\n{text.strip()}\n</details>\n\n"

    def convert_summary(self, _summary: Tag, text: str, **_: object) -> str:
        return f"<summary>{text.strip()}</summary>\n\n"

    def convert_hr(self, _rule: Tag, _text: str, **_: object) -> str:
        return "\n\n___\n\n"

    def convert_br(self, line_break: Tag, _text: str, parent_tags: set[str]) -> str:
        if "_inline" in parent_tags:
            return " "
        # GitHub and cmark write a newline behind it, which stays.
        return "" if str(line_break.next_sibling).startswith("\n") else "\n"

    def convert_td(self, cell: Tag, text: str, parent_tags: set[str]) -> str:
        return self._like_the_base("td", cell, text.replace("|", r"\|"), parent_tags)

    def convert_th(self, cell: Tag, text: str, parent_tags: set[str]) -> str:
        return self._like_the_base("th", cell, text.replace("|", r"\|"), parent_tags)
