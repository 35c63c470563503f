"""Read structured reports (JUnit XML, SARIF, JSON), and merge them with the output. Pure."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from mulligan.checks.digest.blocks import START, said_in, traceback_at, worth_showing
from mulligan.checks.digest.clean import as_utf8
from mulligan.checks.digest.documents import Document, Json, documents
from mulligan.checks.digest.findings import MAX_FINDINGS, FindingBlock, Reading, clip, finding
from mulligan.checks.digest.locations import Place, best_place, number
from mulligan.checks.digest.pytest import SAID, why
from mulligan.checks.digest.qualified_names import OF_PACKAGE, bare_name, in_project, project_of
from mulligan.domain.result import ID_CHARS, Finding, RanTests, names_unit

# Any report

LARGEST_REPORT = 16 * 1024 * 1024
"""In bytes; a larger report is not read."""


def read_report(report: bytes) -> Reading:
    """Read a report file; return nothing for a large, broken or unknown one."""
    if len(report) > LARGEST_REPORT:
        return Reading()
    text = b"".join(as_utf8(iter([report]))).decode(errors="replace")
    return joined([read_document(found) for found in documents(text)])


@dataclass(frozen=True, slots=True)
class PackageReport:
    """The report of one of several packages: `package` is in the name of each of its tests.

    `path_of` returns the path of a file from the root of the repository.
    """

    content: bytes
    package: str
    path_of: Callable[[str], str]

    def read(self, content: bytes) -> Reading:
        """Read the content, whose paths are relative to the root if they were absolute."""
        reading = read_report(content)
        tests = reading.tests and RanTests(
            ran=self._named(reading.tests.ran),
            skipped=self._named(reading.tests.skipped),
            stopped=self._named(reading.tests.stopped),
            failed=self._named(reading.tests.failed),
        )
        return replace(reading, found=tuple(map(self._located, reading.found)), tests=tests)

    def _named(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(clip(in_project(name, self.package), ID_CHARS) for name in names)

    def _located(self, block: FindingBlock) -> FindingBlock:
        found = block.finding
        file = self.path_of(found.file) if found.file else None
        test_id = clip(in_project(found.test_id, self.package), ID_CHARS) if found.test_id else None
        heading = block.heading.replace(f"({found.file}", f"({file}") if file else block.heading
        return replace(
            block,
            finding=found.model_copy(update={"file": file, "test_id": test_id}),
            heading=in_project(heading, self.package),
        )


def read_document(document: Document) -> Reading:
    """Return the reading of the first reader that finds something."""
    readings = (read(document) for read in READERS)
    return next((reading for reading in readings if reading.found or reading.tests), Reading())


def joined(readings: list[Reading]) -> Reading:
    """Join the readings of several documents."""
    found = tuple(found for reading in readings for found in reading.found)
    told = [reading.tests for reading in readings if reading.tests]
    tests = RanTests(
        ran=tuple(name for each in told for name in each.ran),
        skipped=tuple(name for each in told for name in each.skipped),
        stopped=tuple(name for each in told for name in each.stopped),
        failed=tuple(name for each in told for name in each.failed),
    )
    count = sum(reading.count for reading in readings)
    return Reading(found, count, tests=tests if told else None)


# Fields of a JSON object

Row = dict[str, Json]


def _names(*names: str) -> KeysView[str]:
    """Return names in their order, as a set that is fast to compare with the keys of a row."""
    return dict.fromkeys(names).keys()


def text_of(row: Row, names: Iterable[str]) -> str:
    """Return the first of these fields that is a non-empty text."""
    if row.keys().isdisjoint(names):
        return ""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def number_of(row: Row, names: Iterable[str]) -> int | None:
    """Return the first of these fields that is a number, of one to nine digits."""
    if row.keys().isdisjoint(names):
        return None
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value[:9])
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
            return value
    return None


def rows_in(value: Json) -> list[Row]:
    """Return the objects of a list, or a single object."""
    values = value if isinstance(value, list) else [value]
    return [row for row in values if isinstance(row, dict)]


ZERO_BASED = "character"
"""The column of the language server protocol, which counts lines and columns from 0."""

FILE = _names(
    *("file", "filename", "file_name", "fileName", "filePath", "file_path", "path", "source"),
    *("uri", "fullpath", "abspath", "File", "resource"),
)

LINE = _names(
    *("line", "row", "line_start", "startLine", "lineno", "line_number", "lineNumber"),
    *("begin_line", "beginLine", "start_line", "start_line_no", "Line", "lnum"),
)

COLUMN = _names(
    *("column", "col", "column_start", "startColumn", "startColumnNumber", "start_column"),
    *("start_line_pos", "Column", "begin_column", "beginColumn", "display-column"),
    ZERO_BASED,
)

WITHIN = _names(
    *("location", "physicalLocation", "artifactLocation", "range", "region", "start", "begin"),
    *("caret", "spans", "locations", "loc", "position", "pos", "extent", "Pos", "lines"),
)
"""Fields that may contain a place one level down."""

DEEPEST_PLACE = 4


def place_in(row: Row, file: str = "") -> Place | None:
    """Return the place that a row names, itself or further down; `file` is the default."""
    parts = list(_parts(row, DEEPEST_PLACE))
    named = next((name for part in parts if (name := text_of(part, FILE))), file)
    if not named:
        return None
    for part in parts:
        line = number_of(part, LINE)
        if line is not None:
            base = 1 if ZERO_BASED in part else 0
            column = number_of(part, COLUMN)
            return Place(named, line + base or None, column + base if column is not None else None)
    return Place(named)


def _parts(row: Row, depth: int) -> Iterator[Row]:
    """Yield a row and its parts that may contain a place; of spans, only the first primary one."""
    yield row
    if depth == 0 or row.keys().isdisjoint(WITHIN):
        return
    for name in filter(row.__contains__, WITHIN):
        parts = rows_in(row.get(name))
        primary = [part for part in parts if part.get("is_primary")]
        for part in (primary or parts)[:1]:
            yield from _parts(part, depth - 1)


# Failed tests, from any kind of report

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
DETAIL = 30
MESSAGE_LINES = 8
FRAME = re.compile(r"^\s+at |^\s*File \"|^\s*#\d+ ")


def of_file(name: str, file: str) -> str:
    """Qualify the name of a test with its file, unless it has a qualified name."""
    file = file.removeprefix("./")
    return f"{file} › {name}" if file and name and not names_unit(name) else name or file


def failure(name: str, text: str, place: Place | None = None) -> FindingBlock:
    """Make a finding of a failed test from its text; `place` is where the test is, if known."""
    lines = [line for line in COLOURS.sub("", text).splitlines() if line.strip()]
    message, inner = _why(lines)
    where = inner or place
    text_shown = "\n".join(message)
    failed = finding(text_shown or "failed", where, test_id=name)
    heading = f"{name} ({where})" if where and str(where) not in name else name
    rest = [line for line in lines if line not in message]
    detail = (*message, *worth_showing(rest)[:DETAIL])
    return FindingBlock(failed, None, heading, detail, said=(*said_in(lines),))


def _why(lines: Sequence[str]) -> tuple[tuple[str, ...], Place | None]:
    """Return the lines of the message, and the place in the project's own code."""
    if any(SAID.match(line) for line in lines):
        reason = why(lines, 0, len(lines))
        return reason.message, reason.place
    opening = next((at for at, line in enumerate(lines) if START.match(line)), None)
    trace = traceback_at(lines, opening) if opening is not None else None
    if trace:
        return (trace.message,), trace.place
    message = [line for line in lines if not FRAME.match(line)]
    place = best_place(lines)
    return tuple(message[:MESSAGE_LINES]), place


# JUnit XML and checkstyle XML

BAD_XML = (ParseError, DefusedXmlException, ValueError, LookupError)


def read_xml(document: Document) -> Reading:
    """Find the failed tests, or the complaints; nothing in broken or unsafe XML."""
    if not (document.is_xml and isinstance(document.value, str)):
        return Reading()
    try:
        root = fromstring(document.value)
    except BAD_XML:
        return Reading()
    if root.tag == "checkstyle":
        found = tuple(_complaints(root))
        return Reading(found, len(found))
    cases = [*_cases(root)]
    found = tuple(_failures(cases))
    return Reading(found, len(found), tests=_tests_of(cases) if root.tag in SUITES else None)


SUITES = {"testsuite", "testsuites"}
XML_FAILURES = {"failure", "error"}
PRINTED = {"system-out", "system-err"}
NOT_RUN = {"disabled", "notrun", "skipped", "ignored"}
"""What ctest and GoogleTest write for a test that did not run."""


BEFORE_TEST = re.compile(r"collection failure$|failed on (?:setup|teardown) with |internal error$")
"""What pytest says of an error outside a test; elsewhere, an error is an exception in the test."""


def _tests_of(cases: Sequence[tuple[Element, Element]]) -> RanTests:
    """Name the tests that ran; one with an error may have stopped before it."""
    named = {name: list[str]() for name in ("ran", "skipped", "stopped", "failed")}
    for case, suite in cases:
        results = {result.tag for result in case}
        is_skipped = "skipped" in results or case.get("status") in NOT_RUN
        how = "stopped" if "error" in results else "skipped" if is_skipped else "ran"
        name = clip(_full_name(case, suite), ID_CHARS)
        named[how].append(name)
        if any(map(_failed_itself, case)) and case.get("name") != case.get("file"):
            named["failed"].append(name)
    return RanTests.model_validate(named)


def _failed_itself(result: Element) -> bool:
    """Return whether a result is of the test itself, not of what comes before or after it."""
    is_outside = BEFORE_TEST.match(result.get("message") or "")
    return result.tag in XML_FAILURES and not is_outside


def _failures(cases: Iterable[tuple[Element, Element]]) -> Iterator[FindingBlock]:
    for case, suite in cases:
        file, line = case.get("file"), number(case.get("line"))
        place = Place(file, line) if file else None
        # A test with subtests has several.
        for bad in (result for result in case if result.tag in XML_FAILURES):
            texts = [part for part in (bad.get("message"), bad.text) if part and part.strip()]
            texts = texts or [printed.text or "" for printed in case if printed.tag in PRINTED]
            yield failure(_full_name(case, suite), "\n".join(texts), place)


def _cases(root: Element) -> Iterator[tuple[Element, Element]]:
    """Yield the tests, each with its suite; suites may be nested to any depth."""
    open_suites = [(root, iter(root))]
    while open_suites:
        suite, parts = open_suites[-1]
        part = next(parts, None)
        if part is None:
            open_suites.pop()
        elif part.tag == "testcase":
            yield part, suite
        elif part.tag in SUITES:
            open_suites.append((part, iter(part)))


def _full_name(case: Element, suite: Element) -> str:
    """Add the file or suite to a test's name, if its class does not identify it."""
    name = _node_id(case) or _name(case)
    owner = case.get("file") or suite.get("file") or suite.get("filepath") or ""
    if owner or names_unit(name):
        return of_file(name, owner)
    title = suite.get("package") or suite.get("name") or ""
    return name if not title or title in name else f"{title}::{name}"


def _node_id(case: Element) -> str:
    """Return pytest's name of a test, if its class is the file as a module, and classes in it."""
    file, owner, name = (case.get(key) or "" for key in ("file", "classname", "name"))
    module = file.removesuffix(".py").replace("/", ".")
    if file.endswith(".py") and (owner, name) == ("", module):
        return file
    if not file.endswith(".py") or not f"{owner}.".startswith(f"{module}."):
        return ""
    classes = owner.removeprefix(module).split(".")
    return "::".join((file, *filter(None, classes), name))


def _name(case: Element) -> str:
    """Join class and name, unless the name already has the class."""
    owner, name = case.get("classname") or "", case.get("name") or ""
    if not owner or owner in name or not name:
        return name or owner
    return f"{owner}::{name}" if "." in owner or name.startswith("test_") else f"{owner} {name}"


def _complaints(root: Element) -> Iterator[FindingBlock]:
    for file in root.iter("file"):
        for error in file.iter("error"):
            if error.get("severity") == "info":
                continue
            place = Place(
                file.get("name") or "", number(error.get("line")), number(error.get("column"))
            )
            message, code = error.get("message") or "", (error.get("source") or "").split(".")[-1]
            heading = " ".join(f"{place}: {code} {message}".split())
            yield FindingBlock(finding(message, place, code=code or None), None, heading)


# SARIF

SARIF_SILENT = {"note", "none"}
FINE = {"pass", "notApplicable", "informational"}


def read_sarif(document: Document) -> Reading:
    """Find the results except notes and passes; errors first."""
    value = document.value
    runs = rows_in(value.get("runs")) if isinstance(value, dict) else []
    results = [result for run in runs for result in rows_in(run.get("results"))]
    bad = [
        row for row in results if text_of(row, ("level",)) not in SARIF_SILENT and not _is_fine(row)
    ]
    ordered = sorted(bad, key=lambda row: text_of(row, ("level",)) == "warning")
    found = tuple(_sarif_finding(ordered))
    return Reading(found, len(found))


def _is_fine(result: Row) -> bool:
    return text_of(result, ("kind",)) in FINE or bool(rows_in(result.get("suppressions")))


def _sarif_finding(results: list[Row]) -> Iterator[FindingBlock]:
    for result in results:
        message_object = result.get("message")
        message = (
            text_of(message_object, ("text", "markdown", "id"))
            if isinstance(message_object, dict)
            else ""
        )
        code = text_of(result, ("ruleId",))
        place = place_in({"locations": result.get("locations")})
        where = f"{place}: " if place else ""
        heading = " ".join(f"{where}{code} {message}".split())
        mild = text_of(result, ("level",)) == "warning"
        yield FindingBlock(finding(message, place, code=code or None), None, heading, (), mild)


# `go test -json`

ACTIONS = {"run", "output", "fail", "pass", "skip", "start", "pause", "cont", "build-output"}
NOISE = re.compile(r"^(?:=== \w+|\s*--- (?:FAIL|PASS|SKIP)|FAIL\b|ok\b|PASS$|exit status)")


def read_go(document: Document) -> Reading:
    """Return the failed tests, and the packages that failed without a failed test."""
    events = [row for row in rows_in(document.value) if text_of(row, ("Action",)) in ACTIONS]
    if not document.is_lines or not events:
        return Reading()
    output_of = defaultdict[tuple[str, str], list[str]](list)
    for event in events:
        output = text_of(event, ("Output",)).rstrip("\n")
        if output and not NOISE.match(output):
            output_of[_key(event)].append(output)
    failed, passed, skipped = (
        list(dict.fromkeys(_key(event) for event in events if text_of(event, ("Action",)) == ended))
        for ended in ("fail", "pass", "skip")
    )
    found = tuple(_leaves(failed, output_of))
    tests = RanTests(
        ran=(*_test_names([*passed, *failed]),),
        skipped=(*_test_names(skipped),),
        failed=(*_test_names(failed),),
    )
    return Reading(found, len(found), tests=tests)


def _test_names(keys: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"{package}.{test}" if package else test for package, test in keys if test)


def _key(event: Row) -> tuple[str, str]:
    package = text_of(event, ("Package",)) or text_of(event, ("ImportPath",))
    return package.partition(" ")[0], text_of(event, ("Test",))


def _leaves(
    failed: Sequence[tuple[str, str]], output_of: dict[tuple[str, str], list[str]]
) -> Iterator[FindingBlock]:
    """Yield the tests that failed by themselves, not only because of a subtest."""
    for package, test in failed:
        parts = [
            other
            for where, other in failed
            if where == package and other.startswith(f"{test}/" if test else "") and other != test
        ]
        lines = output_of.get((package, test), [])
        if not parts:
            name = f"{package}.{test}" if package and test else test or package + OF_PACKAGE
            yield failure(name, "\n".join(lines))


# JSON of test runners

DEEPEST_TEST = 14

NAME = _names(
    *("fullName", "full_description", "fullTitle", "nodeid", "test_id", "test_name", "testName"),
    *("title", "name", "description", "displayName"),
)

STATUS = _names("status", "outcome", "result", "state", "Status")
BAD_STATUSES = {"failed", "failure", "fail", "error", "errored", "broken", "timedout"}
SKIPPED_STATUSES = {"skipped", "skip", "pending", "todo", "disabled", "ignored", "deselected"}
KNOWN_STATUSES = {*BAD_STATUSES, *SKIPPED_STATUSES, "passed", "pass", "ok", "success", "expected"}

MOCHA = "fullTitle"
"""Mocha reports no status; each test has an error, which is empty if it passed.

A test that did not run has no duration.
"""

REASON = (
    *("failureMessages", "failureMessage", "err", "error", "errors", "exception", "failure"),
    *(
        "failures",
        "longrepr",
        "reprtraceback",
        "crash",
        "call",
        "setup",
        "teardown",
        "message",
        "stack",
        "backtrace",
    ),
    *("failedExpectations", "failureDetails", "statusDetails", "reason", "text"),
)

REASON_DEPTH = 4
ASIDE = {"err", "error", "call"}
TESTS = ("assertionResults", "tests", "testcases", "specs")
FILE_NAME = re.compile(r"[^/\\]*+[/\\](?s:.*)\.\w{1,5}$")


def read_tests(document: Document) -> Reading:
    """Find the tests, and those that failed."""
    if document.is_xml:
        return Reading()
    told = [*_walk_tests(document.value, "", DEEPEST_TEST)]
    failed = [each for each in told if each.status in BAD_STATUSES]
    found = tuple(dict.fromkeys(_test_finding(each.row, each.file) for each in failed))
    ran = dict.fromkeys(each.name for each in told if each.status not in SKIPPED_STATUSES)
    skipped = dict.fromkeys(each.name for each in told if each.status in SKIPPED_STATUSES)
    bad = dict.fromkeys(each.name for each in failed if not each.is_suite)
    tests = RanTests(ran=tuple(ran), skipped=tuple(skipped), failed=tuple(bad))
    return Reading(found, len(found), tests=tests if told else None)


@dataclass(frozen=True, slots=True)
class _ToldTest:
    """A test, or a suite that failed by itself, with its status in small letters."""

    row: Row
    file: str
    status: str

    @property
    def name(self) -> str:
        return clip(of_file(_title_of(self.row), self.file), ID_CHARS)

    @property
    def is_suite(self) -> bool:
        return any(name in self.row for name in TESTS)


def _walk_tests(value: Json, file: str, depth: int) -> Iterator[_ToldTest]:
    """Yield the tests in a value, without suites that failed only because of their tests."""
    if depth == 0:
        return
    if isinstance(value, list):
        for part in value:
            yield from _walk_tests(part, file, depth - 1)
    elif isinstance(value, dict):
        file = text_of(value, FILE) or _as_file(value) or file
        inner = [
            found
            for name, part in value.items()
            if isinstance(part, (dict, list)) and name not in ASIDE
            for found in _walk_tests(part, file, depth - 1)
        ]
        yield from inner
        status = _status_of(value)
        is_failed = status in BAD_STATUSES
        parts = [each for each in inner if each.status in BAD_STATUSES] if is_failed else inner
        if status and not parts:
            yield _ToldTest(value, file, status)


def _as_file(row: Row) -> str:
    """Return the name of a suite that is a file, as Jest and Vitest write it."""
    name = text_of(row, ("name",))
    return (
        name if FILE_NAME.match(name) and any(isinstance(row.get(k), list) for k in TESTS) else ""
    )


def _status_of(row: Row) -> str:
    """Return the status of a test; empty if it is not known, or the row is no test."""
    if not (text_of(row, NAME) or text_of(row, FILE)):
        return ""
    status = text_of(row, STATUS).lower()
    if not status and MOCHA in row:
        return "failed" if row.get("err") else "passed" if "duration" in row else "skipped"
    return status if status in KNOWN_STATUSES else ""


def _title_of(row: Row) -> str:
    parents = row.get("ancestorTitles")
    title = text_of(row, NAME)
    if isinstance(parents, list) and title == text_of(row, ("title",)):
        title = " › ".join([*(str(part) for part in parents), title])
    return title.strip()


def _test_finding(row: Row, file: str) -> FindingBlock:
    reasons = "\n".join(dict.fromkeys(_reasons(row, REASON_DEPTH)))
    return failure(of_file(_title_of(row), file), reasons, place_in(row, file))


def _reasons(value: Json, depth: int) -> Iterator[str]:
    """Yield the reasons at any depth below the fields that contain them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _reasons(part, depth)
    elif isinstance(value, dict) and "reprentries" in value:
        yield "\n".join(line for entry in rows_in(value["reprentries"]) for line in _printed(entry))
    elif isinstance(value, dict) and depth:
        for name in REASON:
            yield from _reasons(value.get(name), depth - 1)


def _printed(entry: Row) -> Iterator[str]:
    """Yield a frame of pytest-reportlog's traceback as pytest prints it."""
    data = entry.get("data")
    if not isinstance(data, dict):
        return
    lines, place = data.get("lines"), data.get("reprfileloc")
    yield from (str(line) for line in (lines if isinstance(lines, list) else []))
    if isinstance(place, dict):
        yield f"{place.get('path')}:{place.get('lineno')}: {place.get('message')}"


# JSON of linters and compilers

DEEPEST_ISSUE = 12

MESSAGE = _names(
    *("message", "Message", "msg", "text", "Text", "description", "issue_text", "reason", "detail"),
    "check_name",
)

CODE = _names(
    *("rule", "ruleId", "rule_id", "message-id", "code", "cop_name", "check_id", "test_id"),
    *("symbol", "RuleID", "FromLinter", "name", "id", "check", "category"),
)

SEVERITY = _names("severity", "level", "type", "Severity", "issue_severity", "kind")

BAD_SEVERITIES = {
    "error",
    "fatal",
    "critical",
    "high",
    "blocker",
    "e",
    "f",
    "convention",
    "refactor",
}

MILD = {"warning", "warn", "medium", "minor", "low", "w", "style", "info", "information", "i"}
SILENT = {"note", "hint", "help", "notice", "none", "off", "failure-note"}
JUDGED = BAD_SEVERITIES | MILD
ESLINT_WARNING = 1


@dataclass(frozen=True, slots=True)
class _Issue:
    message: str
    place: Place
    code: str
    is_mild: bool


def read_issues(document: Document) -> Reading:
    """Find the complaints, errors first; if there are errors, only they are counted."""
    issues = [] if document.is_xml else [*_walk_issues(document.value, "", DEEPEST_ISSUE)]
    worse = [issue for issue in issues if not issue.is_mild]
    ordered = list(dict.fromkeys([*worse, *issues]))
    found = tuple(map(_issue_finding, ordered[:MAX_FINDINGS]))
    return Reading(found, len(set(worse)) or len(ordered))


def _walk_issues(value: Json, file: str, depth: int) -> Iterator[_Issue]:
    """Yield the issues in a value; `file` is the file of their parent."""
    if depth == 0:
        return
    if isinstance(value, list):
        for part in value:
            yield from _walk_issues(part, file, depth - 1)
    elif isinstance(value, dict):
        issue = _issue(value, file)
        if issue:
            yield issue
            return
        file = text_of(value, FILE) or file
        for part in value.values():
            if isinstance(part, (dict, list)):
                yield from _walk_issues(part, file, depth - 1)


def _issue(row: Row, file: str) -> _Issue | None:
    message = text_of(row, MESSAGE)
    severity = text_of(row, SEVERITY).lower()
    if not message or severity in SILENT:
        return None
    place = place_in(row, file)
    grade = number_of(row, ("severity",))
    judged = severity in JUDGED or grade is not None
    if place is None or (place.line is None and not judged):
        return None
    mild = severity in MILD or grade == ESLINT_WARNING
    return _Issue(message, place, _code(row), mild)


def _code(row: Row) -> str:
    """Return the code of a rule: a text, a number (shellcheck), or an object that contains it."""
    if code := text_of(row, CODE):
        return code
    number = number_of(row, ("code",))
    if number is not None:
        return f"SC{number}" if number_of(row, LINE) else str(number)
    within = row.get("code")
    return text_of(within, ("code", "name", "value")) if isinstance(within, dict) else ""


def _issue_finding(issue: _Issue) -> FindingBlock:
    reported = finding(issue.message, issue.place, code=issue.code or None)
    first, *rest = issue.message.strip().splitlines()
    code = f"{issue.code} " if issue.code and issue.code not in first.split() else ""
    heading = " ".join(f"{issue.place}: {code}{first}".split())
    detail = tuple(line for line in rest if line.strip())
    return FindingBlock(reported, None, heading, detail, is_mild=issue.is_mild)


READERS: tuple[Callable[[Document], Reading], ...] = (
    read_xml,
    read_sarif,
    read_go,
    read_tests,
    read_issues,
)
"""In this order; the first reader that finds something counts."""


# A report beside the output of the same check

WORDS = re.compile(r"[A-Za-z0-9_]+")
REPORT_NOISE = {"py", "test", "tests", "js", "ts"}


def merged(
    report: Sequence[FindingBlock], output: Sequence[FindingBlock]
) -> tuple[FindingBlock, ...]:
    """List the report's findings, enriched from the output; then those of the output alone.

    A finding of the output alone is dropped if the report has its place or its message.
    """
    waiting, reported = _by_end(output), _by_end(report)
    listed = list[FindingBlock]()
    for found in report:
        near = waiting[_end(found.finding)]
        alike = [other for other in near[:NAMESAKES] if _is_same(found.finding, other.finding)]
        same = max(alike, key=lambda other: _likeness(found.finding, other.finding), default=None)
        others = reported[_end(found.finding)][:NAMESAKES]
        if same and not _is_nearer(same.finding, found.finding, others):
            near.remove(same)
        listed.append(_better(found, same) if same else found)
    left = {id(found) for near in waiting.values() for found in near}
    places = {_place_of(found.finding) for found in listed}
    alone = (found for found in output if id(found) in left)
    return (*listed, *(found for found in alone if _adds(found, listed, places)))


NAMESAKES = 50
"""The maximum number of findings of one name or place that another one is compared with."""


def _by_end(found: Sequence[FindingBlock]) -> defaultdict[str, list[FindingBlock]]:
    ends = defaultdict[str, list[FindingBlock]](list)
    for block in found:
        ends[_end(block.finding)].append(block)
    return ends


def _end(one: Finding) -> str:
    """Return the end of a finding's name, which equal findings have in common."""
    if one.test_id:
        return next(reversed(_words(one.test_id)), "")
    return f"{(one.file or '').rpartition('/')[2]}:{one.line}"


def _better(report: FindingBlock, output: FindingBlock) -> FindingBlock:
    """Return the output's finding, with the report's message if the two differ.

    If the place differs, too, what stands near the name in the output is of another test.
    """
    one, other = report.finding, output.finding
    # A report's package is certain; the output may number the runs, and omit the directory.
    is_certain = bool(project_of(one.test_id or ""))
    longer = max(one.test_id or "", other.test_id or "", key=len) or None
    test_id = one.test_id if is_certain else longer
    is_same_file = is_certain and _ends_alike(one.file or "", other.file or "")
    if one.line not in {None, other.line} and _bare(one.message) not in other.message:
        return replace(report, finding=one.model_copy(update={"test_id": test_id}))
    message = other.message if _says(output, one.message) else one.message
    merged_finding = other.model_copy(
        update={
            "message": message,
            "test_id": test_id,
            "summary": other.summary if message == other.message else one.summary,
            "hint": one.hint or other.hint,
            "file": one.file if is_same_file else other.file or one.file,
            "line": other.line if other.file else one.line,
        }
    )
    detail = output.detail if message == other.message else (*report.detail, *output.detail)
    heading = output.heading if other.file and not is_certain else report.heading
    return FindingBlock(merged_finding, output.at, heading, detail, said=report.said)


def _likeness(one: Finding, other: Finding) -> tuple[bool, bool, bool, bool]:
    """Rate how likely two findings are about one failure; compare as tuples."""
    return (
        one.test_id == other.test_id,
        _project_name(one) == _project_name(other),
        _ends_alike(one.file or "", other.file or ""),
        bool(one.message) and one.message.partition("\n")[0] in other.message,
    )


def _project_name(one: Finding) -> str:
    """Return the last part of a project: `a` of `packages/a`, and of `@shop/a`."""
    return project_of(one.test_id or "").rpartition("/")[2]


def _is_nearer(output: Finding, reported: Finding, report: Sequence[FindingBlock]) -> bool:
    """Return whether the output's finding fits another failure of the report better."""
    own = _likeness(reported, output)
    alike = (other.finding for other in report if _is_same(other.finding, output))
    return any(_likeness(other, output) > own for other in alike)


def _says(output: FindingBlock, message: str) -> bool:
    """Return whether the output has this message, with or without the name of its exception."""
    return any(_bare(message) in text for text in (output.finding.message, *output.detail))


def _bare(message: str) -> str:
    """Return the first line of a message without the name of an exception."""
    first = message.partition("\n")[0]
    return first.partition(": ")[2] or first


def _adds(
    found: FindingBlock,
    listed: Sequence[FindingBlock],
    places: Collection[tuple[str, str | None, int | None]],
) -> bool:
    """Return whether a finding of the output alone is missing in the report."""
    one = found.finding
    if one.test_id is None and one.file is None:
        return not any(_says(other, one.message) for other in listed[:NAMESAKES])
    return one.file is None or _place_of(one) not in places


def _place_of(one: Finding) -> tuple[str, str | None, int | None]:
    """Return a place with its project: each of several environments runs the same tests."""
    return project_of(one.test_id or ""), one.file, one.line


def is_same_test(one: str, other: str) -> bool:
    """Return whether two names are of one test: the longer one ends with the shorter one."""
    return _is_same_test(_words(one), _words(other))


def _is_same(one: Finding, other: Finding) -> bool:
    """Compare two findings of one `_end`: both are of tests, or both of places."""
    if one.test_id and other.test_id:
        # A report may name the project by its directory, and the output by its own name.
        return _is_same_test(_words(bare_name(one.test_id)), _words(bare_name(other.test_id)))
    same_file = _ends_alike(one.file or "", other.file or "")
    return (
        same_file and one.line == other.line and (one.code or "") == (other.code or one.code or "")
    )


def _words(name: str) -> list[str]:
    return [word for word in WORDS.findall(name) if word.lower() not in REPORT_NOISE]


def _is_same_test(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether the longer name ends with the shorter one."""
    shorter, longer = sorted((one, other), key=len)
    return bool(shorter) and list(longer[-len(shorter) :]) == list(shorter)


def _ends_alike(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (bool(shorter) and longer.endswith("/" + shorter.removeprefix("./")))
