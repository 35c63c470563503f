"""Qualify the names of tests by package, crate, project or file. Pure.

Two packages may each have a `TestOpen`. Tools name the package in a line above or below their
tests. If they do not, the file in a stack trace is used (DIGEST-4).
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mulligan.checks.digest.blocks import SUITE
from mulligan.checks.digest.findings import FindingBlock
from mulligan.checks.digest.heads import FindingHead, Rank
from mulligan.checks.digest.locations import Place


def with_units(heads: Iterable[FindingHead], lines: Sequence[str]) -> list[FindingHead]:
    """Qualify the names of tests with their units; add Go packages that failed without a test."""
    units = _Units(lines)
    kept = [head for head in heads if not (head.test_id and units.failed_for_its_parts(head))]
    named = [units.named(head) if head.test_id else units.of_project(head) for head in kept]
    parts = {head.test_id.rpartition("/")[0] for head in named if head.test_id and _is_go(head)}
    named = [head for head in named if not (_is_go(head) and head.test_id in parts)]
    return [*named, *_dead_packages(named, lines)]


OF_NO_DIRECTORY = re.compile(r"^[^/\\]+\.(?:go|java|kts?|scala|groovy)$")
"""A file name of tools that omit the directory: another package may have the same name."""


def is_distinct_file(file: str | None) -> bool:
    """Return whether a tool's name for a file is unique in the repository."""
    return bool(file) and not file.startswith("<") and not OF_NO_DIRECTORY.match(file)


# Projects of a repository: make, npm, pytest, mix

PROJECT = re.compile(
    r"^g?make(?P<level>\[\d+\])?: (?P<way>Entering|Leaving) directory [`'](?P<unit>[^']+)'"
    r"|^> (?P<npm>(?:@[\w.-]+/)?[\w.-]+)@\d\S* \S+(?: .*)?$|^rootdir: (?P<unit3>[^,]+)"
    r"|^==> (?P<unit4>[\w@./:-]+)$|^(?P<unit5>[\w.-]+): commands\[\d+\]> |^\+ cd (?P<unit6>\S+)$"
    r"|^nox > Running session (?P<unit7>\S+)$|^\[INFO\] Building (?P<unit8>\S+) \S+"
)
"""Where a runner turns to another project: make, npm, pytest, a log's prefix, tox, nox, maven."""

END_OF_UNITS = "<=="
IN_PARALLEL = "[INFO] Using the MultiThreadedBuilder implementation"

MAVEN_FAILED = re.compile(
    r"^\[ERROR\] Failed to execute goal \S+ .*?on project (?P<unit>[^\s:]+): "
)

RUN_ENDS = (
    re.compile(r"^(?:=+ )?(?:\d+ (?:passed|failed|errors?|skipped)(?:, )?)+ in [\d.]+s"),
    re.compile(r"^Ran \d+ tests? in "),
    re.compile(r"^\[=+\] \d+ tests? .*ran\."),
    re.compile(r"^\[\w+\] Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+$"),
    re.compile(r"^\d+ (?:runs|tests), \d+ assertions, "),
    re.compile(r"^Tests: \d+, Assertions: |^OK \(\d+ tests?, "),
    re.compile(r"^Tests: +(?:\d+ \w+, )*\d+ total$"),
)
"""How pytest, unittest, GoogleTest, Maven, minitest, PHPUnit and Jest end a run."""


def projects(lines: Sequence[str]) -> list[str]:
    """Name for each line the project that it is of; no line has one where there is one only.

    Where no project is named and a test program ran several times, the runs are numbered. Where
    projects ran in parallel, no line is of one of them for certain.
    """
    if any(line.startswith(IN_PARALLEL) for line in lines):
        return [""] * len(lines)
    found = [*_turns(lines)]
    if len({*found} - {""}) > 1:
        return found
    ends = [[at for at, line in enumerate(lines) if end.match(line)] for end in RUN_ENDS]
    repeated = next((places for places in ends if len(places) > 1), None)
    if repeated is None or any(found):
        return [""] * len(lines)
    failed = list(dict.fromkeys(end["unit"] for end in map(MAVEN_FAILED.match, lines) if end))
    named = len(failed) == len(repeated)
    runs = failed if named else [f"run {number + 1}" for number in range(len(repeated) + 1)]
    last = len(runs) - 1
    return [runs[min(bisect_left(repeated, at), last)] for at in range(len(lines))]


def _turns(lines: Sequence[str]) -> Iterator[str]:
    """Yield for each line the project that a runner turned to last."""
    around, current, is_silent = list[tuple[str | None, str]](), "", False
    environment, root = "", ""
    for line in lines:
        turn = PROJECT.match(line)
        if turn is None:
            is_silent = is_silent and (not line.strip() or line.startswith("> "))
            current = "" if line == END_OF_UNITS else current
        elif turn["way"] == "Entering":
            # A second directory of one level runs beside the first.
            beside = [unit for level, unit in around if level == turn["level"]]
            around.append((turn["level"], turn["unit"]))
            current = EITHER.join([*beside, turn["unit"]])
        elif turn["way"]:
            around = [each for each in around if each != (turn["level"], turn["unit"])]
            current = around[-1][1] if around else ""
        elif turn["npm"]:
            # A script that printed nothing may still run.
            current = f"{current}{EITHER}{turn['npm']}" if is_silent else turn["npm"]
            is_silent = True
        elif turn["unit3"] and environment and root in {"", turn["unit3"]}:
            # pytest tells the directory in which tox or nox runs it.
            root = turn["unit3"]
        else:
            current = next(filter(None, turn.groups()[4:]), "")
            environment, root = turn["unit5"] or turn["unit7"] or "", ""
        yield current


def in_project(name: str, project: str) -> str:
    """Add the project to a test's name."""
    return f"[{project}] {name}" if project else name


IN_PROJECT = re.compile(r"\[([^\]]+)\] ")


def project_of(name: str) -> str:
    """Return the project in a test's name, or the number of its run; empty if there is none."""
    found = IN_PROJECT.match(name)
    return found[1] if found else ""


def bare_name(name: str) -> str:
    """Return a test's name without its project."""
    return IN_PROJECT.sub("", name, count=1) if IN_PROJECT.match(name) else name


TOX_CLOSES = re.compile(r"^\s*(?P<unit>[\w.-]+): FAIL code \d+ \(.* seconds\)$")


def without_closing_lines(
    found: Sequence[FindingBlock], lines: Sequence[str]
) -> tuple[FindingBlock, ...]:
    """Drop what tox says at its end about an environment, if a failure in it is named."""
    closing = {at: end["unit"] for at, end in enumerate(map(TOX_CLOSES.match, lines)) if end}
    turns = [*_turns(lines)] if closing else []
    named = [each for each in found if each.finding.test_id or each.finding.file]
    told = {turns[each.at] for each in named if closing and each.at is not None}
    if told and len(closing) == 1:
        told = {*closing.values()}
    said = {at for at, unit in closing.items() if unit in told}
    return tuple(each for each in found if each.at not in said)


# Go packages

GO_TEST = re.compile(r"^\s*--- FAIL: ")
GO_END = re.compile(r"^(?:FAIL|PASS)$")

GO_PACKAGE = re.compile(
    r"^(?:(?P<failed>FAIL)|ok  |\?   |(?=\t\S+\t+coverage: ))\t(?P<unit>\S+)(?P<rest>.*)$"
)

GO_BUILD = re.compile(r"^# \S+(?: \[.*\])?$")
GO_SAYS = re.compile(r"^(?:vet: )?\S+\.go:\d+|^\s|^too many errors$|^package ")
NOT_BUILT = re.compile(r" \[(?:build|setup) failed\]")
EITHER = " or "
MOST_TOGETHER = 20
"""The maximum number of packages to name if their outputs are mixed."""

OF_PACKAGE = " (package)"


def go_packages(lines: Sequence[str]) -> list[str]:
    """Return the Go package of each line; the last line of a package names it.

    If the outputs of packages are mixed, name all that failed together.
    """
    found = [""] * len(lines)
    start, ends, closed, failed = 0, 0, 0, list[str]()
    is_said = False
    for at, line in enumerate(lines):
        if GO_END.match(line):
            ends += is_said
            is_said = True
            continue
        package = GO_PACKAGE.match(line)
        if package is None:
            is_said = is_said or bool(line.strip())
            continue
        is_said = True
        closed += 1
        if package["failed"] and len(failed) < MOST_TOGETHER:
            failed.append(package["unit"])
        if closed >= ends:
            found[start : at + 1] = [EITHER.join(failed) or package["unit"]] * (at + 1 - start)
            start, ends, closed, failed = at + 1, 0, 0, []
            is_said = False
    if failed:
        found[start:] = [EITHER.join(failed)] * (len(lines) - start)
    return found


def _is_go(head: FindingHead) -> bool:
    return bool(GO_TEST.match(head.written))


def _dead_packages(heads: Sequence[FindingHead], lines: Sequence[str]) -> Iterator[FindingHead]:
    """Find the Go packages that failed without a finding that explains it."""
    closing = [
        (at, package) for at, line in enumerate(lines) if (package := GO_PACKAGE.match(line))
    ]
    if not any(package["failed"] for _, package in closing):
        return
    building, build = False, set[int]()
    for at, line in enumerate(lines):
        building = bool(GO_BUILD.match(line) or (building and GO_SAYS.match(line)))
        build |= {at} if building else set()
    of_line = go_packages(lines)
    telling = {head.at for head in heads if head.rank is not Rank.AFTERMATH} - build
    explained = {package for at in telling for package in of_line[at].split(EITHER)}
    for at, package in closing:
        is_explained = package["unit"] in explained or (build and NOT_BUILT.match(package["rest"]))
        if package["failed"] and not is_explained:
            before = lines[at - 1].strip() if at else ""
            message = before if before.startswith("exit status") else "It failed."
            name = package["unit"] + OF_PACKAGE
            yield FindingHead(at, Rank.FAILURE, message, name, end=at + 1, unit=name)


# Suites of node and Vitest

CLOSED = re.compile(r"^(?P<indent>\s*)[✖✗] (?P<test>.+?)(?: \([\d.]+ms\))?$")
FOR_ITS_PARTS = re.compile(r"^\s*failureType: 'subtestsFailed'$")

OPENED = re.compile(r"^(?P<name>\s*▶ .+?)(?: \([\d.]+ms\))?$")

SUITE_OPENS = re.compile(r"^\s*not ok \d+ .*\{$")
"""How node and Vitest report a suite that failed only because of its tests."""


SUITE_OF_TESTS = re.compile(r"^(?P<indent>\s*)(?:▶|# Subtest:) (?P<name>.+?)(?: \([\d.]+ms\))?$")
TEST_OF_SUITE = re.compile(r"^(?P<indent>\s*)(?:✖|not ok \d+ -) (?P<name>.+?)(?: \([\d.]+ms\))?$")
LISTED_AGAIN = "✖ failing tests:"
"""How node prints a suite above its tests, and the line above its list of failures."""

TAP = ("# Subtest:", "TAP version ")
TEST_OF_TAP = re.compile(r"^# (?!Subtest:|\w+ +\d)(?P<name>\S.*)$")
ASSERTION_OF_TAP = re.compile(r"^not ok \d+ (?!- )")
"""How tape prints a test above its assertions; most of these have the same name.

Comments right below an assertion tell why it failed, and name no test.
"""


def suites_around(lines: Sequence[str]) -> Mapping[int, str]:
    """Return the suites around each failed test, the outermost first.

    The list at the end omits them, in the order in which the tests failed.
    """
    found, above = dict[int, str](), list[tuple[int, str]]()
    order = defaultdict[str, list[str]](list)
    is_again, is_told, test = False, False, ""
    has_suites = any("▶" in line or line.lstrip().startswith(TAP) for line in lines)
    for at, line in enumerate(lines if has_suites else ()):
        is_told = is_told and line.startswith("#")
        if opened := SUITE_OF_TESTS.match(line):
            depth, is_again = len(opened["indent"]), False
            above = [*(each for each in above if each[0] < depth), (depth, opened["name"])]
        elif failed := TEST_OF_SUITE.match(line):
            name, depth = failed["name"], len(failed["indent"])
            if is_again:
                found[at] = order[name].pop(0) if order[name] else ""
                continue
            found[at] = " › ".join(suite for place, suite in above if place < depth)
            order[name].append(found[at])
            is_again = line == LISTED_AGAIN
        elif not is_told and (titled := TEST_OF_TAP.match(line)):
            test = titled["name"]
        elif ASSERTION_OF_TAP.match(line):
            found[at], is_told = test, True
    return found


# Cargo's test programs

CRATE = re.compile(
    r"^\s*Running (?:(?:unittests )?(?P<source>\S+) \()?"
    r"\S*?[/\\](?P<crate>[\w-]+?)-(?P<hash>[0-9a-f]{16})(?:\.exe)?\)?$"
)

CRATE_STARTS = re.compile(r"^\s*Doc-tests \S+$|^running \d+ tests?$")

CRATE_RERUN = re.compile(
    r"^error: \w*test failed, to rerun pass [`'](?:-p (?P<package>\S+?))? ?"
    r"(?:--(?P<kind>lib|doc|bin|test|example|bench) ?(?P<target>\S*?))?[`']"
)

CRATE_TEST = re.compile(
    r"^---- \S.* stdout ----$|^thread '.*' .*panicked at |^\s*(?:test )?\S.* (?:\.\.\.|---) FAILED$"
)

BINARY_SOURCE = re.compile(r"src[/\\](?:main\.rs|bin[/\\])")

NEXTEST = re.compile(
    r"^\s*(?:(?:TRY \d+ )?FAIL \[ *[\d.]+s\](?: \([ \d/]+\))?"
    r"|[─-]{2,}\s*(?:TRY \d+ )?STD(?:OUT|ERR):)\s+(?P<unit>\S+) +(?P<test>\S+)$"
)


@dataclass(frozen=True)
class _Crate:
    """The output of one test program of cargo, from line `start`."""

    start: int
    name: str = ""
    source: str = ""
    hash: str = ""
    rerun: re.Match[str] | None = None

    @property
    def unit(self) -> str:
        """Name it as nextest does: `crate`, `package::test` or `crate::bin/program`."""
        parts = self.rerun.groupdict() if self.rerun else {}
        package, kind, target = parts.get("package"), parts.get("kind"), parts.get("target")
        package = package.rpartition("#")[2] if package else ""
        if kind == "doc":
            return ""
        if kind == "test":
            return f"{package}::{target}" if package else ""
        if kind in {"bin", "example", "bench"} and target:
            owner = package or self.name
            return f"{owner}::{kind}/{target}" if owner else f"{kind}/{target}"
        if not kind and BINARY_SOURCE.search(self.source):
            return f"{self.name}::bin/{self.name}"
        if not kind and self.source and not self.source.startswith("src"):
            return ""  # A file of tests: another package may have one of this name.
        return self.name or package.replace("-", "_")


# The unit of each line

NAME_ALONE = re.compile(r"^\w+$")
CLASS_ALONE = re.compile(r"^(?:[A-Za-z]\w*(?:::|\.))*[A-Z]\w*:?$")

_SCRIPT = r"(?P<file>(?:[A-Za-z]:)?[^\s()'\":]+\.[cm]?[jt]sx?)"
SCRIPT_FRAME = re.compile(rf"(?:^|[\s(])(?:file://)?{_SCRIPT}:\d+:\d+\)?(?: \{{)?$")
SCRIPT_TOLD = re.compile(rf"^(?:\s*(?:location|at): ['\"]|test at )(?:file://)?{_SCRIPT}:\d+")
SCRIPT_LATE = re.compile(rf"Timeout of \d+ms exceeded.*\((?:file://)?{_SCRIPT}\)$")
HAS_SCRIPT = re.compile(r"\.[cm]?[jt]sx?\b")

OF_SUITE = re.compile(
    r"^\s*● |\*\*\*\s?(?:Failed|Exception|Timeout|Not Run)|^#\s+Failed test '|^(?=.* > ).* FAILED$"
)
"""How these tools print a failed test."""


@dataclass(frozen=True)
class _Units:
    """The units that the lines of an output belong to."""

    lines: Sequence[str]

    def failed_for_its_parts(self, head: FindingHead) -> bool:
        """Return whether this is a suite of node that failed only because of a test in it."""
        block = self.lines[head.at : head.end]
        if SUITE_OPENS.match(head.written) or any(map(FOR_ITS_PARTS.match, block)):
            return True
        closed = CLOSED.match(head.written)
        if closed is None or head.message:
            return False
        opened = self._opened.get(f"{closed['indent']}▶ {closed['test']}")
        return opened is not None and opened < head.at

    @cached_property
    def _opened(self) -> dict[str, int]:
        """Return the first line of each suite of node."""
        found = ((at, OPENED.match(line)) for at, line in enumerate(self.lines) if "▶" in line)
        return {opened["name"]: at for at, opened in reversed([*found]) if opened}

    def named(self, head: FindingHead) -> FindingHead:
        """Qualify the name of a failed test with its unit, if the output names one."""
        unit, joint, name = "", " › ", self._in_its_suites(head)
        if listed := NEXTEST.match(head.written):
            unit, joint, name = listed["unit"], "::", listed["test"]
        elif _is_go(head):
            unit, joint = self._packages[head.at], "."
        elif CRATE_TEST.match(head.written):
            unit, joint = self._crate(head)
        elif OF_SUITE.search(head.written):
            unit, joint = self._suite(head)
        if not unit and NAME_ALONE.match(name):
            unit, joint = self._class_over(head), "."
        if not unit and not HAS_SCRIPT.search(name):
            unit, joint = self._script(head), " › "
        project = self._projects[head.at]
        qualified = unit + joint + name if unit and not name.startswith(unit) else name
        whole = in_project(qualified, project)
        return replace(head, test_id=whole, unit=unit)

    def of_project(self, head: FindingHead) -> FindingHead:
        """Say of which project a file is: another one may have a file of that name."""
        project = self._projects[head.at]
        if not (project and head.place and head.rank is not Rank.AFTERMATH):
            return head
        heading = in_project(head.heading or self.lines[head.at].strip(), project)
        return replace(head, message=in_project(head.message, project), heading=heading)

    def _in_its_suites(self, head: FindingHead) -> str:
        suites = self._suites_around.get(head.at)
        return f"{suites} › {head.test_id}" if suites else head.test_id or ""

    def _suite(self, head: FindingHead) -> tuple[str, str]:
        """Return the suite of a test; what it printed may be above the line of its suite."""
        own = (head.place.file, " › ") if head.place else ("", "")
        return own if own[0] and own in self._suite_names else self._suites[head.at]

    @cached_property
    def _suite_names(self) -> frozenset[tuple[str, str]]:
        return frozenset(self._suites)

    @cached_property
    def _suites_around(self) -> Mapping[int, str]:
        return suites_around(self.lines)

    def _class_over(self, head: FindingHead) -> str:
        """Return the class on the line above an indented test, as minitest's reporters print it."""
        line = self.lines[head.at]
        over = self.lines[head.at - 1] if head.at else ""
        is_deeper = line[:1].isspace() and not over[:1].isspace()
        return over.rstrip(":") if is_deeper and CLASS_ALONE.match(over) else ""

    @cached_property
    def _packages(self) -> list[str]:
        return go_packages(self.lines)

    @cached_property
    def _projects(self) -> list[str]:
        return projects(self.lines)

    @cached_property
    def _suites(self) -> list[tuple[str, str]]:
        """Return for each line the last suite above it, and the separator before a test's name."""
        found, current = list[tuple[str, str]](), ("", "")
        for line in self.lines:
            suite = SUITE.match(line)
            if suite and (file := suite["file"] or suite["file2"] or suite["file3"]):
                current = (file.removeprefix("./"), " › ")
            elif suite:
                current = (f"[{suite['group'] or suite['group2']}]", " ")
            found.append(current)
        return found

    def _crate(self, head: FindingHead) -> tuple[str, str]:
        if ".rs - " in (head.test_id or ""):
            return "", ""  # A test in a comment has its file in its name.
        over = bisect_right(self._crates, head.at, key=lambda crate: crate.start)
        unit = (self._crates[over - 1].unit if over else "") or self._captured(head.at)
        if self._times[unit] == 1:
            return unit, "::"
        return (head.place.file if head.place and head.place.is_own else ""), " › "

    def _captured(self, at: int) -> str:
        """Return the crate of a test from the line above its captured output (nextest)."""
        over = (NEXTEST.match(line) for line in reversed(self.lines[max(0, at - 30) : at]))
        return next((found["unit"] for found in over if found), "")

    @cached_property
    def _times(self) -> Counter[str]:
        """Count the programs with each name, to detect a name that two of them have."""
        captured = {match["unit"] for line in self.lines if (match := NEXTEST.match(line))}
        hashes = {(crate.unit, crate.hash) for crate in self._crates if crate.unit}
        return Counter([*captured, *(unit for unit, _ in hashes if unit not in captured)])

    @cached_property
    def _crates(self) -> list[_Crate]:
        found = list[_Crate]()
        for at, line in enumerate(self.lines):
            if header := CRATE.match(line):
                source = header["source"] or ""
                found.append(_Crate(at, header["crate"], source, header["hash"]))
            elif CRATE_STARTS.match(line) and not (found and self._just_began(found[-1], at)):
                found.append(_Crate(at))
            elif found and (rerun := CRATE_RERUN.match(line)):
                found[-1] = replace(found[-1], rerun=rerun)
        return found

    def _just_began(self, crate: _Crate, at: int) -> bool:
        """Return whether only blank lines are between a program's name and a line."""
        return not any(line.strip() for line in self.lines[crate.start + 1 : at])

    def _script(self, head: FindingHead) -> str:
        """Find the file of a JavaScript test: a location line, or the outermost own frame."""
        block = self.lines[head.at : head.end or head.at + 1]
        lines = [self.lines[head.at - 1] if head.at else "", *block]
        matches = (SCRIPT_TOLD.match(line) or SCRIPT_LATE.search(line) for line in lines)
        if match := next(filter(None, matches), None):
            return match["file"]
        frames = (SCRIPT_FRAME.search(line) for line in block)
        files = [frame["file"] for frame in frames if frame]
        return next((file for file in reversed(files) if Place(file).is_own), "")
