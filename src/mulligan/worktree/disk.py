"""The disk as the worktrees use it: its faults are the world's, and files are written whole."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mulligan.errors import UnavailableError


@contextmanager
def disk_faults() -> Generator[None]:
    """Turn what the operating system refuses into an UnavailableError."""
    try:
        yield
    except OSError as error:
        message = (
            f"{error.filename}: {error.strerror}; look at that disk, its space and its rights."
        )
        raise UnavailableError(message) from error


def write_whole(path: Path, content: bytes) -> None:
    """Make a file hold this, unless it does; whoever reads it meanwhile sees the old or the new."""
    if path.is_file() and path.read_bytes() == content:
        return
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.write_bytes(content)
    unfinished.replace(path)
