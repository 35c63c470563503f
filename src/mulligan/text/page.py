"""Write parsed Markdown as Markdown again, with nothing in it that nobody sees. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from markdown_it.token import Token

from mulligan.text.escape import visible
from mulligan.text.fence import code_block
from mulligan.text.hidden import Counts, Hidden, without_unseen
from mulligan.text.markdown import DEEPEST, parse
from mulligan.text.tags import Tags

LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")
REFERENCE = re.compile(r"\[\^([^\]\s]+)\]")
UNSAFE_IN_TARGET = re.compile(r"[\s()<>\\`]")
LONGEST_TARGET = 300
IMAGE = "[image]"
RULE = "___"
"""A line across the page, in the only way that no list begins with."""


@dataclass
class Page:
    """One text on its way through; `counts` takes what was left out."""

    counts: Counts
    _footnotes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _prose: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._tags = Tags(self.counts)
        self._tokens: Iterator[Token] = iter(())

    def show(self, markdown: str) -> str:
        """Give what is seen of a text; footnotes that nothing refers to are not."""
        tokens, definitions = parse(markdown)
        too_deep = sum(token.level >= DEEPEST - 1 for token in tokens)
        self.counts[Hidden.DEFINITION] += definitions
        self.counts[Hidden.TOO_DEEP] += too_deep
        self._tokens = iter(tokens)
        blocks = self._blocks("")
        referred = {label.casefold() for label in REFERENCE.findall("".join(self._prose))}
        for label, notes in self._footnotes.items():
            if label in referred:
                blocks += notes
            else:
                self.counts[Hidden.FOOTNOTE] += len(notes)
        return visible("\n\n".join(blocks)).strip("\n")

    def _blocks(self, end: str) -> list[str]:
        """Write the blocks up to the token that ends them."""
        found = map(self._block, self._until(end))
        return [block for block in found if block.strip()]

    def _until(self, end: str) -> Iterator[Token]:
        """Take the tokens up to the one that ends what has begun, and that one too."""
        return takewhile(lambda token: token.type != end, self._tokens)

    def _block(self, token: Token) -> str:
        match token.type:
            case "paragraph_open":
                return self._inline("paragraph_close")
            case "heading_open":
                text = self._inline("heading_close").replace("\n", " ")
                return f"{'#' * int(token.tag[1:])} {text}" if text.strip() else ""
            case "fence" | "code_block":
                return self._code(token)
            case _ if token.nesting:
                return self._container(token)
            case "hr":
                return "" if self._tags.hides else RULE
            case _:
                # Raw HTML.
                return self._unhidden(self._tags.read(token.content)).strip("\n")

    def _container(self, token: Token) -> str:
        """Write a block that has blocks in it."""
        match token.type:
            case "blockquote_open":
                return _indented("\n\n".join(self._blocks("blockquote_close")), "> ", "> ")
            case "table_open":
                return "\n".join(self._rows())
            case "footnote_open":
                return self._footnote(token.info)
            case _:
                return self._list(token.type.replace("open", "close"))

    def _code(self, token: Token) -> str:
        if self._tags.hides:
            return ""
        language, _, more = token.info.strip().partition(" ")
        if not LANGUAGE.fullmatch(language):
            language, more = "", token.info.strip()
        self.counts.update([Hidden.CODE_INFO] if more.strip() else [])
        return code_block(self._unhidden(token.content), language)

    def _list(self, end: str) -> str:
        items, gap = list[str](), "\n"
        for token in self._until(end):
            mark = f"{token.info}{token.markup}"
            text, gap = self._item()
            items.append(_indented(text, f"{mark} ", " " * (len(mark) + 1)) or mark)
        return gap.join(items)

    def _item(self) -> tuple[str, str]:
        """Write an item of a list; give it, and what stands between items that are as far apart."""
        blocks, tight = list[str](), True
        for token in self._until("list_item_close"):
            tight = tight and (token.hidden or token.type != "paragraph_open")
            blocks.append(self._block(token))
        gap = "\n" if tight else "\n\n"
        return gap.join(block for block in blocks if block.strip()), gap

    def _rows(self) -> Iterator[str]:
        cells, first = list[str](), True
        for token in self._until("table_close"):
            match token.type:
                case "th_open" | "td_open":
                    cell = self._inline(token.type.replace("open", "close"))
                    cells.append(cell.replace("|", r"\|").replace("\n", " "))
                case "tr_close":
                    yield f"| {' | '.join(cells)} |"
                    if first:
                        yield f"|{' --- |' * len(cells)}"
                    cells, first = [], False
                case _:
                    continue

    def _footnote(self, label: str) -> str:
        prose, self._prose = self._prose, []
        text = "\n\n".join(self._blocks("footnote_close"))
        self._prose = prose
        note = _indented(text, f"[^{self._unhidden(label)}]: ", "    ")
        if note:
            self._footnotes.setdefault(label, []).append(note)
        return ""

    def _inline(self, end: str) -> str:
        """Write what stands in a line or a paragraph; iterative, since emphasis nests freely."""
        parts, links = [""], list[Token]()
        for token in self._until(end):
            for child in token.children or ():
                if child.type == "link_open":
                    links.append(child)
                    parts.append("")
                elif child.type == "link_close":
                    text = parts.pop()
                    parts[-1] += self._link(text, links.pop())
                else:
                    parts[-1] += self._part(child)
        return "".join(parts).strip()

    def _part(self, token: Token) -> str:
        if token.type == "html_inline":
            return self._unhidden(self._tags.read(token.content))
        if self._tags.hides:
            return ""
        match token.type:
            case "text":
                text = self._unhidden(token.content)
                self._prose.append(text)
                return text
            case "text_special":
                return token.markup if self._unhidden(token.content) == token.content else ""
            case "code_inline":
                return _code_span(self._unhidden(token.content))
            case "softbreak" | "hardbreak":
                return "\n"
            case "image":
                self.counts[Hidden.IMAGE] += 1
                return IMAGE
            case _:
                return token.markup

    def _link(self, text: str, link: Token) -> str:
        if self._tags.hides:
            return ""
        target = self._unhidden(str(link.attrs.get("href", "")))
        if link.info == "auto":
            return f"<{target}>" if text else ""
        self.counts.update([Hidden.TITLE] if "title" in link.attrs else [])
        if not text.strip():
            self.counts[Hidden.EMPTY_LINK] += 1
            return ""
        if len(target) > LONGEST_TARGET:
            self.counts[Hidden.LONG_TARGET] += 1
            return text
        self.counts[Hidden.TARGET] += 1
        return f"[{text}]({UNSAFE_IN_TARGET.sub(_percent, target)})"

    def _unhidden(self, text: str) -> str:
        return without_unseen(text, self.counts)


def _percent(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def _indented(text: str, first: str, further: str) -> str:
    if not text.strip():
        return ""
    lines: Sequence[str] = text.split("\n")
    rest = [f"{further}{line}".rstrip() for line in lines[1:]]
    return "\n".join([f"{first}{lines[0]}", *rest])


def _code_span(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    mark = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{mark}{pad}{text}{pad}{mark}" if text else ""
