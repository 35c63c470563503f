"""Find what a program needs in order to start, where it lies outside the system."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mulligan.keeper import places

SYSTEM_PROGRAMS = (Path("/usr"), Path("/bin"), Path("/sbin"))


def brought(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[Path, ...]:
    """List the paths of a command that it reads: its program, absolute arguments, and the PATH."""
    program, *arguments = argv
    path = environment.get("PATH", os.defpath)
    started = (
        place for place in map(Path, places(program, path.encode())) if os.access(place, os.X_OK)
    )
    found = [Path(each) for each in arguments if each.startswith("/") and each.strip("/")]
    found = [each for each in found if os.path.lexists(each)]
    for place in started:
        found += [place, *_with_its_runtime(place)]
        break
    for directory in map(Path, path.split(":")):
        if directory.is_absolute() and os.access(directory, os.R_OK):
            found += [directory, *_homes_of(directory)]
    return tuple(dict.fromkeys(each for each in found if not _in_system(each)))


def _with_its_runtime(program: Path) -> Iterator[Path]:
    """Give where a program really lies, and what it is a part of."""
    real = Path(os.path.realpath(program))
    yield real
    yield from _homes_of(program.parent)
    yield from _homes_of(real.parent)
    package = [parent for parent in real.parents if parent.name == "node_modules"]
    yield from package[-1:]


def _homes_of(directory: Path) -> Iterator[Path]:
    """Give the installation whose programs a directory holds: Python, its venvs, Node, shims.

    It is never one that would show the home of Mulligan's user.
    """
    home = directory.parent
    if directory.name not in {"bin", "shims"} or Path("~").expanduser().is_relative_to(home):
        return
    if directory.name == "shims":
        yield home
    elif os.access(home / "pyvenv.cfg", os.R_OK):
        yield home
        real = Path(os.path.realpath(directory / "python"))
        yield from _homes_of(real.parent) if real.parent != directory else ()
    elif any(home.glob("lib/python3*/os.py")) or os.access(directory / "node", os.X_OK):
        yield home


def _in_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in SYSTEM_PROGRAMS)
