"""Files of worktrees: write atomically, lock, and clean up after agents."""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mulligan.domain.errors import UnavailableError
from mulligan.git.repository import PATH
from mulligan.git.worktrees.naming import CACHE_SIGNATURE, CACHE_TAG, VIRTUAL_ENVIRONMENT
from mulligan.sandbox.cancellation import meanwhile, reason_to_stop
from mulligan.sandbox.process import Command, Finished, run


@contextmanager
def disk_faults() -> Generator[None]:
    """Turn an OSError into an UnavailableError."""
    try:
        yield
    except OSError as error:
        message = (
            f"{error.filename}: {error.strerror}; check the disk, its free space"
            " and the permissions."
        )
        raise UnavailableError(message) from error


def write_whole(path: Path, content: bytes, unfinished_suffix: str = ".new") -> None:
    """Write a file atomically, if its content differs; readers see the old or the new content."""
    if path.is_file() and path.read_bytes() == content:
        return
    unfinished = path.with_name(f"{path.name}{unfinished_suffix}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


LOCK_POLL_SECONDS = 0.02


@contextmanager
def locked(path: Path, timeout: timedelta, what: str) -> Generator[None]:
    """Hold a lock while the block lasts; UnavailableError after `timeout`."""
    with disk_faults():
        path.parent.mkdir(parents=True, exist_ok=True)
        held = path.open("ab")
    with held as file:
        retrying = Retrying(
            retry=retry_if_exception_type(BlockingIOError),
            wait=wait_fixed(LOCK_POLL_SECONDS),
            stop=stop_after_delay(timeout),
            sleep=_sleep_unless_stopped,
        )
        try:
            retrying(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except RetryError as error:
            message = f"Another process of Mulligan is busy with {what}; try again later."
            raise UnavailableError(message) from error
        yield


def _sleep_unless_stopped(seconds: float) -> None:
    if reason := reason_to_stop():
        raise reason
    time.sleep(seconds)


# Clean directories that an agent could write to.

CLEAN_TIMEOUT = timedelta(minutes=10)

MAX_PATH_CHARS = 1024
"""Limit of a path in a worktree: git is slow with longer paths, or misses them; as on macOS."""

CLOSED_DIRECTORIES = ("-type", "d", "!", "-perm", "-700", "-execdir", "chmod", "u+rwx", "{}", ";")

UNREADABLE = ("-type", "f", "!", "-perm", "-400", "-execdir", "chmod", "u+r", "{}", "+")

CLOSED_FILES = ("-type", "f", "!", "-perm", "-600", "-execdir", "chmod", "u+rw", "{}", "+")
"""Git does not notice that a file lost these permissions, but the next agent would."""

NEVER_TRUE = ("(", *CLOSED_DIRECTORIES, "-false", ")", "-o")

REPOSITORIES = (
    *("-name", ".git", "-prune", "(", "-type", "d"),
    *("-execdir", "chmod", "-R", "u+rwx", "{}", ";", "-execdir", "rm", "-rf", "{}", ";"),
    *("-o", "-execdir", "rm", "-f", "{}", ";", ")"),
)

MARKS = (
    *("-type", "f", "(", "-name", "HEAD", "-o", "-name", VIRTUAL_ENVIRONMENT),
    *("-o", "-name", CACHE_TAG, ")"),
)

SPECIAL = ("!", "(", "-type", "f", "-o", "-type", "d", "-o", "-type", "l", ")")


@dataclass(frozen=True, slots=True)
class FoundDirectories:
    """Directories in a tree, by their paths in it, and whether the tree needs no cleaning.

    Each of the `repositories` has a `.git` entry, or is a bare repository: it has what git itself
    looks for. `tools` are virtual environments and caches, by the file in them that says so.
    """

    repositories: tuple[str, ...]
    tools: tuple[str, ...]
    is_clean: bool


@dataclass(frozen=True, slots=True)
class TreeCleaner:
    """Cleans directories that an agent could write to; `outer` provides PATH."""

    trash: Path
    outer: Mapping[str, str] = field(repr=False)

    def clean(self, tree: Path) -> str:
        """Make everything accessible, and remove files that git does not see or would trust.

        These are `.git` entries, special files such as FIFOs, and overlong paths. Return the path
        of one that could not be removed; empty if all were.
        """
        self._unlink_pointer(tree)
        # Most agents leave no such file; then one search is enough.
        if not self.find_unexpected(tree):
            return ""
        self._scrub(tree)
        return self.find_unexpected(tree)

    def search(self, tree: Path) -> "FoundDirectories":
        """List the directories below a tree that hold a git repository or belong to a tool.

        One search is enough after most agents.
        """
        self._unlink_pointer(tree)
        found = self._find(
            tree,
            *("(", *MARKS, "-printf", r"%P\0", "-false", ")", "-o"),
            *(*_unexpected(tree), "-printf", r"\0", "-quit"),
        )
        *marks, end = found.tail.split(b"\0")
        is_clean = b"" not in marks and not end
        if not is_clean:
            found = self._find(
                tree,
                *("-mindepth", "2", *NEVER_TRUE),
                *("(", "-name", ".git", "-prune", "-o", *MARKS, ")"),
                *("-printf", r"%P\0"),
            )
            marks = found.tail.split(b"\0")[:-1]
        return FoundDirectories(
            tuple(_parents(marks, lambda mark: _marks_repository(tree / mark))),
            tuple(_parents(marks, lambda mark: _marks_tool(tree / mark))),
            is_clean,
        )

    def _unlink_pointer(self, tree: Path) -> None:
        self.open(tree)
        if not stat.S_ISDIR(_mode(tree / ".git")):
            (tree / ".git").unlink(missing_ok=True)

    def _scrub(self, tree: Path) -> None:
        self._find(
            tree,
            *NEVER_TRUE,
            *("(", *REPOSITORIES, ")", "-o"),
            *("(", *SPECIAL, "-execdir", "rm", "-f", "{}", "+", ")", "-o"),
            *("(", *_too_long(tree), "-prune", "-execdir", "rm", "-rf", "{}", "+", ")", "-o"),
            *CLOSED_FILES,
        )

    def remove(self, tree: Path, patterns: Sequence[str]) -> None:
        """Remove everything with such a name, at any depth; a trailing slash means a directory."""
        named = list[str]()
        for pattern in patterns:
            kind = ("-type", "d") if pattern.endswith("/") else ()
            named += [*(("-o",) if named else ()), "(", "-name", pattern.rstrip("/"), *kind, ")"]
        if named:
            self._find(tree, "(", *named, ")", "-prune", "-execdir", "rm", "-rf", "{}", "+")

    def only_files(self, directory: Path) -> None:
        """Make everything accessible, and remove special files such as FIFOs."""
        self.open(directory)
        self._find(
            directory,
            *NEVER_TRUE,
            *("(", "!", "-type", "d", "!", "-type", "f", "-execdir", "rm", "-f", "{}", "+", ")"),
            *("-o", *UNREADABLE),
        )

    def find_unexpected(self, tree: Path) -> str:
        """Return the path of a file that a clean worktree must not have; empty if there is none."""
        found = self._find(
            tree,
            *(*_unexpected(tree), "-print", "-quit"),
        )
        return "it has too many files" if found.stopped_by else found.text.strip()

    def set_aside(self, path: Path, owner: str) -> None:
        """Move a file or directory to the trash, for `empty` to delete; ignore a missing one."""
        if not os.path.lexists(path):
            return
        try:
            self.trash.mkdir(parents=True, exist_ok=True)
            self.open(path)
            path.rename(Path(tempfile.mkdtemp(prefix=f"{owner}-", dir=self.trash), path.name))
        except OSError as error:
            message = f"{path} could not be moved ({error.strerror}); remove it by hand."
            raise UnavailableError(message) from error

    def move(self, path: Path, to: Path) -> None:
        """Move a directory, whatever its permissions, to a free path; ignore a missing one."""
        with suppress(FileNotFoundError):
            self.open(path)
            path.rename(to)

    def empty(self, owner: str) -> None:
        """Delete an owner's trash; anything that cannot be deleted stays for the next call."""
        with self.emptying(owner):
            pass

    @contextmanager
    def emptying(self, owner: str) -> Generator[None]:
        """Delete, while the block runs, what is in an owner's trash before it, as `empty` does."""
        left = [str(path) for path in self.trash.glob(f"{owner}-*")]
        if not left:
            yield
            return
        with meanwhile(lambda: self._delete(left)):
            yield

    def _delete(self, paths: Sequence[str]) -> None:
        left = [path for path in paths if not _is_deleted_here(path)]
        if left and self._run("rm", "-rf", "--", *left).exit_code:
            for path in left:
                self._find(Path(path), *CLOSED_DIRECTORIES)
            self._run("rm", "-rf", "--", *left)

    def open(self, path: Path) -> None:
        """Grant the owner access to a directory itself; skip a link."""
        mode = _mode(path)
        if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
            path.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)

    def _find(self, start: Path, *expression: str) -> Finished:
        return self._run("find", str(start), "-xdev", *expression)

    def _run(self, *argv: str) -> Finished:
        # find -execdir refuses a PATH with relative entries, for safety.
        path = self.outer.get("PATH", PATH).split(":")
        environment = {
            "PATH": ":".join(entry for entry in path if entry.startswith("/")),
            "LC_ALL": "C",
        }
        return run(Command(argv, self.trash.parent, environment, CLEAN_TIMEOUT))


MAX_DELETED_HERE = 100
"""Limit of the paths in a directory to delete without `rm`, which costs 9 ms of CPU to start."""


def _is_deleted_here(path: str) -> bool:
    """Delete a small directory that is open to its owner; return whether it is gone."""
    try:
        if any(islice(_below(path), MAX_DELETED_HERE, None)):
            return False
        shutil.rmtree(path)
    except OSError:
        return False
    return True


def _below(path: str) -> Iterator[str]:
    """List what is in a directory, at any depth; links are not followed."""
    waiting = [path]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _unexpected(tree: Path) -> tuple[str, ...]:
    """Return what `find` looks for: a file that a clean worktree must not have."""
    return (
        *("(", "-name", ".git", "-o", *SPECIAL, "-o", *_too_long(tree)),
        *("-o", "-type", "d", "!", "-perm", "-700", "-o", "-type", "f", "!", "-perm", "-600", ")"),
    )


def _parents(marks: Iterable[bytes], is_wanted: Callable[[Path], bool]) -> Iterator[str]:
    """Yield the directories of the wanted files, without the tree itself."""
    paths = map(Path, map(os.fsdecode, marks))
    return (str(path.parent) for path in paths if path.parent.name and is_wanted(path))


def _marks_repository(path: Path) -> bool:
    if path.name == ".git":
        return True
    parent = path.parent
    return path.name == "HEAD" and (parent / "objects").is_dir() and (parent / "refs").is_dir()


def _marks_tool(path: Path) -> bool:
    if path.name != CACHE_TAG:
        return path.name == VIRTUAL_ENVIRONMENT
    try:
        with path.open("rb") as opened:
            return opened.read(len(CACHE_SIGNATURE)) == CACHE_SIGNATURE
    except OSError:
        return False


def _mode(path: Path) -> int:
    """Return the type and permissions of a path; 0 if it does not exist."""
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def _too_long(tree: Path) -> tuple[str, str]:
    return "-path", "?" * (len(str(tree).encode()) + 1 + MAX_PATH_CHARS) + "*"
