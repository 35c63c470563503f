"""A cache of what setup commands left, for all issues; no command ever sees it (SETUP-2).

An entry appears by one rename and never changes. An attempt holds a lock on the directory of each
entry that it uses, so that no other process deletes it meanwhile.
"""

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from mulligan.sandbox.home import clear, copy, do

SIZE = "size"
"""The file of an entry that contains its size in bytes."""

TRASH = "trash-"


@dataclass(frozen=True, slots=True)
class SetUpCache:
    """Entries below `root`, up to `max_bytes` of them; `environment` has the PATH.

    A key begins with the day on which the entry was made, and a dash.
    """

    root: Path
    max_bytes: int
    environment: Mapping[str, str] = field(repr=False)

    def find(self, key: str, uses: ExitStack) -> Path | None:
        """Return an entry that stays until `uses` is closed; None if there is none."""
        return hold(self.root / key, uses)

    def add(self, key: str, made: Path, uses: ExitStack) -> Path:
        """Turn a directory into an entry, and return its new path.

        It stays where it is if it is too large, or if another process made the entry meanwhile.
        From another disk it is copied.
        """
        size = int(do(("du", "-s", "-B1", str(made)), made.parent, self.environment).split()[0])
        if size > self.max_bytes:
            return made
        (made / SIZE).write_text(f"{size}\n")
        # A power cut must not leave an entry whose files are empty.
        do(("sync", "-f", str(made)), made.parent, self.environment)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.root / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._prune(key.partition("-")[0], self.max_bytes - size)
            entry = self.root / key
            if entry.exists():
                return made
            self._move(made, entry)
            return self.find(key, uses) or made

    def _move(self, made: Path, entry: Path) -> None:
        try:
            made.rename(entry)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            copied = Path(tempfile.mkdtemp(prefix=TRASH, dir=self.root), entry.name)
            copy(made, copied, self.environment)
            do(("sync", "-f", str(copied)), self.root, self.environment)
            copied.rename(entry)

    def _prune(self, day: str, most: int) -> None:
        """Delete entries of other days, then the least recently used ones."""
        kept = 0
        for entry, size in self._entries():
            kept += size
            if (kept > most or not entry.name.startswith(f"{day}-")) and move_away(entry):
                kept -= size
        for left in self.root.glob(f"{TRASH}*"):
            clear(left, self.environment)

    def _entries(self) -> Iterator[tuple[Path, int]]:
        """List the entries with their sizes, the most recently used first."""
        entries = [each for each in self.root.glob("*-*") if not each.name.startswith(TRASH)]
        for entry in sorted(entries, key=lambda each: each.stat().st_mtime_ns, reverse=True):
            yield entry, int((entry / SIZE).read_text())


def hold(entry: Path, uses: ExitStack) -> Path | None:
    """Return an entry that nobody deletes until `uses` is closed; None if there is none.

    Who deletes it renames it first, under the exclusive lock on it.
    """
    try:
        descriptor = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    uses.callback(os.close, descriptor)
    # Others hold the exclusive lock only for a rename.
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if not (entry.exists() and os.path.samestat(os.fstat(descriptor), entry.stat())):
        return None
    os.utime(descriptor)
    return entry


def move_away(entry: Path) -> bool:
    """Move an entry beside the others for deletion, unless it is in use; tell whether it moved."""
    descriptor = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        entry.rename(Path(tempfile.mkdtemp(prefix=TRASH, dir=entry.parent), entry.name))
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
