"""A line that opens a finding. Pure."""

from dataclasses import dataclass
from enum import IntEnum

from mulligan.verification.digest.locations import Place


class Rank(IntEnum):
    """In which order findings are told."""

    FAILURE = 0
    LIKELY = 1
    AFTERMATH = 2
    WARNING = 3


@dataclass(frozen=True, slots=True)
class Head:
    """The line `at`, and what it says; `start` and `end` bound its block where that is known.

    `written` is the line that names a test, and `unit` the package or file that it is of.
    """

    at: int
    rank: Rank
    message: str
    test_id: str | None = None
    place: Place | None = None
    code: str | None = None
    start: int | None = None
    end: int | None = None
    written: str = ""
    unit: str = ""
