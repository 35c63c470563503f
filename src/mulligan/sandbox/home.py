"""The HOME of one command, and the files that setup commands left in HOME and worktree (SETUP-2).

Each command gets private copies. Programs note down where they were installed, so the copies lie
where the setup commands had worktree and HOME.
"""

import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import UnavailableError
from mulligan.sandbox.cancellation import defer_shutdown
from mulligan.sandbox.process import Command, run

COPY_TIMEOUT = timedelta(minutes=10)
"""Time limit of copying or removing."""
COPY = ("cp", "--archive", "--reflink=auto", "--no-target-directory")
"""No hard links: a write to one would change all of them."""

TREE, HOME = "tree", "home"
"""The two parts of the directory that setup commands leave."""


@dataclass(frozen=True, slots=True)
class Homes:
    """The HOMEs of the commands of one attempt, in `private`; `environment` has the PATH.

    `left` is what setup commands left; without it, every HOME begins empty.
    """

    private: Path
    environment: Mapping[str, str] = field(repr=False)
    left: Path | None = None

    @property
    def place(self) -> Path:
        """Return the path at which every command has its HOME."""
        return self.private / "home"

    @contextmanager
    def for_set_up(self) -> Generator[Path]:
        """Yield a HOME as for other commands; if the block succeeds, keep it for `keep`."""
        kept = self.private / KEPT_HOME
        clear(kept, self.environment)
        with self.for_command() as home:
            yield home
            home.rename(kept)

    @contextmanager
    def for_command(self) -> Generator[Path]:
        """Yield a copy of the HOME that the setup commands left; without one, an empty HOME."""
        with self._empty() as home:
            if self.left and not _is_empty(self.left / HOME):
                copy(self.left / HOME, home, self.environment)
            yield home

    @contextmanager
    def _empty(self) -> Generator[Path]:
        clear(self.place, self.environment)
        try:
            self.place.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise UnavailableError(
                f"No home directory could be created in {self.private}:"
                f" {error.strerror}; check that disk."
            ) from error
        try:
            yield self.place
        finally:
            # If it cannot be removed, the next command does not start.
            with suppress(UnavailableError):
                clear(self.place, self.environment)


KEPT_HOME = "home-after-set-up"


def keep(private: Path, tree: Path | None, environment: Mapping[str, str]) -> Path:
    """Move the HOME, and any worktree, of setup commands away; return their directory."""
    kept = Path(tempfile.mkdtemp(prefix="after-set-up-", dir=private))
    for path, name in ((private / KEPT_HOME, HOME), *([(tree, TREE)] if tree else [])):
        do(("chmod", "u+rwx", str(path)), private, environment)
        path.rename(kept / name)
    # cp skips files that it cannot read.
    do(("chmod", "-R", "u+rX", str(kept)), private, environment)
    return kept


def copy(what: Path, to: Path, environment: Mapping[str, str]) -> None:
    """Copy a directory to a new or empty one, without sharing files."""
    do((*COPY, str(what), str(to)), to.parent, environment)


def clear(home: Path, environment: Mapping[str, str]) -> None:
    """Remove a HOME, whatever a command made of it; UnavailableError if that fails."""
    with suppress(OSError):
        home.rmdir()
    if not os.path.lexists(home):
        return
    remove = ("rm", "-rf", str(home))
    # A shutdown must not leave files of a command behind.
    with defer_shutdown():
        try:
            do(remove, home.parent, environment)
        except UnavailableError:
            # An agent may have closed the directory around it, and left a link here: chmod follows
            # a link that it is given, and find does not.
            do(("chmod", "u+rwx", str(home.parent)), Path("/"), environment)
            opened = ("-type", "d", "-exec", "chmod", "u+rwx", "{}", ";")
            do(("find", str(home), *opened), home.parent, environment)
            do(remove, home.parent, environment)


def do(argv: tuple[str, ...], directory: Path, environment: Mapping[str, str]) -> str:
    """Run a program on a command's files; return its output, or raise UnavailableError."""
    given = {"PATH": environment.get("PATH", os.defpath), "LC_ALL": "C"}
    ended = run(Command(argv, directory, given, COPY_TIMEOUT))
    if ended.stopped_by or ended.exit_code:
        lines = ended.text.strip().splitlines()
        why = "it has too many files" if ended.stopped_by or not lines else lines[-1]
        raise UnavailableError(
            f"The files of a command could not be created: {why}; check that disk."
        )
    return ended.text


def _is_empty(home: Path) -> bool:
    return not any(os.scandir(home))
