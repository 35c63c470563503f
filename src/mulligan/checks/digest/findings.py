"""The findings of a check: their parts, rule codes and hints. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mulligan.checks.digest.clean import CleanLog
from mulligan.checks.digest.locations import Place, number
from mulligan.domain.patterns import Match, expressions
from mulligan.domain.result import ID_CHARS, Finding, RanTests

# What a reader finds in an output


@dataclass(frozen=True, slots=True)
class FindingBlock:
    """A finding, and how to show it.

    `at` is the index of its most informative line, None for a finding from a report. `heading`
    names it in full, on one line. `detail` has the lines below the heading, the most informative
    first. A finding `is_mild` if the tool calls it a warning, or if it may not be a failure. `said`
    has all lines of a report about a failure that are no stack frames or source code.
    """

    finding: Finding
    at: int | None
    heading: str
    detail: tuple[str, ...] = ()
    is_mild: bool = False
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a reader.

    `count` is the number of failures that the tool reports, 0 if it reports none. `claimed` has the
    indices of the lines that the reader used. `doubtful`: none of the findings is certainly a
    failure. `structured`: the source is a report for programs, which lists all failures. `tests`
    are those of such a report, None if it is none of tests. `is_whole`: a report of tests names as
    many failures as the output counts.
    """

    found: tuple[FindingBlock, ...] = ()
    count: int = 0
    totals: tuple[str, ...] = ()
    claimed: frozenset[int] = frozenset()
    doubtful: bool = False
    structured: bool = False
    tests: RanTests | None = None
    is_whole: bool = False


def spread(found: Sequence[FindingBlock]) -> tuple[FindingBlock, ...]:
    """Order findings so that each file or suite has one before any has a second (DIGEST-5).

    Failures come before mild findings. Within a file, a kind that no other file has shown comes
    first.
    """
    mild = [block for block in found if block.is_mild]
    return (*_in_turns([block for block in found if not block.is_mild]), *_in_turns(mild))


def _in_turns(found: Sequence[FindingBlock]) -> Iterator[FindingBlock]:
    groups = defaultdict[str, list[FindingBlock]](list)
    for block in found:
        groups[group_of(block.finding)].append(block)
    seen = set[str]()
    while groups:
        for name, waiting in list(groups.items()):
            kinds = enumerate(map(_kind, islice(waiting, KINDS_COMPARED)))
            block = waiting.pop(next((at for at, kind in kinds if kind not in seen), 0))
            seen.add(_kind(block))
            yield block
            if not waiting:
                del groups[name]


KINDS_COMPARED = 30


def _kind(block: FindingBlock) -> str:
    """Return the kind of a finding's complaint; each test is a separate kind."""
    known = block.finding
    return known.test_id or known.code or known.message[:SUMMARY_CHARS]


def group_of(found: Finding) -> str:
    """Name the file, suite or package that a finding belongs to."""
    test_id = found.test_id or ""
    for joint in (" › ", "::"):
        if joint in test_id:
            return test_id.partition(joint)[0]
    if "." in test_id and " " not in test_id:
        return test_id.rpartition(".")[0]
    return found.file or ""


MAX_FINDINGS = 1000
"""The maximum number of findings in a reading; its count includes the others."""

# Making a finding

SUMMARY_CHARS = 100
WHERE_CHARS = 60
LONG_LINE, BEFORE_WORD = 300, 60

FAILURE_WORDS = re.compile(
    r"error|fail|fatal|panic|exception|denied|not found|abort", re.IGNORECASE
)

MESSAGE_CHARS = 1000


def finding(
    message: str,
    place: Place | None = None,
    *,
    test_id: str | None = None,
    code: str | None = None,
) -> Finding:
    """Fill in the summary and the hint; cut what is too long."""
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    where = _end_of(test_id or (str(place) if place else ""))
    text = f"{code} {first}" if code and code not in first else first
    summary = ": ".join(part for part in (where, text) if part) or "failed"
    return Finding(
        summary=clip(" ".join(summary.split()), SUMMARY_CHARS),
        message=clip(message.strip(), MESSAGE_CHARS),
        file=place.file if place else None,
        line=place.line if place else None,
        column=place.column if place else None,
        code=code,
        test_id=clip(test_id, ID_CHARS) if test_id else None,
        hint=hint_for(message),
    )


CODE = re.compile(
    r"\[(?P<a>[A-Z]+\d+)\]|\b(?P<b>[A-Z]{1,6}-?\d{2,5})\b"
    r"|[\[(](?P<c>[a-z@][\w@/.]*[-/][\w/.-]+|report\w+)[\])]\s*$"
)


def code_in(text: str) -> str | None:
    """Return the code or rule name of a tool's complaint."""
    found = CODE.search(text)
    return next(code for code in found.groups() if code) if found else None


HINTS = (
    (
        "missing module",
        re.compile(
            r"No module named|ModuleNotFoundError|Cannot find (?:module|package)|Module not found"
            r"|cannot find package|package \S+ is not in (?:std|GOROOT)|no required module provides"
            r"|unresolved import|can't find crate|Could not resolve \"|Failed to resolve import"
            r"|package \S+ does not exist|cannot load such file|Can't locate \S+\.pm"
            r"|ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|there is no package called"
        ),
    ),
    (
        "missing file",
        re.compile(
            r"No such file or directory|FileNotFoundError|ENOENT|file not found|cannot open file"
            r"|file or directory not found|no input files|NoSuchFileException",
            re.IGNORECASE,
        ),
    ),
    (
        "snapshot",
        re.compile(r"\bsnapshots?\b.*(?:match|differ|obsolete|fail|written|mismatch)"
                   r"|toMatch\w*Snapshot|assert_snapshot|insta::", re.IGNORECASE),
    ),
    (
        "formatting",
        re.compile(
            r"would (?:be )?reformat|not (?:properly |correctly )?formatted|code style issues"
            r"|incorrectly (?:sorted|formatted)|run (?:the )?(?:formatter|prettier|black|gofmt)"
            r"|^Diff in |--check.*format|formatting (?:issue|error|difference)|prettier/prettier",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
)  # fmt: skip
"""Kinds of failures with their patterns; the first that matches counts."""


def hint_for(text: str) -> str | None:
    """Name the kind of failure: missing module, missing file, snapshot or formatting."""
    return next((name for name, speaks in HINTS if speaks.search(text)), None)


def relevant_part(line: str) -> str:
    """Cut the beginning of a very long line, if it has no word about failure."""
    line = " ".join(line.split())
    found = FAILURE_WORDS.search(line, LONG_LINE) if len(line) > LONG_LINE else None
    if found is None or FAILURE_WORDS.search(line, 0, LONG_LINE):
        return line
    return f"…{line[found.start() - BEFORE_WORD :]}"


def _end_of(where: str) -> str:
    """Cut a long `test (class)` to the test, and any other long path or id to its end."""
    if len(where) <= WHERE_CHARS:
        return where
    test, is_of_class, _ = where.partition(" (")
    is_whole = is_of_class and where.endswith(")") and len(test) <= WHERE_CHARS
    return test if is_whole else f"…{where[1 - WHERE_CHARS :]}"


def clip(text: str, size: int) -> str:
    """Cut a text to a number of characters, and mark the cut."""
    return text if len(text) <= size else text[: max(0, size - 1)] + "…" * (size > 0)


# A repository's own patterns


def found_by(patterns: Sequence[str], log: CleanLog) -> Iterator[FindingBlock]:
    """Yield a finding for each line that a pattern matches.

    Reads the groups file, line, column, code, message and test_id that exist. A pattern that RE2
    refuses finds nothing (CONFIG-4).
    """
    rules = expressions(patterns)
    for at, line in enumerate(log.lines):
        match = next((found for rule in rules if (found := rule.search(line))), None)
        if match:
            yield _found(at, line, match)


def _found(at: int, line: str, match: Match) -> FindingBlock:
    groups = match.groupdict()
    file = groups.get("file")
    place = Place(file, number(groups.get("line")), number(groups.get("column"))) if file else None
    message = groups.get("message") or match[0]
    reported = finding(message, place, test_id=groups.get("test_id"), code=groups.get("code"))
    return FindingBlock(reported, at, " ".join(line.split()))
