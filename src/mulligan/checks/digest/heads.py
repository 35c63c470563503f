"""Find the lines that start a finding: test names, places, and words about failure. Pure."""

import re
from bisect import bisect, bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from itertools import pairwise

from mulligan.checks.digest.blocks import RULE as RULE_LINE
from mulligan.checks.digest.blocks import depth_of, traceback_at
from mulligan.checks.digest.findings import code_in, relevant_part
from mulligan.checks.digest.locations import (
    DIAGNOSTIC,
    PATH_AND_LINE,
    Place,
    file_in,
    find_place,
    number,
    place_of,
)
from mulligan.checks.digest.signals import (
    CRASH,
    Weight,
    has_phrase,
    is_aftermath,
    is_total,
)


class Rank(IntEnum):
    """The order in which findings are shown."""

    FAILURE = 0
    LIKELY = 1
    AFTERMATH = 2
    WARNING = 3


@dataclass(frozen=True, slots=True)
class FindingHead:
    """The line `at` that starts a finding, and its content.

    `start` and `end` bound its block, if known. `written` is the line that names a test, and `unit`
    its package or file. `heading` is set if the line itself is not a heading. `above` is a line
    that names the place of the error. `severe`: the line itself reports an error.
    """

    at: int
    rank: Rank
    message: str
    test_id: str | None = None
    place: Place | None = None
    code: str | None = None
    start: int | None = None
    end: int | None = None
    written: str = ""
    unit: str = ""
    heading: str = ""
    above: int | None = None
    severe: bool = False


def find_heads(lines: Sequence[str], weights: Sequence[Weight]) -> list[FindingHead]:
    """List the lines that start a finding, in order; skip the lines inside a traceback."""
    lists = _numbered_lines(lines)
    sections, alone = files_over(lines), _Above(lines)
    heads, skip_to = list[FindingHead](), 0
    for at, weight in enumerate(weights):
        if at < skip_to:
            continue
        head = _speaking(lines, at, weight, sections[at]) if weight else None
        if head is None and (entry := lists.get(at)):
            head = _numbered(lines, at, entry)
        head = row(lines, at, sections[at], alone) or head
        if head:
            skip_to = head.end or 0
            heads.append(replace(head, at=head.at or at))
    return list(_from_their_start(_without_descriptions(heads, lines), lines))


def _without_descriptions(
    heads: Sequence[FindingHead], lines: Sequence[str]
) -> Sequence[FindingHead]:
    """Drop heads without a message whose name is a line between a test's name and a rule."""
    tests = {head.test_id: lines[head.at + 1 : head.at + 3] for head in heads if head.test_id}
    titles = ((name, title) for name, title in tests.items() if title)
    beneath = {
        title[0].strip()
        for name, title in titles
        if RULE_LINE.match(title[-1]) and title[0].strip() != name
    }
    return [head for head in heads if head.message or head.test_id not in beneath]


def _from_their_start(heads: Sequence[FindingHead], lines: Sequence[str]) -> Iterator[FindingHead]:
    """Move a failed test up to its start, if the error is between start and verdict."""
    starts = defaultdict[str, list[int]](list)
    for at, line in enumerate(lines):
        if name := started(line):
            starts[name].append(at)
    all_starts = sorted(at for own in starts.values() for at in own)
    others = sorted(head.at for head in heads if head.test_id is None)
    moved, used = list[FindingHead](), set[int]()
    for head in heads:
        own = starts.get(head.test_id or "", [])
        before = bisect_left(own, head.at)
        start = own[before - 1] if before else head.at
        start = head.at if start in used else start
        used.add(start)
        following = bisect(all_starts, start)
        end = min([head.at, *all_starts[following : following + 1]])
        between = bisect(others, start) < bisect_left(others, end)
        moved.append(replace(head, at=start, end=end) if between else head)
    return iter(sorted(moved, key=lambda head: head.start or head.at))


def _speaking(
    lines: Sequence[str], at: int, weight: Weight, section: Place | None
) -> FindingHead | None:
    line = lines[at]
    if "Traceback" in line and (trace := traceback_at(lines, at)):
        message = "\n".join([trace.message, *(f"after {cause}" for cause in trace.causes)])
        place, rank = trace.place, Rank.FAILURE
        return FindingHead(trace.at, rank, message, place=place, start=at, end=trace.end)
    if is_aftermath(line) or is_total(line):
        return FindingHead(at, Rank.AFTERMATH, line.strip())
    if weight >= Weight.WORD and (named := named_test(line)):
        return _of_name(at, named, line)
    if ARROW.match(line) or (line.startswith("Caused by:") and at and lines[at - 1]):
        return None
    return (
        above_arrow(lines, at)
        or _unformatted(at, line)
        or _of_place(at, line, weight)
        or _of_words(at, line, weight, section)
    )


# Lines that name a test

_TIME = r"(?:(?<!\s)\s+\(?\[?(?:Time elapsed: )?<?\s?[\d.,]+ ?(?:ns|µs|us|ms|s|sec|min)\]?\)?)?"
_PLACE = r"(?P<file>[^:\s()]+):(?P<line>\d+)(?::(?P<column>\d+))?"
_FAILED = r"(?:FAIL(?:ED)?|ERROR|failed)\b"
_BAD = r"[\[(]\s*(?:FAILED|FAIL|fail)\s*[\])]"
_CROSS = r"^\s*(?:\d+\) )?[✗✖✘✕×❌⨯]\s+(?:\d+\) |\d+ (?=\[|\S+:\d+:\d+ ›)|\[fail\]: )?"

_CTEST = r"^\s*\d+/\d+ Test +#\d+: (?P<test>\S+) [.\s]*(?:\w+ \w+)?"
_ENTRY = r"^(?:\[\w+\])?\s*+(?:test |\d+/\d+ |- )?"
_CHAIN, _WORD = r"\S.* > \S", r"[\w.:/#\[\]-]{2,}+\)?(?<=[\w\])])"
_MARKED = rf"(?: ---| \*\*\*|(?<!\s)\s+[\[|])\s*+{_FAILED}(?: \*\*\*| \||\])?"

NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\s*--- FAIL: (?P<test>\S+)",
        r"^\s+JUnit (?:Jupiter|Vintage):(?P<test>\S.*)$",
        r"^\s*not ok\b(?: \d+)?(?: -)? (?P<test>(?!.*#\s*(?:TODO|SKIP)).+?)(?:(?<!\s)\s+#.*)?$",
        r"^---- (?P<test>\S.*) stdout ----$",
        r"^thread '(?P<test>(?!main'|<)[^']+)'.* panicked at (?:'(?P<message>.*)', )?" + _PLACE,
        rf"^[>│|\s]*{_BAD}\s+(?P<test>(?!\d+ tests?)\S.*?)(?:, where .*)?{_TIME}[│|\s]*$",
        rf"{_CTEST}\*\*\*(?:Failed|(?P<message>\w[\w: ]*?)  )",
        rf"{_CROSS}(?P<test>(?!\d+ \w+|.*:$|\[[A-Z]|Failed )[^\s|][^|]*?){_TIME}$",
        r"^\s*● (?P<test>(?!Console$|.*\d ?m?s$)(?=.*\w)\S.*)$",
        r"^\s*FAIL(?:ED)?\s+(?P<test>\S+\.\w+ > .+?)(?: \[ .*)?$",
        r"^(?:SUB)?(?:FAILED|FAIL|ERROR):?\s+(?P<test>\S+::.+?)(?:\s+-\s+(?P<message>.+))?$",
        rf"^(?:FAIL|ERROR|UNEXPECTED SUCCESS){_TIME}: (?P<test>\S+ \(\S+\).*|\w+(?:\.\w+){{2,}})$",
        r"^\[ERROR\]\s+(?P<test>[A-Z][\w$]*(?:\.|#|->)\w+(?:\[.*?\])?):\d+\s+(?P<message>.+)$",
        rf"^(?=.*<<<)(?:\[ERROR\] +)?(?P<test>\S.*?)(?: +--)?{_TIME} +<<< (?:FAILURE|ERROR)!$",
        r"^\s*Failed (?P<test>\S+(?:\(.*\))?) \[<?\s?[\d.,]+ ?\w+\]$",
        rf"^{_PLACE}: error: (?:-\[)?(?P<test>\w[\w.]*[ .]\w+)\]? : (?P<message>.*)$",
        r"^Test [Cc]ase '(?:-\[)?(?P<test>[^'\]]+)\]?' failed",
        r"^\d\d:\d\d [+~\-\d ]+: (?P<test>.+) \[E\]$",
        rf"^(?:── )?(?:Failure|Error) \({_PLACE}\): (?P<test>.+?)(?: ─.*)?$",
        r"^(?P<test>\S.*): (?:Test Failed|Error During Test) at (?P<file>[^:]+):(?P<line>\d+)",
        r"^#\s+Failed test '(?P<test>.+)'",
        r"^\s*(?:TRY \d+ )?FAIL \[ *[\d.]+s\](?: \([ \d/]+\))? +(?P<test>\S+ \S+)$",
        r"^\d+/\d+ (?P<test>\S+?)\.{3}FAIL \((?P<message>.*)\)$",
        r"^\s+(?P<test>(?P<file>[^\s:]+):(?P<line>\d+):\d+ › .+?)(?: ─+)?$",
        r"^\S.{2,60}? \(.{2,30}\) (?P<test>.+) FAILED$",
        r"^=+ (?P<test>\S+)(?: (?P<message>.+))? FAILED(?: =+)?$",
        rf"{_ENTRY}(?P<test>\S.*?)(?: - should panic)?(?: ?\.{{3}} {_FAILED}|{_MARKED}$)",
        rf"^(?={_CHAIN}|{_WORD} +FAIL)(?P<test>\S.*?) +(?:FAILED|FAIL)(?:\s+\[.*\])?$",
        rf"^\s+(?:[-*•] )?(?P<test>\S.*?):?\s+\[?(?:FAIL(?:ED)?|ERROR)\]?{_TIME}$",
    )
)


def named_test(line: str) -> re.Match[str] | None:
    """Match a line that names a failing test; groups are test, message, file, line, column."""
    return next((found for name in NAMES if (found := name.match(line))), None)


def _of_name(at: int, named: re.Match[str], line: str) -> FindingHead:
    parts = named.groupdict()
    place = place_of(named) if parts.get("file") else None
    message, name = parts.get("message") or "", parts["test"].strip()
    return FindingHead(at, Rank.FAILURE, message, name, place, written=line)


STARTED = re.compile(
    r"^(?:=== (?:RUN|CONT|NAME)\s+|\[ RUN\s+\] |\s*Start +\d+: )(?P<test>\S+)"
    r"|^Test [Cc]ase '(?:-\[)?(?P<test2>[^'\]]+)\]?' started"
)


def started(line: str) -> str | None:
    """Return the name of the test that a line reports as started."""
    found = STARTED.match(line)
    return (found["test"] or found["test2"]) if found else None


PASSED = re.compile(
    r"^\s*(?:--- (?:PASS|SKIP): |\[ +(?:OK|SKIPPED) +\] )(?P<test>\S+)"
    r"|^Test [Cc]ase '(?:-\[)?(?P<test2>[^'\]]+)\]?' passed"
)


def lines_of_passed_tests(lines: Sequence[str]) -> frozenset[int]:
    """Return the lines that tests printed which passed, where an output names both ends."""
    verdicts = (PASSED.match(line) for line in lines)
    passed = {found["test"] or found["test2"] for found in verdicts if found}
    inside, current = set[int](), ""
    for at, line in enumerate(lines if passed else ()):
        if name := started(line):
            current = name
        elif PASSED.match(line) or named_test(line):
            current = ""
        if current in passed:
            inside.add(at)
    return frozenset(inside)


NUMBERED = re.compile(r"^(?P<indent>\s*)(?:\d+\)|[=─━-]+ #\d+:) (?P<test>\S.*)$")

NUMBERED_LIST = re.compile(
    r"^[ \t]*+(?:Failures|Failed (?:examples|tests)|Errors):$|^[ \t]*+\d+ (?:failing|failed)\b"
    r"|^[=─━-]+ #1: \S|^There (?:was|were) \d+ (?:failure|error)"
    r"|^[ \t]*+1\) (?:test |Failure|Error)|^Finished in ",
    re.MULTILINE,
)
"""A line above or in a numbered list of failures: `1) name`."""

MOCHA_LIST = re.compile(r"^\s*(?P<number>\d+) failing\b")
"""The line above a list of so many failures. Mocha also numbers them where they ran, above."""


def _numbered_lines(lines: Sequence[str]) -> Mapping[int, re.Match[str]]:
    """Return the lines that may begin an entry of a numbered list."""
    if not NUMBERED_LIST.search("\n".join(lines)):
        return {}
    left = 0 if any(map(MOCHA_LIST.match, lines)) else len(lines)
    found = dict[int, re.Match[str]]()
    for at, line in enumerate(lines):
        if above := MOCHA_LIST.match(line):
            left = int(above["number"][:6])
        elif NUMBERED_LIST.search(line):
            left = len(lines)
        if left and (entry := NUMBERED.match(line)):
            found[at] = entry
            left -= 1
    return found


NAMELESS = re.compile(r"^(?:Failure|Error|Skipped):?$")
"""The word that minitest prints in place of the name."""

NAME_LINES = 4
RULE = " ─━═=-"


def _numbered(lines: Sequence[str], at: int, found: re.Match[str]) -> FindingHead:
    """Read `1) name`; the name may be on the next line, or continue in deeper lines."""
    name, place = found["test"].rstrip(RULE), None
    below = lines[at + 1 : at + 2 + NAME_LINES]
    if NAMELESS.match(name) and below:
        name, place = below[0].strip().rstrip(":").partition(" [")[0], find_place(below[0])
    else:
        name = " ".join([name, *_deeper(below, found["indent"] + "  ")]).rstrip(":")
    return FindingHead(at, Rank.FAILURE, "", name, place, written=lines[at])


def _deeper(lines: Sequence[str], indent: str) -> list[str]:
    """Return the rest of a name, one suite per line, up to a colon and a blank line (mocha)."""
    parts = list[str]()
    for line, following in pairwise(lines):
        if not line.startswith(indent):
            return []
        parts.append(line.strip().rstrip(":"))
        if line.endswith(":"):
            deeper = len(following) - len(following.lstrip()) >= len(line) - len(line.lstrip())
            return [] if following.strip() and deeper else parts
    return []


# Lines that name a place

ROW = re.compile(
    r"^\s*+(?:(?P<first>[A-Z]{1,5}\d{3,5}) )?(?P<line>\d+):(?P<column>\d+)(?:-\d+:\d+)?\s+"
    r"(?P<severity>error|warning|info|✖|⚠|×)?\s*(?P<rest>\S.*?)(?:\s{2,}(?P<code>[\w@/.-]+))?$"
)
"""A row below the name of a file, as eslint and similar tools print it."""

FILE_ALONE = re.compile(r"^(?:[A-Za-z]:)?[\w@~+\\/.()\[\] -]*\.\w{1,11}:?$")
PLACE_OF_NAME = re.compile(rf"^{PATH_AND_LINE} in [\w.]+:?$")
LINE_ALONE = re.compile(r"^\s+(?:L|[Ll]ine:? ?)(?P<line>\d+)\b")
MAX_ROWS_BELOW_FILE = 400


def files_over(lines: Sequence[str]) -> list[Place | None]:
    """Return for each line the file on a line of its own above it, with less indentation."""
    found, current, depth = list[Place | None](), None, 0
    for line in lines:
        text = line.strip()
        if text and (current is None or depth_of(line) <= depth):
            is_file = FILE_ALONE.match(text) and " " not in text and "." in text.rstrip(":")[:-1]
            titled = PLACE_OF_NAME.match(text)
            current = place_of(titled) if titled else Place(text.rstrip(":")) if is_file else None
            depth = depth_of(line)
        elif current and (row := LINE_ALONE.match(line)):
            current = Place(current.file, number(row["line"]))
        found.append(current)
    return found


@dataclass(frozen=True)
class _Above:
    """Finds the lines above a row that name its file; reads each line once."""

    lines: Sequence[str]

    def file(self, at: int) -> str | None:
        """Return the nearest file on a line of its own."""
        over = bisect(self._files, at) - 1
        near = over >= 0 and self._files[over] >= at - MAX_ROWS_BELOW_FILE
        return self.lines[self._files[over]].strip().rstrip(":") if near else None

    @cached_property
    def _files(self) -> Sequence[int]:
        return [at for at, line in enumerate(self.lines) if FILE_ALONE.match(line)]


def row(lines: Sequence[str], at: int, section: Place | None, above: _Above) -> FindingHead | None:
    """Read a row of a table; its file is on a line of its own above."""
    found = ROW.match(lines[at])
    code = (found["code"] or found["first"]) if found else None
    if found is None or found["severity"] == "info" or not (found["severity"] or code):
        return None
    file = section.file if section else above.file(at)
    if file is None:
        return None
    place = Place(file, number(found["line"]), number(found["column"]))
    rank = Rank.WARNING if found["severity"] in {"warning", "⚠"} else Rank.FAILURE
    rest = found["rest"].strip()
    return FindingHead(at, rank, rest, place=place, code=code, heading=f"{place}: {rest}")


# Lines for other programs


ARROW = re.compile(rf"^\s*+(?:-->|╭─+\[|[┌└╰]─+|╭▸|,-\[) ?{PATH_AND_LINE}")
"""A line with the place of the complaint on the line above."""

NOTE_LINE = re.compile(
    r"^(?:note|info|hint|help|remark|required|in \S*(?:function|<?\w+>?:?$)|in [`'<]|from "
    r"|\+0x|\d|$)",
    re.IGNORECASE,
)
"""Lines that only accompany a finding: a note, a stack frame."""


def above_arrow(lines: Sequence[str], at: int) -> FindingHead | None:
    """Read a line above an arrow, as rustc and similar tools print them."""
    line = lines[at].strip()
    arrow = ARROW.match(lines[at + 1]) if line and at + 1 < len(lines) else None
    if arrow is None or NOTE_LINE.match(line) or ARROW.match(line):
        return None
    rank = Rank.WARNING if line.lower().startswith("warn") else Rank.FAILURE
    return FindingHead(at, rank, line, place=place_of(arrow), code=code_in(line))


UNFORMATTED = re.compile(
    r"^\W*(?:would (?:be )?reformat(?:ted)?|warn|unformatted|not formatted|needs formatting)\W*\s"
    r"(?P<file>[\w@+./\\-]+\.\w{1,10})$",
    re.IGNORECASE,
)
"""How formatters name a file that they would change."""


def _unformatted(at: int, line: str) -> FindingHead | None:
    found = UNFORMATTED.match(line)
    return FindingHead(at, Rank.LIKELY, line.strip(), place=Place(found["file"])) if found else None


THROWN = re.compile(r"^in [`'].+?': (?P<message>\S.* \([A-Z][\w:]*\))$")
"""An exception that ended a program, with its class at the end, as Ruby prints it."""

MILD = r"warning|warn|info|style|refactor|convention"
SEVERITY = re.compile(
    rf"^(?:[A-Z]+\d+:? )?(?:fatal )?(?P<word>error|fatal|{MILD})\b(?!/)"
    rf"|[(\[](?P<last>error|{MILD})[)\]]$",
    re.IGNORECASE,
)


def _of_place(at: int, line: str, weight: Weight) -> FindingHead | None:
    found = DIAGNOSTIC.match(line.replace("file://", "")) if weight >= Weight.WARNING else None
    thrown = THROWN.match(found["rest"]) if found else None
    if found is None or (thrown is None and NOTE_LINE.match(found["rest"])):
        return None
    rest = found["rest"]
    if thrown:
        return FindingHead(
            at, Rank.FAILURE, thrown["message"], place=place_of(found), heading=line, severe=True
        )
    severity = (found["severity"] or "").lower()
    if said := SEVERITY.search(rest):
        severity = (said["word"] or said["last"]).lower()
    code = code_in(rest)
    rank = Rank.FAILURE if severity or code or has_phrase(rest) else Rank.LIKELY
    if re.match(MILD, severity):
        rank = Rank.WARNING
    severe = bool(severity) and rank is Rank.FAILURE
    return FindingHead(at, rank, rest.strip(), place=place_of(found), code=code, severe=severe)


# Lines of words alone

CODE_FIRST = re.compile(r"^\W*(?:\w+:\s*)?\[?[A-Z]{1,6}\d{3,5}\b")


def _of_words(at: int, line: str, weight: Weight, section: Place | None) -> FindingHead | None:
    place = find_place(line) or section
    if weight is Weight.WARNING:
        return FindingHead(at, Rank.WARNING, line.strip(), place=place)
    is_stated = weight is Weight.PHRASE and (section or CODE_FIRST.match(line))
    if weight < Weight.ERROR and not is_stated:
        return None
    rank = Rank.FAILURE if weight >= Weight.CRASH and CRASH.search(line) else Rank.LIKELY
    return FindingHead(
        at, rank, relevant_part(line), place=place or file_in(line), code=code_in(line)
    )
