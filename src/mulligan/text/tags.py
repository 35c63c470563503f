"""Read raw HTML in Markdown as a browser would, and keep what it shows. Pure.

Where parsers differ, more is taken out rather than less.
"""

import re

from mulligan.text.hidden import Counts, Hidden

TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)((?:\"[^\"]*\"|'[^']*'|[^'\">])*+)>")
TAG_START = re.compile(r"</?[A-Za-z]")
CONSTRUCTS = (
    ("<!--", "-->", Hidden.COMMENT),
    ("<![CDATA[", "]]>", Hidden.DECLARATION),
    ("<!", ">", Hidden.DECLARATION),
    ("<?", "?>", Hidden.INSTRUCTION),
)
NEVER = "\0"
"""Ends nothing: Markdown has no such character (CommonMark 2.3)."""


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


SHOWN = _names(
    "b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i ins kbd li ol p pre q "
    "s samp strike strong sub summary sup table tbody td tfoot th thead tr tt ul var"
)
"""Elements that GitHub keeps and that say something; of these the bare tag stays."""

UNSEEN = _names(
    "applet audio canvas datalist embed frameset head iframe map math noembed noframes noscript "
    "object plaintext script select style svg template textarea title video xmp"
)
VOID = _names("area base br col embed hr img input link meta source track wbr")
HIDING = re.compile(
    r"(?<![\w-])(?:aria-)?hidden(?![\w-])"
    r"|(?:display|visibility|opacity|font(?:-size)?|color|clip|position|transform)\s*:",
    re.IGNORECASE,
)
OPEN = re.compile(r"(?<![\w-])open(?![\w-])", re.IGNORECASE)


class Tags:
    """The HTML of one text, piece by piece; what one piece opens may hide what follows it."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._until = ""
        self._inside = ""
        self._depth = 0

    @property
    def hides(self) -> bool:
        """Tell whether nothing is seen at this place."""
        return bool(self._until or self._inside)

    def read(self, raw: str) -> str:
        """Take the next piece of raw HTML; give what is seen of it."""
        seen, at = list[str](), 0
        while at < len(raw):
            if self._until:
                at = self._skip(raw, at, self._until)
                continue
            start = raw.find("<", at)
            end = len(raw) if start < 0 else start
            if not self._inside:
                seen.append(raw[at:end])
            at = end if start < 0 else self._construct(raw, start, seen)
        return "".join(seen)

    def _skip(self, raw: str, at: int, closing: str) -> int:
        """Go behind the closing mark; where there is none, the next pieces are searched for it."""
        end = raw.find(closing, at)
        self._until = closing if end < 0 else ""
        return len(raw) if end < 0 else end + len(closing)

    def _construct(self, raw: str, at: int, seen: list[str]) -> int:
        """Read what begins with a `<`; give the place behind it."""
        for opening, closing, kind in CONSTRUCTS:
            if raw.startswith(opening, at):
                self._counts[kind] += 1
                return self._skip(raw, at + len(opening), closing)
        if tag := TAG.match(raw, at):
            shown = self._tag(tag[2].lower(), tag[3], closes=bool(tag[1]))
            seen.append(shown)
            return tag.end()
        if TAG_START.match(raw, at):
            # A tag without an end may swallow all that follows as one of its attributes.
            self._counts[Hidden.ELEMENT] += 1
            return self._skip(raw, at, NEVER)
        seen.append("" if self._inside else "<")
        return at + 1

    def _tag(self, name: str, attributes: str, *, closes: bool) -> str:
        if self._inside:
            self._go_on_hiding(name, closes=closes)
            return ""
        if closes:
            return f"</{name}>" if name in SHOWN else self._dropped(Hidden.TAG)
        if attributes.strip(" \t\n/"):
            self._counts[Hidden.ATTRIBUTE] += 1
        if name in UNSEEN or HIDING.search(attributes):
            self._inside, self._depth = ("", 0) if name in VOID else (name, 1)
            return self._dropped(Hidden.ELEMENT)
        if name == "img":
            return f"{self._dropped(Hidden.IMAGE)}[image]"
        if name == "details" and not OPEN.search(attributes):
            self._counts[Hidden.COLLAPSED] += 1
        return f"<{name}>" if name in SHOWN else self._dropped(Hidden.TAG)

    def _go_on_hiding(self, name: str, *, closes: bool) -> None:
        if name == self._inside:
            self._depth += -1 if closes else 1
            self._inside = self._inside if self._depth else ""

    def _dropped(self, kind: Hidden) -> str:
        self._counts[kind] += 1
        return ""
