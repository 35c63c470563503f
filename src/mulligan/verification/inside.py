"""Files of a worktree by the names that its tools give: reached through no link, and bounded.

The tree is an agent's: a link, a pipe or a flood may stand where a file is expected.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath


def read(root: Path, name: str, most: int) -> bytes | None:
    """Read a file below `root`; None where there is none, or it is larger than `most` bytes."""
    with suppress(OSError, ValueError), _directory_of(root, name) as (directory, last):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(last, flags, dir_fd=directory), "rb") as opened:
            found = os.fstat(opened.fileno())
            if stat.S_ISREG(found.st_mode) and found.st_size <= most:
                return opened.read(most)
    return None


def remove(root: Path, name: str) -> None:
    """Remove a file below `root`, or the link in its place; what is not there is gone already."""
    with suppress(OSError, ValueError), _directory_of(root, name) as (directory, last):
        os.unlink(last, dir_fd=directory)


@contextmanager
def _directory_of(root: Path, name: str) -> Generator[tuple[int, str]]:
    """Open the directory of a file, step by step; give it, and the last part of the name."""
    *parents, last = _steps(root, name)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    directory = os.open(root, flags)
    try:
        for parent in parents:
            below = os.open(parent, flags | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = below
        yield directory, last
    finally:
        os.close(directory)


def _steps(root: Path, name: str) -> tuple[str, ...]:
    """Take a path apart, be it relative or absolute; ValueError where it leads out of `root`."""
    path = PurePosixPath(name)
    parts = (path.relative_to(root.as_posix()) if path.is_absolute() else path).parts
    if not parts or ".." in parts:
        message = f"{name!r} is not a file in {root}."
        raise ValueError(message)
    return parts
