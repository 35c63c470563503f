"""The HOME of one command, and the files that setup commands left in HOME and worktree (SETUP-2).

Each command gets them as a layer below its own files, or as a private copy. Both have the paths
that worktree and HOME had for the setup commands, because installed programs contain their own
path.
"""

import os
import stat
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from mulligan.domain.attempt_times import Copies
from mulligan.domain.errors import UnavailableError
from mulligan.domain.layer import Layer
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

    `left` is what setup commands left; without it, every HOME begins empty. With `is_layered`,
    commands get it through `layers`. The time of copying is added to `copies`.
    """

    private: Path
    environment: Mapping[str, str] = field(repr=False)
    left: Path | None = None
    is_layered: bool = False
    copies: Copies = field(default_factory=Copies)

    @property
    def place(self) -> Path:
        """Return the path at which every command has its HOME."""
        return self.private / "home"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layer of a command's HOME; none if it is a copy, or empty."""
        if not (self.is_layered and self._has_files):
            return ()
        return (layer_in(self.private / "home-layer", (self._left_home,), self.place),)

    @contextmanager
    def for_set_up(self) -> Generator[Path]:
        """Yield a copy of a HOME; if the block succeeds, keep it for `keep`."""
        kept = self.private / KEPT_HOME
        clear(kept, self.environment)
        with replace(self, is_layered=False).for_command() as home:
            yield home
            home.rename(kept)

    @contextmanager
    def for_command(self) -> Generator[Path]:
        """Yield the path of a HOME with what the setup commands left, as `layers` or a copy."""
        with self._empty() as home, ExitStack() as opened:
            for layer in self.layers:
                opened.enter_context(open_layer(layer, self.environment))
            if self._has_files and not self.layers:
                self.copies.took += copy(self._left_home, home, self.environment)
            yield home

    @property
    def _left_home(self) -> Path:
        return (self.left or self.private) / HOME

    @property
    def _has_files(self) -> bool:
        return self.left is not None and not _is_empty(self._left_home)

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


# Layers.


def layer_in(place: Path, lower: Iterable[Path], target: Path) -> Layer:
    """Return a layer whose writes go to a directory of their own in `place`."""
    return Layer(tuple(map(str, lower)), str(place / "upper"), str(place / "work"), str(target))


@contextmanager
def open_layer(layer: Layer, environment: Mapping[str, str]) -> Generator[None]:
    """Create the directories of a layer, and remove what commands wrote at the end."""
    create_layer(layer, environment)
    try:
        yield
    finally:
        with suppress(UnavailableError):
            clear(Path(layer.work).parent, environment)


def create_layer(layer: Layer, environment: Mapping[str, str]) -> None:
    """Create the directories of a layer, empty except for an upper one elsewhere."""
    clear(Path(layer.work).parent, environment)
    for path in (layer.upper, layer.work, layer.target):
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
    # The merged directory has the mode of the upper one.
    Path(layer.upper).chmod(stat.S_IMODE(Path(layer.lower[0]).stat().st_mode))


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


def copy(what: Path, to: Path, environment: Mapping[str, str]) -> timedelta:
    """Copy a directory to a new or empty one, without sharing files; return how long it took."""
    began = time.monotonic()
    do((*COPY, str(what), str(to)), to.parent, environment)
    return timedelta(seconds=time.monotonic() - began)


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
