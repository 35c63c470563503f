"""A diff with its lines marked and its code highlighted, as HTML. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_for_filename
from pygments.lexers.special import TextLexer

MAX_LINES = 400
"""Lines of a diff to show; the file has the rest."""

MAX_LINE_CHARS = 400

KINDS = {"+": "add", "-": "del", "@": "hunk", "\\": "hunk"}


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The lines of one file; `html` has one element for each line."""

    path: str
    added: int
    removed: int
    html: Markup


@dataclass(frozen=True, slots=True)
class DiffView:
    """The files of a diff, and the number of lines that are not shown."""

    files: tuple[FileDiff, ...]
    hidden: int


def diff_view(diff: str) -> DiffView:
    """Return a diff for a page; `diff` is without invisible characters."""
    lines = diff.split("\n")
    files = tuple(_file(part) for part in _by_file(lines[:MAX_LINES]))
    return DiffView(files, max(0, len(lines) - MAX_LINES))


def _by_file(lines: Sequence[str]) -> Iterator[list[str]]:
    part = list[str]()
    for line in lines:
        if line.startswith("diff --git ") and part:
            yield part
            part = []
        part.append(line)
    if part != [""]:
        yield part


def _file(lines: Sequence[str]) -> FileDiff:
    body = next((place for place, line in enumerate(lines) if line.startswith("@@")), len(lines))
    head, shown = lines[:body], [line[:MAX_LINE_CHARS] for line in lines[body:]]
    while shown and not shown[-1]:
        shown.pop()
    path = _path(head)
    code = "\n".join(line[1:] for line in shown)
    painted = _painted(code, _lexer(path)) if shown else []
    html = Markup("").join(
        _line(line, colours) for line, colours in zip(shown, painted, strict=True)
    )
    return FileDiff(
        path,
        sum(line.startswith("+") for line in shown),
        sum(line.startswith("-") for line in shown),
        html or Markup("<span class='hunk'>{}</span>").format("\n".join(head[1:]).strip()),
    )


def _path(head: Sequence[str]) -> str:
    named = [line[4:] for line in head if line.startswith(("--- ", "+++ "))]
    found = [name.partition("/")[2] for name in named if name != "/dev/null"]
    return found[-1] if found else head[0].rpartition(" b/")[2]


def _lexer(path: str) -> Lexer:
    kind = find_lexer_class_for_filename(path) or TextLexer
    return kind(stripnl=False, ensurenl=False)


FORMATTER = HtmlFormatter[str](nowrap=True)


def _painted(code: str, lexer: Lexer) -> list[Markup]:
    """Return the lines of code as HTML; Pygments escapes them, and closes each line's elements."""
    html = highlight(code, lexer, FORMATTER).removesuffix("\n")
    lines = [Markup(line) for line in html.split("\n")]  # noqa: S704 - Pygments escapes the text
    wanted = code.count("\n") + 1
    # A lexer that drops or adds a line cannot be used to colour single ones.
    return lines if len(lines) == wanted else [escape(line) for line in code.split("\n")]


def _line(line: str, painted: Markup) -> Markup:
    kind = KINDS.get(line[:1], "same")
    body = escape(line[1:]) if kind == "hunk" else painted
    return Markup('<span class="{}">{}{}</span>\n').format(kind, line[:1] or " ", body)
