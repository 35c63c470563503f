"""Find the files outside the system directories that programs of the PATH need to start."""

import os
import pwd
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from mulligan.sandbox.bubblewrap import SYSTEM
from mulligan.sandbox.supervisor import candidate_paths
from mulligan.sandbox.version_managers import VARIABLES, manager_variables

PROGRAM_DIRECTORIES = frozenset({"bin", "sbin"})

SHIMS = "shims"

SHIM_VERSIONS = ("versions", "installs")
"""Where the directory around shims has what they start: pyenv, rbenv; asdf, mise."""

MANAGER_MARKS = ("libexec/*env", "asdf.sh")
"""Programs of pyenv, rbenv and asdf, which are installed as work trees of git."""

OPT = Path("/opt")
"""/opt/NAME is one package (FHS 3.0, 3.13)."""

CELLAR = "Cellar"
HOMEBREW_PARTS = (
    *("Cellar", "Caskroom", "Frameworks", "bin", "sbin", "lib", "libexec", "opt", "share"),
    *("include", "etc/openssl@3", "etc/ca-certificates"),
)
"""What Homebrew's programs start from; `var` has the data of services, `etc` their settings."""

PRIVATE = (
    *("/.local/", "/.local/bin/", "/.local/lib/", "/.local/share/", "/.local/state/", "/.config/"),
    *("/.cache/", "/.ssh/", "/.gnupg/", "/.cargo/", "/.aws/", "/.docker/", "/.kube/", "/root/"),
)
"""Ends of directories, of any HOME, that are never shown as a whole."""

HOMES = Path("/home")

OF_THE_KERNEL = ("/proc/", "/sys/", "/dev/fd/")
"""No link there leads to the same file inside."""

MAX_LINKED = 400
"""Limit of the paths to show for the links of the PATH: bubblewrap takes 9,000 arguments."""

MAX_LINKS = 40
"""Limit of the links on the way to one file, as in path_resolution(7)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A kind of installation around a directory of programs, known by the file `mark`.

    In a directory that others share, such as ~/.local, only the `parts` are its own.
    """

    mark: str
    parts: tuple[str, ...] = ()


VENV = Layout("pyvenv.cfg")
LAYOUTS = (
    VENV,
    Layout("lib/python3*/os.py", ("lib/python3*",)),
    Layout("bin/node", ("lib/node_modules",)),
    # A JDK from 9 on, and an older one.
    Layout("lib/modules"),
    Layout("jre/lib/rt.jar"),
    Layout("lib/ruby/*/rubygems.rb", ("lib/ruby",)),
    # Go's GOROOT.
    Layout("pkg/tool/*/compile"),
)


def paths_of_program(
    argv: Sequence[str], environment: Mapping[str, str], hidden: Sequence[Path] = ()
) -> tuple[Path, ...]:
    """List the paths that a program reads when it starts: itself, and its absolute arguments.

    No installation is shown that contains one of the `hidden` paths.
    """
    program, *arguments = argv
    found = [Path(each) for each in arguments if each.startswith("/") and each.strip("/")]
    found = [each for each in found if os.path.lexists(each)]
    places = candidate_paths(program, environment.get("PATH", os.defpath))
    for place in [place for place in places if os.access(place, os.X_OK)][:1]:
        found += [Path(place), *_Search(hidden).of_program(place)]
    return _outside_the_system(found)


def paths_of_environment(
    environment: Mapping[str, str],
    hidden: Sequence[Path] = (),
    writable: Sequence[Path] = (),
) -> tuple[Path, ...]:
    """List the paths that the programs of the PATH need, and the directories of version managers.

    Each call follows the links again, since an upgrade may change where they lead. No link is
    followed that a command could have made, in one of the `writable` paths.
    """
    search = _Search(hidden, writable)
    managers = [Path(environment[name]) for name in VARIABLES if environment.get(name)]
    found = [each for each in managers if search.may_show(each, own=True)]
    linked = list[Path]()
    for directory in directories_on_the_path(environment):
        # The HOME may be on the PATH, and is not shown for that.
        if not os.access(directory, os.R_OK) or search.is_private(directory):
            continue
        found.append(Path(directory))
        if not search.is_writable(directory):
            found += search.of_directory(directory)
            linked += chain.from_iterable(map(search.of_link, _targets_in(directory)))
    shown = {*_outside_the_system([*found, *linked])}
    loose = [
        each for each in dict.fromkeys(linked) if each in shown and not shown & {*each.parents}
    ]
    return (*_outside_the_system(found), *loose[:MAX_LINKED])


def directories_on_the_path(environment: Mapping[str, str]) -> list[str]:
    """List the directories of the PATH; one of the system once, though /bin is /usr/bin."""
    path = environment.get("PATH", os.defpath)
    found = [each for each in path.split(":") if each.startswith("/")]
    real = [os.path.realpath(each) if is_in_system(each) else each for each in found]
    return [*dict.fromkeys(real)]


def machine_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what every command gets of Mulligan's `environment`: where programs are."""
    path = environment.get("PATH", os.defpath)
    return {"PATH": path, **variables_of_managers(environment)}


def variables_of_managers(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which version managers find their directories, wherever HOME is.

    `environment` is Mulligan's own; without HOME, that of the user counts.
    """
    known = {"HOME": str(Path("~").expanduser()), **environment}
    path = environment.get("PATH", os.defpath)

    def is_used(program: str, directory: str) -> bool:
        # Unlike Path.is_dir, this is False for another user's directory.
        return os.path.isdir(directory) and (  # noqa: PTH112
            any(Path(entry).is_relative_to(directory) for entry in path.split(":"))
            or shutil.which(program, path=path) is not None
        )

    return manager_variables(known, is_used)


def installation_of(program: Path, hidden: Sequence[Path] = ()) -> Path:
    """Return what to show for a program that is hidden: its installation, or the program alone."""
    around = program.parent.parent
    is_prefix = program.parent.name in PROGRAM_DIRECTORIES and _Search(hidden).may_show(around)
    return around if is_prefix else program


def hops(path: str, links: dict[str, str | None] | None = None) -> list[str]:
    """List the paths that a path leads through: as each link on the way spells it, then the file.

    The first is the path itself, and the last one has no link; empty if the file does not exist.
    `links` remembers the links that were read.
    """
    known = {} if links is None else links
    spelled, place, rest = [os.path.normpath(path)], "", [*reversed(path.split("/"))]
    while rest:
        name = rest.pop()
        if name in {"", "."}:
            continue
        if name == "..":
            place = place.rpartition("/")[0]
            continue
        step = f"{place}/{name}"
        target = known[step] if step in known else known.setdefault(step, _read_link(step))
        if target is None:
            place = step
            continue
        if len(spelled) > MAX_LINKS:
            return []
        place = "" if target.startswith("/") else place
        rest += reversed(target.split("/"))
        spelled.append(os.path.normpath(f"{place}/{'/'.join(reversed(rest)).lstrip('/')}"))
    return spelled if os.access(place, os.F_OK) else []


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - for each part of many paths
    except OSError:
        return None


def _homes() -> tuple[Path, ...]:
    """Return the HOMEs of Mulligan's user: of its environment, and of /etc/passwd."""
    found = {os.path.expanduser("~")}  # noqa: PTH111 - as Path.expanduser, without its error
    with suppress(KeyError):
        found.add(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(Path(os.path.realpath(each)) for each in sorted(found))


@dataclass(frozen=True)
class _Search:
    """One search; `links` has each link that it read, and `prefixes` each one it has yielded."""

    hidden: Sequence[Path]
    writable: Sequence[Path] = ()
    homes: tuple[Path, ...] = field(default_factory=_homes)
    links: dict[str, str | None] = field(default_factory=dict[str, str | None])
    prefixes: set[Path] = field(default_factory=set[Path])

    def of_program(self, program: str) -> Iterator[Path]:
        """Yield the installations of a program, and the paths that its links lead through."""
        for spelled in hops(program, self.links):
            yield from self._installations_of(Path(spelled))
            yield Path(spelled)

    def of_directory(self, directory: str) -> Iterator[Path]:
        """Yield the installations that a directory of programs belongs to."""
        for spelled in hops(directory, self.links):
            yield from self._installations_of(Path(spelled, "program"))

    def of_link(self, target: str) -> Iterator[Path]:
        """Yield the paths of the program that a link spells; none if it is no program."""
        spelled = hops(target, self.links)
        if not spelled or all(map(is_in_system, spelled)) or any(map(self._is_foreign, spelled)):
            return
        if os.path.isfile(spelled[-1]) and os.access(spelled[-1], os.X_OK):  # noqa: PTH113 - many
            yield from self.of_program(target) if not self._is_hidden(Path(spelled[-1])) else ()

    def _installations_of(self, program: Path) -> Iterator[Path]:
        directory, root = program.parent, program.parent.parent
        if directory.name in PROGRAM_DIRECTORIES:
            yield from self._prefix(root)
        if directory.name == SHIMS and any((root / each).is_dir() for each in SHIM_VERSIONS):
            is_manager = any(any(root.glob(mark)) for mark in MANAGER_MARKS)
            yield from [root] if self.may_show(root, own=is_manager) else ()
        modules = [each for each in program.parents if each.name == "node_modules"]
        packages = [each for each in program.parents if each.parent == OPT]
        for place in (*modules[-1:], *packages):
            yield from [place] if self.may_show(place, within=program) else ()
        for cellar in (each for each in program.parents if each.name == CELLAR):
            parts = (cellar.parent / part for part in HOMEBREW_PARTS)
            yield from (each for each in parts if self.may_show(each, own=True))

    def _prefix(self, root: Path) -> Iterator[Path]:
        """Yield the installation in a prefix: all of it, or its own parts."""
        if root in self.prefixes or is_in_system(str(root)):
            return
        self.prefixes.add(root)
        layouts = [each for each in LAYOUTS if any(root.glob(each.mark))]
        if layouts and self.may_show(root):
            yield root
        elif layouts:
            parts = chain.from_iterable(root.glob(each) for kind in layouts for each in kind.parts)
            yield from (each for each in parts if self.may_show(each))
        if VENV in layouts:
            # The Python that made it has the standard library.
            for python in (str(root / "bin" / "python"), *_python_of(root)):
                for spelled in hops(python, self.links)[1:]:
                    yield from self._installations_of(Path(spelled))
                    yield Path(spelled)

    def may_show(self, directory: Path, *, own: bool = False, within: Path | None = None) -> bool:
        """Return whether a directory may be shown as a whole.

        It must not contain HOME or what is hidden. It must not be a work tree either, or have one
        around the file `within` it, unless it is a version manager's `own`.
        """
        real = Path(os.path.realpath(directory))
        around = (
            (each for each in within.parents if each.is_relative_to(directory)) if within else ()
        )
        return (
            real.is_dir()
            and not self.is_private(str(real))
            and not f"{real}/".endswith(PRIVATE)
            and real.parent != HOMES
            and (own or not any((each / ".git").exists() for each in (real, *around)))
            and not self._is_hidden(real)
        )

    def is_private(self, directory: str) -> bool:
        """Return whether a directory contains a HOME of Mulligan's user, or is in a hidden one."""
        real = Path(os.path.realpath(directory))
        return any(home.is_relative_to(real) for home in self.homes) or any(
            real.is_relative_to(each) for each in self.hidden
        )

    def is_writable(self, path: str) -> bool:
        """Return whether commands can replace a path."""
        return any(Path(path).is_relative_to(each) for each in self.writable)

    def _is_foreign(self, path: str) -> bool:
        """Return whether commands can replace a path, or the kernel makes it for each process."""
        return path.startswith(OF_THE_KERNEL) or self.is_writable(path)

    def _is_hidden(self, real: Path) -> bool:
        """Return whether a path is in a hidden one, or contains it."""
        return any(real.is_relative_to(each) or each.is_relative_to(real) for each in self.hidden)


def _python_of(venv: Path) -> Iterator[str]:
    """Yield the Python that made a virtual environment, as pyvenv.cfg names it (PEP 405)."""
    with suppress(OSError):
        for line in (venv / VENV.mark).read_text(errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home" and value.strip().startswith("/"):
                yield f"{value.strip()}/python3"


def _outside_the_system(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(each for each in dict.fromkeys(paths) if not is_in_system(str(each)))


BELOW_THEM = tuple(f"{path}/" for path in SYSTEM)


def is_in_system(path: str) -> bool:
    """Return whether every sandbox has a path."""
    return path.startswith(BELOW_THEM) or path in SYSTEM


def _targets_in(directory: str) -> Iterator[str]:
    """List the targets of a directory's links that lead out of it."""
    real = os.path.realpath(directory)
    try:
        with os.scandir(directory) as entries:
            targets = {os.readlink(each.path) for each in entries if each.is_symlink()}  # noqa: PTH115
    except OSError:
        return
    # A directory that is a link itself is shown as a directory, at both paths.
    places = (real,) if is_in_system(real) else tuple(dict.fromkeys((real, directory)))
    for target in sorted(each for each in targets if "/" in each):
        yield from [target] if target[0] == "/" else [f"{place}/{target}" for place in places]
