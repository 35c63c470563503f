"""Parse Markdown as GitHub does, with tables and footnotes. Pure.

markdown-it-py follows a newer CommonMark than cmark-gfm 0.29.0.gfm.13, GitHub's parser. A text that
only one of them hides could be read by an agent and by no person, so this module has GitHub's rules
where they differ. `tests/text/test_visible.py` compares the result with that parser.
"""

import builtins
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import cast

from markdown_it import MarkdownIt
from markdown_it.common.html_blocks import block_names
from markdown_it.common.utils import unescapeAll
from markdown_it.helpers import parseLinkDestination, parseLinkLabel
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline, html_inline
from markdown_it.token import Token
from markdown_it.utils import EnvType

DEEPEST = 60
"""Levels of nesting; deeper content is removed."""


class _Reader(MarkdownIt):
    """A Markdown parser that accepts every address as a link; otherwise its source becomes text."""

    def __init__(self) -> None:
        super().__init__()
        self.block = _BlockParser()
        self.configure("commonmark", {"maxNesting": DEEPEST})
        self.helpers = SimpleNamespace(
            parseLinkLabel=parseLinkLabel,
            parseLinkDestination=_destination,
            parseLinkTitle=_title,
        )

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        del url
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the library's name
        return url


def parse(markdown: str) -> tuple[Sequence[Token], int]:
    """Return the tokens of a text, and its number of link definitions, which have no token."""
    found: dict[str, dict[str, object] | list[object]] = {}
    text = CDATA.sub("<![CDATA[", markdown.removeprefix("\ufeff"))
    # The library reads beyond the end of a last line that is blank and has no line end.
    tokens = _reader().parse(f"{text}\n", found)
    unused = (found.get("references", {}), found.get("duplicate_refs", []))
    return tokens, sum(map(len, unused))


@cache
def _reader() -> MarkdownIt:
    reader = _Reader().enable(["table", "strikethrough"])
    reader.disable("text_join")
    block = reader.block.ruler
    block.before("table", "footnote", _footnote, {"alt": ["paragraph", "list"]})
    block.at("blockquote", _quote, {"alt": ["paragraph", "list"]})
    block.at("code", _indented_code)
    block.at("table", _table, {"alt": ["paragraph"]})
    block.at("html_block", _html_block, {"alt": ["paragraph"]})
    block.at("paragraph", _paragraph)
    block.disable(["reference", "lheading"])
    reader.inline.ruler.at("html_inline", _html_inline)
    reader.inline.ruler.at("backticks", _code)
    reader.inline.ruler.before("text", "address", _address)
    reader.inline.add_terminator_char("w")
    return reader


CODE_INDENT = TAB = 4


class _State(StateBlock):
    """The state of the block parser, with GitHub's rules of indentation.

    `items` has the indentations of the open list items, a list for each open quote and one before.
    """

    def __init__(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> None:
        super().__init__(src, md, env, tokens)
        self.items: list[list[int]] = [[]]

    def is_code_block(self, line: int) -> bool:
        """Return whether a line is indented too far to begin a block in its containers."""
        indent, items = self.sCount[line], self.items[-1]
        if indent >= self.blkIndent:
            return indent - self.blkIndent >= CODE_INDENT
        if indent < 0:  # The quote rule marks lines without its `>` so.
            start = self.bMarks[line]
            markers = self.src[self.src.rfind("\n", 0, start) + 1 : start]
            spaces, column = self.src[start : start + self.tShift[line]], self.bsCount[line]
            indent = _column_after(spaces, column) - column
            items = self.items[markers.count(">")]
        return indent - max((item for item in items if item <= indent), default=0) >= CODE_INDENT

    def isEmpty(self, line: int) -> bool:  # noqa: N802 - the library's name
        """Return whether a line is blank, and ends a list item that has no content before it."""
        if self.bMarks[line] + self.tShift[line] < self.eMarks[line]:
            return False
        marker = line - 1
        if marker < 0 or self.bMarks[marker] + self.tShift[marker] < self.eMarks[marker]:
            return True
        # The list rule moves the begin of an item's line to the content, here to its end.
        if not self.src[self.bMarks[marker] : self.eMarks[marker]].strip(" \t"):
            return True
        blank = range(line, self.skipEmptyLines(line))
        return any(self.sCount[each] < self.blkIndent for each in blank)


INDENTED = frozenset({"list_item_open", "footnote_open"})


class _BlockParser(ParserBlock):
    """The block parser, with the state above."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803 - the library's names
        items = cast("_State", state).items
        opened = state.tokens[-1].type if state.tokens else ""
        if opened == "blockquote_open":
            items.append([])
        elif opened in INDENTED:
            items[-1].append(state.blkIndent)
        super().tokenize(state, startLine, endLine)
        if opened == "blockquote_open":
            items.pop()
        elif opened in INDENTED:
            items[-1].pop()

    def parse(
        self,
        src: str,
        md: MarkdownIt,
        env: EnvType,
        outTokens: list[Token],  # noqa: N803 - the library's name
    ) -> list[Token] | None:
        state = _State(src, md, env, outTokens)
        self.tokenize(state, state.line, state.lineMax)
        return state.tokens


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _begins_block(state: StateBlock, line: int, end: int, parent: str) -> bool:
    """Return whether a line begins a block other than a table; in a paragraph, fewer do."""
    before, state.parentType = state.parentType, parent
    rules = state.md.block.ruler.getRules("paragraph")
    begins = any(rule(state, line, end, True) for rule in rules if rule is not _table)  # noqa: FBT003 - `silent`
    state.parentType = before
    return begins


def _indented_code(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse a code block; no line goes on with it that is outside of a container."""
    del silent  # It interrupts nothing.
    last = line = start
    while line < end and (state.isEmpty(line) or StateBlock.is_code_block(state, line)):
        line += 1
        last = last if state.isEmpty(line - 1) else line
    if last == start:
        return False
    content = state.getLines(start, last, state.blkIndent + CODE_INDENT, keepLastLF=False)
    state.push("code_block", "code", 0).content = f"{content}\n"
    state.line = last
    return True


# HTML

CDATA = re.compile(r"<!\[CDATA\[", re.IGNORECASE | re.ASCII)
SPACE = r"[ \t\n\v\f\r]"
VALUE = r"(?:[^ \t\n\v\f\r\"'=<>`]++|'[^']*+'|\"[^\"]*+\")"
ATTRIBUTE = rf"{SPACE}++[A-Za-z_:][A-Za-z0-9:._-]*+(?:{SPACE}*+={SPACE}*+{VALUE})?+"
OPENING_TAG = rf"<[A-Za-z][A-Za-z0-9-]*+(?:{ATTRIBUTE})*+{SPACE}*+/?>"
CLOSING_TAG = rf"</[A-Za-z][A-Za-z0-9-]*+{SPACE}*+>"

INLINE_HTML = re.compile(
    rf"{OPENING_TAG}|{CLOSING_TAG}|<!--.*|<\?.*|<!\[CDATA\[.*|<![A-Z]++{SPACE}++[^>]*+>",
    re.DOTALL,
)
TAG_ALONE = re.compile(rf"(?:{OPENING_TAG}|{CLOSING_TAG})[ \t\f]*+")

BLOCKS = "|".join(sorted({*block_names, "source"} - {"search"}))
EMPTY = r"^\Z"


def _block(opening: str, closing: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    flags = re.IGNORECASE | re.ASCII
    return re.compile(opening, flags), re.compile(closing, flags)


HTML_BLOCKS = (
    _block(rf"<(?:script|pre|style|textarea)(?:{SPACE}|>|$)", "</(?:script|pre|style|textarea)>"),
    _block("<!--", "-->"),
    _block(r"<\?", r"\?>"),
    _block("<!(?-i:[A-Z])", ">"),
    _block(r"<!\[CDATA\[", "]]>"),
    _block(rf"</?(?:{BLOCKS})(?:{SPACE}|/?>|$)", EMPTY),
)
"""The first words of a block of HTML, and what ends it."""


def _html_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse a block of HTML."""
    line = _line(state, start)
    if not line.startswith("<") or state.is_code_block(start):
        return False
    lazy = state.sCount[start] < state.blkIndent
    interrupts = silent and state.parentType == "paragraph" and not lazy
    closing = _closing(line, interrupts=interrupts)
    if closing is None or silent:
        return closing is not None
    at_empty, last = closing.pattern == EMPTY, start
    while not closing.search(_line(state, last)):
        last += 1
        outside = state.sCount[last] < state.blkIndent and (at_empty or not state.isEmpty(last))
        if last == end or outside:
            break
    else:
        last += not at_empty
    token = state.push("html_block", "", 0)
    token.content = state.getLines(start, last, state.blkIndent, keepLastLF=True)
    state.line = last
    return True


def _closing(line: str, *, interrupts: bool) -> re.Pattern[str] | None:
    """Return what ends the HTML that begins in a line; a tag alone does not end a paragraph."""
    for opening, closing in HTML_BLOCKS:
        if opening.match(line):
            return closing
    return HTML_BLOCKS[-1][1] if TAG_ALONE.fullmatch(line) and not interrupts else None


def _html_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse HTML in a sentence."""
    start = state.pos
    if not html_inline(state, silent=True):
        return False
    raw = state.src[start : state.pos]
    if not INLINE_HTML.fullmatch(raw):
        state.pos = start
        return False
    if not silent:
        state.push("html_inline", "", 0).content = raw
    return True


# Tables

UNDERLINE = re.compile(r"([-=])\1*+[ \t]*+")
COLUMN = r"[ \t\v\f]*+:?-++:?[ \t\v\f]*+"
DELIMITERS = re.compile(rf"(?!-[ \t])\|?{COLUMN}(?:\|{COLUMN})*+\|?[ \t\v\f]*+")

LEFT_OUT = "left_out"
"""The number of cells of a row that no heading is above: GitHub does not show them."""

FIRST_LINE, HEADING = "first_line", "heading"
"""Keys of the first line of the current paragraph, and of the table that ends it."""


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse a table; on GitHub, the heading of a single column needs no `|`."""
    heading = _heading_of_table(state, start, end, in_paragraph=silent)
    if silent:
        state.env[HEADING] = start if heading else None
    if not heading or silent:
        return bool(heading)
    state.push("table_open", "table", 1)
    row: Sequence[str] = heading
    line = start + 2
    while row:
        for cell in row[: len(heading)]:
            state.push("td_open", "td", 1)
            inline = state.push("inline", "", 0)
            inline.content, inline.children = cell, []
            state.push("td_close", "td", -1)
        state.push("tr_close", "tr", -1).meta = {LEFT_OUT: len(row[len(heading) :])}
        ends = line >= end or _ends_table(state, line, end)
        row = [] if ends else _cells(_line(state, line))
        line += bool(row)
    state.push("table_close", "table", -1)
    state.line = line
    return True


def _heading_of_table(
    state: StateBlock, line: int, end: int, *, in_paragraph: bool
) -> Sequence[str]:
    """Return the cells of the heading of a table; GitHub tries once in each paragraph."""
    after = line + 1
    if after >= end or state.sCount[after] < state.blkIndent or state.is_code_block(after):
        return []
    delimiters = _line(state, after)
    if UNDERLINE.fullmatch(delimiters) or not DELIMITERS.fullmatch(delimiters):
        return []
    cells = _cells(_line(state, line))
    if len(cells) != len(_cells(delimiters)):
        return []
    in_paragraph = in_paragraph or state.env.get(HEADING) == line
    if state.is_code_block(line) and not in_paragraph:
        return []
    before = range(line, state.env[FIRST_LINE], -1) if in_paragraph else ()
    tried = any(
        DELIMITERS.fullmatch(_line(state, number))
        for number in before
        if 0 <= state.sCount[number] - state.blkIndent < CODE_INDENT
    )
    begins = _begins_block(state, line, end, "paragraph" if in_paragraph else "table")
    return [] if tried or begins else cells


def _ends_table(state: StateBlock, line: int, end: int) -> bool:
    outside = state.sCount[line] < state.blkIndent or state.is_code_block(line)
    return outside or _begins_block(state, line, end, "table")


def _cells(line: str) -> Sequence[str]:
    """Return the cells of a row; a single `|` has none."""
    cells: list[str] = re.split(r"(?<!\\)\|", line.removeprefix("|"))
    if not cells[-1].strip(ASCII_SPACES):
        cells.pop()
    return [cell.strip(ASCII_SPACES).replace(r"\|", "|") for cell in cells]


ASCII_SPACES = " \t\n\v\f\r"


# Paragraphs and link definitions


def _paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse a paragraph or an underlined heading; what it defines, GitHub reads at its end."""
    state.env[FIRST_LINE], level, line = start, 0, start + 1
    while line < state.lineMax and not state.isEmpty(line):
        level = _level(state, line)
        if level or _ends_paragraph(state, line):
            break
        line += 1
    content = state.getLines(start, line, state.blkIndent, keepLastLF=False).strip(ASCII_SPACES)
    if level or not _table(state, line, state.lineMax, silent=True):
        content = _without_definitions(content, state.env)
    if level and not content:
        # The underline is text.
        return _paragraph(state, line, end, silent)
    name, tag = ("heading", f"h{level}") if level else ("paragraph", "p")
    if content:
        state.push(f"{name}_open", tag, 1)
        inline = state.push("inline", "", 0)
        inline.content, inline.children = content, []
        state.push(f"{name}_close", tag, -1)
    state.line = line + bool(level)
    return True


def _level(state: StateBlock, line: int) -> int:
    """Return the level of the heading above an underline; 0 if it is none."""
    if not 0 <= state.sCount[line] - state.blkIndent < CODE_INDENT:
        return 0
    underline = UNDERLINE.fullmatch(_line(state, line))
    return " =-".index(underline[1]) if underline else 0


def _ends_paragraph(state: StateBlock, line: int) -> bool:
    """Return whether another block begins; an indented line can only be a table's heading."""
    if _table(state, line, state.lineMax, silent=True):
        # If only the paragraph held the line in its container, the table does so now.
        state.sCount[line] = max(state.sCount[line], state.blkIndent)
        return True
    can_begin = 0 <= state.sCount[line] < state.blkIndent + CODE_INDENT
    return can_begin and _begins_block(state, line, state.lineMax, "paragraph")


def _without_definitions(content: str, env: EnvType) -> str:
    """Return a paragraph without the definitions that it begins with; they are kept in `env`."""
    if not content.startswith("["):
        return content
    lines = [line.lstrip(" \t") for line in content.split("\n")]
    definitions, line = StateBlock("\n".join(lines), _definitions(), env, []), 0
    while line < len(lines) and reference(definitions, line, len(lines), False):  # noqa: FBT003 - `silent`
        line = definitions.line
    return "\n".join(lines[line:])


@cache
def _definitions() -> MarkdownIt:
    reader = _Reader()
    reader.block.ruler.enableOnly(["reference"])
    return reader


# Addresses and titles of links

IN_DESTINATION = re.compile(r"[^ \t\r\n()\\]++|\\[!-/:-@\[-`{-~]|[()\\]")
MOST_PARENTHESES = 32

TITLE_BEGINS = re.compile(r"[ \t\v\f]*+([\"'(])")
IN_TITLE = {
    '"': re.compile(r'(\\?)(")[\v\f]*+'),
    "'": re.compile(r"(\\?)(')[\v\f]*+"),
    "(": re.compile(r"(\\?)([()])[\v\f]*+"),
}
"""The marks that can end a title, by its first character; a backslash may escape one."""


@dataclass(slots=True)
class _Found:
    """A result in the form that markdown-it's rules read."""

    ok: bool = False
    pos: int = 0
    str: builtins.str = ""
    can_continue: bool = False
    opening: builtins.str = ""


def _destination(string: str, start: int, maximum: int) -> _Found:
    """Parse an address; GitHub accepts parentheses without an end, and control characters."""
    while string.startswith(("\v", "\f"), start):
        start += 1
    if string.startswith("<", start):
        found = parseLinkDestination(string, start, maximum)
        return _Found(found.ok, found.pos, found.str)
    depth, at = 0, start
    while piece := IN_DESTINATION.match(string, at, maximum):
        depth += {"(": 1, ")": -1}.get(piece[0], 0)
        if depth < 0:
            break
        if depth > MOST_PARENTHESES:
            return _Found()
        at = piece.end()
    return _Found(ok=at > start, pos=at, str=unescapeAll(string[start:at]))


def _title(string: str, start: int, maximum: int, before: _Found | None = None) -> _Found:
    """Parse a title, or its next line; on GitHub an escaped mark ends it if no other mark does."""
    end, opening, closed = 0, "", False
    if before:
        end, opening = before.pos, before.opening
    elif begins := TITLE_BEGINS.match(string, start, maximum):
        start, opening = begins.end(), begins[1]
    else:
        return _Found()
    for mark in IN_TITLE[opening].finditer(string, start, maximum):
        if mark[2] != "(":
            end = mark.end()
        if closed := not mark[1]:
            break
    return _Found(end > 0, end, string[start:maximum], can_continue=not closed, opening=opening)


# Addresses in a text

SCHEME = re.compile(r"(?:.*[^A-Za-z])?(?:https?|ftp)", re.IGNORECASE | re.DOTALL | re.ASCII)
LONGEST_SCHEME = 6
ADDRESS = re.compile(
    r"(?:://(?=[^\W_])|(?<![^ \t\n\r*_~(])www\.)(?P<host>(?:\\?[\w.-])*+)[^ \t\n\r<]*+"
)
ENTITY_END = re.compile(r"&[A-Za-z]++;\Z")
LONGEST_ENTITY = 34
AFTER_ADDRESS = "?!.,:*_~'\";"
"""What ends an address, but is not a part of it."""


def _address(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse an address in a text: on GitHub, it holds no code and no escapes."""
    at = state.pos
    found = ADDRESS.match(state.src, at, state.posMax) if state.src[at] in ":w" else None
    # The library is silent in brackets only, and GitHub sees no address there.
    if found is None or silent or _in_brackets(state):
        return False
    if "_" in "".join(found["host"].split(".")[-2:]):
        return False
    if state.src[at] == ":" and not SCHEME.fullmatch(state.src[max(at - LONGEST_SCHEME, 0) : at]):
        return False
    text = _without_end(found[0])
    state.push("address", "", 0).content = text
    state.pos += len(text)
    return True


PROGRESS = "progress"


@dataclass(slots=True)
class _Progress:
    """What is known of the part of a text that has been parsed."""

    state: StateInline
    counted: int = 0
    """Tokens whose brackets are counted."""
    depth: int = 0
    """Brackets that are open in these tokens."""
    runs: dict[int, int] = field(default_factory=dict[int, int])
    """The last run of backticks of each length that was passed in search of an end."""
    all_seen: bool = False
    """Whether a search has come to the end of the text."""
    ends: dict[int, int] = field(default_factory=dict[int, int])
    """The ends of code by its beginnings; -1 if it has no end."""


def _progress(state: StateInline) -> _Progress:
    progress = state.env.get(PROGRESS)
    if not isinstance(progress, _Progress) or progress.state is not state:
        progress = state.env[PROGRESS] = _Progress(state)
    return progress


def _in_brackets(state: StateInline) -> bool:
    """Return whether a bracket is open at this place of a text."""
    if state.linkLevel:
        return True
    progress, tokens = _progress(state), state.tokens
    for at in range(progress.counted, len(tokens)):
        before = tokens[at - 1] if at else None
        in_address = before and before.info == "auto" and before.nesting == 1
        if tokens[at].type == "text" and not in_address:
            progress.depth = _depth(progress.depth, tokens[at].content)
    progress.counted = len(tokens)
    return _depth(progress.depth, state.pending) > 0


def _depth(depth: int, text: str) -> int:
    if "]" not in text:
        return depth + text.count("[")
    for bracket in re.findall(r"[\[\]]", text):
        depth = depth + 1 if bracket == "[" else max(0, depth - 1)
    return depth


def _without_end(address: str) -> str:
    end, unopened = len(address), address.count(")") - address.count("(")
    while address[end - 1] in AFTER_ADDRESS or (address[end - 1] == ")" and unopened > 0):
        unopened -= address[end - 1] == ")"
        entity = ENTITY_END.search(address, max(end - LONGEST_ENTITY, 0), end)
        end = entity.start() if entity else end - 1
    return address[:end]


# Code in a text

BACKTICKS = re.compile("`+")
MOST_BACKTICKS = 80


def _code(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse code in a sentence; GitHub's search for its end forgets ends that it has passed."""
    opening = BACKTICKS.match(state.src, state.pos)
    if opening is None:
        return False
    progress, start = _progress(state), opening.end()
    if start not in progress.ends:
        progress.ends[start] = _end_of_code(progress, state.src, start, len(opening[0]))
    end = progress.ends[start]
    if end < 0 and not silent:
        state.append_pending(opening[0])
    elif not silent:
        code = state.src[start : end - len(opening[0])].replace("\n", " ")
        padded = code.strip(" ") and code[0] == code[-1] == " "
        state.push("code_inline", "code", 0).content = code[1:-1] if padded else code
    state.pos = start if end < 0 else end
    return True


def _end_of_code(progress: _Progress, text: str, start: int, length: int) -> int:
    if length > MOST_BACKTICKS or (progress.all_seen and progress.runs.get(length, 0) <= start):
        return -1
    for run in BACKTICKS.finditer(text, start):
        progress.runs[len(run[0])] = run.start()
        if len(run[0]) == length:
            return run.end()
    progress.all_seen = True
    return -1


# Quotes and footnotes


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse a quote, of lines that begin with `>` or go on with a paragraph of it."""
    if state.is_code_block(start) or not _line(state, start).startswith(">"):
        return False
    if silent:
        return True
    places, line, is_blank = dict[int, Place](), start, False
    while line < end:
        if state.sCount[line] < 0 and not is_blank:
            line += 1  # It goes on with a paragraph, as a quote around this one found.
            continue
        place = _place(state, line)
        is_inside = state.sCount[line] >= state.blkIndent and not state.is_code_block(line)
        if is_inside and _line(state, line).startswith(">"):
            is_blank = _enter_quote(state, line)
        elif is_blank or state.isEmpty(line) or _begins_block(state, line, end, "blockquote"):
            break
        else:
            state.sCount[line] = -1
        places[line] = place
        line += 1
    outside = (state.blkIndent, state.lineMax)
    state.blkIndent, state.lineMax = 0, line
    state.push("blockquote_open", "blockquote", 1)
    state.md.block.tokenize(state, start, line)
    state.push("blockquote_close", "blockquote", -1)
    state.blkIndent, state.lineMax = outside
    for number, place in places.items():
        _restore(state, number, place)
    return True


def _enter_quote(state: StateBlock, line: int) -> bool:
    """Move the begin of a line after `>` and one space; return whether nothing else is there."""
    at = state.bMarks[line] + state.tShift[line] + 1
    column = state.bsCount[line] + state.sCount[line] + 1
    text, last = _line(state, line)[1:], state.eMarks[line]
    spaces = len(text) - len(text.lstrip(" \t"))
    content = _column_after(text[:spaces], column)
    if spaces:
        # The rest of a wide tab stays: its columns are counted from the column after `>`.
        at += text[0] == " " or column % TAB == TAB - 1
        column += 1
    state.bMarks[line] = at
    state.tShift[line] = last - len(text) + spaces - at
    state.bsCount[line], state.sCount[line] = column, content - column
    return spaces == len(text)


def _column_after(text: str, column: int) -> int:
    """Return the column after a text with tabs that begins in a column."""
    shift = column % TAB
    return column - shift + len((" " * shift + text).expandtabs(TAB))


Place = tuple[int, int, int, int]


def _place(state: StateBlock, line: int) -> Place:
    return state.bMarks[line], state.tShift[line], state.sCount[line], state.bsCount[line]


def _restore(state: StateBlock, line: int, place: Place) -> None:
    state.bMarks[line], state.tShift[line], state.sCount[line], state.bsCount[line] = place


FOOTNOTE = re.compile(r"\[\^([^\] \t\r\n]+)\]:[ \t]*+")
FOOTNOTE_INDENT = 4
IN_FOOTNOTE = "in_footnote"


def _footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the library's calling convention
    """Parse a footnote definition, which may interrupt a paragraph; one in another is empty."""
    label = None if state.is_code_block(start) else FOOTNOTE.match(_line(state, start))
    if label is None:
        return False
    if silent:
        return True
    place, is_nested = _place(state, start), IN_FOOTNOTE in state.env
    outside = (state.blkIndent, state.listIndent, state.lineMax)
    column = _column_after(label[0], state.bsCount[start] + state.sCount[start])
    state.blkIndent += FOOTNOTE_INDENT
    state.listIndent = -1
    begin = state.bMarks[start] + state.tShift[start] + label.end()
    state.push("footnote_open", "", 1).info = label[1].casefold()
    tokens = len(state.tokens)
    state.env[IN_FOOTNOTE] = True
    _restore(state, start, (begin, 0, state.blkIndent, column - state.blkIndent))
    state.lineMax = end if is_nested else _end_of_footnote(state, start, end)
    state.md.block.tokenize(state, start, state.lineMax)
    state.blkIndent, state.listIndent, state.lineMax = outside
    _restore(state, start, place)
    if is_nested:
        within = state.tokens[tokens:]
        state.tokens[tokens:] = [each for each in within if each.type.startswith("footnote_")]
    else:
        del state.env[IN_FOOTNOTE]
    state.push("footnote_close", "", -1)
    return True


def _end_of_footnote(state: StateBlock, start: int, end: int) -> int:
    """Return the first line that cannot belong to a footnote; a paragraph may end it earlier.

    A blank line does, if it has spaces or is in a quote, and is not indented as the footnote.
    """
    is_blank = False
    for line in range(start + 1, end):
        is_outside = state.sCount[line] < state.blkIndent
        if state.isEmpty(line):
            at, is_blank = state.bMarks[line], True
            if is_outside and (at < state.eMarks[line] or state.src[at - 1] != "\n"):
                return line
        elif is_outside and (is_blank or _begins_block(state, line, end, "footnote")):
            return line
        else:
            is_blank = False
    return end
