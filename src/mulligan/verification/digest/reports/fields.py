"""Look up in a parsed report what tools call by many names. Pure."""

from collections.abc import Iterator, Sequence

from mulligan.verification.digest.locations import Place
from mulligan.verification.digest.reports.documents import Json

Row = dict[str, Json]

FILE = (
    *("file", "filename", "file_name", "fileName", "filePath", "file_path", "path", "source"),
    *("uri", "fullpath", "abspath", "File", "resource"),
)
LINE = (
    *("line", "row", "line_start", "startLine", "lineno", "line_number", "lineNumber"),
    *("begin_line", "beginLine", "start_line", "start_line_no", "Line", "lnum"),
)
COLUMN = (
    *("column", "col", "column_start", "startColumn", "startColumnNumber", "start_column"),
    *("start_line_pos", "Column", "begin_column", "beginColumn", "display-column"),
)
WITHIN = (
    *("location", "physicalLocation", "artifactLocation", "range", "region", "start", "begin"),
    *("caret", "spans", "locations", "loc", "position", "pos", "extent", "Pos", "lines"),
)
"""Where a place may be given one level further down."""
DEEPEST = 4
ZERO_BASED = "character"
"""The column of the language server protocol, which counts lines and columns from 0."""


def text_of(row: Row, names: Sequence[str]) -> str:
    """Give the first of these fields that is a text with something in it."""
    return next((value for name in names if isinstance(value := row.get(name), str) and value), "")


def number_of(row: Row, names: Sequence[str]) -> int | None:
    """Give the first of these fields that is a number, of one to nine digits."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value[:9])
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
            return value
    return None


def rows_in(value: Json) -> list[Row]:
    """Give the objects of a list, or an object alone."""
    values = value if isinstance(value, list) else [value]
    return [row for row in values if isinstance(row, dict)]


def place_in(row: Row, file: str = "") -> Place | None:
    """Find the place that a row names, itself or further down; `file` is used where it has none."""
    parts = list(_parts(row, DEEPEST))
    named = next((name for part in parts if (name := text_of(part, FILE))), file)
    if not named:
        return None
    for part in parts:
        line = number_of(part, LINE)
        if line is not None:
            base = 1 if ZERO_BASED in part else 0
            column = number_of(part, (*COLUMN, ZERO_BASED))
            return Place(named, line + base or None, column + base if column is not None else None)
    return Place(named)


def _parts(row: Row, depth: int) -> Iterator[Row]:
    """Yield a row and what is within it that may hold a place; of spans the first primary one."""
    yield row
    if depth == 0:
        return
    for name in WITHIN:
        parts = rows_in(row.get(name))
        primary = [part for part in parts if part.get("is_primary")]
        for part in (primary or parts)[:1]:
            yield from _parts(part, depth - 1)
