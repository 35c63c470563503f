"""Build bubblewrap's arguments from what a confined command may read and write. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
)
"""System paths that programs need, where they exist; read-only."""

FROM_HOST = ("/etc/hosts", "/etc/resolv.conf")
"""The system paths that a command in an image sees: they describe the network, not the system."""

PROC = (
    *("/proc/sys", "/proc/fs", "/proc/driver", "/proc/mtrr", "/proc/pressure"),
    *("/proc/dynamic_debug",),
)
"""Parts of /proc that control the machine, read-only; bubblewrap only covers sysrq-trigger, irq and
bus."""

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
CHANGE_ROOT = ("--cap-add", "CAP_SYS_CHROOT")
"""For an image; entry_point.py loses it with the change of the user, or drops it."""
DROP_CHANGE_ROOT = ("--cap-add", "CAP_SETPCAP")


BindOptions = tuple[str, ...]
"""The options of bubblewrap before a path that it binds."""
READ: BindOptions = ("--ro-bind-try",)
WRITE: BindOptions = ("--bind-try",)
EMPTY_DIRECTORY: BindOptions = ("--size", "4096", "--tmpfs")
EMPTY_FILE: BindOptions = ("--dev-bind", "/dev/null")
"""It can be opened: git and npm stop at a configuration file without permission."""
IMAGE: BindOptions = ("--ro-bind",)
DIRECTORY: BindOptions = ("--perms", "0755", "--dir")
LINK: BindOptions = ("--symlink",)
OF_IMAGE = (IMAGE, DIRECTORY, LINK)
"""The options before an entry of an image: see ImageView."""

WORKTREE, HOME = Path("/mulligan/worktree"), Path("/mulligan/home")
"""The paths of worktree and HOME for commands, equal for all issues: installed programs contain
their own path."""

IMAGE_ROOT = Path("/mulligan/root")
"""Where bubblewrap assembles the root of a command in an image; entry_point.py enters it.

Around it is this machine's system, from which the entry point's Python starts.
"""


@dataclass(frozen=True, slots=True)
class ImageView:
    """The root of a command in an image: its entries, so that other paths can be bound between.

    The first of a pair of `shown` paths outside appears at the second one. A pair of `links` is
    the target of a link, and its path. The `directories` are new ones, around such entries.
    """

    shown: tuple[tuple[Path, Path], ...] = ()
    links: tuple[tuple[str, Path], ...] = ()
    directories: tuple[Path, ...] = ()

    @property
    def ways(self) -> dict[Path, BindOptions]:
        """Return how each entry is made."""
        return {
            **dict.fromkeys(self.directories, DIRECTORY),
            **dict.fromkeys((path for _, path in self.shown), IMAGE),
            **dict.fromkeys((path for _, path in self.links), LINK),
        }

    @property
    def sources(self) -> dict[Path, str]:
        """Return what each entry is made of."""
        return {
            **{path: str(outside) for outside, path in self.shown},
            **{path: target for target, path in self.links},
        }


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a command may access besides the system, at the same paths as outside.

    What lies in the first of a pair of `moved` directories appears in the second one instead.

    If several name one path, hiding overrides `write`, and `write` overrides `read`; a deeper path
    overrides its parents. Paths that do not exist are skipped. With `changes_user`, the command
    starts as root of its namespaces, to become another user. `tmp_bytes` is the size of its /tmp,
    and of its shared memory. bubblewrap mounts the `layers` where their targets appear. The first
    of a pair of `unmerged` paths, which is in such a target, lies at the second one outside.
    With an `image`, the system is the image's; the `starter` is what entry_point.py needs of this
    machine's, outside the image.
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
    image: ImageView | None = None
    starter: tuple[Path, ...] = ()

    @property
    def root(self) -> Path:
        """Return where bubblewrap assembles what the command sees."""
        return IMAGE_ROOT if self.image else Path("/")

    @property
    def targets(self) -> dict[Path, Path]:
        """Map each path inside at which something of this machine is bound to its path outside."""
        places = (*map(Path, FROM_HOST), *self.read, *self.write)
        return {self.inside(path): path for path in places}

    def inside(self, path: Path) -> Path:
        """Return where a path of this machine appears inside."""
        for outside, target in self.moved:
            if path.is_relative_to(outside):
                return target / path.relative_to(outside)
        return path


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open descriptors: what bubblewrap reads its filter from, and writes what it did to.

    entry_point.py writes to `diagnostics` why it could not start the program. It reads the
    `environment` of a program in an image, and the `inner` filter, which it loads. What is in one
    of `files` is there as a file.
    """

    filter: int | None = None
    status: int | None = None
    diagnostics: int | None = None
    environment: int | None = None
    inner: int | None = None
    files: tuple[tuple[Path, int], ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """Return the descriptors that bubblewrap inherits."""
        own = (self.filter, self.status, self.diagnostics, self.environment, self.inner)
        wires = (*own, *(wire for _, wire in self.files))
        return tuple(each for each in wires if each is not None)


def arguments(
    confined: Confinement, directory: Path, argv: Sequence[str], descriptors: Descriptors
) -> tuple[str, ...]:
    """Write what bubblewrap is started with, after its own name, to run `argv` in `directory`."""
    size = ("--perms", "1777", "--size", str(confined.tmp_bytes), "--tmpfs")
    at = partial(_at, confined.root)
    memory = ("/dev/shm", "/tmp")  # noqa: S108 - the command's own
    return (
        *OWN_NAMESPACES,
        *(CHANGE_USER if confined.changes_user else SINGLE_USER),
        *_change_root(confined),
        *(() if confined.network is Network.OPEN else ("--unshare-net",)),
        *(() if descriptors.filter is None else ("--seccomp", str(descriptors.filter))),
        *(() if descriptors.status is None else ("--json-status-fd", str(descriptors.status))),
        *(_starter(confined) if confined.image else ()),
        *("--proc", at("/proc"), "--dev", at("/dev"), *size, at(memory[0])),
        *("--remount-ro", at("/dev"), *size, at(memory[1])),
        # The view of an image has the link.
        *(() if confined.image else ("--symlink", "../tmp", "/var/tmp")),  # noqa: S108 - as above
        *("--dir", at("/run")),
        *_places(confined),
        *chain.from_iterable(
            ("--perms", "0644", "--ro-bind-data", str(wire), at(path))
            for path, wire in descriptors.files
        ),
        *("--remount-ro", "/", "--chdir", str(directory), "--", *argv),
    )


def _at(root: Path, path: Path | str) -> str:
    """Return the path at which bubblewrap makes what the command sees at a path."""
    return str(root / Path(path).relative_to("/"))


def _change_root(confined: Confinement) -> BindOptions:
    if confined.image is None:
        return ()
    return (*CHANGE_ROOT, *(() if confined.changes_user else DROP_CHANGE_ROOT))


def _starter(confined: Confinement) -> Iterator[str]:
    """Bind what entry_point.py starts from, and make the directory in which it finds the image."""
    made = set[Path]()
    paths = [*dict.fromkeys((*map(Path, SYSTEM), *confined.starter))]
    for path in (*paths, IMAGE_ROOT):
        for directory in reversed(path.parents[:-1]):
            if directory not in made:
                made.add(directory)
                yield from (*DIRECTORY, str(directory))
        yield from (
            (*DIRECTORY, str(path)) if path == IMAGE_ROOT else _bind(READ, str(path), str(path))
        )


def _places(confined: Confinement) -> Iterator[str]:
    """Bind every path, parents first; hidden paths stay empty."""
    view, at = confined.image, partial(_at, confined.root)
    system = (*(FROM_HOST if view else SYSTEM), *PROC)
    lies = dict(confined.unmerged)
    sources = {
        confined.inside(path): str(lies.get(path, path))
        for path in (*confined.read, *confined.write)
    }
    ways: dict[Path, BindOptions] = dict.fromkeys(map(Path, system), READ)
    ways |= dict.fromkeys(map(confined.inside, confined.read), READ)
    layers = {confined.inside(Path(layer.target)): layer for layer in confined.layers}
    ways |= dict.fromkeys((*map(confined.inside, confined.write), *layers), WRITE)
    shown = {Path("/proc"), *ways}
    for hidden, way in ((confined.hide, EMPTY_DIRECTORY), (confined.hide_files, EMPTY_FILE)):
        ways |= {path: way for path in hidden if _is_in(path, shown)}
    if view:
        ways, sources = {**view.ways, **ways}, {**view.sources, **sources}
    placed = [
        path for path, way in ways.items() if way in OF_IMAGE or way != _enclosing_bind(path, ways)
    ]
    made = set[Path]()
    for path in sorted(placed, key=lambda path: path.parts):
        # The directories that bubblewrap makes on the way are open to root alone.
        for directory in _parents_to_create(path, ways) if confined.changes_user or view else ():
            if directory not in made:
                made.add(directory)
                yield from (*DIRECTORY, at(directory))
        if path in layers:
            yield from overlay(layers[path], Path(at(path)))
        else:
            yield from _bind(ways[path], sources.get(path, str(path)), at(path))
    for path in placed:
        if ways[path] == EMPTY_DIRECTORY:
            yield from ("--remount-ro", at(path))


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
        if each.name
        and each not in ways
        and _enclosing_bind(each, ways) in {None, EMPTY_DIRECTORY, DIRECTORY}
    ]


def _bind(way: BindOptions, source: str, target: str) -> BindOptions:
    is_whole = way in {EMPTY_DIRECTORY, EMPTY_FILE, DIRECTORY}
    return (*way, target) if is_whole else (*way, source, target)


def _enclosing_bind(path: Path, ways: Mapping[Path, BindOptions]) -> BindOptions | None:
    """Return the bind options of the nearest directory that contains a path, if any."""
    return next((ways[parent] for parent in path.parents if parent in ways), None)


def _is_in(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)
