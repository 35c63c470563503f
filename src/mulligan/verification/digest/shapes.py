"""Heads that only their neighbours explain: rows of tables, arrows, numbered lists. Pure."""

import re
from collections.abc import Sequence
from itertools import pairwise

from mulligan.verification.digest.codes import code_in
from mulligan.verification.digest.head import Head, Rank
from mulligan.verification.digest.locations import (
    PATH_AND_LINE,
    Place,
    number,
    place_of,
    pointed_at,
)
from mulligan.verification.digest.names import NUMBERED

ROW = re.compile(
    r"^\s+(?P<line>\d+):(?P<column>\d+)\s+(?P<severity>error|warning|info|✖|⚠|×)?\s*"
    r"(?P<rest>\S.*?)(?:\s{2,}(?P<code>[\w@/.-]+))?$"
)
"""A row beneath the name of a file, as eslint and its kin write it."""
ROWS = 400
FILE_ALONE = re.compile(r"^(?:[A-Za-z]:)?[\w@~+\\/.()\[\] -]*\.\w{1,11}:?$")
ARROW = re.compile(rf"^\s*(?:-->|╭─+\[|[┌└╰]─+|╭▸|,-\[) ?{PATH_AND_LINE}")
"""A line that says where what the line above it complains of is."""
ASIDE = re.compile(
    r"^(?:note|info|hint|help|remark|required|in \S*(?:function|<?\w+>?:?$)|from |\+0x|\d|$)",
    re.IGNORECASE,
)
"""What only goes along with a finding: a note, a stack frame."""
NEW_FILE = re.compile(r"^\+\+\+ (?P<file>\S+)")
HUNK = re.compile(r"^@@ -(?P<line>\d+)")
NAMELESS = re.compile(r"^(?:Failure|Error|Skipped):?$")
"""The word that minitest puts where others put the name."""
NAME_LINES = 4
RULE = " ─━═=-"


def row(lines: Sequence[str], at: int) -> Head | None:
    """Read a row of a table; the file stands alone on a line above."""
    found = ROW.match(lines[at])
    if found is None or found["severity"] == "info" or not (found["severity"] or found["code"]):
        return None
    above = reversed(lines[max(0, at - ROWS) : at])
    file = next((line.strip().rstrip(":") for line in above if FILE_ALONE.match(line)), None)
    if file is None:
        return None
    place = Place(file, number(found["line"]), number(found["column"]))
    rank = Rank.WARNING if found["severity"] in {"warning", "⚠"} else Rank.FAILURE
    return Head(at, rank, found["rest"].strip(), place=place, code=found["code"])


def above_arrow(lines: Sequence[str], at: int) -> Head | None:
    """Read a line over an arrow, as rustc and its kin write them."""
    line = lines[at].strip()
    arrow = ARROW.match(lines[at + 1]) if line and at + 1 < len(lines) else None
    if arrow is None or ASIDE.match(line) or ARROW.match(line):
        return None
    rank = Rank.WARNING if line.lower().startswith("warn") else Rank.FAILURE
    return Head(at, rank, line, place=place_of(arrow), code=code_in(line))


def patch(lines: Sequence[str], at: int) -> Head | None:
    """Read the head of a patch, as formatters print it for what they would change."""
    new = NEW_FILE.match(lines[at])
    hunk = HUNK.match(lines[at + 1]) if new and at + 1 < len(lines) else None
    if new is None or hunk is None or not lines[at - 1].startswith("--- "):
        return None
    place = Place(new["file"].removeprefix("b/"), number(hunk["line"]))
    return Head(at, Rank.LIKELY, lines[at], place=place)


def numbered(lines: Sequence[str], at: int) -> Head | None:
    """Read `1) name`; the name may stand on the next line, or go on in deeper ones."""
    found = NUMBERED.match(lines[at])
    if found is None:
        return None
    name, place = found["test"].rstrip(RULE), None
    below = lines[at + 1 : at + 2 + NAME_LINES]
    if NAMELESS.match(name) and below:
        name, place = below[0].strip().rstrip(":").partition(" [")[0], pointed_at(below[0])
    else:
        name = " ".join([name, *_deeper(below, found["indent"] + "  ")])
    return Head(at, Rank.FAILURE, "", name, place, written=lines[at])


def _deeper(lines: Sequence[str], indent: str) -> list[str]:
    """Give the rest of a name, one suite a line, up to a colon and a gap, as mocha writes it."""
    parts = list[str]()
    for line, following in pairwise(lines):
        if not line.startswith(indent):
            return []
        parts.append(line.strip().rstrip(":"))
        if line.endswith(":"):
            deeper = len(following) - len(following.lstrip()) >= len(line) - len(line.lstrip())
            return [] if following.strip() and deeper else parts
    return []
