"""Shortens the output of a check to what is needed to fix the failure (DIGEST-1)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from mulligan.checks.digest.clean import CleanLog, Output, chunks, from_root, reduce_output
from mulligan.checks.digest.documents import BufferedOutput, documents, without_quiet_records
from mulligan.checks.digest.findings import (
    MESSAGE_CHARS,
    FindingBlock,
    Reading,
    clip,
    found_by,
    spread,
)
from mulligan.checks.digest.generic import read_any
from mulligan.checks.digest.heads import lines_of_passed_tests
from mulligan.checks.digest.identity import evidence_of, fingerprint
from mulligan.checks.digest.pytest import read_pytest
from mulligan.checks.digest.qualified_names import in_project, projects, without_closing_lines
from mulligan.checks.digest.render import render_passed, render_short, render_text
from mulligan.checks.digest.reports import (
    PackageReport,
    is_same_test,
    joined,
    merged,
    read_document,
    read_report,
)
from mulligan.checks.digest.signals import (
    CRASH,
    STRONG,
    count_bad,
    is_cut_short,
    is_passing,
    is_total,
    total_lines,
    weigh,
)
from mulligan.domain.attempt import signal_of
from mulligan.domain.result import Finding, RanTests

MAX_CHARS = 12000
SHORT_CHARS = 2000
LAST_LINES = 20


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of one output.

    `text` is what the agent is given; `short` names the findings for people, in at most
    SHORT_CHARS characters. `count` is the number of failures, 0 if it is not known, as one may have
    several names. `fingerprint` is short hex, equal for the same failure on another day or in
    another directory; it is empty for a check that passed. `evidence` has a hash of each line about
    failures, with or without a finding; it is empty if lines were dropped.
    `cut_short` is set if the tool reports that it did not run or list everything. `tests` are those
    that the reports name, None without a report.
    """

    text: str
    findings: tuple[Finding, ...]
    count: int
    fingerprint: str
    passed: bool
    short: str = ""
    evidence: str = ""
    cut_short: bool = False
    tests: RanTests | None = None


def digest(
    output: Output,
    *,
    command: str = "",  # noqa: ARG001 - no tool is told by its name, and callers pass it
    exit_code: int | None = None,
    max_chars: int = MAX_CHARS,
    report: bytes | Sequence[bytes | PackageReport] | None = None,
    patterns: Sequence[str] = (),
    root: str = "",
) -> Digest:
    """Condense an output to at most `max_chars` characters. Never raises.

    A file is streamed. Without an exit code, the output alone decides whether the check passed. A
    test that failed in a report and did not pass in a later one fails the check, whatever the exit
    code.
    `patterns` are a repository's own regular expressions (see findings.py). Paths below `root`
    become relative to it, so that the same failure has the same name in every directory.
    """
    max_chars = max(0, max_chars)
    log = CleanLog()
    try:
        kept = BufferedOutput()
        log = reduce_output(kept.passing(without_quiet_records(from_root(chunks(output), root))))
        log = log.without(lines_of_passed_tests(log.lines))
        reading = _read_output(log, kept, patterns)
        reports = [report] if isinstance(report, bytes) else report or ()
        read = [_read_report(each, root) for each in reports]
        told = _lasting(read) if exit_code == 0 else joined(read)
        reading = _with_report(told, reading)
        reading = replace(reading, found=spread(reading.found))
        exit_code = REPORTED if exit_code == 0 and told.tests and told.found else exit_code
        return replace(_of_log(log, reading, exit_code, max_chars), tests=told.tests)
    except Exception:  # noqa: BLE001 - a digest that fails must not fail the attempt
        return _fallback_digest(log, exit_code, max_chars)


REPORTED = 1
"""The exit code of most test programs if a test failed."""


def _read_report(report: bytes | PackageReport, root: str) -> Reading:
    if isinstance(report, bytes):
        return read_report(b"".join(from_root([report], root)))
    return report.read(b"".join(from_root([report.content], root)))


def _lasting(reports: Sequence[Reading]) -> Reading:
    """Join reports without failures of tests that passed in a later one, when they ran again."""
    lasting, passed_later = list[Reading](), set[str]()
    for report in reversed(reports):
        found = tuple(each for each in report.found if each.finding.test_id not in passed_later)
        lasting.append(replace(report, found=found, count=len(found)))
        failed = {each.finding.test_id for each in report.found}
        passed_later.update(set(report.tests.ran if report.tests else ()) - failed)
    return joined(lasting[::-1])


def _with_report(report: Reading, output: Reading) -> Reading:
    """Take the failures from the report, and details and further failures from the output."""
    if not report.found:
        return output
    sure = () if output.doubtful else output.found
    counted = sum(map(count_bad, output.totals))
    is_whole = report.tests is not None and counted == len(report.found)
    if is_whole:
        # What else looks like a failed test is what a test printed.
        sure = tuple(block for block in sure if _is_of_another_tool(block, report))
    found = merged(report.found, sure)
    # A report may be of one of several runs only.
    count = max(report.count, len(found), output.count)
    return Reading(found, count, output.totals, structured=True, is_whole=is_whole)


def _is_of_another_tool(block: FindingBlock, report: Reading) -> bool:
    """Return whether a finding is of no test, or of one that the report names."""
    test, file = block.finding.test_id, block.finding.file
    names = (each.finding.test_id or "" for each in report.found)
    return file is not None if test is None else any(is_same_test(test, name) for name in names)


def _read_output(log: CleanLog, kept: BufferedOutput, patterns: Sequence[str]) -> Reading:
    """Read own patterns, reports and pytest blocks, then the certain failures of the rest."""
    own = tuple(found_by(patterns, log))
    inside, log = _read_inside(log, kept)
    tests = _in_project(read_pytest(log), log)
    known = (*own, *inside.found, *tests.found)
    if not known:
        rest = read_any(log)
        rest = replace(rest, found=without_closing_lines(rest.found, log.lines))
        return _with_totals(rest, tests)
    rest = read_any(log.without(tests.claimed))
    beside = () if rest.doubtful else tuple(filter(_is_failure_of_its_own, rest.found))
    beside = merged(inside.found, beside)[len(inside.found) :]
    return Reading(
        found=(*known, *beside),
        count=inside.count + tests.count + len(beside),
        totals=(*tests.totals, *(rest.totals if beside else ())),
        structured=bool(inside.found),
    )


def _in_project(reading: Reading, log: CleanLog) -> Reading:
    """Add the project to each test's name, if the output covers several projects."""
    of_line = projects(log.lines)
    if not any(of_line):
        return reading
    return replace(reading, found=tuple(_of_project(found, of_line) for found in reading.found))


def _of_project(found: FindingBlock, of_line: Sequence[str]) -> FindingBlock:
    project = of_line[found.at] if found.at is not None else ""
    if not (project and found.finding.test_id):
        return found
    test_id = in_project(found.finding.test_id, project)
    heading = in_project(found.heading, project)
    return replace(
        found, finding=found.finding.model_copy(update={"test_id": test_id}), heading=heading
    )


def _read_inside(log: CleanLog, kept: BufferedOutput) -> tuple[Reading, CleanLog]:
    """Read the reports inside an output; return them, and the output without their lines."""
    readings = [(document, read_document(document)) for document in documents(kept.text)]
    telling = [(document, reading) for document, reading in readings if reading.found]
    lines = {
        n
        for document, _ in telling
        for n in document.rows or range(document.first, document.last + 1)
    }
    inside = joined([reading for _, reading in telling])
    return inside, log.without(
        {at for at, n in enumerate(log.numbers) if n in lines}
    ) if lines else log


def _with_totals(reading: Reading, tests: Reading) -> Reading:
    """Prefer the totals of pytest, even if it named no failure."""
    count, totals = max(reading.count, tests.count), tests.totals or reading.totals
    return replace(reading, count=count, totals=totals)


def _is_failure_of_its_own(found: FindingBlock) -> bool:
    """Return whether a finding beside those of a test program is of another one, or a crash."""
    known = found.finding
    return known.file is not None or known.test_id is not None or bool(CRASH.search(known.message))


def _of_log(log: CleanLog, reading: Reading, exit_code: int | None, max_chars: int) -> Digest:
    failed = bool(reading.count or (reading.found and not reading.doubtful))
    passed = exit_code == 0 if exit_code is not None else not failed
    if passed:
        text = render_passed(reading.totals or total_lines(log.lines), max_chars)
        return Digest(text, (), 0, "", passed=True, short=text)
    findings = tuple(map(_in_full, reading.found))
    note = _ended_by(exit_code)
    text = clip(render_text(reading, log, max_chars, note), max_chars)
    most = min(SHORT_CHARS, max_chars)
    short = clip(render_short(reading, log, most, note), most)
    telling = [*_last_words(log), str(exit_code)]
    return Digest(
        text=text,
        findings=findings,
        count=_count(reading),
        fingerprint=fingerprint(findings, telling),
        passed=False,
        short=short,
        evidence="" if log.dropped else evidence_of(_lines_about_failures(log, reading)),
        cut_short=is_cut_short(log.lines),
    )


def _count(reading: Reading) -> int:
    """Return what the tool counts, or the failures that it names; 0 if it names more."""
    named = len(reading.found)
    return max(reading.count, named) if reading.count >= named or not reading.count else 0


def _in_full(found: FindingBlock) -> Finding:
    """Return a finding with all that a report says of it, as far as there is room."""
    message = clip("\n".join(found.said), MESSAGE_CHARS)
    return found.finding.model_copy(update={"message": message}) if message else found.finding


def _lines_about_failures(log: CleanLog, reading: Reading) -> Iterator[str]:
    """Yield the lines that report a failure, and those that stand below one."""
    if not reading.is_whole:
        yield from (line for line in log.lines if weigh(line) >= STRONG and not is_total(line))
    for found in reading.found:
        yield from found.said or (*found.finding.message.split("\n"), *found.detail)


def _last_words(log: CleanLog) -> list[str]:
    """Return the last lines that do not report success, in their order."""
    lines = (line for line in reversed(log.lines) if line.strip() and not is_passing(line))
    return [*islice(lines, LAST_LINES)][::-1]


def _ended_by(exit_code: int | None) -> str:
    """Name the signal that ended a command; empty if none did."""
    found = signal_of(exit_code)
    return f"Ended by {found.name}." if found else ""


def _fallback_digest(log: CleanLog, exit_code: int | None, max_chars: int) -> Digest:
    """Return a plain window of the output, for an output that could not be parsed."""
    passed = exit_code == 0
    text = render_passed((), max_chars) if passed else render_text(Reading(), log, max_chars)
    text = clip(text, max_chars)
    short = clip(text, min(SHORT_CHARS, max_chars))
    mark = "" if passed else fingerprint((), log.lines)
    return Digest(text, (), 0, mark, passed, short=short)
