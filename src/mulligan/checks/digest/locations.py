"""Find the place in the source that a line points to. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_NAME = r"[\w@~+$%=#.\\/-]{0,255}"
PATH = (
    r"(?!\d{4}/\d\d/\d\d )(?:[A-Za-z]:[\\/])?"
    rf"{_NAME}(?:(?:\[[\w.]+\](?=[\\/.])|\([\w.]+\)(?=/)){_NAME}){{0,5}}"
    r"(?:(?<=[\w)\]])\.(?!(?:com|org|net|local)\b)[A-Za-z]\w{0,11}"
    r"|\b[Mm]akefile|\bDockerfile|\bJenkinsfile|\bRakefile|\bGemfile|/\w[\w-]*)"
)
LINE = (
    r"(?::(?:line )?(?P<line>\d+)(?:[:.](?P<column>\d+))?(?:-\d+(?::\d+)?)?"
    r"|:\[(?P<line2>\d+),(?P<column2>\d+)\]"
    r"|\((?P<line3>\d+)(?:,(?P<column3>\d+))?(?:,\d+)*\)(?=\s*:)"
    r"| \((?P<line4>\d+)[:,](?P<column4>\d+)\)| (?P<line5>\d+):(?P<column5>\d+)\b"
    r"| @ (?P<line6>\d+))"
)
PATH_AND_LINE = rf"(?P<file>{PATH}){LINE}"
LINES = ("line", "line2", "line3", "line4", "line5", "line6", "line7")
COLUMNS = ("column", "column2", "column3", "column4", "column5")
HAS_PLACE = re.compile(r"[\w\]]:(?:[\[\d]|\(\.)|\w [@\d]|[(\[]\d+[,:)\]]|\bline:? \d")
"""A cheap test that a line may hold a place at all."""

HAS_FILE = re.compile(r"[\w)\]]\.[A-Za-z]|/\w|[Ff]ile\b")
"""A cheap test that a line may hold the name of a file."""

_EDGE = r"(?<![\w./\\@:~+$%=#-])"

_MARKS = r"(?:[^\w./~@\\\[(]|\[(?![\w.]+\][\\/.])|\((?![\w.]+\)/)){0,20}+"
"""Characters that may precede a path, such as bullets."""

DIAGNOSTIC = re.compile(
    rf"^{_MARKS}(?:(?!note|info|hint|help|warn|err|fatal)[\w-]+: ?)?"
    r"(?:(?:\w+ )?(?P<severity>error|warning|fatal|failure|err)\b[^\w./]{0,9}(?:(?:in|at|from) )?)?"
    rf"{PATH_AND_LINE}(?=[\s:,)\]\-]|$)[\s:,)\]-]*(?P<rest>.*)$",
    re.IGNORECASE,
)
"""A line that opens with a place, followed by the complaint."""

FILE_AND_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
EDGED_PLACE = re.compile(rf"{_EDGE}{PATH_AND_LINE}")
POINTER = re.compile(r"(?:-->|╭─\[|┌─|❯|\b(?:at|in|on)|Location:|::)\s")
"""The words before the place of a line's subject, at most `POINTER_REACH` characters."""

POINTER_REACH = 90
OTHER_PLACES = (
    re.compile(
        rf"\b(?:at|in|on|file)\s+\"?(?P<file>{PATH})\"?,?\s+(?:on |at )?line:? (?P<line>\d+)",
        re.IGNORECASE,
    ),
    EDGED_PLACE,
    re.compile(rf"{_EDGE}(?P<file>{PATH}):\(\.\w+\+0x"),
    re.compile(rf"{_EDGE}(?P<file>{PATH}): .*\((?P<line>\d+):(?P<column>\d+)\)\W*$"),
)

FILE = re.compile(rf"{_EDGE}(?P<file>[\w@~+.-]*/[\w@~+./-]*\.[A-Za-z]\w{{0,9}})(?=[\s:;,'\")\]]|$)")
TEMPORARY = re.compile(r"(?:^|[/\\])tmp[^/\\]*$")
"""A file whose name changes with each run."""
PLACE_ALONE = re.compile(
    rf"^{_MARKS}(?:(?:In|At|File)\s+)?\"?(?P<file>{PATH})\"?"
    rf"(?:{LINE}|,? (?:on )?line:? (?P<line7>\d+))(?:, characters? [\d-]+)?\W*$",
    re.IGNORECASE,
)
"""A line that names a place and nothing more."""

FOREIGN = re.compile(
    r"site-packages|dist-packages|node_modules|lib/python\d|[/\\]\.?venv[/\\]|^<|^node:|"
    r"^_testmain\.go|/rustc/|\.cargo/registry|^/usr/|/go/(?:src|pkg)/|/gems/|/vendor/|\.pyenv/"
)
FOREIGN_CALL = re.compile(
    r"\bnode:internal|\(node:|(?:\bat |^\s++)(?:[\w.]+/)*"
    r"(?:java|javax|jdk|sun|scala|kotlin|groovy|clojure|junit|System|Microsoft|Xunit|NUnit"
    r"|org\.(?:junit|opentest4j|gradle|apache|hamcrest|assertj|testng|mockito|scalatest))\."
)
"""Directories of code from outside the repository."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file, and a line and column in it, from 1, if known."""

    file: str
    line: int | None = None
    column: int | None = None

    @property
    def is_own(self) -> bool:
        """Return whether it is likely to be the repository's own code."""
        return not FOREIGN.search(self.file)

    def __str__(self) -> str:
        numbers = (self.file, self.line, self.column)
        return ":".join(str(part) for part in numbers if part is not None)


def place_of(match: re.Match[str]) -> Place:
    """Read the place out of a match with the groups file, line and column."""
    found = match.groupdict()
    line = next((found[name] for name in LINES if found.get(name)), None)
    column = next((found[name] for name in COLUMNS if found.get(name)), None)
    return Place(found["file"], number(line), number(column))


def number(digits: str | None) -> int | None:
    """Read a number from 1; return None for any other."""
    return int(digits[:9]) or None if digits and digits.isascii() and digits.isdigit() else None


CACHED = 4096


@lru_cache(maxsize=CACHED)
def find_place(line: str) -> Place | None:
    """Find the place that a line points to, anywhere in it."""
    if not (HAS_PLACE.search(line) and HAS_FILE.search(line)):
        return None
    line = line.replace("file://", "")
    matches = (search(line) for search in (FILE_AND_LINE.search, _pointed, *_OTHERS))
    return next((place_of(match) for match in matches if match), None)


_OTHERS = tuple(place.search for place in OTHER_PLACES)


def _pointed(line: str) -> re.Match[str] | None:
    for place in EDGED_PLACE.finditer(line):
        at = place.start()
        if POINTER.search(line, max(0, at - POINTER_REACH), at):
            return place
    return None


def file_in(line: str) -> Place | None:
    """Find a file of the project that a line names, with a directory and without a number."""
    found = (match["file"] for match in FILE.finditer(line))
    names = (name for name in found if not TEMPORARY.search(name))
    return next((place for name in names if (place := Place(name)).is_own), None)


@lru_cache(maxsize=CACHED)
def find_lone_place(line: str) -> Place | None:
    """Return the place on a line that contains nothing else."""
    if not (HAS_PLACE.search(line) and HAS_FILE.search(line)):
        return None
    found = PLACE_ALONE.match(line.replace("file://", ""))
    return place_of(found) if found else None


def is_foreign(line: str, place: Place | None) -> bool:
    """Return whether a line is about code from outside the repository; `place` may be None."""
    return bool(FOREIGN_CALL.search(line)) or not (place is None or place.is_own)


def best_place(lines: Iterable[str]) -> Place | None:
    """Return the first place in the project's own code that these lines point to, else any."""
    any_place = None
    for line in lines:
        place = find_place(line)
        if place and not is_foreign(line, place):
            return place
        any_place = any_place or place
    return any_place
