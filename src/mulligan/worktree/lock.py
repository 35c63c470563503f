"""A lock on a file: it excludes other threads and processes alike, and dies with its holder."""

import fcntl
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from mulligan.errors import UnavailableError
from mulligan.stop import reason_to_stop
from mulligan.worktree.disk import disk_faults

GLANCE = 0.02


@contextmanager
def locked(path: Path, patience: timedelta, what: str) -> Generator[None]:
    """Hold the lock while the context lasts; UnavailableError where it is not had in time."""
    with disk_faults():
        path.parent.mkdir(parents=True, exist_ok=True)
        held = path.open("ab")
    with held as file:
        until = time.monotonic() + patience.total_seconds()
        while not _taken(file.fileno()):
            if time.monotonic() > until:
                message = f"Another process of Mulligan is busy with {what}; try again later."
                raise UnavailableError(message)
            if reason := reason_to_stop():
                raise reason
            time.sleep(GLANCE)
        yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
