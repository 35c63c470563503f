"""Parse Markdown as GitHub does: CommonMark, tables, strikethrough and footnotes. Pure."""

import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

DEEPEST = 60
"""Levels of nesting; nobody reads more, and what is deeper is left out."""

FOOTNOTE = re.compile(r"\[\^([^\]\s]+)\]:")
FOOTNOTE_INDENT = 4
IN_FOOTNOTE = "in_footnote"


class _Reader(MarkdownIt):
    """Every address is a link, as it was written: else its source would be taken for text."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        del url
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the library's name
        return url


@cache
def _reader() -> MarkdownIt:
    reader = _Reader("commonmark", {"maxNesting": DEEPEST}).enable(["table", "strikethrough"])
    reader.disable("text_join")
    interrupts: RuleOptionsType = {"alt": ["paragraph", "blockquote", "list", "reference", "table"]}
    reader.block.ruler.before("reference", "footnote", _footnote, interrupts)
    return reader


def parse(markdown: str) -> tuple[Sequence[Token], int]:
    """Give the tokens of a text, and how many link definitions it has, which give none."""
    found: dict[str, dict[str, object] | list[object]] = {}
    tokens = _reader().parse(markdown, found)
    unused = (found.get("references", {}), found.get("duplicate_refs", []))
    return tokens, sum(map(len, unused))


def _footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the library's way to call a rule
    """Read a footnote's definition, which may stand in the middle of a paragraph."""
    label = None if state.is_code_block(start) else FOOTNOTE.match(_line(state, start))
    if label is None:
        return False
    if silent:
        return True
    last = _last_line(state, start, end)
    if not state.env.get(IN_FOOTNOTE):
        text = state.getLines(start, last, state.blkIndent, keepLastLF=False).lstrip()
        opening, *rest = text[label.end() :].split("\n")
        body = "\n".join([opening.strip(), *(_dedented(line) for line in rest)])
        state.push("footnote_open", "", 1).info = label[1].casefold()
        state.env[IN_FOOTNOTE] = True
        state.md.block.parse(body, state.md, state.env, state.tokens)
        state.env[IN_FOOTNOTE] = False
        state.push("footnote_close", "", -1)
    state.line = last
    return True


def _last_line(state: StateBlock, start: int, end: int) -> int:
    """Find the end of a definition: after an empty line, only what is indented belongs to it."""
    empty = False
    for line in range(start + 1, end):
        indent = state.sCount[line] - state.blkIndent
        if state.isEmpty(line):
            empty = True
        elif indent < (FOOTNOTE_INDENT if empty else 0) or FOOTNOTE.match(_line(state, line)):
            return line
    return end


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _dedented(line: str) -> str:
    return line[FOOTNOTE_INDENT:] if line.startswith(" " * FOOTNOTE_INDENT) else line.lstrip()
