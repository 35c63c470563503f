"""What `mulligan doctor` finds: how bad it is, in one sentence, and its fix in another. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from mulligan.errors import MulliganError

TRY_AGAIN = "See to what it names, and ask the doctor again."
"""The fix of an error that names none."""


class Level(StrEnum):
    """How bad it is: a fault stops work, a warning may spoil it, a note is good to know."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding about `area`; `fix` is empty where all is well."""

    area: str
    level: Level
    said: str
    fix: str = ""


def fine(area: str, said: str) -> Diagnosis:
    """Say that something is as it should be."""
    return Diagnosis(area, Level.OK, said)


def note(area: str, said: str, fix: str) -> Diagnosis:
    """Say something that is good to know."""
    return Diagnosis(area, Level.NOTE, said, fix)


def warning(area: str, said: str, fix: str) -> Diagnosis:
    """Say what may spoil the work."""
    return Diagnosis(area, Level.WARNING, said, fix)


def fault(area: str, said: str, fix: str) -> Diagnosis:
    """Say what stops the work."""
    return Diagnosis(area, Level.FAULT, said, fix)


def failed(area: str, error: MulliganError, fix: str) -> Diagnosis:
    """Make a fault of an error, whose message ends in `; what to do.`; `fix` is for one without."""
    said, mark, advice = str(error).rpartition("; ")
    if not mark or advice.count(")") > advice.count("("):
        return fault(area, str(error), fix)
    return fault(area, f"{said}.", f"{advice[:1].upper()}{advice[1:]}")
