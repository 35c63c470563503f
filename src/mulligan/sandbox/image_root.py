"""Show the files of an image as the root of a command, without following its links.

Everything in an image may be hostile: its links could lead out of it while Mulligan or bubblewrap
works outside. So nothing of it is read or mounted through a link.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from pathlib import Path

from mulligan.domain.errors import MisconfiguredError
from mulligan.sandbox.bubblewrap import ImageView

OWN = frozenset({"proc", "dev", "sys", "run", "tmp", "mulligan"})
"""The entries of a root that a sandbox makes itself; an image's are never shown."""

MAX_ENTRIES = 2000
"""Limit of an image's entries to bind one by one: bubblewrap takes 9,000 arguments."""

MAX_FILE = 1024 * 1024

SHARED_TMP = Path("/var/tmp")  # noqa: S108 - the command's own
LINK_TO_TMP = "../tmp"


class Kind(Enum):
    """What is to be at a path of the root; `TMP` is the link to /tmp."""

    DIRECTORY = auto()
    FILE = auto()
    TMP = auto()


Tree = dict[str, "Tree | Kind"]
"""The directories on the way to paths, and the kind of each path itself."""


def view_of(root: Path, targets: Mapping[Path, Kind]) -> ImageView:
    """Return how to show an image at `root`, so that a path can be bound at each target.

    A directory of the image is bound as it is if each target in it has something of the same kind
    to be bound over. Otherwise it is made anew, with its other entries in it. A link on the way to
    a target is not shown.
    MisconfiguredError if that takes too many entries.
    """
    view = _View(root)
    view.add(Path("/"), _tree_of(targets))
    return ImageView(tuple(view.shown), tuple(view.links), tuple(view.directories))


def read_plain(root: Path, path: str) -> bytes:
    """Return a file of an image; empty if it is missing, no file, or behind a link."""
    place = root / path.lstrip("/")
    above = place.parents[: len(place.parts) - len(root.parts) - 1]
    if not (stat.S_ISREG(_kind(place)) and all(stat.S_ISDIR(_kind(each)) for each in above)):
        return b""
    with place.open("rb") as file:
        return file.read(MAX_FILE)


MAX_LINKS = 40
"""Limit of the links on the way to one file, as in path_resolution(7)."""


def has_program(root: Path, program: str, path: str) -> bool:
    """Return whether an image has a program; links lead to files of the image only."""
    places = [program] if "/" in program else [f"{each}/{program}" for each in path.split(":")]
    return any(place.startswith("/") and _is_program(_resolved(root, place)) for place in places)


def _is_program(place: Path | None) -> bool:
    found = _kind(place) if place else 0
    return stat.S_ISREG(found) and bool(found & 0o111)


def _resolved(root: Path, path: str) -> Path | None:
    """Return the file of an image that a path leads to inside; None if there is none."""
    place, rest, links = root, [*reversed(path.split("/"))], 0
    while rest:
        name = rest.pop()
        if name == "..":
            place = root if place == root else place.parent
        elif name not in {"", "."}:
            found = _kind(place / name)
            if stat.S_ISLNK(found):
                links += 1
                target = str((place / name).readlink())
                place = root if target.startswith("/") else place
                rest += reversed(target.split("/"))
            elif found:
                place /= name
            if not found or links > MAX_LINKS:
                return None
    return place


def _tree_of(targets: Mapping[Path, Kind]) -> Tree:
    tree: Tree = {SHARED_TMP.parent.name: {SHARED_TMP.name: Kind.TMP}}
    for path in sorted(targets, key=lambda path: path.parts):
        below = tree
        *directories, name = path.parts[1:] or [""]
        if not name or path.parts[1] in OWN:
            continue
        for directory in directories:
            found = below.setdefault(directory, {})
            if not isinstance(found, dict):
                break  # It is in another target.
            below = found
        else:
            below[name] = targets[path]
    return tree


class _View:
    """The entries that were found so far."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.shown = list[tuple[Path, Path]]()
        self.links = list[tuple[str, Path]]()
        self.directories = list[Path]()

    def add(self, place: Path, wanted: Tree) -> None:
        """Add the entries of a directory of the image, and what is needed on the way to targets."""
        for name in self._names(place):
            path = place / name
            if name not in wanted and not (place == Path("/") and name in OWN):
                self._add_entry(path)
        for name, below in sorted(wanted.items()):
            if isinstance(below, dict):
                self._add_directory(place / name, below)
            elif below is Kind.TMP:
                self.links.append((LINK_TO_TMP, place / name))

    def _add_directory(self, path: Path, below: Tree) -> None:
        if self._has(path, below):
            self.shown.append((self._outside(path), path))
            return
        self.directories.append(path)
        self.add(path, below)

    def _names(self, place: Path) -> list[str]:
        outside = self._outside(place)
        return sorted(each.name for each in outside.iterdir()) if self._is_directory(place) else []

    def _has(self, path: Path, below: Tree) -> bool:
        """Return whether a directory has something of the right kind at each target below it."""
        if not self._is_directory(path):
            return False
        return all(self._fits(path / name, wanted) for name, wanted in below.items())

    def _fits(self, path: Path, wanted: Tree | Kind) -> bool:
        if isinstance(wanted, dict):
            return self._has(path, wanted)
        outside = self._outside(path)
        kind = _kind(outside)
        if wanted is Kind.TMP:
            return stat.S_ISLNK(kind) and str(outside.readlink()) == LINK_TO_TMP
        return stat.S_ISDIR(kind) if wanted is Kind.DIRECTORY else stat.S_ISREG(kind)

    def _add_entry(self, path: Path) -> None:
        outside = self._outside(path)
        kind = _kind(outside)
        if stat.S_ISLNK(kind):
            self.links.append((str(outside.readlink()), path))
        elif stat.S_ISDIR(kind) or stat.S_ISREG(kind):
            self.shown.append((outside, path))
        if len(self.shown) + len(self.links) > MAX_ENTRIES:
            raise MisconfiguredError(
                f"The image has more than {MAX_ENTRIES} entries in {path.parent}, in which other"
                " paths are to be shown; name other paths in sandbox.read and sandbox.write."
            )

    def _outside(self, path: Path) -> Path:
        return self.root / path.relative_to("/")

    def _is_directory(self, path: Path) -> bool:
        """Return whether a path of the image is a directory, and each one above it."""
        places = [self._outside(each) for each in (path, *path.parents)]
        return all(stat.S_ISDIR(_kind(place)) for place in places)


def _kind(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def kinds_of(targets: Mapping[Path, Path]) -> Iterator[tuple[Path, Kind]]:
    """Yield each target whose path outside exists, with its kind."""
    for target, outside in targets.items():
        if os.path.lexists(outside):
            yield target, Kind.DIRECTORY if outside.is_dir() else Kind.FILE
