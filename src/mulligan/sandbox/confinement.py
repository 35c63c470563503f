"""What a confined command may see and write, as the argument vector of bubblewrap. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/resolv.conf"),
    *("/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/mime.types"),
    *("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf"),
    *("/etc/crypto-policies", "/etc/alternatives", "/etc/localtime", "/etc/timezone"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/os-release"),
    *("/etc/fonts", "/etc/maven", "/etc/perl", "/etc/terminfo"),
)
"""What programs need of a Linux system, where it is there; nothing of it is written to."""

OWN_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--disable-userns", "--cap-drop", "ALL"),
    # The keeper is its parent, and lives as long as the command.
    *("--die-with-parent", "--new-session"),
)


Way = tuple[str, ...]
"""How bubblewrap puts a path into place: its option, and what stands before the path."""
READ: Way = ("--ro-bind-try",)
WRITE: Way = ("--bind-try",)
EMPTY_DIRECTORY: Way = ("--size", "4096", "--tmpfs")
EMPTY_FILE: Way = ("--ro-bind", "/dev/null")


DOOR = "/run/mulligan-door"


class Network(StrEnum):
    """What a command may reach: nothing, its model and the hosts that are named, or everything."""

    NONE = "none"
    MODEL = "model"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Confinement:
    """What there is for a command besides the system, at the same paths as outside.

    Where two of them name one path, what hides goes before `write`, and `write` before `read`; a
    deeper path goes before one that holds it. What is not there is left out.
    `door` is a socket that is there as `DOOR`, the one way out where there is no network.
    `tmp_bytes` is the size of its /tmp, and of its shared memory.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    hide: tuple[Path, ...] = ()
    hide_files: tuple[Path, ...] = ()
    network: Network = Network.NONE
    door: Path | None = None
    tmp_bytes: int = 1024**3


@dataclass(frozen=True, slots=True)
class Wires:
    """Open descriptors: what bubblewrap reads its filter from, and writes what it did to.

    The relay writes to `trouble` why it could not start what it leads out.
    """

    filter: int | None = None
    status: int | None = None
    trouble: int | None = None

    @property
    def all(self) -> tuple[int, ...]:
        """Give those that bubblewrap has to inherit."""
        wires = (self.filter, self.status, self.trouble)
        return tuple(each for each in wires if each is not None)


def arguments(
    confined: Confinement, directory: Path, argv: Sequence[str], wires: Wires
) -> tuple[str, ...]:
    """Write what bubblewrap is started with, after its own name, to run `argv` in `directory`."""
    size = ("--size", str(confined.tmp_bytes), "--tmpfs")
    return (
        *OWN_NAMESPACES,
        *(() if confined.network is Network.OPEN else ("--unshare-net",)),
        *(() if wires.filter is None else ("--seccomp", str(wires.filter))),
        *(() if wires.status is None else ("--json-status-fd", str(wires.status))),
        *("--proc", "/proc", "--dev", "/dev", *size, "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108 - the command's own
        *(*size, "/tmp", "--symlink", "../tmp", "/var/tmp", "--dir", "/run"),  # noqa: S108 - the command's own
        *(("--ro-bind", str(confined.door), DOOR) if confined.door else ()),
        *_places(confined),
        *("--remount-ro", "/", "--chdir", str(directory), "--", *argv),
    )


def _places(confined: Confinement) -> Iterator[str]:
    """Bind every path, those that hold others first; what is hidden stays empty."""
    ways: dict[Path, Way] = dict.fromkeys(map(Path, SYSTEM), READ)
    ways |= dict.fromkeys(confined.read, READ) | dict.fromkeys(confined.write, WRITE)
    shown = set(ways)
    for hidden, way in ((confined.hide, EMPTY_DIRECTORY), (confined.hide_files, EMPTY_FILE)):
        ways |= {path: way for path in hidden if _is_in(path, shown)}
    placed = [path for path, way in ways.items() if way != _way_around(path, ways)]
    for path in sorted(placed, key=lambda path: path.parts):
        yield from _bind(path, ways[path])
    for path in placed:
        if ways[path] == EMPTY_DIRECTORY:
            yield from ("--remount-ro", str(path))


def _bind(path: Path, way: Way) -> Way:
    return (
        (*way, str(path)) if way in {EMPTY_DIRECTORY, EMPTY_FILE} else (*way, str(path), str(path))
    )


def _way_around(path: Path, ways: Mapping[Path, Way]) -> Way | None:
    """Give the way of the nearest directory that holds a path: what is in it goes that way."""
    return next((ways[parent] for parent in path.parents if parent in ways), None)


def _is_in(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)
