"""Turn ctest's LastTest.log into JUnit XML (CHECK-6)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from mulligan.checks.digest.signals import STRONG, weigh

# What ctest writes beside its log


@dataclass(frozen=True, slots=True)
class Lists:
    """The names of the tests that failed and that were skipped, as of ctest's other files.

    The log calls a test passed if it was skipped, disabled or could not be started.
    """

    failed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()

    @classmethod
    def read(cls, costs: bytes, disabled: bytes) -> "Lists":
        """Read CTestCostData.txt, and lines of LastTestsDisabled.log, as in `3:name`."""
        failed = _text(costs).rpartition("---\n")[2].splitlines()
        skipped = (line.partition(":")[2] for line in _text(disabled).splitlines())
        return cls(frozenset(failed), frozenset(skipped))


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


# The log


@dataclass(frozen=True, slots=True)
class Case:
    """A test as the log has it; `before` is what ctest said of a test that it cannot start."""

    name: str
    before: Sequence[str]
    is_started: bool
    output: Sequence[str]
    seconds: str
    verdict: Sequence[str]


HEAD = re.compile(r"(?P<number>\d+)/(?P<of>\d+) Testing: (?P<name>.+)")
OUTPUT, END = "Output:", "<end of output>"
NOTHING_TOLD = re.compile(r"\s*$|-+$|Start testing: ")
TIME = re.compile(r"Test time = +(?P<seconds>\d+\.\d+) sec")


def as_junit(log: bytes, lists: Lists, suite: str) -> bytes:
    """Return a report of the tests in a log, or b"" without any.

    Of a test that was repeated, only the last run counts.
    """
    last = dict(_cases(_text(log).replace("\r\n", "\n").split("\n")))
    if not last:
        return b""
    cases = "\n".join(_testcase(case, lists, suite) for case in last.values())
    name = escape(_allowed(suite))
    return f'<testsuite name="{name}">\n{cases}\n</testsuite>\n'.encode(errors="replace")


def _cases(lines: Sequence[str]) -> Iterator[tuple[str, Case]]:
    """Yield each test with its number; the output of a test may look like a log."""
    at, before, of = 0, list[str](), ""
    while at < len(lines):
        head = HEAD.fullmatch(lines[at])
        if not head or not _is_head(lines, at) or of not in {"", head["of"]}:
            before.append(lines[at])
            at += 1
            continue
        of = head["of"]
        ending = f'"{head["name"]}" end time: '
        end = next((n for n in range(at, len(lines)) if lines[n].startswith(ending)), len(lines))
        case = _case(head["name"], before, lines[at:end])
        if case:
            yield head["number"], case
        at, before = end + CLOSING_LINES, []


CLOSING_LINES = 3
"""When a test ended, how long it took, and a line of dashes."""


def _is_head(lines: Sequence[str], at: int) -> bool:
    """Return whether the lines after the first one of a test are ctest's, too."""
    second, third = [*lines[at + 1 : at + 3], "", ""][:2]
    return second == lines[at].replace("Testing:", "Test:", 1) and third.startswith("Command: ")


def _case(name: str, before: Sequence[str], lines: Sequence[str]) -> Case | None:
    """Read a test up to its verdict; None if the log ends before."""
    ends = [at for at, line in enumerate(lines) if line == END]
    if OUTPUT not in lines or not ends:
        return None
    output, end = lines.index(OUTPUT), ends[-1]
    time, _, *verdict = [*lines[end + 1 :], "", ""]
    seconds = TIME.fullmatch(time)
    if not seconds:
        return None
    is_started = lines[output - 1] != f'"{name}" start time: '
    shown = lines[output + 2 : end]
    told = [line for line in before if not NOTHING_TOLD.match(line)][-MESSAGE_LINES:]
    return Case(name, told, is_started, shown, seconds["seconds"], verdict)


# As JUnit XML

FAIL = "Test Fail"
"""How a verdict begins: `Test Failed.`, or `Test Fail Reason:` and the reason."""

MESSAGE_LINES = 8
READ_LINES, SHOWN_LINES = 4000, 400
"""Limits of the lines of an output in which the reason is searched, and of those in the report."""

LINE_CHARS = 2000


def _testcase(case: Case, lists: Lists, suite: str) -> str:
    """Return a test, named with its suite: two build directories may have the same tests.

    The digest names the tests in ctest's output in the same way.
    """
    mark = ""
    if case.name in lists.failed or case.verdict[0].startswith(FAIL):
        mark = _failure(case)
    elif case.name in lists.skipped or not case.is_started:
        mark = "<skipped/>"
    name = escape(_allowed(f"[{suite}] {case.name}"))
    return f'<testcase name="{name}" time="{case.seconds}">{mark}</testcase>'


def _failure(case: Case) -> str:
    """Return the lines that tell why a test failed, and then its output."""
    output = [line[:LINE_CHARS] for line in _shortened(case.output, READ_LINES)]
    reason = [line for line in case.verdict[1:] if line.strip()]
    if not case.is_started:
        reason = ["Not Run", *case.before]
    if len(output) > MESSAGE_LINES:
        reason += [line for line in output if weigh(line) >= STRONG][:MESSAGE_LINES]
    message = "&#10;".join(escape(_allowed(line)) for line in reason)
    text = escape(_allowed("\n".join(_shortened(output, SHOWN_LINES))))
    return f'<failure message="{message or ("" if text.strip() else "Failed")}">{text}</failure>'


def _shortened(lines: Sequence[str], most: int) -> Sequence[str]:
    if len(lines) <= most:
        return lines
    return [*lines[: most // 2], "[...]", *lines[-most // 2 :]]


NOT_IN_XML = re.compile("\x1b\\[[0-9;]*m|[\0-\x08\x0b-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
"""Colours, and what XML 1.0 cannot contain."""


def _allowed(text: str) -> str:
    return NOT_IN_XML.sub("", text)
