"""Read `go test -v`, where headers tell which of the parallel tests printed a line. Pure.

Without -v, and for build and vet, the generic path reads Go's output.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from mulligan.checks.digest.blocks import worth_showing
from mulligan.checks.digest.clean import CleanLog
from mulligan.checks.digest.findings import Family, FindingBlock, Reading, finding
from mulligan.checks.digest.locations import Place, best_place, number
from mulligan.checks.digest.qualified_names import GO_PACKAGE, OF_PACKAGE, go_packages

TURN = re.compile(r"^=== (?P<what>RUN|PAUSE|CONT|NAME) +(?P<test>\S*)$")
FAILED = re.compile(r"^(?P<indent>\s*)--- FAIL: (?P<test>\S+)")
VERDICT = re.compile(r"^\s*--- (?:FAIL|PASS|SKIP): ")
SAID = re.compile(r"^\s+(?P<file>[\w./-]+\.go):(?P<line>\d+): (?P<message>.*)$")
END = re.compile(r"^(?:FAIL|ok  |PASS$|\?   |exit status|coverage: )")
PANIC = re.compile(r"^(?:panic: |fatal error: )")
DETAIL = 30

Key = tuple[str, str]
"""The package and the test."""


def recognises(log: CleanLog, _command: str) -> bool:
    """Return whether go test -v wrote some of it, and a test failed."""
    turns = any(TURN.match(line) for line in log.lines)
    return turns and any(FAILED.match(line) for line in log.lines)


def read(log: CleanLog) -> Reading:
    """Find the failed tests that have no failed part, each with what was printed in its turn."""
    packages = go_packages(log.lines)
    said, claimed = _turns(log.lines, packages)
    failed = {
        (packages[at], found["test"]): at
        for at, line in enumerate(log.lines)
        if (found := FAILED.match(line))
    }
    parents = {(package, test.rpartition("/")[0]) for package, test in failed}
    leaves = [leaf for leaf in failed if leaf not in parents]
    found = tuple(found_of(*leaf, said[leaf], at=failed[leaf]) for leaf in leaves)
    own = {package for package, _ in failed}
    closed = {
        at
        for at, line in enumerate(log.lines)
        if (package := GO_PACKAGE.match(line)) and package["unit"] in own
    }
    return Reading(found, len(found), (), frozenset({*claimed, *failed.values(), *closed}))


GO = Family("go", recognises, read)


def _turns(lines: Sequence[str], packages: Sequence[str]) -> tuple[dict[Key, list[str]], set[int]]:
    """Return to each test the lines of its turns; and the indices of all that was read."""
    said, claimed = defaultdict[Key, list[str]](list), set[int]()
    test = ""
    for at, line in enumerate(lines):
        turn, verdict = TURN.match(line), VERDICT.match(line)
        if turn or verdict:
            claimed.add(at)
            test = _whose(line)
        elif END.match(line):
            test = ""
        elif test and line.strip():
            said[packages[at], test].append(line)
            claimed.add(at)
    return said, claimed


def _whose(line: str) -> str:
    """Name the test that the lines beneath belong to, if they belong to one."""
    turn = TURN.match(line)
    if turn:
        return "" if turn["what"] == "PAUSE" else turn["test"]
    failed = FAILED.match(line)
    return failed["test"] if failed else ""


def found_of(
    package: str, test: str, lines: Sequence[str], *, at: int | None = None
) -> FindingBlock:
    """Make a finding of what a test, or else a package, printed."""
    name = f"{package}.{test}" if package and test else test or package
    panic = next((line for line in lines if PANIC.match(line)), None)
    errors = [found for line in lines if (found := SAID.match(line))]
    place: Place | None = best_place(lines)
    message = (panic or "").removesuffix(" [recovered]")
    if errors and not panic:
        place = Place(errors[-1]["file"], number(errors[-1]["line"]))
        message = errors[-1]["message"]
    message = message or next((line.strip() for line in lines if line.strip()), "")
    where = f" ({place})" if place else ""
    first = [line for line in lines if message and message in line]
    rest = [line for line in lines if line not in first]
    detail = worth_showing([*first, *rest])[:DETAIL]
    return FindingBlock(
        finding(message, place, test_id=name if test else name + OF_PACKAGE),
        at,
        f"{name}{where}",
        detail,
    )
