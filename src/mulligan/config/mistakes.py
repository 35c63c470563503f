"""What is wrong in a configuration file, each mistake as one line for people. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.errors import ConfigError

MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: its line, where that is known, its dotted key, and what is wrong with that.

    `said` goes on where the key leaves off, says what to do, and has no full stop.
    """

    line: int | None
    key: str
    said: str

    def __str__(self) -> str:
        at = f"line {self.line}: " if self.line else ""
        return f"{at}{self.sentence}"

    @property
    def sentence(self) -> str:
        """Say it without the line."""
        end = "" if self.said.endswith("?") else "."
        return f"{self.key} {self.said}{end}".lstrip()


class MistakesError(ConfigError):
    """A file says what cannot be; `mistakes` are all that were found in `where`."""

    def __init__(self, where: str, mistakes: Sequence[Mistake]) -> None:
        self.where = where
        self.mistakes = tuple(sorted(mistakes, key=lambda each: each.line or 0))
        super().__init__(_listed(where, self.mistakes))


def one_by_one(error: ConfigError) -> tuple[ConfigError, ...]:
    """Make an error of each mistake, for places that show a list."""
    if not isinstance(error, MistakesError):
        return (error,)
    return tuple(MistakesError(error.where, [mistake]) for mistake in error.mistakes)


def _listed(where: str, mistakes: Sequence[Mistake]) -> str:
    if len(mistakes) == 1:
        return f"{where}{', ' if mistakes[0].line else ': '}{mistakes[0]}"
    lines = [f"{where} has {len(mistakes)} mistakes:", *map(str, mistakes[:MOST_LISTED])]
    if len(mistakes) > MOST_LISTED:
        lines.append(f"and {len(mistakes) - MOST_LISTED} more.")
    return "\n  ".join(lines)
