"""Find the place in the source that a line points to. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

PATH = (
    r"(?:[A-Za-z]:[\\/])?"
    r"(?:[\w@~+$%=#.\\/-]|\[[\w.]+\](?=[\\/.])|\([\w.]+\)(?=/))*"
    r"(?:\.(?!(?:com|org|net|local)\b)[A-Za-z]\w{0,11}"
    r"|\b[Mm]akefile|\bDockerfile|\bJenkinsfile|\bRakefile|\bGemfile|/\w[\w-]*)"
)
LINE = (
    r"(?::(?P<line>\d+)(?:[:.](?P<column>\d+))?(?:-\d+(?::\d+)?)?"
    r"|:?[\[(](?P<line2>\d+)(?:[,:] ?(?P<column2>\d+))?(?:[,-][\d,]+)?[\])]"
    r"| \((?P<line3>\d+)[:,](?P<column3>\d+)\))"
)
PATH_AND_LINE = rf"(?P<file>{PATH}){LINE}"
HAS_PLACE = re.compile(r"[\w\]]:\d|[(\[]\d+[,:)\]]|\bline:? \d")
"""A cheap test that a line may hold a place at all."""

_EDGE = r"(?<![\w./\\@:-])"

DIAGNOSTIC = re.compile(
    r"^[^\w./~@\\]*"
    r"(?:(?:\w+ )?(?P<severity>error|warning|fatal|failure|err)\b[^\w./]*(?:(?:in|at|from) )?)?"
    rf"{PATH_AND_LINE}(?=[\s:,)\]\-]|$)[\s:,)\]-]*(?P<rest>.*)$",
    re.IGNORECASE,
)
"""A line that opens with a place and goes on with what is wrong there."""

POINTERS = (
    re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)'),
    re.compile(rf"(?:-->|╭─\[|┌─|❯|\b(?:at|in|on)|Location:|::)\s+(?:.*?{_EDGE})?{PATH_AND_LINE}"),
    re.compile(
        rf"\b(?:at|in|on|file)\s+\"?(?P<file>{PATH})\"?,?\s+(?:on |at )?line:? (?P<line>\d+)",
        re.IGNORECASE,
    ),
    re.compile(rf"{_EDGE}{PATH_AND_LINE}"),
)

FOREIGN = re.compile(
    r"site-packages|dist-packages|node_modules|lib/python\d|[/\\]\.?venv[/\\]|^<|^node:|"
    r"/rustc/|\.cargo/registry|^/usr/|/go/(?:src|pkg)/|/gems/|/vendor/|\.pyenv/"
)
"""Where code lives that the repository did not write."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file, and a line and column in it that count from 1 where they are known."""

    file: str
    line: int | None = None
    column: int | None = None

    @property
    def is_own(self) -> bool:
        """Tell whether it is likely to be the repository's own code."""
        return not FOREIGN.search(self.file)

    def __str__(self) -> str:
        numbers = (self.file, self.line, self.column)
        return ":".join(str(part) for part in numbers if part is not None)


def place_of(match: re.Match[str]) -> Place:
    """Read the place out of a match with the groups file, line and column."""
    found = match.groupdict()
    line = found.get("line") or found.get("line2") or found.get("line3")
    column = found.get("column") or found.get("column2") or found.get("column3")
    return Place(found["file"], number(line), number(column))


def number(digits: str | None) -> int | None:
    """Read a number that counts from 1; a wrong one is none."""
    return int(digits[:9]) or None if digits and digits.isascii() and digits.isdigit() else None


def pointed_at(line: str) -> Place | None:
    """Find the place that a line points to, anywhere in it."""
    line = line.replace("file://", "")
    if not HAS_PLACE.search(line):
        return None
    matches = (pointer.search(line) for pointer in POINTERS)
    return next((place_of(match) for match in matches if match), None)


def best_place(lines: Iterable[str]) -> Place | None:
    """Give the first place in the repository's own code that these lines point to, else any."""
    places = [place for line in lines if (place := pointed_at(line))]
    return next((place for place in places if place.is_own), places[0] if places else None)
