"""Tell whether two changes are nearly the same, from a small sketch of each. Pure."""

import hashlib
from collections.abc import Sequence

from mulligan.retry.diff import changed_lines

SKETCH_LINES = 64
MARK_DIGITS = 8
NEARLY_THE_SAME = 0.8
"""The share of changed lines that two changes have in common, from which on they are alike."""


def sketch_of(diff: bytes) -> tuple[str, ...]:
    """Keep the lowest hashes of the lines that a diff adds or removes; spaces do not count.

    Of a change of up to 64 lines it is all of them, of a larger one a fair sample.
    """
    marks = {_mark(f"{path}\n{' '.join(line.split())}") for path, line in changed_lines(diff)}
    return tuple(sorted(marks)[:SKETCH_LINES])


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Estimate the share of lines that two changes have in common; 0 where one has none."""
    lowest = sorted({*one, *other})[:SKETCH_LINES]
    common = {*one} & {*other}
    return sum(mark in common for mark in lowest) / len(lowest) if one and other else 0.0


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:MARK_DIGITS]
