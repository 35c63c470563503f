"""The lines of an output that were kept, and where they stood. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Log:
    """`lines[i]` stood at line `numbers[i]` (from 1) of an output of `total` lines."""

    lines: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    total: int = 0

    @classmethod
    def of(cls, text: str) -> "Log":
        """Make one of a text that is whole and clean."""
        lines = tuple(text.split("\n"))
        return cls(lines, tuple(range(1, len(lines) + 1)), len(lines))

    @cached_property
    def is_blank(self) -> bool:
        """Tell whether nothing was said."""
        return not any(line.strip() for line in self.lines)

    def without(self, indices: Collection[int]) -> "Log":
        """Give the log with some lines made empty."""
        lines = ("" if at in indices else line for at, line in enumerate(self.lines))
        return Log(tuple(lines), self.numbers, self.total)

    def omitted_before(self, index: int) -> int:
        """Count the lines of the output that are missing right before a kept one."""
        before = self.numbers[index - 1] if index else 0
        return self.numbers[index] - before - 1
