"""What was found on this machine, and what `mulligan doctor` says of it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mulligan.domain.errors import MulliganError

# Findings of `mulligan doctor`.


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
    message: str
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


AS_ROOT = "Mulligan runs as root, so a flaw in it or in its sandbox opens the whole machine."

NOT_AS_ROOT = "Run it as a user of its own."

TRY_AGAIN = "See to what it names, and ask the doctor again."
"""The fix of an error that names none."""


# Disk space.

MIB = 1024**2

MIN_FREE_FILES = 1000
"""How many files there has to be room for, whatever is configured."""

MAKE_ROOM = "make room on that disk."


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The bytes that are free where a directory is or will be, and whether it can be written to.

    `files` is how many more may be made, None where the file system has no such limit.
    """

    path: Path
    free: int
    writable: bool
    free_files: int | None = None


def disk_shortage(rooms: Iterable[DiskSpace], least: int) -> str | None:
    """Say where less than `least` bytes are free, or no files can be made; None where there is."""
    for room in rooms:
        if room.free < least:
            short = f"Less than {least // MIB} MiB are free for {room.path}"
        elif room.free_files is not None and room.free_files < MIN_FREE_FILES:
            short = f"Hardly any more files can be made on the disk of {room.path}"
        else:
            continue
        return f"{short}; {MAKE_ROOM}"
    return None


def is_shortage(reason: str) -> bool:
    """Tell whether a reason is that there is too little room, here or with another worker."""
    return reason.endswith(MAKE_ROOM)


# Agents and the sandbox.


@dataclass(frozen=True, slots=True)
class AgentPresence:
    """Where the agent's program is, None for nowhere; and what else it needs and is not there.

    `wanted` is the program as it was named.
    """

    program: str | None
    wanted: str = ""
    missing_files: tuple[str, ...] = ()
    missing_variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """Which agent is at work, in which version where it tells, and how it is confined."""

    kind: str
    version: str | None = None
    sandbox: str = ""


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """Whether commands can be confined, why not and the cure; and whether calls are filtered.

    `missing` are the paths of sandbox.read and sandbox.write that are not there, and `closed` those
    that are, but closed to the user that confined commands run as.
    """

    available: bool
    reason: str = ""
    fix: str = ""
    calls_filtered: bool = True
    missing: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
