"""The shape of a family of tools, and of what it reads out of an output. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from mulligan.domain.result import Finding
from mulligan.verification.digest.log import Log


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, and how to show it.

    `at` is the index of the line that tells it best, None for a finding out of a report; `heading`
    names it in full, on one line; `detail` is what belongs beneath, the most telling first.
    """

    finding: Finding
    at: int | None
    heading: str
    detail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a family found.

    `count` is the number of failures as the tool gives it, 0 for unsaid; `claimed` are the indices
    of the lines that it has read, `doubtful` tells that nothing found is sure to be a failure.
    """

    found: tuple[Found, ...] = ()
    count: int = 0
    totals: tuple[str, ...] = ()
    claimed: frozenset[int] = frozenset()
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """A group of tools whose outputs look alike.

    `recognises` gets the log and the command line; `read` is asked only where it says yes.
    """

    name: str
    recognises: Callable[[Log, str], bool]
    read: Callable[[Log], Reading]
