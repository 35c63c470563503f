"""Build bubblewrap's arguments from what a confined command may read and write. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mulligan.domain.host import Network
from mulligan.domain.layer import Layer

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/resolv.conf"),
    *("/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/mime.types"),
    *("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf"),
    *("/etc/crypto-policies", "/etc/alternatives", "/etc/localtime", "/etc/timezone"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/os-release"),
    *("/etc/fonts", "/etc/maven", "/etc/perl", "/etc/terminfo"),
    # Parts of /proc that control the machine; bubblewrap only covers sysrq-trigger, irq and bus.
    *("/proc/sys", "/proc/fs", "/proc/driver", "/proc/mtrr", "/proc/pressure"),
    *("/proc/dynamic_debug",),
)
"""System paths that programs need, where they exist; read-only."""

HIDDEN_PROC_PATHS = (
    *("/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/ide", "/proc/kcore", "/proc/keys"),
    *("/proc/latency_stats", "/proc/sched_debug", "/proc/slabinfo", "/proc/timer_list"),
)
"""Hidden: they control devices or show other processes, and no program needs them."""

OWN_NAMESPACES = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL"),
    # The supervisor is its parent, and lives as long as the command.
    *("--die-with-parent", "--new-session"),
)
SINGLE_USER = ("--unshare-user", "--disable-userns")
CHANGE_USER = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
"""The supervisor has made the user namespace; entry_point.py changes the user and loses these."""


BindOptions = tuple[str, ...]
"""The options of bubblewrap before a path that it binds."""
READ: BindOptions = ("--ro-bind-try",)
WRITE: BindOptions = ("--bind-try",)
EMPTY_DIRECTORY: BindOptions = ("--size", "4096", "--tmpfs")
EMPTY_FILE: BindOptions = ("--dev-bind", "/dev/null")
"""It can be opened: git and npm stop at a configuration file without permission."""


WORKTREE, HOME = Path("/mulligan/worktree"), Path("/mulligan/home")
"""The paths of worktree and HOME for commands, equal for all issues: installed programs contain
their own path."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a command may access besides the system, at the same paths as outside.

    What lies in the first of a pair of `moved` directories appears in the second one instead.

    If several name one path, hiding overrides `write`, and `write` overrides `read`; a deeper path
    overrides its parents. Paths that do not exist are skipped. With `changes_user`, the command
    starts as root of its namespaces, to become another user. `tmp_bytes` is the size of its /tmp,
    and of its shared memory. bubblewrap mounts the `layers` where their targets appear. The first
    of a pair of `unmerged` paths, which is in such a target, lies at the second one outside.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    hide: tuple[Path, ...] = ()
    hide_files: tuple[Path, ...] = ()
    network: Network = Network.NONE
    changes_user: bool = False
    tmp_bytes: int = 1024**3
    moved: tuple[tuple[Path, Path], ...] = ()
    layers: tuple[Layer, ...] = ()
    unmerged: tuple[tuple[Path, Path], ...] = ()

    def inside(self, path: Path) -> Path:
        """Return where a path of this machine appears inside."""
        for outside, target in self.moved:
            if path.is_relative_to(outside):
                return target / path.relative_to(outside)
        return path


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open descriptors: what bubblewrap reads its filter from, and writes what it did to.

    entry_point.py writes to `diagnostics` why it could not start the program. What is in one of
    `files` is there as a file.
    """

    filter: int | None = None
    status: int | None = None
    diagnostics: int | None = None
    files: tuple[tuple[Path, int], ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """Return the descriptors that bubblewrap inherits."""
        wires = (self.filter, self.status, self.diagnostics, *(wire for _, wire in self.files))
        return tuple(each for each in wires if each is not None)


def arguments(
    confined: Confinement, directory: Path, argv: Sequence[str], descriptors: Descriptors
) -> tuple[str, ...]:
    """Write what bubblewrap is started with, after its own name, to run `argv` in `directory`."""
    size = ("--perms", "1777", "--size", str(confined.tmp_bytes), "--tmpfs")
    return (
        *OWN_NAMESPACES,
        *(CHANGE_USER if confined.changes_user else SINGLE_USER),
        *(() if confined.network is Network.OPEN else ("--unshare-net",)),
        *(() if descriptors.filter is None else ("--seccomp", str(descriptors.filter))),
        *(() if descriptors.status is None else ("--json-status-fd", str(descriptors.status))),
        *("--proc", "/proc", "--dev", "/dev", *size, "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108 - the command's own
        *(*size, "/tmp", "--symlink", "../tmp", "/var/tmp", "--dir", "/run"),  # noqa: S108 - the command's own
        *_places(confined),
        *chain.from_iterable(
            ("--perms", "0644", "--ro-bind-data", str(wire), str(path))
            for path, wire in descriptors.files
        ),
        *("--remount-ro", "/", "--chdir", str(directory), "--", *argv),
    )


def _places(confined: Confinement) -> Iterator[str]:
    """Bind every path, parents first; hidden paths stay empty."""
    ways: dict[Path, BindOptions] = dict.fromkeys(map(Path, SYSTEM), READ)
    lies = dict(confined.unmerged)
    sources = {
        confined.inside(path): lies.get(path, path) for path in (*confined.read, *confined.write)
    }
    ways |= dict.fromkeys(map(confined.inside, confined.read), READ)
    layers = {confined.inside(Path(layer.target)): layer for layer in confined.layers}
    ways |= dict.fromkeys((*map(confined.inside, confined.write), *layers), WRITE)
    shown = {Path("/proc"), *ways}
    for hidden, way in ((confined.hide, EMPTY_DIRECTORY), (confined.hide_files, EMPTY_FILE)):
        ways |= {path: way for path in hidden if _is_in(path, shown)}
    placed = [path for path, way in ways.items() if way != _enclosing_bind(path, ways)]
    made = set[Path]()
    for path in sorted(placed, key=lambda path: path.parts):
        # The directories that bubblewrap makes on the way are open to root alone.
        for directory in _parents_to_create(path, ways) if confined.changes_user else ():
            if directory not in made:
                made.add(directory)
                yield from ("--perms", "0755", "--dir", str(directory))
        if path in layers:
            yield from overlay(layers[path], path)
        else:
            yield from _bind(path, ways[path], sources.get(path, path))
    for path in placed:
        if ways[path] == EMPTY_DIRECTORY:
            yield from ("--remount-ro", str(path))


def overlay(layer: Layer, path: Path) -> tuple[str, ...]:
    """Write the arguments that mount a layer at a path; bubblewrap wants the lowest first."""
    sources = chain.from_iterable(("--overlay-src", each) for each in reversed(layer.lower))
    return (*sources, "--overlay", layer.upper, layer.work, str(path))


def layered(program: str, layers: Iterable[Layer], argv: Sequence[str]) -> tuple[str, ...]:
    """Write the command that mounts layers with bubblewrap for `argv`, and confines nothing."""
    mounts = chain.from_iterable(overlay(layer, Path(layer.target)) for layer in layers)
    return (program, "--die-with-parent", "--dev-bind", "/", "/", *mounts, "--", *argv)


def _parents_to_create(path: Path, ways: Mapping[Path, BindOptions]) -> list[Path]:
    """List the parents of a path that bubblewrap creates, from the top."""
    return [
        each
        for each in reversed(path.parents)
        if each.name and each not in ways and _enclosing_bind(each, ways) in {None, EMPTY_DIRECTORY}
    ]


def _bind(path: Path, way: BindOptions, source: Path) -> BindOptions:
    return (
        (*way, str(path))
        if way in {EMPTY_DIRECTORY, EMPTY_FILE}
        else (*way, str(source), str(path))
    )


def _enclosing_bind(path: Path, ways: Mapping[Path, BindOptions]) -> BindOptions | None:
    """Return the bind options of the nearest directory that contains a path, if any."""
    return next((ways[parent] for parent in path.parents if parent in ways), None)


def _is_in(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)
