"""The lines of an output that open a finding: a test, a place, a crash, an error. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from mulligan.verification.digest.aftermath import is_aftermath
from mulligan.verification.digest.locations import (
    DIAGNOSTIC,
    PATH_AND_LINE,
    Place,
    number,
    place_of,
    pointed_at,
)
from mulligan.verification.digest.names import NUMBERED, NUMBERED_LIST, test_named
from mulligan.verification.digest.signals import CRASH, PHRASE, Weight
from mulligan.verification.digest.totals import is_total
from mulligan.verification.digest.traceback import traceback_at


class Rank(IntEnum):
    """In which order findings are told."""

    FAILURE = 0
    LIKELY = 1
    AFTERMATH = 2
    WARNING = 3


@dataclass(frozen=True, slots=True)
class Head:
    """A line that opens a finding; `start` and `end` bound its block where that is known."""

    at: int
    rank: Rank
    message: str
    test_id: str | None = None
    place: Place | None = None
    code: str | None = None
    start: int | None = None
    end: int | None = None


ROW = re.compile(
    r"^\s+(?P<line>\d+):(?P<column>\d+)\s+(?P<severity>error|warning|info|✖|⚠|×)?\s*"
    r"(?P<rest>\S.*?)(?:\s{2,}(?P<code>[\w@/.-]+))?$"
)
"""A row beneath the name of a file, as eslint and its kin write it."""
ROWS = 400
FILE_ALONE = re.compile(r"^(?:[A-Za-z]:)?[\w@~+\\/.()\[\] -]*\.\w{1,11}:?$")

SEVERITY = re.compile(r"^(?:fatal )?(?P<word>error|warning|warn|fatal)\b", re.IGNORECASE)
ASIDE = re.compile(
    r"^(?:note|info|hint|help|remark|required|in \S*(?:function|<?\w+>?:?$)|from |\+0x|\d|$)",
    re.IGNORECASE,
)
"""What follows a place that only goes along with a finding: a note, a stack frame."""
CODE = re.compile(
    r"\[(?P<a>[A-Z]+\d+)\]|\b(?P<b>[A-Z]{1,6}-?\d{2,5})\b"
    r"|[\[(](?P<c>[a-z@][\w@/.]*[-/][\w/.-]+|report\w+)[\])]\s*$"
)
ARROW = re.compile(rf"^\s*(?:-->|╭─+\[|┌─+|╭▸|,-\[) ?{PATH_AND_LINE}")
"""A line that says where what the line above it complains of is."""
NEW_FILE = re.compile(r"^\+\+\+ (?P<file>\S+)")
HUNK = re.compile(r"^@@ -(?P<line>\d+)")
CODE_FIRST = re.compile(r"^\W*(?:\w+:\s*)?\[?[A-Z]{1,6}\d{3,5}\b")
NAMELESS = re.compile(r"^(?:Failure|Error|Skipped):?$")
"""The word that minitest puts where others put the name."""


def find_heads(lines: Sequence[str], weights: Sequence[Weight]) -> Iterator[Head]:
    """Yield what opens a finding, in order; what lies inside a traceback opens none."""
    numbered = bool(NUMBERED_LIST.search("\n".join(lines)))
    skip_to = 0
    for at, weight in enumerate(weights):
        if at < skip_to:
            continue
        head = _speaking(lines, at, weight) if weight else None
        if head is None and numbered:
            head = _numbered(lines, at)
        head = head or _above_arrow(lines, at) or _row(lines, at) or _patch(lines, at)
        if head:
            skip_to = head.end or 0
            yield head


def _speaking(lines: Sequence[str], at: int, weight: Weight) -> Head | None:
    line = lines[at]
    if "Traceback" in line and (trace := traceback_at(lines, at)):
        said = "\n".join([trace.message, *(f"after {cause}" for cause in trace.causes)])
        place, rank = trace.place, Rank.FAILURE
        return Head(trace.at, rank, said, place=place, start=at, end=trace.end)
    if is_aftermath(line) or is_total(line):
        return Head(at, Rank.AFTERMATH, line.strip())
    if weight >= Weight.WORD and (named := test_named(line)):
        return _of_name(at, named)
    if line.startswith("Caused by:") and any(lines[max(0, at - 1) : at]):
        return None
    return _above_arrow(lines, at) or _of_place(at, line, weight) or _of_words(at, line, weight)


def _of_name(at: int, named: re.Match[str]) -> Head:
    said = named.groupdict()
    place = place_of(named) if said.get("file") else None
    return Head(at, Rank.FAILURE, said.get("message") or "", said["test"].strip(), place)


def _of_place(at: int, line: str, weight: Weight) -> Head | None:
    found = DIAGNOSTIC.search(line) if weight >= Weight.WARNING else None
    if found is None or ASIDE.search(found["rest"]):
        return None
    rest = found["rest"]
    severity = (found["severity"] or "").lower()
    if said := SEVERITY.match(rest):
        severity = said["word"].lower()
    code = code_in(rest)
    rank = Rank.FAILURE if severity or code or PHRASE.search(rest) else Rank.LIKELY
    if severity.startswith("warn"):
        rank = Rank.WARNING
    return Head(at, rank, rest.strip(), place=place_of(found), code=code)


def _of_words(at: int, line: str, weight: Weight) -> Head | None:
    if weight is Weight.WARNING:
        return Head(at, Rank.WARNING, line.strip(), place=pointed_at(line))
    if weight < Weight.ERROR and not (weight is Weight.PHRASE and CODE_FIRST.match(line)):
        return None
    rank = Rank.FAILURE if CRASH.search(line) else Rank.LIKELY
    return Head(at, rank, line.strip(), place=pointed_at(line), code=code_in(line))


def _numbered(lines: Sequence[str], at: int) -> Head | None:
    """Read `1) name`; the name may go on in deeper lines (mocha), or stand on the next one."""
    found = NUMBERED.match(lines[at])
    if found is None:
        return None
    name, place = found["test"], None
    if NAMELESS.match(name) and at + 1 < len(lines):
        name, place = lines[at + 1].strip().rstrip(":"), pointed_at(lines[at + 1])
        name = name.partition(" [")[0]
    deeper = list[str]()
    for line in lines[at + 1 : at + 5]:
        if not line.startswith(found["indent"] + "   ") or not line.strip():
            break
        deeper.append(line.strip())
        if line.endswith(":"):
            name = " ".join([name, *deeper]).rstrip(":")
            break
    return Head(at, Rank.FAILURE, "", name, place)


def _row(lines: Sequence[str], at: int) -> Head | None:
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


def _above_arrow(lines: Sequence[str], at: int) -> Head | None:
    line = lines[at].strip()
    arrow = ARROW.match(lines[at + 1]) if line and at + 1 < len(lines) else None
    if arrow is None or ASIDE.match(line) or ARROW.match(line):
        return None
    rank = Rank.WARNING if line.lower().startswith("warn") else Rank.FAILURE
    return Head(at, rank, line, place=place_of(arrow), code=code_in(line))


def _patch(lines: Sequence[str], at: int) -> Head | None:
    """Read the head of a patch, as formatters print it for what they would change."""
    new = NEW_FILE.match(lines[at])
    hunk = HUNK.match(lines[at + 1]) if new and at + 1 < len(lines) else None
    if new is None or hunk is None or not lines[at - 1].startswith("--- "):
        return None
    place = Place(new["file"].removeprefix("b/"), number(hunk["line"]))
    return Head(at, Rank.LIKELY, lines[at], place=place)


def code_in(text: str) -> str | None:
    """Find the code or the rule that a tool gives to what it complains of."""
    found = CODE.search(text)
    return next(code for code in found.groups() if code) if found else None
