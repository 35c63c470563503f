"""Ask pytest and node:test for reports through the environment, and collect them (CHECK-6).

The check's command, its files and its output stay as they are. A report is not trusted.
"""

import ctypes
import os
import re
import select
import shlex
import shutil
import struct
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice
from pathlib import Path

from mulligan.checks import source_code
from mulligan.checks.digest.reports import LARGEST_REPORT
from mulligan.sandbox.home import clear

# Which tools are asked


class Tool(Enum):
    """A tool that writes a report if its environment asks for one."""

    PYTEST = auto()
    NODE = auto()


NO_TOOL = frozenset[Tool]()

REFUSES = {Tool.PYTEST: 4, Tool.NODE: 9}
"""The exit codes for options that a tool does not know, before it runs a test."""

NOT_SEARCHED = {".git", "node_modules"}
CONFIGURATION_BYTES = 1024 * 1024
MAX_DIRECTORIES = 10_000

PYTEST_FILES = {
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
    *("pyproject.toml", "tox.ini", "tox.toml", "setup.cfg", "hatch.toml", "noxfile.py", "Makefile"),
}
PYTEST_REPORT = re.compile(rb"junit-?xml")

NODE_FILES = {"package.json", "node.config.json"}
NODE_TESTS = re.compile(rb"\b(?:node|tsx)\b[^|&;\n]{0,300}?\s--test(?![\w-])")
NODE_REPORTER = b"test-reporter"


@dataclass(frozen=True, slots=True)
class Plan:
    """Which tools are asked, and whether pytest writes a report that the project set."""

    tools: frozenset[Tool]
    writes_own: bool


def plan_reports(tree: Path, command: str) -> Plan:
    """Return the tools that write a report for Mulligan without any other difference.

    pytest writes one report only, and the options of a report of the project's would change.
    """
    line = command.encode(errors="surrogateescape")
    writes_own = any(map(PYTEST_REPORT.search, [line, *_contents(tree, PYTEST_FILES)]))
    tools = NO_TOOL if writes_own else frozenset({Tool.PYTEST})
    if _can_ask_node([line, *_contents(tree, NODE_FILES)]):
        tools |= {Tool.NODE}
    return Plan(tools, writes_own)


def _can_ask_node(scripts: Sequence[bytes]) -> bool:
    """Return whether node:test is used without a reporter: it refuses a second one."""
    has_reporter = any(NODE_REPORTER in script for script in scripts)
    return not has_reporter and any(map(NODE_TESTS.search, scripts))


def _contents(tree: Path, names: Iterable[str]) -> Iterator[bytes]:
    """Yield the files with these names in any directory of a tree."""
    wanted = frozenset(names)
    for directory, below, found in islice(os.walk(tree), MAX_DIRECTORIES):
        below[:] = [name for name in below if name not in NOT_SEARCHED]
        for name in wanted.intersection(found):
            path = Path(directory, name).relative_to(tree)
            yield source_code.read(tree, str(path), CONFIGURATION_BYTES) or b""


# The request for reports, and what it brought


@dataclass(frozen=True, slots=True)
class Report:
    """A report, the name that its tool gave it, and when its tests began and ended (Unix time)."""

    name: str
    began: float
    ended: float
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AskedReports:
    """The directory in which a command's tools may write reports, each as often as they want.

    The command starts after the time `since`, in ns, by the clock of the file system.
    """

    place: Path
    tools: frozenset[Tool]
    since: int
    watch: "_Watch"

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that ask for reports; they add to the `given` ones.

        pytest itself puts the name of tox's environment in. tox passes the variable on from 4.11 on
        (seen; not with 4.2), except to environments with `pass_env` of their own.
        """
        asked = dict[str, str]()
        if Tool.PYTEST in self.tools:
            report = f"{FAMILY} {shlex.quote(f'--junitxml={self.place}/{FILE_NAME}')}"
            asked["PYTEST_ADDOPTS"] = _added(given.get("PYTEST_ADDOPTS"), report)
            if "TOX_OVERRIDE" not in given:
                asked["TOX_OVERRIDE"] = ";".join(
                    f"{section}.pass_env+=PYTEST_ADDOPTS" for section in TOX_SECTIONS
                )
        if Tool.NODE in self.tools:
            reporter = f"--{NODE_REPORTER.decode()}={(self.place / REPORTER).as_uri()}"
            asked["NODE_OPTIONS"] = _added(given.get("NODE_OPTIONS"), reporter)
        return asked

    def collect(self) -> tuple[bytes, ...]:
        """Return the reports of the command, which has ended, within limits."""
        self.watch.finish()
        reports = list[Report]()
        room = MAX_TOTAL
        for name, moved in self.watch.moved:
            report = read_report(name, moved, min(LARGEST_REPORT, room))
            room -= len(report.content) if report else 0
            reports += [report] if report else []
        return tuple(report.content for report in outermost(reports))

    def is_refused(self, exit_code: int) -> bool:
        """Return whether a tool that was asked ends with this code for unknown options."""
        return exit_code in {REFUSES[tool] for tool in self.tools}

    def clean_log(self, log: Path) -> bool:
        """Remove pytest's line about its report; return whether others name what was asked.

        A command whose output does may have failed because of it: a pytest without reports, for
        example, quotes the option that it doesn't know.
        """
        place, cleaned = os.fsencode(self.place), log.with_name(f"{log.name}.cleaned")
        signs = self._signs() if self.tools else ()
        has_notice = is_named = False
        with log.open("rb") as lines, cleaned.open("wb") as kept:
            for line in iter(lambda: lines.readline(LINE_BYTES), b""):
                if place in line and NOTICE.fullmatch(line):
                    has_notice = True
                    continue
                is_named = is_named or any(sign in line for sign in signs)
                kept.write(line)
        if has_notice:
            cleaned.replace(log)
        else:
            cleaned.unlink()
        return is_named

    def _signs(self) -> tuple[bytes, ...]:
        """Return what a refusal quotes."""
        if Tool.NODE not in self.tools:
            return (os.fsencode(self.place),)
        url = self.place.as_uri().encode()
        return os.fsencode(self.place), url, b"--" + NODE_REPORTER


TOX_SECTIONS = ("testenv", "env_run_base", "tool.tox.env_run_base")
"""Of tox.ini, of tox.toml and of pyproject.toml; tox ignores those that a project lacks."""


def _added(given: str | None, option: str) -> str:
    return f"{given or ''} {option}".lstrip()


FILE_NAME = "r-$TOX_ENV_NAME.xml"
FAMILY = "-o junit_family=xunit1"
"""Other families of pytest's reports have no file and line."""

REPORTER = Path("node_modules", "node_reporter.mjs")
"""Where the reporter for node:test lies in the directory of the reports.

Node counts files of `node_modules` in no coverage.
"""

NOTICE = re.compile(rb"(?:\x1b\[[\d;]*m)*-+ generated xml file: \S.* -+(?:\x1b\[[\d;]*m)*\r?\n?")
"""The line that pytest prints about a report."""

LINE_BYTES = 64 * 1024

MAX_REPORTS = 200
MAX_TOTAL = 4 * LARGEST_REPORT


@contextmanager
def ask_for_reports(
    private: Path, environment: Mapping[str, str], tools: frozenset[Tool]
) -> Generator[AskedReports]:
    """Yield a new directory for the reports of one command."""
    place, kept = private / "reports", private / "finished-reports"
    try:
        for directory in (place, kept):
            clear(directory, environment)
            directory.mkdir(mode=0o700)
        if Tool.NODE in tools:
            (place / REPORTER).parent.mkdir()
            shutil.copyfile(Path(__file__).with_name(REPORTER.name), place / REPORTER)
        with closing(_Watch(place, kept)) as watch:
            yield AskedReports(place, tools, place.stat().st_mtime_ns, watch)
    finally:
        for directory in (place, kept):
            clear(directory, environment)


def outermost(reports: Sequence[Report]) -> Iterator[Report]:
    """Yield the reports of the tests that a check runs, without those that a test itself runs.

    A test may start pytest, too, and its tests may be meant to fail.
    """
    for report in reports:
        around = (
            other.name == report.name and other.began <= report.began and report.ended < other.ended
            for other in reports
        )
        if not any(around):
            yield report


DURATION = re.compile(rb'<testsuite\b[^>]{0,2000}?\btime="(\d{1,9}(?:\.\d{1,9})?)"')
BEGINNING = 8192


def read_report(name: str, path: Path, most: int) -> Report | None:
    """Read a report; None if it is not an ordinary file, or larger than `most` bytes."""
    content = source_code.read(path.parent, path.name, most)
    if content is None:
        return None
    took, ended = DURATION.search(content[:BEGINNING]), path.lstat().st_mtime
    return Report(name, ended - (float(took[1]) if took else 0.0), ended, content)


# Several runs in one check write to the same file

CLOSED_AFTER_WRITING = 0x8
"""IN_CLOSE_WRITE of inotify(7)."""

EVENT = struct.Struct("iIII")
EVENTS_BYTES = 64 * 1024


class _Watch:
    """Moves each report away when it is complete, so that the next one doesn't overwrite it."""

    def __init__(self, place: Path, kept: Path) -> None:
        self.moved = list[tuple[str, Path]]()
        self._place, self._kept = place, kept
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        library = ctypes.CDLL(None)
        self._events: int = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        library.inotify_add_watch(self._events, os.fsencode(place), CLOSED_AFTER_WRITING)
        self._thread = threading.Thread(target=self._follow, name="reports", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Move what is left, too: a system may have no watch free (fs.inotify in proc_sys(5))."""
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        with suppress(OSError):
            for left in sorted(self._place.iterdir()):
                if left != self._place / REPORTER.parent:
                    self._move(left.name)

    def close(self) -> None:
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        os.close(self._stop)
        if self._events >= 0:
            os.close(self._events)

    def _follow(self) -> None:
        waiting = select.poll()
        waiting.register(self._stop, select.POLLIN)
        if self._events >= 0:
            waiting.register(self._events, select.POLLIN)
        while all(descriptor != self._stop for descriptor, _ in waiting.poll()):
            for name in _names(os.read(self._events, EVENTS_BYTES)):
                self._move(name)

    def _move(self, name: str) -> None:
        if len(self.moved) < MAX_REPORTS:
            path = self._kept / str(len(self.moved))
            with suppress(OSError):
                (self._place / name).rename(path)
                self.moved.append((name, path))


def _names(events: bytes) -> Iterator[str]:
    """Yield the files' names in what inotify writes."""
    at = 0
    while at < len(events):
        *_, length = EVENT.unpack_from(events, at)
        at += EVENT.size + length
        yield os.fsdecode(events[at - length : at].rstrip(b"\0"))
