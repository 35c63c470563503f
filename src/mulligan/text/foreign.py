"""All text of others on its way to GitHub: agents, tools, files, people, errors (SECURITY-4). Pure.

Every function here first calls `inert`. The texts of `github/` write other people's text through
these functions only. GitHub shows such text as it is, and it does nothing: it is no markup,
mentions and closes nothing, and holds no mark. Other programs run commands at the beginning of a
line, so no line begins with it: `quoted` and `output` put `>` before each, and the other functions
give one line that stands behind words of Mulligan's own.
"""

import re
from collections.abc import Callable

from mulligan.text.escape import code_block, one_line, visible

COMMENT, BROKEN_COMMENT = "<!--", "<! --"
"""The opener of a comment. Programs find their marks by it, also in code, where nothing escapes."""

WORD = re.compile(r"\S+")

OPENING, CLOSING = "\"'“‘([{", "\"'”’)]}.,;:!?"
"""Punctuation around a word."""

ACTIVE = re.compile(r"@|#\d|(?<![a-z0-9])(?:gh-\d|www\.)|://", re.IGNORECASE)
"""Text that GitHub turns into a mention, reference or link; closing keywords need one of these."""

SKIPS_CI = re.compile(r"\[((?:skip|no)[ _-]?[\w-]+|[\w-]+[ _-]skip)\]", re.IGNORECASE)
"""Markers that make CI services skip a commit; an issue's title must not do that."""

MARKUP = re.compile(r"[\\`*_\[\]<&~$]")

OWN_CODE = re.compile(r"(?:^|(?<=\s)|(?<=\s\())`([^`]+)`(?=[.,;:)]*(?:\s|$))")
"""Inline code in a sentence: apart from other words, so that no other backtick meets its own."""

BLOCK_START = re.compile(r"^(?:(?=[#+\-=>:|])|(\d{1,9})(?=[.)]))")

NO_BREAK_SPACE = "\u00a0"

QUOTED_CHARS = 4000


def inert(text: str) -> str:
    """Remove what nobody sees, and break the openers of comments: the way of all foreign text."""
    return visible(text).replace(COMMENT, BROKEN_COMMENT)


# One line, behind words of Mulligan's own.


def phrase(text: str, limit: int) -> str:
    """Escape text, on one line, for a sentence or a list item; `limit` counts the shown characters.

    Markup and HTML are escaped. Words that GitHub would act on (mentions, references, addresses)
    become code, so `fixes #3` reads the same and closes nothing. Not idempotent.
    """
    return _escaped_line(_folded(text, limit))


def table_cell(text: str, limit: int) -> str:
    """Escape text for a cell of a table."""
    return phrase(text, limit).replace("|", r"\|")


def code(text: str, limit: int = 200) -> str:
    """Format text as inline code that it cannot leave."""
    shown = _folded(text, limit).replace("`", "'")
    return f"`{shown}`" if shown else ""


def sentence(text: str) -> str:
    """Escape a sentence of Mulligan's with names of others in it; keep its inline code."""
    parts = enumerate(OWN_CODE.split(_folded(text, len(text) + 1)))
    return "".join(
        code(part) if at % 2 else _kept_blanks(part, _escaped_line) for at, part in parts
    )


def note(text: str, url: str) -> str:
    """Format a sentence like `sentence`; keep its links to comments of the issue at `url`."""
    parts = enumerate(re.split(rf"({re.escape(url)}#issuecomment-\d+)", text))
    return "".join(part if at % 2 else _kept_blanks(part, sentence) for at, part in parts)


def address(url: str) -> str:
    """Return an address that GitHub gave, to be shown as a link."""
    return _folded(url, 300)


def plain(text: str, limit: int) -> str:
    """Indent the lines of a text for a place that shows no Markdown, such as an annotation."""
    return "\n".join(f" {line}" for line in inert(text)[:limit].split("\n"))


def subject_line(text: str, limit: int) -> str:
    """Format text as the subject of a commit or pull request, which is not Markdown.

    Put words that GitHub would act on at a merge into backticks, which `limit` counts. Remove the
    square brackets of `[skip ci]` and similar markers.
    """
    folded = SKIPS_CI.sub(r"(\1)", " ".join(inert(text).split()))
    return one_line(WORD.sub(lambda word: _subject_word(word[0]), folded), limit)


# The template of a repository's base branch, which is Markdown.

IN_CODE = re.compile(r"(`+[^`]+`+)")

REFERENCE = re.compile(r"(?<![\w/])@\w|#\d|(?<![a-z0-9])gh-\d", re.IGNORECASE)

CLOSED_ADDRESS = re.compile(
    r"(\b(?:close[sd]?|fix(?:es|ed)?|resolve[sd]?):?\s+)(\S+/(?:issues|pull)/\d+\S*)", re.IGNORECASE
)


def template_line(line: str) -> str:
    """Keep the Markdown of a template's line, and break its mentions, references and commands.

    Such a line is the repository's own, and the only text of others that begins a line. Its links
    stay, since a template leads to rules and guides.
    """
    parts = enumerate(IN_CODE.split(inert(line)))
    shown = "".join(part if at % 2 else _without_references(part) for at, part in parts)
    first, blank, others = shown.partition(" ")
    return f"{_as_code(first)}{blank}{others}" if first.startswith("/") else shown


def _without_references(text: str) -> str:
    text = CLOSED_ADDRESS.sub(lambda found: f"{found[1]}{_as_code(found[2])}", text)
    return WORD.sub(lambda word: _without_reference(word[0]), text)


def _without_reference(word: str) -> str:
    is_address = "://" in word and not word.startswith("@")
    if is_address or not REFERENCE.search(word):
        return word
    core = word.lstrip(OPENING + "*_").rstrip(CLOSING + "*_")
    return word.replace(core, _as_code(core), 1)


# Several lines, each behind a mark of quotation.


def quoted(text: str) -> str:
    """Quote text as plain paragraphs; empty stays empty."""
    shown = inert(text).strip()
    if len(shown) > QUOTED_CHARS:
        shown = shown[:QUOTED_CHARS].rstrip() + "…"
    return _quote("\n".join(map(_escaped_line, shown.expandtabs(4).split("\n")))) if shown else ""


def output(text: str) -> str:
    """Quote text as a code block, in which it stays as it is."""
    return _quote(code_block(inert(text)))


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


# How it is escaped.


def _folded(text: str, limit: int) -> str:
    return one_line(inert(text), limit)


def _kept_blanks(text: str, escape: Callable[[str], str]) -> str:
    inner = text.strip(" ")
    return text.replace(inner, escape(inner), 1) if inner else text


def _escaped_line(line: str) -> str:
    words = line.lstrip()
    indent = NO_BREAK_SPACE * (len(line) - len(words))
    escaped = WORD.sub(lambda word: _inert_word(word[0], _escaped), words)
    return indent + BLOCK_START.sub(r"\1\\", escaped)


def _subject_word(word: str) -> str:
    """Put a word into one pair of backticks, beside its signs: a subject is read as it stands."""
    return _inert_word(word.replace("`", "'") if ACTIVE.search(word) else word, str)


def _escaped(words: str) -> str:
    return MARKUP.sub(r"\\\g<0>", words)


def _inert_word(word: str, outside: Callable[[str], str]) -> str:
    """Make code of what GitHub would act on; `outside` writes the punctuation and other words."""
    core = word.lstrip(OPENING).rstrip(CLOSING)
    if not ACTIVE.search(core):
        return _as_code(word) if ACTIVE.search(word) else outside(word)
    before, _, after = word.partition(core)
    if "(" in core or "[" in core:  # The closing bracket belongs to it.
        core, after = f"{core}{after}", ""
    return f"{outside(before)}{_as_code(core)}{outside(after)}"


def _as_code(word: str) -> str:
    runs = {len(run) for run in re.findall("`+", word)}
    mark = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
    pad = " " if word.startswith("`") or word.endswith("`") else ""
    return f"{mark}{pad}{word}{pad}{mark}"
