"""What was found on this machine. Pure."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Room:
    """The bytes that are free where a directory is or will be, and whether it can be written to."""

    place: Path
    free: int
    writable: bool


@dataclass(frozen=True, slots=True)
class Presence:
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
class Walls:
    """Whether commands can be confined, why not and the cure; and whether calls are filtered.

    `missing` are the paths of sandbox.read and sandbox.write that are not there.
    """

    stand: bool
    why_not: str = ""
    cure: str = ""
    filtered: bool = True
    missing: tuple[str, ...] = ()
