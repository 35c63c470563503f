"""Read unittest, and runners that print like it (Django, nose2). Pure."""

import re
from collections.abc import Iterator, Sequence

from mulligan.checks.digest.blocks import START, Traceback, traceback_at
from mulligan.checks.digest.clean import CleanLog
from mulligan.checks.digest.findings import Family, FindingBlock, Reading, finding

DOUBLE = re.compile(r"^={50,}$")
SINGLE = re.compile(r"^-{50,}$")
HEADER = re.compile(
    r"^(?P<kind>FAIL|ERROR|UNEXPECTED SUCCESS): "
    r"(?P<name>\S+)(?: \((?P<owner>[\w.]+)\))?(?P<sub> .*)?$"
)
PROGRESS = re.compile(
    r"^(?P<name>\w+) \((?P<owner>[\w.]+)\).* \.\.\. "
    r"(?P<kind>FAIL|ERROR|unexpected success)$"
)
RESULT = re.compile(r" \.\.\. (?:ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)$")
RAN = re.compile(r"^Ran \d+ tests? in [\d.]+s$")
VERDICT = re.compile(r"^(?:FAILED \(.*\)|NO TESTS RAN.*)$")
BAD = re.compile(r"\b(?:failures|errors|unexpected successes)=(\d+)")
LOADER = "unittest.loader._FailedTest"
MAIN = "__main__."
"""The module of a file that is run as a program, whichever it is."""
DETAIL = 12


def recognises(log: CleanLog, _command: str) -> bool:
    """Return whether such a runner wrote some of it."""
    return any(RAN.match(line) for line in log.lines) or bool(_headers(log.lines))


def read(log: CleanLog) -> Reading:
    """Read the blocks; where none is left, the names in the progress."""
    lines = log.lines
    found = list(_blocks(lines)) or list(_progress(lines))
    verdicts = [line for line in lines if VERDICT.match(line)]
    ran = [line for line in lines if RAN.match(line)]
    count = max((sum(map(int, BAD.findall(line))) for line in verdicts), default=0)
    return Reading(tuple(found), count, (*ran[-1:], *verdicts[-1:]), _claimed(lines))


UNITTEST = Family("unittest", recognises, read)


def _headers(lines: Sequence[str]) -> list[tuple[int, re.Match[str]]]:
    """Find the lines that name a failure beneath a double rule."""
    below = (at for at, line in enumerate(lines[:-1], start=1) if DOUBLE.match(line))
    return [(at, header) for at in below if (header := HEADER.match(lines[at]))]


def _claimed(lines: Sequence[str]) -> frozenset[int]:
    """Return the progress, and the lines from the first block to the last verdict."""
    progress = (at for at, line in enumerate(lines) if RESULT.search(line))
    ends = [at for at, line in enumerate(lines) if RAN.match(line) or VERDICT.match(line)]
    starts = [*(at for at, _ in _headers(lines)), *ends]
    return frozenset([*progress, *range(min(starts), max(ends or starts) + 1)])


def _blocks(lines: Sequence[str]) -> Iterator[FindingBlock]:
    headers = _headers(lines)
    limits = [*(at for at, _ in headers[1:]), len(lines)]
    for (at, header), limit in zip(headers, limits, strict=False):
        end = next((n for n in range(at + 3, limit) if _closes(lines[n])), limit)
        yield _found(lines, at, end, header)


def _closes(line: str) -> bool:
    return bool(DOUBLE.match(line) or RAN.match(line))


def _found(lines: Sequence[str], at: int, end: int, header: re.Match[str]) -> FindingBlock:
    opening = next((n for n in range(at, end) if START.match(lines[n])), None)
    trace = traceback_at(lines, opening, end) if opening is not None else None
    said = _said(lines, at, end, trace)
    place = trace.place if trace else None
    test_id = dotted(header["name"], header["owner"]) + (header["sub"] or "")
    if test_id.startswith(MAIN) and place:
        test_id = f"{place.file} › {test_id.removeprefix(MAIN)}"
    where = f" ({place})" if place else ""
    heading = f"{lines[at].strip()}{where}"
    failed = finding("\n".join(said), place, test_id=test_id)
    source = (f"> {trace.source}",) if trace and trace.source else ()
    source += tuple(f"after {cause}" for cause in trace.causes) if trace else ()
    return FindingBlock(failed, trace.at if trace else at, heading, said + source)


def _said(lines: Sequence[str], at: int, end: int, trace: Traceback | None) -> tuple[str, ...]:
    """Return the exception with the lines of its message; without a traceback, the text itself."""
    start = trace.at if trace else at + 1
    said = [line for line in lines[start:end] if line.strip() and not SINGLE.match(line)]
    return tuple(said[:DETAIL])


def dotted(name: str, owner: str | None) -> str:
    """Return a test as `module.Class.test_x`; before Python 3.11 the owner lacks the test."""
    if owner is None or owner.startswith(LOADER):
        return name
    return owner if owner.endswith(f".{name}") else f"{owner}.{name}"


def _progress(lines: Sequence[str]) -> Iterator[FindingBlock]:
    for at, line in enumerate(lines):
        if found := PROGRESS.match(line):
            test_id = dotted(found["name"], found["owner"])
            yield FindingBlock(finding(found["kind"], test_id=test_id), at, line.strip())
