"""Keep the part of a Markdown text that GitHub shows, and count the rest (TRUST-4). Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from html import unescape
from itertools import takewhile

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from mulligan.text.escape import ANSI, HIDDEN, code_block, visible
from mulligan.text.markdown import DEEPEST, LEFT_OUT, parse

# Counts of what is removed


class Hidden(StrEnum):
    """Kinds of removed content; the last two stay in the text and are only counted."""

    COMMENT = "comments"
    INSTRUCTION = "processing_instructions"
    DECLARATION = "declarations"
    ELEMENT = "hidden_elements"
    TAG = "tags"
    ATTRIBUTE = "attributes"
    DEFINITION = "link_definitions"
    TITLE = "link_titles"
    EMPTY_LINK = "empty_links"
    LONG_TARGET = "long_link_targets"
    IMAGE = "images"
    FORMULA = "formulas"
    DIAGRAM = "diagrams"
    FOOTNOTE = "footnotes"
    CELL = "table_cells"
    CODE_INFO = "code_info"
    TOO_DEEP = "nested_too_deep"
    TAG_CHARACTER = "tag_characters"
    VARIATION_SELECTOR = "variation_selectors"
    BIDIRECTIONAL = "bidirectional_controls"
    ZERO_WIDTH = "zero_width"
    CONTROL = "control_characters"
    CUT = "bytes_over_the_limit"
    COLLAPSED = "collapsed_details"
    TARGET = "link_targets"


KEPT = frozenset({Hidden.COLLAPSED, Hidden.TARGET})
"""Content that GitHub shows after a click: it stays, and is counted."""

Counts = Counter[Hidden]


@dataclass(frozen=True, slots=True)
class VisibleText:
    """The visible part of a text, still as Markdown, and the counts of removed content."""

    text: str
    counts: Mapping[Hidden, int]


# A whole text or title

MOST_BYTES = 64 * 1024
"""Limit of a body or comment to read."""


def visible_text(markdown: str, most: int = MOST_BYTES) -> VisibleText:
    """Return the visible part of a Markdown text; of one over `most` bytes, only the beginning.

    Idempotent within `most`: no renderer hides any of the result.
    """
    within, over = _cut(markdown, most)
    counts: Counts = Counter()
    text = _read_until_stable(within, counts)
    if over:
        counts[Hidden.CUT] += over
        text = f"{text}\n\n[... {over} bytes omitted]".lstrip()
    return VisibleText(text, _found(counts))


def visible_title(title: str, most: int = 1024) -> VisibleText:
    """Return the visible part of a title, which is not Markdown."""
    within, over = _cut(title, most)
    counts: Counts = Counter({Hidden.CUT: over} if over else {})
    text = visible(strip_invisible(within, counts))
    return VisibleText(f"{text}…" if over else text, _found(counts))


def _found(counts: Counts) -> dict[Hidden, int]:
    return {kind: counts[kind] for kind in Hidden if counts[kind]}


PASSES = 6


def _read_until_stable(text: str, counts: Counts) -> str:
    """Read a text until the result is stable; if it never is, return it as code."""
    for again in range(PASSES):
        found: Counts = Counter()
        shown = VisibleRenderer(found).show(text)
        counts.update({kind: n for kind, n in found.items() if not again or kind not in KEPT})
        if shown == text:
            return text
        text = shown
    return code_block(text)


MOST_BRACKETS = 4000
"""Each bracket may open a link and costs a search to the end: 4,000 take a second."""


def _cut(text: str, most: int) -> tuple[str, int]:
    """Return the beginning of a text, and the number of bytes cut off."""
    content = text.encode(errors="replace")
    within = content[:most].decode(errors="ignore")
    before = within.split("[", MOST_BRACKETS)
    if len(before) > MOST_BRACKETS:
        within = "[".join(before[:-1])
    over = len(content) - len(within.encode())
    return (within, over) if over else (text, 0)


# Characters

UNSEEN = re.compile(f"{ANSI.pattern}|{HIDDEN.pattern}")

CHARACTERS = (
    (Hidden.TAG_CHARACTER, re.compile("[\U000e0000-\U000e00ff]")),
    (Hidden.VARIATION_SELECTOR, re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180f]")),
    (Hidden.BIDIRECTIONAL, re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")),
    (Hidden.CONTROL, re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")),
    (Hidden.ZERO_WIDTH, re.compile("(?s:.)")),
)
"""The kinds of characters that `UNSEEN` finds; the first match counts, the last is the rest."""


def strip_invisible(text: str, counts: Counts) -> str:
    """Remove invisible characters, and count them by kind."""

    def dropped(found: re.Match[str]) -> str:
        counts[next(kind for kind, pattern in CHARACTERS if pattern.match(found[0]))] += 1
        return ""

    return UNSEEN.sub(dropped, text)


# Raw HTML


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


BLANK = r"[ \t\n\f\r]"
NAME = r"[^ \t\n\f\r/>]"
VALUE = r"""(?:"[^"]*+"|'[^']*+'|(?=>)|[^ \t\n\f\r>"'][^ \t\n\f\r>]*+)"""
ATTRIBUTE = rf"{NAME}(?:(?!=){NAME})*+(?:(?!{BLANK}*+=)|{BLANK}*+={BLANK}*+{VALUE})"
TAG = re.compile(rf"<(/?)([A-Za-z]{NAME}*+)((?:(?:{BLANK}|/)++|{ATTRIBUTE})*+)>")
"""A tag as HTML reads it."""

TAG_START = re.compile(r"</?[A-Za-z]")

NEVER = "\0"
"""A text that never occurs: Markdown has no such character (CommonMark 2.3)."""

CONSTRUCTS = (
    ("<!--", "-->", Hidden.COMMENT),
    ("<![CDATA[", "]]>", Hidden.DECLARATION),
    ("<!", ">", Hidden.DECLARATION),
    ("<?", "?>", Hidden.INSTRUCTION),
)

AMBIGUOUS = frozenset({Hidden.DECLARATION, Hidden.INSTRUCTION})
"""Constructs that HTML ends at the first `>`."""

EARLY_END = re.compile("^-?>|--!>")
"""What ends a comment in HTML, and not in Markdown."""

HIDING = re.compile(
    r"(?<![\w-])(?:aria-)?hidden(?![\w-])"
    r"|(?:display|visibility|opacity|font(?:-size)?|color|clip|position|transform)\s*:",
    re.IGNORECASE,
)

DRAWN = _names("geojson math mermaid stl topojson")
"""Languages of code that GitHub draws: as a map, formula, diagram or model."""

LANGUAGE_OF_PRE = re.compile(
    r"(?<![\w-])(?:lang|class)\s*=\s*[\"']?\s*(?:language-)?([\w-]+)", re.IGNORECASE
)
FIRST_WORD = re.compile(r"[A-Za-z0-9_+#.-]+")
"""The language of a code block: GitHub reads `mermaid{x}` and `mermaid,x` as `mermaid`."""

SMALLER = _names("sub sup")
MOST_SMALLER = 2
"""Levels of subscripts that can be read: each has three quarters of the size around it."""

VALUES = re.compile(r"=\s*+(?:\"[^\"]*\"|'[^']*'|[^\s>]++)")

OPEN = re.compile(r"(?<![\w-])open(?![\w-])", re.IGNORECASE)


SHOWN = _names(
    "b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i ins kbd li ol p pre q "
    "s samp strike strong sub summary sup table tbody td tfoot th thead tr tt ul var"
)
"""Elements with visible content that GitHub keeps; their tags stay, without attributes."""

UNSEEN_ELEMENTS = _names(
    "applet audio canvas datalist embed frameset head iframe map math noembed noframes noscript "
    "object plaintext rp script select style svg template textarea title video xmp"
)

SCOPES = _names("marquee table")
"""Elements in which HTML ignores the closing tags of what is around them."""

VOID = _names("area base br col embed hr img input link meta source track wbr")


class HtmlVisibility:
    """The HTML of one text, in pieces; an element opened in one piece may hide the next."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._until = ""
        self._ambiguous = False
        self._open: Counter[str] = Counter()
        self.smaller = 0
        """Levels of subscripts that are open."""

    @property
    def hides(self) -> bool:
        """Return whether this place is hidden."""
        return bool(self._until or self._open)

    def read(self, raw: str) -> str:
        """Read the next piece of raw HTML; return its visible part."""
        seen, at = list[str](), 0
        while at < len(raw):
            if self._until:
                at = self._skip(raw, at)
                continue
            start = raw.find("<", at)
            end = len(raw) if start < 0 else start
            if not self._open:
                seen.append(raw[at:end])
            at = end if start < 0 else self._construct(raw, start, seen)
        return "".join(seen)

    def _hide(self, raw: str, at: int, closing: str, kind: Hidden) -> int:
        """Hide all up to a closing mark; return the position after it."""
        self._counts[kind] += 1
        self._until, self._ambiguous = closing, kind in AMBIGUOUS
        return self._skip(raw, at)

    def _skip(self, raw: str, at: int) -> int:
        """Return the position after the closing mark; without one, search the next pieces."""
        end = raw.find(self._until, at)
        after = len(raw) if end < 0 else end + len(self._until)
        self._until = self._until if end < 0 else ""
        within = raw[at:after]
        self._ambiguous = self._ambiguous or bool(EARLY_END.search(within))
        if self._ambiguous:
            self._open_within(within)
        return after

    def _open_within(self, raw: str) -> None:
        """Go on hiding after a declaration what hides for a reader that ends it earlier."""
        at = raw.find("<")
        while at >= 0:
            if raw.startswith("<!--", at):
                at = raw.find("-->", at)
                if at < 0:
                    self._until = NEVER
            elif tag := TAG.match(raw, at):
                if not tag[1]:
                    self._open_hidden(tag[2].lower(), tag[3])
                at = tag.end()
            elif TAG_START.match(raw, at):
                self._until, at = NEVER, -1
            else:
                at += 1
            at = raw.find("<", at) if at >= 0 else at

    def _construct(self, raw: str, at: int, seen: list[str]) -> int:
        """Read a construct that begins with `<`; return the position after it."""
        for opening, closing, kind in CONSTRUCTS:
            if raw[at : at + len(opening)].upper() == opening:
                return self._hide(raw, at + len(opening), closing, kind)
        if tag := TAG.match(raw, at):
            seen.append(self._tag(tag[2].lower(), tag[3], closes=bool(tag[1])))
            return tag.end()
        if TAG_START.match(raw, at):
            # An unclosed tag may swallow all following text as one of its attributes.
            return self._hide(raw, at, NEVER, Hidden.ELEMENT)
        seen.append("" if self._open else "<")
        return at + 1

    def _tag(self, name: str, attributes: str, *, closes: bool) -> str:
        if self._open:
            self._go_on_hiding(name, attributes, closes=closes)
            return ""
        if name in SMALLER:
            self.smaller = max(0, self.smaller + (-1 if closes else 1))
        if closes:
            return f"</{name}>" if name in SHOWN else self._dropped(Hidden.TAG)
        if attributes.strip(" \t\n/"):
            self._counts[Hidden.ATTRIBUTE] += 1
        if self._open_hidden(name, attributes):
            return self._dropped(Hidden.ELEMENT)
        if name == "img":
            return f"{self._dropped(Hidden.IMAGE)}[image]"
        if name == "details" and not OPEN.search(VALUES.sub(" ", attributes)):
            self._counts[Hidden.COLLAPSED] += 1
        return f"<{name}>" if name in SHOWN else self._dropped(Hidden.TAG)

    def _open_hidden(self, name: str, attributes: str) -> bool:
        """Open an element if it is hidden; return whether it is."""
        hidden = self._is_hidden(name, attributes)
        if hidden and name not in VOID:
            self._open[name] += 1
        return hidden

    def _is_hidden(self, name: str, attributes: str) -> bool:
        if name in SMALLER and self.smaller > MOST_SMALLER:
            # Its closing tag is not read.
            self.smaller -= 1
            return True
        attributes = strip_invisible(unescape(attributes), Counter())
        language = LANGUAGE_OF_PRE.search(attributes) if name in {"pre", "code"} else None
        drawn = language is not None and language[1].lower() in DRAWN
        return drawn or name in UNSEEN_ELEMENTS or bool(HIDING.search(attributes))

    def _go_on_hiding(self, name: str, attributes: str, *, closes: bool) -> None:
        """Read a tag in a hidden element: each hidden one in it has to be closed, too."""
        if closes:
            self._open -= Counter([name])
        elif name in self._open or name in SCOPES:
            self._open[name] += 1
        else:
            self._open_hidden(name, attributes)

    def _dropped(self, kind: Hidden) -> str:
        self._counts[kind] += 1
        return ""


# Formulas

LITERAL = re.compile("\x01([0-9]+)\x01")
"""The place of a code span or address, by its number: no text has this character."""

FORMULAS = re.compile(
    r"\$\$(?:[^$]|\$(?!\$))++\$\$|\$\x01(?P<code>[0-9]+)\x01\$|\$(?!\s)[^$\x01]++(?<!\s)\$"
)
"""Formulas as GitHub finds them in a paragraph."""

COMMANDS = _names(
    # Letters and signs
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu "
    "xi pi  varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta "
    "Theta Lambda Xi  Pi Sigma Upsilon Phi Psi Omega infty partial nabla hbar ell Re Im aleph "
    "emptyset varnothing  forall exists nexists neg lnot prime angle degree top bot dots ldots "
    "cdots vdots ddots "
    # Operators and relations
    "pm mp times div cdot ast star circ bullet oplus ominus otimes odot cap cup setminus land "
    "lor  wedge vee le leq ge geq ne neq lt gt ll gg approx equiv sim simeq cong propto in "
    "notin ni subset  subseteq supset supseteq mid nmid parallel perp models vdash to gets "
    "mapsto rightarrow leftarrow  leftrightarrow Rightarrow Leftarrow Leftrightarrow implies "
    "iff uparrow downarrow longrightarrow  sum prod coprod int iint iiint oint bigcup bigcap "
    "bigvee bigwedge bigoplus lim sup inf max min  log ln lg exp sin cos tan cot sec csc arcsin "
    "arccos arctan sinh cosh tanh det dim ker gcd arg deg  Pr bmod pmod mod not "
    # Structures
    "frac dfrac tfrac cfrac binom sqrt left right middle big Big bigg Bigg bigl bigr Bigl Bigr "
    "langle  rangle lfloor rfloor lceil rceil lvert rvert lVert rVert vert Vert lbrace rbrace "
    "hat widehat bar  overline underline tilde widetilde vec dot ddot overbrace underbrace "
    "overset underset stackrel  text textbf textit textrm texttt mathrm mathbf mathit mathbb "
    "mathcal mathfrak mathsf mathtt  operatorname boldsymbol boxed displaystyle textstyle "
    "limits nolimits quad qquad begin end "
)
"""Commands of TeX that show all that follows them; others may hide, colour or define something."""

COMMAND = re.compile(r"\\(?:([A-Za-z]+)|(\\\[)|.|$)|(%)", re.DOTALL)
ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{([a-zA-Z]*)\*?\}")
ENVIRONMENTS = _names(
    "align aligned bmatrix cases equation gather gathered matrix pmatrix split vmatrix"
)


def shows_all(formula: str) -> bool:
    """Return whether GitHub shows every word in the source of a formula."""
    commands = list(COMMAND.finditer(formula))
    if any(found[2] or found[3] or (found[1] or "sum") not in COMMANDS for found in commands):
        return False
    places = ENVIRONMENT.findall(formula)
    opened = sum(found[1] in {"begin", "end"} for found in commands)
    return opened == len(places) and ENVIRONMENTS.issuperset(places)


# Writing the visible Markdown

MATHS = "math"
DIAGRAM = "mermaid"

DECLARATION = re.compile("<![A-Za-z][^>]*>")
BRACKETS = re.compile(
    r"\\.|<[A-Za-z][A-Za-z0-9+.-]*+:[^<>\s]*+>"
    r"|\[(?:\\?\^|&(?:#0*+94|#[Xx]0*+5[Ee]|Hat);)?|\]",
    re.DOTALL,
)
"""Brackets of text, and what holds others: escapes and addresses."""

LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")
UNSAFE_IN_TARGET = re.compile(r"[\s()<>\\`$[\]]")
LONGEST_TARGET = 300
IMAGE = "[image]"
FORMULA, DRAWING = "[formula]", "[diagram]"

RULE = "___"
"""A horizontal rule, written so that it cannot be read as a list item."""


@dataclass
class VisibleRenderer:
    """Renders the visible part of one text, and counts in `counts` what it removes."""

    counts: Counts
    _footnotes: dict[str, str] = field(default_factory=dict[str, str])
    _referred: set[str] = field(default_factory=set[str])
    _literals: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._tags = HtmlVisibility(self.counts)
        self._is_open_in_note = False
        self._tokens: Iterator[Token] = iter(())

    def show(self, markdown: str) -> str:
        """Return the visible part of a text; footnotes without a reference are hidden."""
        tokens, definitions = parse(markdown)
        too_deep = sum(token.level >= DEEPEST - 1 for token in tokens)
        self.counts[Hidden.DEFINITION] += definitions
        self.counts[Hidden.TOO_DEEP] += too_deep
        self._tokens = iter(tokens)
        blocks = self._blocks("")
        for label, note in self._footnotes.items():
            if label in self._referred and not (self._tags.hides or self._is_open_in_note):
                blocks.append(note)
            else:
                self.counts[Hidden.FOOTNOTE] += bool(note)
        return visible("\n\n".join(filter(None, blocks))).strip("\n")

    def _blocks(self, end: str) -> list[str]:
        """Render the blocks up to the token that ends them."""
        found = map(self._block, self._until(end))
        return [block for block in found if block.strip()]

    def _until(self, end: str) -> Iterator[Token]:
        """Yield the tokens up to the closing one, and consume that."""
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
                shown = self._unhidden(self._tags.read(token.content))
                return self._without_hiding_formulas(shown).strip("\n")

    def _container(self, token: Token) -> str:
        """Render a block that contains blocks."""
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
        info = self._unhidden(unescapeAll(token.info)).strip()
        language, _, more = info.partition(" ")
        if (first := FIRST_WORD.search(language)) and first[0].lower() in DRAWN:
            language = first[0]
        if not LANGUAGE.fullmatch(language):
            language, more = "", info
        content = self._unhidden(token.content)
        match language.lower():
            case drawn if drawn not in DRAWN or (drawn == MATHS and shows_all(content)):
                self.counts.update([Hidden.CODE_INFO] if more.strip() else [])
                return code_block(content, language)
            case drawn if drawn == MATHS:
                self.counts[Hidden.FORMULA] += 1
                return FORMULA
            case _:
                # Ids, colours and comments are in the source only, and readers see none of them.
                self.counts[Hidden.DIAGRAM] += 1
                return DRAWING

    def _list(self, end: str) -> str:
        items, gap = list[str](), "\n"
        for token in self._until(end):
            mark = f"{token.info}{token.markup}"
            text, gap = self._item()
            items.append(_indented(text, f"{mark} ", " " * (len(mark) + 1)) or mark)
        return gap.join(items)

    def _item(self) -> tuple[str, str]:
        """Render a list item; return it, and the separator between items."""
        blocks, tight = list[str](), True
        for token in self._until("list_item_close"):
            tight = tight and (token.hidden or token.type != "paragraph_open")
            blocks.append(self._block(token))
        gap = "\n" if tight else "\n\n"
        return gap.join(block for block in blocks if block.strip()), gap

    def _rows(self) -> Iterator[str]:
        cells, first = list[str](), True
        for token in self._until("table_close"):
            if token.type == "td_open":
                cell = self._inline("td_close")
                cells.append(cell.replace("|", r"\|").replace("\n", " "))
                continue
            self.counts[Hidden.CELL] += token.meta[LEFT_OUT]
            yield f"| {' | '.join(cells)} |"
            if first:
                yield f"|{' --- |' * len(cells)}"
            cells, first = [], False

    def _footnote(self, label: str) -> str:
        # GitHub shows it at the end, so its HTML changes nothing here.
        referred, tags = self._referred.copy(), self._tags
        self._tags = HtmlVisibility(self.counts)
        text = "\n\n".join(self._blocks("footnote_close"))
        self._is_open_in_note = self._is_open_in_note or self._tags.hides
        self._referred, self._tags = referred, tags
        note = _indented(text, f"[^{self._unhidden(label)}]: ", "    ")
        if self._footnotes.setdefault(label, note) is not note:
            self.counts[Hidden.FOOTNOTE] += bool(note)
        return ""

    def _inline(self, end: str) -> str:
        """Render inline content; iterative, since emphasis may nest deeply."""
        parts, links, self._literals, hidden = [""], list[Token](), [], False
        smaller, prose = self._tags.smaller, list[str]()
        for token in self._until(end):
            for child in token.children or ():
                in_address = links and links[-1].info == "auto"
                is_prose = child.type == "text" and not in_address and not self._tags.hides
                prose.append(child.content if is_prose else "\n")
                if child.type == "link_open":
                    links.append(child)
                    parts.append("")
                elif child.type == "link_close":
                    text = parts.pop()
                    parts[-1] += self._link(text, links.pop())
                else:
                    parts[-1] += self._part(child)
                hidden = hidden or self._tags.hides or child.content.startswith("<![CDATA[")
        # The end of a paragraph closes what it has opened.
        self._tags.smaller = smaller
        self._referred |= _references("".join(prose))
        shown = self._without_broken_references("".join(parts), hidden=hidden)
        shown = self._without_declarations(shown)
        shown = self._without_hiding_formulas(shown)
        return LITERAL.sub(lambda found: self._literals[int(found[1])], shown).strip(" \t\n")

    def _without_declarations(self, text: str) -> str:
        """Remove declarations: GitHub shows those in small letters, other readers none."""
        end = text.rfind(">") + 1
        shown, found = DECLARATION.subn("", text[:end])
        self.counts[Hidden.DECLARATION] += found
        return shown + text[end:]

    def _without_broken_references(self, text: str, *, hidden: bool) -> str:
        """Empty footnote references that have, or may have had, several lines, as GitHub does."""
        cuts = list[tuple[int, int]]()
        for start, end in _in_footnote_brackets(text, unclosed=hidden):
            if hidden or text.find("\n", start, end) >= 0:
                while cuts and cuts[-1][0] > start:
                    cuts.pop()
                cuts.append((start, end))
        self.counts[Hidden.FOOTNOTE] += len(cuts)
        for start, end in reversed(cuts):
            text = text[:start] + text[end:]
        return text

    def _without_hiding_formulas(self, text: str) -> str:
        """Replace the formulas that hide a part of their source; code spans are numbers here."""

        def checked(found: re.Match[str]) -> str:
            number = found["code"]
            source = self._literals[int(number)] if number else found[0]
            if shows_all(source):
                return found[0]
            self.counts[Hidden.FORMULA] += 1
            return FORMULA

        return FORMULAS.sub(checked, text)

    def _part(self, token: Token) -> str:
        if token.type == "html_inline":
            return self._unhidden(self._tags.read(token.content))
        if self._tags.hides:
            return ""
        match token.type:
            case "text":
                return self._unhidden(token.content)
            case "text_special":
                return token.markup if self._unhidden(token.content) == token.content else ""
            case "code_inline" | "address":
                source = self._unhidden(token.content)
                self._literals.append(source if token.type == "address" else _code_span(source))
                return f"\x01{len(self._literals) - 1}\x01"
            case "softbreak" | "hardbreak":
                return "\n"
            case "image":
                return self._image(token.content)
            case _:
                return token.markup

    def _image(self, description: str) -> str:
        self.counts[Hidden.IMAGE] += 1
        if description.startswith("^"):
            # GitHub shows this as a link, and a tag in it may hide what follows.
            self._tags.read(description)
        return IMAGE

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
        return strip_invisible(text, self.counts)


def _in_footnote_brackets(text: str, *, unclosed: bool) -> Iterator[tuple[int, int]]:
    """Yield the beginnings and ends of the labels of footnote references, inner ones first."""
    opened = list[re.Match[str]]()
    for mark in BRACKETS.finditer(text):
        if mark[0].startswith("["):
            opened.append(mark)
        elif mark[0] == "]" and opened and len((first := opened.pop())[0]) > 1:
            yield first.end(), mark.start()
    if unclosed:
        yield from ((first.end(), len(text)) for first in reversed(opened) if len(first[0]) > 1)


def _references(text: str) -> set[str]:
    """Return the names of the footnotes that a text refers to; one in another does not count."""
    labels = list[tuple[int, int]]()
    for start, end in _in_footnote_brackets(text, unclosed=False):
        while labels and labels[-1][0] > start:
            labels.pop()
        labels.append((start, end))
    return {text[start:end].casefold() for start, end in labels}


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
