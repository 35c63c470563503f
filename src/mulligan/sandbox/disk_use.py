"""Tell whether a command filled a disk itself, or others did (OUTCOME-5)."""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mulligan.domain.errors import DiskFullError

LEAST = 512 * 1024**2, 50_000
"""Bytes and files that a command may write in any case: others filled the disk then."""
SHARE = 3
"""A command filled a disk if a third of what the disk lost meanwhile is its own."""
SEARCH_SECONDS = 60.0
CLOCK = 20_000_000
"""Nanoseconds by which the time of a file may be late: the kernel counts in ticks."""
BLOCK = 512
"""The unit of st_blocks (inode(7))."""


class Amount(NamedTuple):
    """Bytes and files."""

    bytes: int
    files: int

    def less(self, other: "Amount") -> "Amount":
        """Return the difference, at least nothing."""
        return Amount(max(self.bytes - other.bytes, 0), max(self.files - other.files, 0))


def free_at(place: Path) -> Amount:
    """Return what is free on the disk of a place."""
    found = os.statvfs(place)
    return Amount(found.f_bavail * found.f_frsize, found.f_favail)


def _device(place: Path) -> int:
    return place.stat().st_dev


@dataclass(slots=True)
class DiskUse:
    """Measures what one command writes to its `places`, from the moment in which it is created."""

    places: tuple[Path, ...]
    began: int = field(default_factory=lambda: time.time_ns() - CLOCK)
    before: dict[int, Amount] = field(init=False)
    at_stop: Amount | None = None

    def __post_init__(self) -> None:
        self.before = dict[int, Amount]()
        for place in self.places:
            with suppress(OSError):
                self.before[_device(place)] = free_at(place)

    def note_stop(self, error: DiskFullError) -> None:
        """Measure the full disk, while the command still runs."""
        with suppress(OSError):
            self.at_stop = free_at(error.place)

    def has_filled(self, error: DiskFullError) -> bool:
        """Return whether the command filled the disk; call it when the command has ended.

        Its own are the files that it wrote, and what its end freed: deleted files that it had open.
        """
        try:
            device = _device(error.place)
            after, before = free_at(error.place), self.before.get(device)
        except OSError:
            return False
        if before is None or self.at_stop is None:
            return False
        kind = int(error.lacks_files)
        wanted = max(LEAST[kind], before.less(self.at_stop)[kind] // SHARE)
        own = after.less(self.at_stop)[kind]
        until = time.monotonic() + SEARCH_SECONDS
        for found in written_since(self.began, self.places, device):
            own += 1 if error.lacks_files else BLOCK * found.st_blocks
            if own >= wanted or time.monotonic() > until:
                break
        return own >= wanted


def written_since(began: int, places: Iterable[Path], device: int) -> Iterator[os.stat_result]:
    """Yield the files on a device that changed since a moment, each once; links are not followed.

    No program can set back the time of the change (ctime).
    """
    seen = set[int]()
    waiting = [str(place) for place in places]
    while waiting:
        for entry in _entries(waiting.pop()):
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if found.st_dev != device:
                continue
            if stat.S_ISDIR(found.st_mode):
                waiting.append(entry.path)
            if found.st_ctime_ns >= began and found.st_ino not in seen:
                seen.add(found.st_ino)
                yield found


def _entries(directory: str) -> list[os.DirEntry[str]]:
    """List a directory, also if a command closed it; nothing if it cannot be read."""
    with suppress(OSError):
        if stat.S_ISDIR(os.lstat(directory).st_mode):
            if not os.access(directory, os.R_OK | os.X_OK):
                Path(directory).chmod(0o700)
            with os.scandir(directory) as entries:
                return list(entries)
    return []
