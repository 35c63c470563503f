"""Control groups of the kernel (cgroups(7)), which limit all processes of one sandbox together.

supervisor.py makes one for a command where the system lets it. It uses the standard library only.
The kernel counts what the supervisor cannot see: shared memory that no process has attached, files
in memory on their way through a socket, buffers, and the files of a sandbox's /tmp.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PREFIX = "mulligan-"
OWN_SUBGROUP = "mulligan"
"""The group of Mulligan itself in a delegated one (DelegateSubgroup in systemd.exec(5))."""
REMOVE_SECONDS = 1.0
"""How long the kernel may need until the group of dead processes is empty."""


class Controller(NamedTuple):
    """The files that set a controller's limit, and the line that counts its effects.

    `{}` stands for the limit. A setting that the kernel does not have is skipped, except the first.
    """

    settings: tuple[tuple[str, str], ...]
    events: tuple[str, str]


V1: Mapping[str, Controller] = {
    "pids": Controller((("pids.max", "{}"),), ("pids.events", "max")),
    "memory": Controller(
        (("memory.limit_in_bytes", "{}"), ("memory.memsw.limit_in_bytes", "{}")),
        ("memory.oom_control", "oom_kill"),
    ),
}
V2: Mapping[str, Controller] = {
    "pids": V1["pids"],
    "memory": Controller(
        (("memory.max", "{}"), ("memory.swap.max", "0")), ("memory.events", "oom_kill")
    ),
}


class Place(NamedTuple):
    """A directory below which groups with these controllers can be made; `is_v2` by version."""

    directory: Path
    controllers: tuple[str, ...]
    is_v2: bool = False


def places(groups: str, mounts: str) -> Iterator[Place]:
    """Yield where this process could make groups, by /proc/self/cgroup and /proc/self/mountinfo.

    In version 2, a group with processes has no groups below it with limits: so Mulligan has to be
    in a subgroup of the delegated one, or in the root.
    """
    own = {names: path for _, names, path in (line.split(":", 2) for line in groups.splitlines())}
    for line in mounts.splitlines():
        mounted, _, rest = line.partition(" - ")
        root, point = mounted.split(" ")[3:5]
        kind, _, options = rest.split(" ", 2)
        mine = tuple(name for name in V1 if name in options.split(","))
        if kind == "cgroup2" and (found := _below(own.get("", ""), root, point)):
            directory = found.parent if found.name == OWN_SUBGROUP else found
            yield Place(directory, (*V2,), is_v2=True)
        elif kind == "cgroup" and mine:
            path = next((own[names] for names in own if mine[0] in names.split(",")), "")
            if found := _below(path, root, point):
                yield Place(found, mine)


def _below(path: str, root: str, point: str) -> Path | None:
    """Return the directory of a group; None if it is not below the mounted one."""
    if not path or not Path(path).is_relative_to(root):
        return None
    return Path(point, Path(path).relative_to(root))


class ControlGroup:
    """The groups of one command, one below each place; without a place there are no limits."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._directories = list[Path]()
        self._events = dict[str, tuple[Path, str]]()
        with contextlib.suppress(OSError):
            own = Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
            for place in places(*own):
                with contextlib.suppress(OSError):
                    self._make(place, limits)

    def _make(self, place: Place, limits: Mapping[str, int]) -> None:
        known = V2 if place.is_v2 else V1
        if place.is_v2:
            wanted = " ".join(f"+{name}" for name in place.controllers)
            (place.directory / "cgroup.subtree_control").write_text(wanted)
        _remove_old(place.directory)
        directory = place.directory / f"{PREFIX}{os.getpid()}"
        directory.mkdir()
        self._directories.append(directory)
        for name in place.controllers:
            (required, value), *more = known[name].settings
            (directory / required).write_text(value.format(limits[name]))
            for file, extra in more:
                with contextlib.suppress(OSError):
                    (directory / file).write_text(extra.format(limits[name]))
            file, key = known[name].events
            self._events[name] = (directory / file, key)

    def enter(self) -> None:
        """Move this process into the groups, and with it all that it starts."""
        for directory in self._directories:
            with contextlib.suppress(OSError):
                (directory / "cgroup.procs").write_text("0")

    @property
    def controllers(self) -> frozenset[str]:
        """Return the limited resources: `pids`, `memory`, both or none."""
        return frozenset(self._events)

    def exceeded(self) -> str:
        """Return the controller whose limit was exceeded; "" if none was."""
        return next((name for name, (file, key) in self._events.items() if count(file, key)), "")

    def remove(self) -> None:
        """Remove the groups, whose processes have all ended."""
        until = time.monotonic() + REMOVE_SECONDS
        for directory in self._directories:
            while not _is_removed(directory) and time.monotonic() < until:
                time.sleep(0.005)


def count(file: Path, key: str) -> int:
    """Return the number after a key, in a file with one on each line; 0 without it."""
    with contextlib.suppress(OSError):
        numbers = (line.partition(" ") for line in file.read_text().splitlines())
        return next((int(number) for name, _, number in numbers if name == key), 0)
    return 0


def _remove_old(place: Path) -> None:
    """Remove the groups of supervisors that were killed."""
    for group in place.glob(f"{PREFIX}*"):
        if not Path("/proc", group.name.removeprefix(PREFIX)).exists():
            _is_removed(group)


def _is_removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
