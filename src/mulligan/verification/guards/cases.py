"""Find the tests on both sides of a file's diff, and what keeps them from running. Pure."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import assert_never

from mulligan.verification.guards.conventions import (
    LEFT_OUT,
    SETTINGS_FILES,
    Language,
    Mark,
    Place,
    language_of,
)
from mulligan.verification.guards.patch import Hunk, Line, Patch

LONGEST = 400
"""Characters of a line that are looked at."""
OPENING = re.compile(
    r"^\s*(?:(?:pub|async|export|static|public|private|protected) )*"
    r"(?:def|func|fn|fun|function|class|void)\b"
)
"""How another function begins; a mark behind that is not about the test before it."""
NEAR = 12
"""Lines within which a mark that stands above a test is followed by it."""


@dataclass(frozen=True, slots=True)
class Skip:
    """A mark in a file; `name` is None where the test is not in sight."""

    text: str
    number: int
    name: str | None
    mark: Mark
    is_changed: bool


@dataclass(frozen=True)
class Side:
    """What one side of a diff shows of a file's tests; `seen` names tests and groups alike."""

    cases: Counter[str] = field(default_factory=Counter[str])
    seen: frozenset[str] = frozenset()
    skips: tuple[Skip, ...] = ()
    tables: int = 0

    @property
    def running(self) -> Counter[str]:
        """Give the tests that run: none where the whole file is skipped for certain."""
        certain = [skip for skip in self.skips if skip.mark.is_certain]
        if any(skip.mark.place is Place.FILE for skip in certain):
            return Counter()
        stopped = {skip.name for skip in certain if skip.mark.place is not Place.OTHERS}
        return Counter({name: n for name, n in self.cases.items() if name not in stopped})


@dataclass(frozen=True, slots=True)
class _Named:
    """Where a test or a group of tests begins: the lines from its first mark to its name."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _View:
    """One side of a hunk with the tests in it; `outer` is the one that the hunk begins in."""

    lines: tuple[Line, ...]
    cases: tuple[_Named, ...]
    groups: tuple[_Named, ...]
    outer: str | None

    @property
    def named(self) -> Iterator[_Named]:
        """Give tests and groups in their order."""
        return iter(sorted((*self.cases, *self.groups), key=lambda found: found.last))

    def about(self, mark: Mark, at: int) -> str | None:
        """Name the test that a mark on line `at` is about; None where it is not in sight."""
        match mark.place:
            case Place.HERE | Place.OTHERS:
                here = (found.name for found in self.named if found.first <= at <= found.last)
                return next(here, None)
            case Place.BELOW:
                below = (found.name for found in self.named if at <= found.last <= at + NEAR)
                return next(below, None)
            case Place.AROUND:
                return self._enclosing(at)
            case Place.FILE:
                return None
            case _:
                assert_never(mark.place)

    def _enclosing(self, at: int) -> str | None:
        found = next((case for case in reversed(self.cases) if case.last <= at), None)
        between = self.lines[found.last + 1 if found else 0 : at]
        if any(OPENING.search(line.text) for line in between):
            return None
        return found.name if found else self.outer


def sides_of(patch: Patch) -> tuple[Side, Side]:
    """Give what a file showed before and after; nothing where it holds no tests."""
    before, after = language_of(patch.old_path or patch.path), language_of(patch.path)
    hunks = tuple(patch.hunks(LONGEST)) if before or after else ()
    return (
        _joined([_side(hunk, hunk.old, before) for hunk in hunks if before]),
        _joined([_side(hunk, hunk.new, after) for hunk in hunks if after]),
    )


def left_out_by(patch: Patch) -> list[str]:
    """List the lines that a file of settings has anew which leave tests out."""
    if not SETTINGS_FILES.search(patch.path):
        return []
    changed = [
        Counter(
            line.text.strip() for line in side if line.is_changed and LEFT_OUT.search(line.text)
        )
        for hunk in patch.hunks(LONGEST)
        for side in (hunk.old, hunk.new)
    ]
    return list((sum(changed[1::2], Counter[str]()) - sum(changed[::2], Counter[str]())).elements())


def _joined(sides: Sequence[Side]) -> Side:
    return Side(
        cases=sum((side.cases for side in sides), Counter[str]()),
        seen=frozenset(name for side in sides for name in side.seen),
        skips=tuple(skip for side in sides for skip in side.skips),
        tables=sum(side.tables for side in sides),
    )


def _side(hunk: Hunk, lines: tuple[Line, ...], language: Language) -> Side:
    heading = (Line(0, hunk.heading, is_changed=False),)
    outer = next((case.name for case in _named(heading, language.cases)), None)
    view = _View(
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
    return Side(
        cases=Counter(case.name for case in view.cases),
        seen=frozenset(filter(None, (outer, *(found.name for found in view.named)))),
        skips=tuple(skips),
        tables=sum(bool(language.tables.search(line.text)) for line in lines),
    )


def _named(lines: Sequence[Line], patterns: Sequence[re.Pattern[str]]) -> Iterator[_Named]:
    text = "\n".join(line.text for line in lines)
    starts = [0, *accumulate(len(line.text) + 1 for line in lines)]
    found = [match for pattern in patterns for match in pattern.finditer(text)]
    for match in sorted(found, key=lambda match: match.start("name")):
        first = match.start() + len(match[0]) - len(match[0].lstrip())
        yield _Named(
            match["name"],
            bisect_right(starts, first) - 1,
            bisect_right(starts, match.start("name")) - 1,
        )
