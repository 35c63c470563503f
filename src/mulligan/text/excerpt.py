"""The beginning of a text, and how much of it was left out. Pure."""

from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Self

from mulligan.text.escape import visible


def omitted(lines: int) -> str:
    """Mark the place where lines were left out (SPEC C8)."""
    return f"[... {lines} lines omitted]"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines that are kept, and the count of the lines and UTF-8 bytes that followed them."""

    lines: tuple[str, ...] = ()
    left_out: int = 0
    left_out_bytes: int = 0

    @classmethod
    def of(cls, text: str) -> Self:
        """Take a whole text, without what nobody sees and without empty lines around it."""
        shown = visible(text).strip("\n")
        return cls(tuple(shown.split("\n")) if shown else ())

    def head(self, most: int) -> "Excerpt":
        """Keep at most so many lines."""
        cut = self.lines[most:]
        return Excerpt(
            self.lines[:most], self.left_out + len(cut), self.left_out_bytes + _size(cut)
        )

    def within(self, most: int) -> "Excerpt":
        """Keep the lines that fit into so many characters; a first line that is longer is cut."""
        sizes = accumulate(len(line) + 1 for line in self.lines)
        kept = len(list(takewhile(lambda size: size <= most + 1, sizes)))
        if kept or not self.lines:
            return self.head(kept)
        first, rest = self.lines[0], self.head(1)
        cut = max(0, most - 1)
        lost = rest.left_out_bytes + len(first[cut:].encode())
        return Excerpt((f"{first[:cut]}…",), rest.left_out, lost)

    def __str__(self) -> str:
        return "\n".join([*self.lines, omitted(self.left_out)] if self.left_out else self.lines)


def _size(lines: tuple[str, ...]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
