"""Facts about this machine, and the findings of `mulligan doctor`. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

# Findings of `mulligan doctor`.


class Level(StrEnum):
    """The severity: a fault stops work, a warning may spoil it, a note informs."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding about an area; `fix` is empty if all is well."""

    area: str
    level: Level
    message: str
    fix: str = ""


def fine(area: str, message: str) -> Diagnosis:
    """Report that an area is fine."""
    return Diagnosis(area, Level.OK, message)


def note(area: str, message: str, fix: str) -> Diagnosis:
    """Report a helpful fact."""
    return Diagnosis(area, Level.NOTE, message, fix)


def warning(area: str, message: str, fix: str) -> Diagnosis:
    """Report a problem that may spoil the work."""
    return Diagnosis(area, Level.WARNING, message, fix)


def fault(area: str, message: str, fix: str) -> Diagnosis:
    """Report a problem that stops the work."""
    return Diagnosis(area, Level.FAULT, message, fix)


AS_ROOT = "Mulligan runs as root, so a flaw in it or in its sandbox exposes the whole machine."

NOT_AS_ROOT = "Run it as a separate, ordinary user."

TRY_AGAIN = "Fix the named problem, then run `mulligan doctor` again."
"""The fix for an error; its message says how."""


# Disk space.

MIB = 1024**2

MIN_FREE_FILES = 1000
"""Minimum number of further files that a disk must have room for."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The free bytes of the disk of a directory, and whether it is writable.

    `free_files` is how many more files fit; None if the file system has no such limit. `use` names
    the directory to people who do not know the machine.
    """

    path: Path
    free: int
    writable: bool
    free_files: int | None = None
    use: str = ""


def disk_shortage(rooms: Iterable[DiskSpace], least: int) -> str:
    """Return a disk with less than `least` bytes or too few files free; "" if there is none."""
    for room in rooms:
        place = room.use or room.path
        if room.free < least:
            short = f"Less than {least // MIB} MiB are free for {place}"
        elif room.free_files is not None and room.free_files < MIN_FREE_FILES:
            short = f"Almost no free inodes are left on the disk of {place}"
        else:
            continue
        return f"{short}. Free some space on that disk."
    return ""


# Agents and the sandbox.


@dataclass(frozen=True, slots=True)
class AgentPresence:
    """The path of the agent's program, None if not found, and anything else that is missing.

    `wanted` is the program's configured name; `install` installs a built-in agent, else it is "".
    `not_executable` is the program's file, if nobody may execute it. `failure` says why a start of
    the program failed.
    """

    program: str | None
    wanted: str = ""
    install: str = ""
    not_executable: str = ""
    missing_files: tuple[str, ...] = ()
    missing_variables: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """The kind of the agent, its version if it reports one, and its sandbox."""

    kind: str
    version: str | None = None
    sandbox: str = ""


class Network(StrEnum):
    """What a command may reach: nothing, its model and the hosts that are named, or everything."""

    NONE = "none"
    MODEL = "model"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of an agent's run, and its network; `hosts` count for MODEL only.

    `is_beside_image`: the checks run in an image, and the agent does not.
    """

    timeout: timedelta
    stall_timeout: timedelta
    max_turns: int | None = None
    network: Network = Network.OPEN
    hosts: tuple[str, ...] = ()
    is_beside_image: bool = False


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """Whether the sandbox is available, else the reason and the fix.

    `missing` are the paths of sandbox.read and sandbox.write that do not exist, `closed` those that
    the sandbox's user cannot read. `calls_filtered`: system calls are filtered. `copies` is why
    commands get copies of what setup commands left instead of layers, or empty.
    """

    available: bool
    reason: str = ""
    fix: str = ""
    calls_filtered: bool = True
    missing: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    copies: str = ""


@dataclass(frozen=True, slots=True)
class CommandNetworkStatus:
    """What setup commands and checks cannot use of the operator's network as intended.

    Of sandbox.env, `unset` are the variables that are not set, and `exposed` those with a password
    in a URL. `secret_files` are configuration files that commands cannot read, since they contain a
    secret. `registry_problems` are sentences about sandbox.registries.
    """

    unset: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    secret_files: tuple[str, ...] = ()
    registry_problems: tuple[str, ...] = ()
