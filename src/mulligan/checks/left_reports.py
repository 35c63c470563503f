"""Read the reports that tools leave in the tree without being asked (CHECK-6).

Maven, Gradle and ctest always leave one, and a project may have its own. A report is not trusted.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

from mulligan.checks import source_code
from mulligan.checks.asked_reports import (
    MAX_DIRECTORIES,
    MAX_REPORTS,
    NOT_SEARCHED,
    Report,
    outermost,
    read_report,
)
from mulligan.checks.ctest_log import Lists, as_junit
from mulligan.checks.digest.reports import LARGEST_REPORT, PackageReport
from mulligan.domain.globs import globs

OF_BUILD_TOOL = re.compile(
    r"(?:.*/)?(?:target/(?:surefire|failsafe)-reports|build/test-results(?:/.*)?)/TEST-[^/]*\.xml"
)
"""Of Maven's Surefire and Failsafe, and of Gradle, in any directory."""


def left_reports(tree: Path, since: int, *, everywhere: bool) -> Iterator[bytes]:
    """Yield the reports that tools wrote into a tree at a time in ns, or later.

    Other JUnit XML than that of build tools may be a test's sample, and counts with `everywhere`.
    """
    written = [name for name in islice(_written(tree, since), MAX_FILES) if _is_read(name)]
    xml = [name for name in written if name.endswith(".xml")]
    for name in islice(filter(OF_BUILD_TOOL.fullmatch, xml), MAX_REPORTS):
        content = source_code.read(tree, name, LARGEST_REPORT)
        if content:
            yield content
    yield from _of_ctest(tree, written)
    if everywhere:
        yield from _own_reports(tree, [name for name in xml if not OF_BUILD_TOOL.fullmatch(name)])


def package_reports(tree: Path, written: Path, since: int, pattern: str) -> Iterator[PackageReport]:
    """Yield the reports that match a pattern, and were written since a time in ns, or later.

    `tree` has the files of the repository, and `written` those that the check wrote. Each report is
    named by the part of its path that the pattern's first `*` or `?` decides: `packages/*/r.xml`
    by `packages/a`.
    """
    is_wanted = globs((f"/{pattern.lstrip('/')}",)).match
    fixed = next(at for at, part in enumerate(pattern.split("/")) if is_pattern(part))
    depth = None if "**" in pattern else fixed + 1
    names = filter(is_wanted, islice(_written(written, since), MAX_FILES))
    for name in islice(names, MAX_REPORTS):
        content = source_code.read(written, name, LARGEST_REPORT)
        if content:
            path = PurePosixPath(name)
            parts = path.parts[:depth] if depth else path.parent.parts
            package = PurePosixPath(*parts)
            package = package.with_suffix("") if package == path else package
            yield PackageReport(content, str(package), partial(_path_of, tree, package))


def is_pattern(report: str) -> bool:
    """Return whether the `report` of a check is a pattern that may match several files."""
    return "*" in report or "?" in report


def _path_of(tree: Path, package: PurePosixPath, file: str) -> str:
    """Return the path of a package's file from the root; the file itself, if it is not found."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts:
        return file
    found = (directory / path for directory in (package, *package.parents))
    return str(next((each for each in found if (tree / each).is_file()), path))


MAX_FILES = 100_000


def _written(tree: Path, since: int) -> Iterator[str]:
    """Yield the files of a tree, relative to it, that were written since then."""
    for directory, below, names in islice(os.walk(tree), MAX_DIRECTORIES):
        below[:] = sorted(name for name in below if name not in NOT_SEARCHED)
        for path in (Path(directory, name) for name in sorted(names)):
            if path.lstat().st_mtime_ns >= since:
                yield path.relative_to(tree).as_posix()


def _is_read(name: str) -> bool:
    return name.endswith((".xml", ".log"))


# A project's own reports


def _own_reports(tree: Path, names: Sequence[str]) -> Iterator[bytes]:
    """Yield the JUnit XML files, except those that a test wrote while pytest wrote its own."""
    reports = list[Report]()
    for name in names[:MAX_REPORTS]:
        report = read_report("", tree / name, LARGEST_REPORT)
        if report and JUNIT.match(report.content[:BEGINNING]):
            reports.append(report)
    for report in outermost(reports):
        yield report.content


JUNIT = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!--(?:(?!-->)[\s\S])*+-->\s*+)*+"
    rb"<testsuites?[\s/>]"
)
BEGINNING = 4096


# The log of ctest

LAST_TEST = re.compile(r"(?:(?P<build>.*)/)?Testing/Temporary/LastTest(?P<run>_[\d-]+)?\.log")
"""The log of a run; `ctest -T Test` adds the time of the run to the name."""


def _of_ctest(tree: Path, written: Sequence[str]) -> Iterator[bytes]:
    """Yield the logs of ctest as JUnit XML, each with its build directory as the suite.

    A build in the directory of another one, which was tested too, is of one of its tests.
    """
    found = [match for match in map(LAST_TEST.fullmatch, written) if match]
    builds = {match["build"] or "." for match in found}
    for match in found[:MAX_REPORTS]:
        build = Path(match["build"] or ".")
        if builds.isdisjoint(map(str, build.parents)):
            log = source_code.read(tree, match[0], LARGEST_REPORT) or b""
            report = as_junit(log, _lists(tree, match, written), str(build))
            if report:
                yield report


def _lists(tree: Path, log: re.Match[str], written: Sequence[str]) -> Lists:
    """Read the names of the tests that failed, and of those that were skipped.

    ctest writes both files at the end of a run, the second one only if a test was skipped.
    """
    directory = Path(log[0]).parent
    names = [
        f"{directory}/CTestCostData.txt",
        f"{directory}/LastTestsDisabled{log['run'] or ''}.log",
    ]
    failed, skipped = (source_code.read(tree, name, LARGEST_REPORT) or b"" for name in names)
    return Lists.read(failed, skipped if names[1] in written else b"")
