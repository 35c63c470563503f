"""The state directory: one Mulligan at a time uses it; the free space of its disk."""

import errno
import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from mulligan.domain.errors import UnavailableError, UsageError
from mulligan.domain.host import DiskSpace

LOCK_FILE = "mulligan.lock"

LOCK_POLL_SECONDS = 0.05
"""Longer than `holder` holds the lock, in seconds."""


def make_private(directory: Path) -> None:
    """Create a directory that only its owner can enter, or close an existing one to others.

    A directory of another user stays as it is.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
        if found.st_uid == os.geteuid() and found.st_mode & 0o077:
            directory.chmod(0o700)
    except OSError as error:
        raise UnavailableError(
            f"The directory {directory} could not be created ({error.strerror});"
            " check its permissions and its disk."
        ) from error


@contextmanager
def locked(directory: Path, *, what: str, since: datetime) -> Generator[None]:
    """Lock the directory for the command `what`; UsageError names the holder of the lock.

    The kernel releases the lock when the process ends, in any way. Programs started meanwhile do
    not inherit it.
    """
    place = directory / LOCK_FILE
    with _opened(place) as file:
        _take(file, place)
        holder = {"command": what, "pid": os.getpid(), "since": f"{since:%Y-%m-%d %H:%M:%S} UTC"}
        _write_holder(file, json.dumps(holder), place)
        try:
            yield
        finally:
            _write_holder(file, "", place)


def holder(directory: Path) -> str | None:
    """Return the holder of the lock; None if there is none."""
    place = directory / LOCK_FILE
    try:
        file = place.open(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(place, error) from error
    with file:
        written = file.read()
        return _holder(written) if written and _is_held(file) else None


def _is_held(file: IO[str]) -> bool:
    """Ask the kernel, since a killed process leaves its name in the file."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@contextmanager
def _opened(place: Path) -> Generator[IO[str]]:
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = place.open("a+", encoding="utf-8")
    except OSError as error:
        raise _unusable(place, error) from error
    with file:
        yield file


def _take(file: IO[str], place: Path) -> None:
    try:
        _take_at_once(file)
    except BlockingIOError as error:
        file.seek(0)
        raise UsageError(
            f"{_holder(file.read())} already uses {place.parent}; wait for it or stop it."
        ) from error
    except OSError as error:
        raise _unusable(place, error) from error


@retry(
    retry=retry_if_exception_type(BlockingIOError),
    wait=wait_fixed(LOCK_POLL_SECONDS),
    stop=stop_after_attempt(2),
    reraise=True,
)
def _take_at_once(file: IO[str]) -> None:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(written: str) -> str:
    """Return the holder in words; a new one may not have written its name yet."""
    try:
        holder = json.loads(written)
        return "`mulligan {command}` (process {pid}, since {since})".format_map(holder)
    except (ValueError, TypeError, KeyError):
        return "Another Mulligan"


def _write_holder(file: IO[str], text: str, place: Path) -> None:
    # Past the buffer of `file`, which on a full disk would fail once more when it is closed.
    try:
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), text.encode())
    except OSError as error:
        raise _unusable(place, error) from error


def _unusable(place: Path, error: OSError) -> UnavailableError:
    is_full = error.errno == errno.ENOSPC
    advice = "free some space" if is_full else "check its permissions and its disk"
    return UnavailableError(f"{place} cannot be used ({error.strerror}); {advice}.")


def disk_space_for(directory: Path) -> DiskSpace:
    """Return the free space at a directory, or at its nearest existing parent; create nothing."""
    try:
        place = next(each for each in (directory, *directory.parents) if each.exists())
        disk = os.statvfs(place)
    except OSError as error:
        raise UnavailableError(
            f"{directory} could not be read ({error.strerror}); check its permissions."
        ) from error
    writable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    files = disk.f_favail if disk.f_files else None
    return DiskSpace(directory, disk.f_bavail * disk.f_frsize, writable, files)
