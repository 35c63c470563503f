"""Find tests that a change deletes, empties or skips; tests that moved are not lost. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import assert_never

from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.guard import GuardKind, GuardViolation
from mulligan.domain.result import FileChange
from mulligan.verification.guards.cases import Side, Skip, left_out_by, sides_of
from mulligan.verification.guards.conventions import Place, is_named_as_test
from mulligan.verification.guards.patch import Patch

NAMED = 5
"""Tests that one sentence names."""
NAME_CHARS = 80

Sides = tuple[Side, Side]


def violations(change: Change, patches: Sequence[Patch], scope: Scope) -> Iterator[GuardViolation]:
    """Find tests that are gone or skipped, by their names, over the change as a whole."""
    sides = {patch.path: sides_of(patch) for patch in patches}
    if not scope.allow_deleted_tests:
        yield from _lost(change, sides)
        yield from _moved_out(change)
    if not scope.allow_skipped_tests:
        yield from _skipped(patches, sides)
        for patch in patches:
            for line in left_out_by(patch):
                message = f"{patch.path} leaves tests out ({_short(line)}); let all of them run."
                yield _violation(GuardKind.SKIPPED_TEST, patch.path, message)


def _lost(change: Change, sides: Mapping[str, Sides]) -> Iterator[GuardViolation]:
    """Blame the files that lost tests, where fewer tests came than went."""
    files = {file.path: file for file in change.files}
    before = sum((_before(path, side, files) for path, (side, _) in sides.items()), Counter[str]())
    named = sum((after.cases for _, after in sides.values()), Counter[str]())
    running = sum((after.running for _, after in sides.values()), Counter[str]())
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
            yield _violation(GuardKind.DELETED_TEST, path, _told(path, lost, files.get(path)))


def _before(path: str, side: Side, files: Mapping[str, FileChange]) -> Counter[str]:
    """Count the tests that a file had; one that is gone or empty by now had one at least."""
    file = files.get(path)
    is_gone = file is not None and (file.status == "D" or file.size == 0)
    if is_gone and not side.cases and is_named_as_test(path):
        return Counter({PurePosixPath(path).name: 1})
    return side.cases


def _told(path: str, lost: Sequence[str], file: FileChange | None) -> str:
    if file and file.status == "D":
        return f"{path} was deleted, with the tests {_listed(lost)}; keep them, or move them."
    return f"{path} has lost the tests {_listed(lost)}; put them back, or others in their place."


def _moved_out(change: Change) -> Iterator[GuardViolation]:
    for file in change.files:
        old = file.old_path
        if old and is_named_as_test(old) and not is_named_as_test(file.path):
            message = f"{old} became {file.path}, which no test runner looks at; keep its name."
            yield _violation(GuardKind.DELETED_TEST, old, message)


@dataclass(frozen=True, slots=True)
class _Before:
    """What the start tree showed: names of tests, those that were skipped, and marks by line."""

    known: frozenset[str]
    skipped: frozenset[str | None]
    marks: frozenset[str]

    def lets_run(self, skip: Skip, *, is_new_file: bool) -> bool:
        """Tell whether a mark stops what ran before; a new test may come with a mark."""
        match skip.mark.place:
            case Place.OTHERS:
                return skip.text not in self.marks
            case Place.FILE:
                return skip.text not in self.marks and not is_new_file
            case Place.BELOW if skip.name is None:
                return skip.text not in self.marks and not is_new_file
            case Place.HERE | Place.BELOW | Place.AROUND:
                return skip.name in self.known and skip.name not in self.skipped
            case _:
                assert_never(skip.mark.place)


def _skipped(patches: Sequence[Patch], sides: Mapping[str, Sides]) -> Iterator[GuardViolation]:
    olds = [old for old, _ in sides.values()]
    before = _Before(
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
    if skip.mark.place is Place.OTHERS:
        return f"keeps all other tests from running ({mark})"
    if skip.name is None:
        return f"skips tests that ran before ({mark})"
    return f"skips the test {_short(skip.name)}, which ran before ({mark})"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    told = ", ".join(_short(name) for name in names[:NAMED])
    return f"{told} (+ {more} more)" if more > 0 else told


def _short(text: str) -> str:
    return text if len(text) <= NAME_CHARS else f"{text[: NAME_CHARS - 1]}…"


def _violation(kind: GuardKind, path: str, message: str) -> GuardViolation:
    return GuardViolation(kind=kind, path=path, message=message)
