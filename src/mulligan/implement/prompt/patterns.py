"""Find the common failures and changes of the attempts at an issue (CONTEXT-8). Pure."""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from mulligan.domain.issue_context import Pattern, PatternKind
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import CheckResult, Finding, Progress, WorkerResultMeta
from mulligan.implement.prompt.diff import changed_lines
from mulligan.implement.prompt.outcome_text import TITLES, failing
from mulligan.text.escape import one_line

# Similar changes.

SKETCH_LINES = 64

MARK_DIGITS = 8

SIMILARITY_THRESHOLD = 0.8
"""The minimum share of common changed lines of two changes that are nearly the same."""


def sketch_of(diff: bytes) -> tuple[str, ...]:
    """Keep the lowest hashes of the lines that a diff adds or removes, without spaces.

    These are all lines of a change of up to 64 lines, and an even sample of a larger one.
    """
    marks = {_mark(f"{path}\n{' '.join(line.split())}") for path, line in changed_lines(diff)}
    return tuple(sorted(marks)[:SKETCH_LINES])


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:MARK_DIGITS]


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Estimate the share of common lines of two changes; 0 if one has no lines."""
    lowest = sorted({*one, *other})[:SKETCH_LINES]
    common = {*one} & {*other}
    return sum(mark in common for mark in lowest) / len(lowest) if one and other else 0.0


# What comes back.

SAME_FAILURE = Pattern(PatternKind.SAME_FAILURE, "The same failure occurred twice.")


def find_patterns(epoch: Sequence[WorkerResultMeta]) -> tuple[Pattern, ...]:
    """Name the recurring outcomes, checks, tests and files, the most informative first."""
    names = (
        *_recurring(epoch, _refused_paths, "The change of {} was refused in {}."),
        *_recurring(epoch, _failed_checks, "Check {} failed in {}.", "Checks {} failed in {}."),
        *_recurring(epoch, _failed_tests, "Test {} failed in {}.", "Tests {} failed in {}."),
        *_recurring(epoch, _files, "File {} was changed in {}.", "Files {} were changed in {}."),
    )
    outcomes = _recurring(epoch, _ending, "The outcome was {} in {}.")
    return (
        *(_advice(epoch) if _is_stuck(epoch) else []),
        *(Pattern(PatternKind.PROGRESS, text) for text in _progress(epoch)),
        *(Pattern(PatternKind.SAME_OUTCOME, text) for text in outcomes),
        *(Pattern(PatternKind.NAMES, text) for text in names),
    )


def _advice(epoch: Sequence[WorkerResultMeta]) -> list[Pattern]:
    is_of_checks = bool(_failed_checks(_ended(epoch)[-1]))
    return [*([SAME_FAILURE] if is_of_checks else []), *_same_change(epoch)]


def _is_stuck(epoch: Sequence[WorkerResultMeta]) -> bool:
    """Return whether the last attempt is known to have failed as an earlier one did.

    Compare it with the last earlier attempt of the same kind: one whose failures are known, or,
    without failed checks, one without them.
    """
    ended = _ended(epoch)
    if not ended:
        return False
    *earlier, last = ended
    if not _failed_checks(last):
        same = [meta for meta in earlier if not _failed_checks(meta)]
        return bool(same) and _ended_as(same[-1]) == _ended_as(last)
    failures = _known_failures(last)
    known = [each for meta in earlier if (each := _known_failures(meta))]
    return bool(failures and known) and known[-1] == failures


def _ended(epoch: Sequence[WorkerResultMeta]) -> list[WorkerResultMeta]:
    """Return the attempts that cost one; the others are not the agent's doing."""
    return [meta for meta in epoch if meta.outcome not in FREE]


def _known_failures(meta: WorkerResultMeta) -> set[tuple[str, str]]:
    """Return the failures of each failed check; empty if those of any are not known."""
    found = {
        (check.name, _failures_of_old(check) if check.failure_hash is None else check.failure_hash)
        for check in failing(meta.checks)
    }
    return found if all(each for _, each in found) else set()


def _failures_of_old(check: CheckResult) -> str:
    """Return the failures of a check whose record is of an old version."""
    if not check.is_complete or check.unnamed:
        return ""
    texts = sorted(map(_message, check.findings)) or [check.fingerprint, check.digest]
    return "\n".join((check.evidence, *texts)).strip()


def _message(found: Finding) -> str:
    return f"{found.name}|{found.message}"


def _ended_as(meta: WorkerResultMeta) -> tuple[Outcome, set[str]]:
    return meta.outcome, {broken.message for broken in meta.guard_violations}


def _same_change(epoch: Sequence[WorkerResultMeta]) -> list[Pattern]:
    """Name the attempts with nearly the same change as the last one that made a change."""
    changed = [meta for meta in _ended(epoch) if meta.sketch]
    alike = [
        label(meta, epoch)
        for meta in changed
        if similarity(meta.sketch, changed[-1].sketch) >= SIMILARITY_THRESHOLD
    ]
    text = f"Nearly the same change was made in {_attempts(alike)}." if len(alike) > 1 else ""
    return [Pattern(PatternKind.SAME_CHANGE, text)] if text else []


def _progress(epoch: Sequence[WorkerResultMeta]) -> list[str]:
    """Name what the last attempt with compared checks fixed, and what it broke.

    The change of an attempt that succeeded is kept, so that nothing has to be fixed again.
    """
    compared = [meta for meta in _ended(epoch) if _progress_of(meta)]
    if not compared or compared[-1].outcome is Outcome.SUCCEEDED:
        return []
    after, progress = compared[-1], _progress_of(compared[-1])
    before = next((meta for meta in epoch if meta.number == progress[0].since), None)
    if before is None:
        return []
    since = label(before, epoch)
    fixed = [name for each in progress for name in each.fixed]
    added = [name for each in progress for name in each.new]
    again = f"The fix was discarded with attempt {label(after, epoch)}; make it again."
    return [
        *([f"Fixed since attempt {since}: {_listed(fixed)}. {again}"] if fixed else []),
        *([f"New since attempt {since}: {_listed(added)}."] if added else []),
    ]


def _progress_of(meta: WorkerResultMeta) -> list[Progress]:
    return [check.progress for check in meta.checks if check.progress]


def _listed(names: Sequence[str], quote: str = "") -> str:
    listed = ", ".join(f"{quote}{one_line(name, NAME_CHARS)}{quote}" for name in names[:NAMED])
    more = len(names) - NAMED
    return f"{listed} (+ {more} more)" if more > 0 else listed


NAMED = 5

NAME_CHARS = 150


def _recurring(
    epoch: Sequence[WorkerResultMeta],
    names_of: Callable[[WorkerResultMeta], Iterable[str]],
    one: str,
    several: str = "",
) -> list[str]:
    """Name the recurring items, in one line for each set of attempts."""
    seen: dict[str, list[int]] = {}
    for meta in epoch:
        for name in dict.fromkeys(names_of(meta)):
            seen.setdefault(name, []).append(label(meta, epoch))
    together: dict[tuple[int, ...], list[str]] = {}
    for name, numbers in seen.items():
        if len(numbers) > 1:
            together.setdefault(tuple(numbers), []).append(name)
    return [
        (several if several and len(names) > 1 else one).format(
            _listed(names, "'"), _attempts(numbers)
        )
        for numbers, names in together.items()
    ]


def _attempts(numbers: Iterable[int]) -> str:
    *others, last = (str(number) for number in numbers)
    return f"attempts {', '.join(others)} and {last}"


def label(meta: WorkerResultMeta, among: Sequence[WorkerResultMeta]) -> int:
    """Return the number of an attempt: in its epoch, or over all epochs if `among` has several."""
    return meta.attempt if len({other.epoch for other in among}) == 1 else meta.number


# What is compared of each attempt.

NO_ENDING = frozenset({Outcome.CHECKS_FAILED, Outcome.SUCCEEDED, Outcome.CANCELLED})
"""Outcomes that are not reported as recurring: the names of failing checks or a person are."""


def _ending(meta: WorkerResultMeta) -> list[str]:
    return [] if meta.outcome in NO_ENDING else [TITLES[meta.outcome]]


def _refused_paths(meta: WorkerResultMeta) -> list[str]:
    return [broken.path for broken in meta.guard_violations if broken.path]


def _failed_checks(meta: WorkerResultMeta) -> list[str]:
    return [check.name for check in failing(meta.checks)]


def _failed_tests(meta: WorkerResultMeta) -> list[str]:
    found = (finding for check in failing(meta.checks) for finding in check.findings)
    return [finding.name for finding in found if finding.test_id]


def _files(meta: WorkerResultMeta) -> list[str]:
    return [file.path for file in meta.files_modified]


# Drift.

DRIFT = (
    "The last two attempts changed different files altogether. The task may be under-specified, "
    "or the approach wrong. If you cannot tell what is wanted, answer BLOCKED and say what "
    "a person has to decide."
)


def drift(epoch: Sequence[WorkerResultMeta]) -> str | None:
    """Warn when the last two attempts that changed anything have no file in common."""
    changes = [set(_files(meta)) for meta in epoch if meta.files_modified]
    apart = len(changes) > 1 and changes[-1].isdisjoint(changes[-2])
    return DRIFT if apart else None
