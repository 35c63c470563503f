"""Find tests that a change deletes, empties or skips; moved tests are not lost. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from itertools import accumulate
from pathlib import PurePosixPath
from typing import assert_never

from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.result import FileChange, GuardKind, GuardViolation
from mulligan.domain.verification import DECIDING
from mulligan.text.diff import Hunk, Line, Patch

# Tests, groups and skip marks in each language


class MarkTarget(Enum):
    """The tests that a mark applies to, relative to the line of the mark."""

    HERE = auto()
    """The test or group of tests that begins on the same line."""
    BELOW = auto()
    """The test or group of tests that follows."""
    AROUND = auto()
    """The test that encloses it."""
    FILE = auto()
    """All tests of the file."""
    OTHERS = auto()
    """All tests but this one."""


@dataclass(frozen=True, slots=True)
class SkipMark:
    """A mark that skips a test or its result; `is_certain` if it has no condition."""

    place: MarkTarget
    pattern: re.Pattern[str]
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Language:
    """The conventions of one language; patterns of cases and groups have a group `name`.

    `named` matches test files in any directory; other files with one of the `endings` count only in
    a directory of tests. `tables` matches tables of test cases.
    """

    endings: tuple[str, ...]
    named: re.Pattern[str]
    cases: tuple[re.Pattern[str], ...]
    groups: re.Pattern[str]
    tables: re.Pattern[str]
    marks: tuple[SkipMark, ...]


def _re(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE)


def _marks(place: MarkTarget, certain: str = "", uncertain: str = "") -> tuple[SkipMark, ...]:
    both = ((certain, True), (uncertain, False))
    return tuple(SkipMark(place, _re(pattern), certain) for pattern, certain in both if pattern)


PYTHON = Language(
    endings=(".py",),
    named=_re(r"^test_.*\.py$", r"_test\.py$", r"^tests?\.py$"),
    cases=(_re(r"^[ \t]*(?:async )?def (?P<name>test\w*)"),),
    groups=_re(r"^[ \t]*class (?P<name>\w+)"),
    tables=_re(r"parametrize\b", r"subTest\b", r"\.expand\(", r"@(?:ddt\.)?data\("),
    marks=(
        *_marks(
            MarkTarget.BELOW,
            r"^\s*@ *(?:\w+ *\. *)*(?:skip|xfail|expectedFailure)\b|marks=\S*\.(?:skip|xfail)\b",
            r"^\s*@ *(?:\w+ *\. *)*skip(?:[iI]f|[uU]nless)\w*",
        ),
        *_marks(
            MarkTarget.FILE,
            r"^pytestmark\b.*\.(?:skip|xfail)\b"
            r"|^\w+ *= *(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)\b"
            r"|^\s*from (?:pytest|unittest)\b.*\b(?:skip|expectedFailure) as \w+",
            r"^pytestmark\b.*\.skipif\b|allow_module_level|^\s*__test__ *= *False",
        ),
        *_marks(
            MarkTarget.AROUND,
            "",
            r"\bpytest\.(?:skip|xfail)\((?!.*allow_module_level)|\.skipTest\(|raise \S*SkipTest\b",
        ),
    ),
)

QUOTED = r"""(?P<quote>["'`])(?P<name>(?:(?!(?P=quote)).)*)"""
SUITE = r"describe|suite|context"
CASE = r"it|test|specify"

JAVASCRIPT = Language(
    endings=(".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue"),
    named=_re(r"[._-](?:test|spec|cy|e2e)\.[cm]?[jt]sx?$", r"^test\.[cm]?[jt]sx?$"),
    cases=(_re(rf"^[ \t]*(?:await )?[xf]?(?:{CASE})(?:\.\w+)*\(\s*+{QUOTED}"),),
    groups=_re(rf"^[ \t]*[xf]?(?:{SUITE})(?:\.\w+)*\(\s*+{QUOTED}"),
    tables=_re(r"\.each\b", r"\bforEach\(", r"^\s*for \("),
    marks=(
        *_marks(
            MarkTarget.HERE,
            rf"^\s*x(?:{CASE}|{SUITE})\(|\b(?:{CASE}|{SUITE})\.(?:\w+\.)*"
            r"(?:skip|todo|fails|fixme|failing)(?:\.\w+)*\(\s*(?:[\"'`]|$)|\bskip: *(?!false)\S",
            rf"\b(?:{CASE}|{SUITE})\.(?:\w+\.)*(?:skipIf|runIf)\b",
        ),
        *_marks(
            MarkTarget.OTHERS, rf"^\s*f(?:{CASE}|{SUITE})\(|\b(?:{CASE}|{SUITE})\.(?:\w+\.)*only\b"
        ),
        *_marks(MarkTarget.AROUND, "", r"\b(?:this|t|ctx|context|test)\.skip\((?!\s*[\"'`])"),
    ),
)

GO = Language(
    endings=(),
    named=_re(r"_test\.go$"),
    cases=(_re(r"^func (?:\([^)\n]*+\) )?(?P<name>(?:Test|Fuzz|Example)\w*)\("),),
    groups=_re(r"^type (?P<name>\w+) struct"),
    tables=_re(r"\.Run\("),
    marks=(
        *_marks(MarkTarget.AROUND, "", r"\b\w+\.Skip(?:f|Now)?\("),
        *_marks(MarkTarget.FILE, r"^//(?:go:build| \+build) ignore\b"),
    ),
)

RUST = Language(
    endings=(".rs",),
    named=_re(r"^tests?\.rs$", r"_tests?\.rs$", r"\.rs$"),
    cases=(
        _re(
            r"#\[(?:\w+::)*(?:test|rstest|test_case)\b[^\n]*\](?:\s*+(?:#\[|//)[^\n]*+){0,8}+"
            r"\s*+(?:pub )?(?:async )?fn (?P<name>\w+)"
        ),
    ),
    groups=_re(r"^[ \t]*+mod (?P<name>\w+)"),
    tables=_re(r"#\[(?:case|test_case)\b"),
    marks=_marks(MarkTarget.BELOW, r"^\s*#\[ignore\b", r"^\s*#\[cfg_attr\(.*\bignore\b"),
)

JAVA = Language(
    endings=(".java", ".kt", ".kts", ".groovy", ".scala"),
    named=_re(r"(?:Tests?|TestCase|IT|Spec)\.(?:java|kt|groovy|scala)$", r"^Test\w+\.(?:java|kt)$"),
    cases=(
        _re(
            r"^[ \t]*+@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate)\b"
            r"(?:[^\n]*+(?:\n[ \t]*+(?:@|//)[^\n]*+){0,8}+\n++[^\n(]*?|[^\n]*)"
            r"\b(?P<name>\w++|`[^`\n]++`) *+\("
        ),
        _re(r"""^[ \t]*+(?:void|def) ["'](?P<name>[^"'\n]+)["'] *\("""),
    ),
    groups=_re(r"\b(?:class|object) (?P<name>\w+)"),
    tables=_re(r"@(?:ParameterizedTest|RepeatedTest|TestFactory)\b"),
    marks=(
        *_marks(
            MarkTarget.BELOW,
            r"@(?:Disabled|Ignore|Ignored|PendingFeature)\b|@Test\b.*\benabled *= *false",
            r"@(?:Disabled|Enabled)(?:On|If|For)\w*",
        ),
        *_marks(MarkTarget.AROUND, "", r"\bassum(?:e\w*|ptions?\w*)\b|new SkipException\b"),
    ),
)

RUBY_CASE = r"it|specify|example|scenario"
RUBY_SUITE = r"describe|context|feature"

RUBY = Language(
    endings=(".rb",),
    named=_re(r"_(?:spec|test)\.rb$", r"^test_.*\.rb$"),
    cases=(
        _re(rf"^[ \t]*[xf]?(?:{RUBY_CASE}|test)[ (]+{QUOTED}"),
        _re(r"^[ \t]*def (?P<name>test_\w+)"),
    ),
    groups=_re(rf"^[ \t]*(?:RSpec\.)?[xf]?(?:{RUBY_SUITE})[ (]+[\"']?(?P<name>[^\"',\n]+)"),
    tables=_re(r"\.each\b"),
    marks=(
        *_marks(
            MarkTarget.HERE,
            rf"^\s*x(?:{RUBY_CASE}|{RUBY_SUITE})\b|\b(?:skip|pending): *(?!false)\S"
            r"|, *:(?:skip|pending)\b|^\s*pending [\"'].*\bdo\b",
        ),
        *_marks(
            MarkTarget.OTHERS, rf"^\s*f(?:{RUBY_CASE}|{RUBY_SUITE})\b|, *:focus\b|\bfocus: *true"
        ),
        *_marks(MarkTarget.AROUND, "", r"^\s*(?:skip|pending)\b(?!.*\bdo\b)(?! *[:=])"),
    ),
)

PHP = Language(
    endings=(".php",),
    named=_re(r"Test\.php$", r"Cest\.php$"),
    cases=(
        _re(r"\bfunction (?P<name>test\w*)"),
        _re(r"(?:#\[Test\]|@test\b)(?:\n[^\n{]*){0,4}?\bfunction (?P<name>(?!test)\w+)"),
        _re(rf"^[ \t]*(?:it|test)\( *{QUOTED}"),
    ),
    groups=_re(r"\bclass (?P<name>\w+)"),
    tables=_re(r"@dataProvider\b", r"#\[(?:DataProvider|TestWith)\b", r"->with\("),
    marks=(
        *_marks(MarkTarget.AROUND, "", r"\bmarkTest(?:Skipped|Incomplete)\("),
        *_marks(MarkTarget.AROUND, r"->(?:skip|todo)\("),
        *_marks(MarkTarget.BELOW, "", r"#\[Requires\w+\(|@requires\b"),
    ),
)

LANGUAGES = (PYTHON, JAVASCRIPT, GO, RUST, JAVA, RUBY, PHP)
DIRECTORIES = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing", "e2e"})


def language_of(path: str) -> Language | None:
    """Return the language of a file with tests; None for any other file."""
    parts = PurePosixPath(path)
    in_tests = not DIRECTORIES.isdisjoint(part.casefold() for part in parts.parts[:-1])
    return next(
        (
            language
            for language in LANGUAGES
            if language.named.search(parts.name) or (in_tests and parts.suffix in language.endings)
        ),
        None,
    )


def is_named_as_test(path: str) -> bool:
    """Return whether a test runner recognises a file by its name alone."""
    name = PurePosixPath(path).name
    strict: Sequence[Language] = (PYTHON, JAVASCRIPT, GO, JAVA, RUBY, PHP)
    return any(language.named.search(name) for language in strict)


# The tests on both sides of a file's diff


@dataclass(frozen=True, slots=True)
class Skip:
    """A mark in a file; `name` is None if the diff does not show the test."""

    text: str
    number: int
    name: str | None
    mark: SkipMark
    is_changed: bool


@dataclass(frozen=True)
class FileTests:
    """The tests of a file on one side of a diff; `seen` has the names of tests and groups."""

    cases: Counter[str] = field(default_factory=Counter[str])
    seen: frozenset[str] = frozenset()
    skips: tuple[Skip, ...] = ()
    tables: int = 0

    @property
    def running(self) -> Counter[str]:
        """Return the tests that run: none if the whole file is skipped unconditionally."""
        certain = [skip for skip in self.skips if skip.mark.is_certain]
        if any(skip.mark.place is MarkTarget.FILE for skip in certain):
            return Counter()
        stopped = {skip.name for skip in certain if skip.mark.place is not MarkTarget.OTHERS}
        return Counter({name: n for name, n in self.cases.items() if name not in stopped})


OPENING = re.compile(
    r"^\s*(?:(?:pub|async|export|static|public|private|protected) )*"
    r"(?:def|func|fn|fun|function|class|void)\b"
)
"""The start of another function; a mark after it does not apply to the test before it."""

MARK_DISTANCE_LINES = 12
"""Maximum number of lines between a mark and the test below it."""


@dataclass(frozen=True, slots=True)
class _TestStart:
    """The start of a test or a group of tests: the lines from its first mark to its name."""

    name: str
    first: int
    last: int


STARTS_ON_A_LINE = 8
"""Number of tests and groups to search for the one on a line; those of one kind do not overlap."""


@dataclass(frozen=True)
class _HunkSide:
    """One side of a hunk with its tests; `outer` is the test in which the hunk begins."""

    lines: tuple[Line, ...]
    cases: tuple[_TestStart, ...]
    groups: tuple[_TestStart, ...]
    outer: str | None

    @cached_property
    def named(self) -> list[_TestStart]:
        """Return tests and groups in order."""
        return sorted((*self.cases, *self.groups), key=_last)

    @cached_property
    def openings(self) -> list[int]:
        """Return the lines that start a function."""
        return [at for at, line in enumerate(self.lines) if OPENING.search(line.text)]

    def about(self, mark: SkipMark, at: int) -> str | None:
        """Return the test to which a mark on line `at` applies; None if it is not in the diff."""
        following = bisect_left(self.named, at, key=_last)
        near = self.named[following : following + STARTS_ON_A_LINE]
        match mark.place:
            case MarkTarget.HERE | MarkTarget.OTHERS:
                return next((found.name for found in near if found.first <= at), None)
            case MarkTarget.BELOW:
                is_near = near and near[0].last <= at + MARK_DISTANCE_LINES
                return near[0].name if is_near else None
            case MarkTarget.AROUND:
                return self._enclosing(at)
            case MarkTarget.FILE:
                return None
            case _:
                assert_never(mark.place)

    def _enclosing(self, at: int) -> str | None:
        before = bisect_right(self.cases, at, key=_last)
        found = self.cases[before - 1] if before else None
        opening = bisect_left(self.openings, found.last + 1 if found else 0)
        if opening < len(self.openings) and self.openings[opening] < at:
            return None
        return found.name if found else self.outer


def _last(found: _TestStart) -> int:
    return found.last


MAX_LINE_CHARS = 400
"""Length up to which a line is searched."""


def sides_of(patch: Patch) -> tuple[FileTests, FileTests]:
    """Return the tests before and after; empty if the file has no tests."""
    before, after = language_of(patch.old_path or patch.path), language_of(patch.path)
    hunks = tuple(patch.hunks(MAX_LINE_CHARS)) if before or after else ()
    return (
        _joined([_side(hunk, hunk.old, before) for hunk in hunks if before]),
        _joined([_side(hunk, hunk.new, after) for hunk in hunks if after]),
    )


def _side(hunk: Hunk, lines: tuple[Line, ...], language: Language) -> FileTests:
    heading = (Line(0, hunk.heading, is_changed=False),)
    outer = next((case.name for case in _named(heading, language.cases)), None)
    view = _HunkSide(
        lines,
        cases=tuple(_named(lines, language.cases)),
        groups=tuple(_named(lines, (language.groups,))),
        outer=outer,
    )
    skips = (
        Skip(line.text.strip(), line.number, view.about(mark, at), mark, line.is_changed)
        for at, line in enumerate(lines)
        for mark in language.marks
        if mark.pattern.search(line.text)
    )
    return FileTests(
        cases=Counter(case.name for case in view.cases),
        seen=frozenset(filter(None, (outer, *(found.name for found in view.named)))),
        skips=tuple(skips),
        tables=sum(bool(language.tables.search(line.text)) for line in lines),
    )


def _named(lines: Sequence[Line], patterns: Sequence[re.Pattern[str]]) -> Iterator[_TestStart]:
    text = "\n".join(line.text for line in lines)
    starts = [0, *accumulate(len(line.text) + 1 for line in lines)]
    found = [match for pattern in patterns for match in pattern.finditer(text)]
    for match in sorted(found, key=lambda match: match.start("name")):
        first = match.start() + len(match[0]) - len(match[0].lstrip())
        yield _TestStart(
            match["name"],
            bisect_right(starts, first) - 1,
            bisect_right(starts, match.start("name")) - 1,
        )


def _joined(sides: Sequence[FileTests]) -> FileTests:
    return FileTests(
        cases=_total(side.cases for side in sides),
        seen=frozenset(name for side in sides for name in side.seen),
        skips=tuple(skip for side in sides for skip in side.skips),
        tables=sum(side.tables for side in sides),
    )


def _total(counts: Iterable[Counter[str]]) -> Counter[str]:
    """Add counts; `sum` would copy the result for each of them."""
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return total


DESELECTION = _re(
    r"\bcollect_ignore\w*",
    r"--deselect\b",
    r"--ignore(?:-glob)?[= \"',]++\S*(?:test|spec)",
    r"\btestPathIgnorePatterns\b",
    r"\bdisable_collection\b",
    r"<exclude>[^<]*(?i:test|spec)",
    r"(?i:\bexcludeTestsMatching\b)",
    r"--exclude-pattern\b",
    r"<skipTests>\s*true",
)


def deselecting_lines(patch: Patch) -> list[str]:
    """List the new lines of a settings file that exclude tests."""
    if not DECIDING.search(patch.path):
        return []
    changed = [
        Counter(
            line.text.strip() for line in side if line.is_changed and DESELECTION.search(line.text)
        )
        for hunk in patch.hunks(MAX_LINE_CHARS)
        for side in (hunk.old, hunk.new)
    ]
    return list((_total(changed[1::2]) - _total(changed[::2])).elements())


# Violations

Sides = tuple[FileTests, FileTests]

MAX_LINES = 200_000
"""Limit of lines in a file's diff to search for tests: each takes 200 bytes and 3 microseconds."""


def lost_test_violations(
    change: Change, patches: Sequence[Patch], scope: Scope
) -> Iterator[GuardViolation]:
    """Yield removed and skipped tests, by name, over the whole change."""
    yield from _hidden(change, patches)
    shown = list[Patch]()
    for patch in filter(lambda patch: patch.content, patches):
        lines = patch.content.count(b"\n")
        if lines > MAX_LINES and language_of(patch.path):
            message = (
                f"{patch.path} has {lines:,} lines in the diff; a file that may have tests must "
                f"not change more than {MAX_LINES:,} at a time."
            )
            yield _violation(GuardKind.SIZE, patch.path, message)
        else:
            shown.append(patch)
    sides = {patch.path: sides_of(patch) for patch in shown}
    if not scope.allow_deleted_tests:
        yield from _lost(change, sides)
        yield from _moved_out(change)
    if not scope.allow_skipped_tests:
        yield from _skipped(shown, sides)
        for patch in shown:
            for line in deselecting_lines(patch):
                message = f"{patch.path} excludes tests ({_short(line)}); run all of them."
                yield _violation(GuardKind.SKIPPED_TEST, patch.path, message)


def _hidden(change: Change, patches: Sequence[Patch]) -> Iterator[GuardViolation]:
    """Yield files that had tests, or that may exclude some, if git treats them as binary.

    JavaScript, Ruby and PHP, for example, run a file with a zero byte in a comment.
    """
    deleted = {file.path for file in change.files if file.status == "D"}
    for patch in patches:
        had_tests = not patch.is_new and language_of(patch.old_path or patch.path) is not None
        is_binary = patch.is_binary and patch.path not in deleted
        if is_binary and (had_tests or DECIDING.search(patch.path)):
            message = f"{patch.path} has a zero byte, so git shows no lines of it; remove the byte."
            yield _violation(GuardKind.SIZE, patch.path, message)


def _lost(change: Change, sides: Mapping[str, Sides]) -> Iterator[GuardViolation]:
    """Yield the files that lost tests, if more tests were removed than added."""
    files = {file.path: file for file in change.files}
    before = _total(_before(path, side, files) for path, (side, _) in sides.items())
    named = _total(after.cases for _, after in sides.values())
    running = _total(after.running for _, after in sides.values())
    gone, came = before - named, running - before
    excused = sum(
        (_before(path, old, files) - new.cases).total()
        for path, (old, new) in sides.items()
        if new.tables > old.tables
    )
    if gone.total() <= came.total() + excused:
        return
    for path, (old, new) in sides.items():
        lost = sorted(((_before(path, old, files) - new.cases) & gone).elements())
        if lost and not new.tables > old.tables:
            yield _violation(
                GuardKind.DELETED_TEST, path, _violation_message(path, lost, files.get(path))
            )


def _before(path: str, side: FileTests, files: Mapping[str, FileChange]) -> Counter[str]:
    """Count the tests that a file had; at least one if it is deleted or empty now."""
    file = files.get(path)
    is_gone = file is not None and (file.status == "D" or file.size == 0)
    if is_gone and not side.cases and is_named_as_test(path):
        return Counter({PurePosixPath(path).name: 1})
    return side.cases


def _violation_message(path: str, lost: Sequence[str], file: FileChange | None) -> str:
    if file and file.status == "D":
        return f"{path} was deleted, with the tests {_listed(lost)}; keep them, or move them."
    return f"{path} no longer has the tests {_listed(lost)}; restore or replace them."


def _moved_out(change: Change) -> Iterator[GuardViolation]:
    for file in change.files:
        old = file.old_path
        if old and is_named_as_test(old) and not is_named_as_test(file.path):
            message = f"{old} became {file.path}, which no test runner finds; keep its name."
            yield _violation(GuardKind.DELETED_TEST, old, message)


@dataclass(frozen=True, slots=True)
class _StartTreeTests:
    """The tests of the start tree: names, skipped ones, and marks by line."""

    known: frozenset[str]
    skipped: frozenset[str | None]
    marks: frozenset[str]

    def lets_run(self, skip: Skip, *, is_new_file: bool) -> bool:
        """Return whether a mark skips a test that ran before; a new test may have a mark."""
        match skip.mark.place:
            case MarkTarget.OTHERS:
                return skip.text not in self.marks
            case MarkTarget.FILE:
                return skip.text not in self.marks and not is_new_file
            case MarkTarget.BELOW if skip.name is None:
                return skip.text not in self.marks and not is_new_file
            case MarkTarget.HERE | MarkTarget.BELOW | MarkTarget.AROUND:
                return skip.name in self.known and skip.name not in self.skipped
            case _:
                assert_never(skip.mark.place)


def _skipped(patches: Sequence[Patch], sides: Mapping[str, Sides]) -> Iterator[GuardViolation]:
    olds = [old for old, _ in sides.values()]
    before = _StartTreeTests(
        known=frozenset(name for old in olds for name in old.seen),
        skipped=frozenset(skip.name for old in olds for skip in old.skips),
        marks=frozenset(skip.text for old in olds for skip in old.skips),
    )
    for patch in patches:
        news = (
            skip
            for skip in sides[patch.path][1].skips
            if skip.is_changed and before.lets_run(skip, is_new_file=patch.is_new)
        )
        for skip in {(skip.name, skip.number): skip for skip in news}.values():
            message = f"{patch.path}:{skip.number} {_effect(skip)}; let every test run."
            yield _violation(GuardKind.SKIPPED_TEST, patch.path, message)


def _effect(skip: Skip) -> str:
    mark = _short(skip.text)
    if skip.mark.place is MarkTarget.OTHERS:
        return f"keeps all other tests from running ({mark})"
    if skip.name is None:
        return f"skips tests that ran before ({mark})"
    return f"skips the test {_short(skip.name)}, which ran before ({mark})"


MAX_NAMED_TESTS = 5
"""Limit of tests to list in one sentence."""


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED_TESTS
    shown = ", ".join(_short(name) for name in names[:MAX_NAMED_TESTS])
    return f"{shown} (+ {more} more)" if more > 0 else shown


NAME_CHARS = 80


def _short(text: str) -> str:
    return text if len(text) <= NAME_CHARS else f"{text[: NAME_CHARS - 1]}…"


def _violation(kind: GuardKind, path: str, message: str) -> GuardViolation:
    return GuardViolation(kind=kind, path=path, message=message)
