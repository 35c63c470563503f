"""Run commands in a sandbox or without one."""

import os
import platform
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import Protocol

from mulligan.domain.attempt import ResourceLimits
from mulligan.domain.errors import (
    MisconfiguredError,
    MulliganError,
    NotStartedError,
    UnavailableError,
)
from mulligan.domain.host import Network
from mulligan.domain.image import Image
from mulligan.domain.layer import Layer
from mulligan.sandbox.bubblewrap import (
    HIDDEN_PROC_PATHS,
    HOME,
    IMAGE_ROOT,
    WORKTREE,
    Confinement,
    Descriptors,
    arguments,
)
from mulligan.sandbox.client_configuration import client_configuration
from mulligan.sandbox.image_root import Kind, kinds_of, read_plain, view_of
from mulligan.sandbox.process import Command, Finished, run
from mulligan.sandbox.programs import paths_of_environment, paths_of_program
from mulligan.sandbox.seccomp import chroot_filter, filter_for
from mulligan.sandbox.user import make_usable, passwd_and_group, read_system

# The port, and its two implementations.

Watch = Callable[[], MulliganError | None]


@dataclass(frozen=True, slots=True)
class CommandAccess:
    """What one command may access besides the system, its program and the PATH.

    It may write to its `worktree` and its `home`. A sandbox shows them at the same paths for every
    issue, and then sets HOME. With a `proxy` (egress.py), the command reaches it at PROXY_PORT of
    its loopback. The `layers` are mounted first, and `owned` are the directories of files that it
    may change there. It may read `shown` with the rights that it has there: for another user, they
    stay as they are. With an `image`, the system and the program are the image's, and of the
    command's environment, nothing reaches a program outside it.
    """

    read: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    worktree: Path | None = None
    home: Path | None = None
    network: Network = Network.NONE
    proxy: int | None = None
    layers: tuple[Layer, ...] = ()
    owned: tuple[Path, ...] = ()
    image: Image | None = None


def place_in(tree: Path, layer: Layer | None) -> Path:
    """Return the directory in which commands run for a tree: the layer's target, if it has one."""
    return Path(layer.target) if layer else tree


def moved(paths: Iterable[Path], tree: Path, layer: Layer | None) -> tuple[Path, ...]:
    """Return paths with those in a tree as they are in its layer."""
    place = place_in(tree, layer)
    return tuple(
        place / path.relative_to(tree) if path.is_relative_to(tree) else path for path in paths
    )


class Sandbox(Protocol):
    """A way to run commands that are not trusted: `Bubblewrap` or `Unconfined`."""

    @property
    def name(self) -> str: ...

    def worktree_path(self, tree: Path) -> Path:
        """Return where commands find a worktree: the same path for every issue, if possible."""
        ...

    def run(self, command: Command, access: CommandAccess) -> Finished:
        """Run a command as `process.run` does; its children are confined as it is."""
        ...


@dataclass(frozen=True, slots=True)
class Unconfined:
    """Runs commands with all rights of Mulligan's user; see Bubblewrap for `watch`."""

    watch: Watch | None = None

    @property
    def name(self) -> str:
        return "off"

    def worktree_path(self, tree: Path) -> Path:
        """Return the path outside: nothing is moved."""
        return tree

    def run(self, command: Command, access: CommandAccess) -> Finished:
        """Run a command without any confinement; MisconfiguredError if it wants an image."""
        if access.image:
            raise MisconfiguredError(
                f"The policy names the image {access.image.reference}, which needs the sandbox;"
                " remove `sandbox: off` or the `image`."
            )
        return run(replace(command, watch=self.watch, places=_places(access)))


NAME = "bwrap"

PROXY_PORT = 3128
"""The proxy's port on the sandbox's own loopback, where every port is free."""

STATUS_BYTES = 4096

EXIT_CODE_KEY = b'"exit-code"'
"""bubblewrap writes this once the command was started and has ended."""

EXEC_FAILURE = "execvp "

NO_VARIABLES: Mapping[str, str] = {}
"""Those of a program outside an image: the image's would choose what it loads."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Implements Sandbox with namespaces, which the bubblewrap `program` makes.

    `common` is what every command may access. `filter` is the seccomp filter of each. No command
    sees `hidden_paths`, which may not exist yet. `watch` is polled and may return the error that
    stops the command. With a `user`, commands run as that uid, which needs root. With
    `mounts_layers`, bubblewrap mounts the layers of a command, not the supervisor.
    """

    program: str
    common: Confinement
    limits: ResourceLimits
    filter: bytes | None
    hidden_paths: tuple[Path, ...] = ()
    watch: Watch | None = None
    user: int | None = None
    mounts_layers: bool = False

    @property
    def name(self) -> str:
        return "bubblewrap" if self.filter else "bubblewrap, calls not filtered"

    def worktree_path(self, tree: Path) -> Path:  # noqa: ARG002 - it is the same for all
        return WORKTREE

    def run(self, command: Command, access: CommandAccess) -> Finished:
        """Raise MisconfiguredError if the program cannot be started inside the sandbox."""
        if self.user is not None:
            uppers = (Path(layer.upper) for layer in access.layers)
            own = (*access.write, *_own(access), *uppers, *access.owned)
            # An image must not decide which program Mulligan starts.
            outer = NO_VARIABLES if access.image else command.environment
            make_usable(own, access.read, outer)
        confined = self._confinement(command, access)
        outside, command = command.directory, _moved(command, access, confined)
        with self._open_descriptors(command, access) as descriptors:
            argv = self._with_entry_point(command, access, descriptors)
            # Before it changes the user, bubblewrap may have no access to the directory; before it
            # changes the root, there is none.
            is_late = self.user is not None or access.image
            directory = Path("/") if is_late else command.directory
            inside = arguments(confined, directory, argv, descriptors)
            ended = run(
                replace(
                    command,
                    argv=(self.program, *inside),
                    directory=outside,
                    environment=NO_VARIABLES if access.image else command.environment,
                    pass_fds=(*command.pass_fds, *descriptors.all, *_proxy(access)),
                    limits=self.limits,
                    user=self.user,
                    layers=() if self.mounts_layers else access.layers,
                    watch=self.watch,
                    places=(*self.common.write, *_places(access)),
                )
            )
            status, start_error = _read(descriptors.status), _read(descriptors.diagnostics)
        if start_error:
            raise _not_startable(command.argv[0], os.strerror(int(start_error)), access.image)
        if ended.exit_code == 1 and EXIT_CODE_KEY not in status:
            raise _not_started(command.argv[0], ended.text)
        return ended

    def _needs_entry_point(self, access: CommandAccess) -> bool:
        return bool(access.proxy is not None or self.user is not None or access.image)

    def _with_entry_point(
        self, command: Command, access: CommandAccess, descriptors: Descriptors
    ) -> Sequence[str]:
        """Return the arguments to start inside: the command, through entry_point.py if needed."""
        if not self._needs_entry_point(access):
            return command.argv
        user = "-" if self.user is None else str(self.user)
        proxy = "-" if access.proxy is None else str(access.proxy)
        root = str(IMAGE_ROOT) if access.image else "-"
        inner = ("-" if each is None else str(each) for each in _inner(descriptors))
        rest = (
            *(user, str(self.limits.processes), str(command.directory)),
            *(proxy, str(PROXY_PORT), root, *inner, *command.argv),
        )
        return (*_entry_point(), str(descriptors.diagnostics), *rest)

    def _confinement(self, command: Command, access: CommandAccess) -> Confinement:
        layers = access.layers if self.mounts_layers else ()
        confined = replace(
            self.common,
            read=(*self.common.read, *access.read, *access.shown),
            write=(*self.common.write, *access.write, *_own(access)),
            moved=tuple(_own(access).items()),
            layers=layers,
            unmerged=tuple(_unmerged(access.read, layers)),
            network=access.network,
            changes_user=self.user is not None,
        )
        if access.image:
            return self._in_image(confined, access.image)
        clients = client_configuration()
        started = (
            (command.argv, _entry_point()) if self._needs_entry_point(access) else (command.argv,)
        )
        environment, hides = command.environment, self.hidden_paths
        writable = (*self.common.write, *access.write)
        needed = (
            *chain.from_iterable(paths_of_program(argv, environment, hides) for argv in started),
            *paths_of_environment(environment, hides, writable),
        )
        shown = replace(confined, read=(*needed, *clients.readable, *confined.read))
        return self._hiding(shown, clients.secret)

    def _in_image(self, confined: Confinement, image: Image) -> Confinement:
        """Return the confinement with an image as the system."""
        targets = dict(kinds_of(confined.targets))
        targets |= dict.fromkeys(map(Path, ("/etc/passwd", "/etc/group")), Kind.FILE)
        view = view_of(image.root, targets)
        starter = paths_of_program(_entry_point(), {}, self.hidden_paths)
        shown = replace(confined, image=view, starter=starter)
        return self._hiding(shown, client_configuration().secret)

    def _hiding(self, confined: Confinement, also: Iterable[Path]) -> Confinement:
        hidden = (*self.hidden_paths, *map(Path, HIDDEN_PROC_PATHS), *also)
        existing = [path for path in hidden if os.access(path, os.F_OK)]
        return replace(
            confined,
            hide=tuple(path for path in existing if path.is_dir()),
            hide_files=tuple(path for path in existing if not path.is_dir()),
        )

    @contextmanager
    def _open_descriptors(self, command: Command, access: CommandAccess) -> Generator[Descriptors]:
        """Open the files in memory that bubblewrap reads from and writes to."""
        with ExitStack() as opened:

            def memory(name: str, content: bytes = b"") -> int:
                descriptor = os.memfd_create(name)
                opened.callback(os.close, descriptor)
                os.write(descriptor, content)
                os.lseek(descriptor, 0, os.SEEK_SET)
                return descriptor

            def filled(name: str, content: bytes | None) -> int | None:
                return None if content is None else memory(name, content)

            outer, inner = self._filters(access)
            files = self._accounts(command, access).items()
            yield Descriptors(
                filter=filled("filter", outer),
                status=memory("status"),
                diagnostics=memory("diagnostics") if self._needs_entry_point(access) else None,
                environment=memory("environment", _encoded(command)) if access.image else None,
                inner=filled("inner", inner),
                files=tuple((path, memory(path.name, content)) for path, content in files),
            )

    def _filters(self, access: CommandAccess) -> tuple[bytes | None, bytes | None]:
        """Return the filter that bubblewrap loads, and the one that entry_point.py loads."""
        if self.filter is None or access.image is None:
            return self.filter, None
        machine = platform.machine()
        return filter_for(machine, allows_chroot=True), chroot_filter(machine)

    def _accounts(self, command: Command, access: CommandAccess) -> Mapping[Path, bytes]:
        """Return the files of users and groups, with the one that the command runs as."""
        home = command.environment.get("HOME", "/")
        if access.image:
            user = os.getuid() if self.user is None else self.user
            group = os.getgid() if self.user is None else self.user
            root = access.image.root
            return passwd_and_group(home, lambda path: read_plain(root, path), (user, group))
        return {} if self.user is None else passwd_and_group(home, read_system)


def _own(access: CommandAccess) -> Mapping[Path, Path]:
    """Map a command's worktree and HOME to where they appear inside."""
    own = ((access.worktree, WORKTREE), (access.home, HOME))
    return {outside: inside for outside, inside in own if outside}


def _places(access: CommandAccess) -> tuple[Path, ...]:
    """Return where a command writes, as outside."""
    return (*access.write, *_own(access), *(Path(layer.upper) for layer in access.layers))


def _unmerged(paths: Iterable[Path], layers: Iterable[Layer]) -> Iterator[tuple[Path, Path]]:
    """Pair the paths in a layer with where they lie: bubblewrap merges it inside only."""
    for path, layer in product(paths, layers):
        if path.is_relative_to(layer.target):
            below = path.relative_to(layer.target)
            parts = [Path(part) / below for part in (layer.upper, *layer.lower)]
            yield path, next(filter(os.path.lexists, parts), path)


def _inner(descriptors: Descriptors) -> tuple[int | None, int | None]:
    return descriptors.environment, descriptors.inner


def _encoded(command: Command) -> bytes:
    """Write variables as in /proc/PID/environ; MisconfiguredError if no program can get them."""
    variables = [f"{name}={value}" for name, value in command.environment.items()]
    if any("\0" in each for each in variables):
        raise MisconfiguredError("A variable of a command contains a null byte; remove it.")
    return os.fsencode("\0".join(variables))


def _proxy(access: CommandAccess) -> tuple[int, ...]:
    return () if access.proxy is None else (access.proxy,)


def _moved(command: Command, access: CommandAccess, confined: Confinement) -> Command:
    """Return the command with the paths at which it finds its directory and HOME inside."""
    home = {"HOME": str(HOME)} if access.home else {}
    directory = confined.inside(command.directory)
    return replace(command, directory=directory, environment={**command.environment, **home})


def _entry_point() -> tuple[str, ...]:
    """Return the command that starts entry_point.py: Python without site packages."""
    script = Path(__file__).with_name("entry_point.py")
    return (str(Path(sys.executable).resolve()), "-I", "-S", str(script))


def _read(descriptor: int | None) -> bytes:
    return b"" if descriptor is None else os.pread(descriptor, STATUS_BYTES, 0)


def _not_started(program: str, output: str) -> MisconfiguredError | UnavailableError:
    last = output.strip().rpartition("\n")[2].removeprefix(f"{NAME}: ")
    if last.startswith(EXEC_FAILURE):
        return _not_startable(program, last.rpartition(": ")[2])
    return UnavailableError(f"The sandbox for {program} cannot be set up: {last}.")


def _not_startable(program: str, why: str, image: Image | None = None) -> NotStartedError:
    if image:
        return NotStartedError(
            f"The program {program!r} cannot be started in the image {image.reference}: {why};"
            " install it in the image, or fix its path."
        )
    return NotStartedError(
        f"The program {program!r} cannot be started in the sandbox: {why}; install it, fix its"
        " path, or name where it lies in sandbox.read."
    )
