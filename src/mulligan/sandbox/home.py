"""The HOME of one command: a private copy of what set-up left in its own, gone with the command.

Programs note down where they were installed, so every copy lies where set-up had its HOME. What
set-up left lies beside it, where no command in a sandbox sees it. So does a copy of the worktree as
set-up left it, from which each check gets a worktree of its own.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import UnavailableError
from mulligan.sandbox.cancellation import defer_shutdown
from mulligan.sandbox.process import Command, run

COPY_TIMEOUT = timedelta(minutes=10)
"""How long copying or removing may take."""
COPY = ("cp", "--archive", "--reflink=auto", "--no-target-directory")
"""No hard links: a write to one would change all of them."""

TREE_AFTER_SET_UP = "tree-after-set-up"


@dataclass(frozen=True, slots=True)
class Homes:
    """The HOMEs of the commands of one attempt, in `private`; `environment` has the PATH."""

    private: Path
    environment: Mapping[str, str] = field(repr=False)

    @property
    def place(self) -> Path:
        """Give where every command finds its HOME."""
        return self.private / "home"

    @property
    def _kept(self) -> Path:
        return self.private / "home-after-set-up"

    def keep_tree(self, tree: Path) -> None:
        """Keep a copy of the worktree as set-up left it, for checks that run after an agent."""
        kept = self.private / TREE_AFTER_SET_UP
        self._clear(kept)
        # What cp cannot read it leaves out.
        self._do("chmod", "-R", "u+rX", str(tree))
        self._do(*COPY, str(tree), str(kept))

    @contextmanager
    def for_set_up(self) -> Generator[Path]:
        """Give an empty HOME; if all goes well, the commands after this begin with a copy."""
        self._clear(self._kept)
        with self._empty() as home:
            yield home
            if not _is_empty(home):
                # What cp cannot read it leaves out.
                self._do("chmod", "-R", "u+rX", str(home))
            home.rename(self._kept)

    @contextmanager
    def for_command(self) -> Generator[Path]:
        """Give a copy of what set-up left; without set-up, an empty HOME."""
        with self._empty() as home:
            if self._kept.exists() and not _is_empty(self._kept):
                self._do(*COPY, str(self._kept), str(home))
            yield home

    @contextmanager
    def _empty(self) -> Generator[Path]:
        self._clear(self.place)
        try:
            self.place.mkdir(mode=0o700, parents=True)
        except OSError as error:
            message = (
                f"No home directory could be created in {self.private}:"
                f" {error.strerror}; check that disk."
            )
            raise UnavailableError(message) from error
        try:
            yield self.place
        finally:
            # Where it cannot be removed, the next command does not begin.
            with suppress(UnavailableError):
                self._clear(self.place)

    def _clear(self, home: Path) -> None:
        clear(home, self.environment)

    def _do(self, *argv: str) -> None:
        _do(argv, self.private, self.environment)


def clear(home: Path, environment: Mapping[str, str]) -> None:
    """Remove a HOME, whatever a command made of it; UnavailableError where it stays."""
    with suppress(OSError):
        home.rmdir()
    if not os.path.lexists(home):
        return
    remove = ("rm", "-rf", str(home))
    # What a command left is not to lie there because Mulligan is told to stop.
    with defer_shutdown():
        try:
            _do(remove, home.parent, environment)
        except UnavailableError:
            _do(("chmod", "-R", "u+rwx", str(home)), home.parent, environment)
            _do(remove, home.parent, environment)


def has_tree_after_set_up(private: Path) -> bool:
    """Tell whether set-up left a worktree that was kept."""
    return (private / TREE_AFTER_SET_UP).is_dir()


def copy_tree_after_set_up(private: Path, to: Path, environment: Mapping[str, str]) -> None:
    """Copy the worktree as set-up left it to where nothing is."""
    _do((*COPY, str(private / TREE_AFTER_SET_UP), str(to)), private, environment)


def _do(argv: tuple[str, ...], directory: Path, environment: Mapping[str, str]) -> None:
    """Run a program on files of a command; UnavailableError where it does not do all its work."""
    given = {"PATH": environment.get("PATH", os.defpath), "LC_ALL": "C"}
    ended = run(Command(argv, directory, given, COPY_TIMEOUT))
    if ended.stopped_by or ended.exit_code:
        lines = ended.text.strip().splitlines()
        why = "it has too many files" if ended.stopped_by or not lines else lines[-1]
        message = f"The files of a command could not be created: {why}; check that disk."
        raise UnavailableError(message)


def _is_empty(home: Path) -> bool:
    return not any(os.scandir(home))
