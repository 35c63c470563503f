"""Find what a program needs in order to start, where it lies outside the system."""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Protocol

from mulligan.domain.attempt import ResourceLimits
from mulligan.domain.errors import MisconfiguredError, MulliganError, UnavailableError
from mulligan.sandbox.bubblewrap import (
    HIDDEN_PROC_PATHS,
    PROXY_SOCKET,
    Confinement,
    Descriptors,
    Network,
    arguments,
)
from mulligan.sandbox.process import Command, Finished, run
from mulligan.sandbox.supervisor import candidate_paths
from mulligan.sandbox.user import make_usable, passwd_and_group

# The port, and its two implementations.

Watch = Callable[[], MulliganError | None]


@dataclass(frozen=True, slots=True)
class CommandAccess:
    """What one command needs besides the system, its program and the PATH.

    With a `door`, the socket of a proxy, it finds that at `PORT` of its loopback.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    network: Network = Network.NONE
    proxy_socket: Path | None = None


class Sandbox(Protocol):
    """A way to run what is not trusted: `Bubblewrap`, or not at all confined."""

    @property
    def name(self) -> str: ...

    def run(self, command: Command, reach: CommandAccess) -> Finished:
        """Run a command as `process.run` does; what it starts cannot get further either."""
        ...


@dataclass(frozen=True, slots=True)
class Unconfined:
    """Runs commands with all the rights of Mulligan's own user; see Bubblewrap for `watch`."""

    watch: Watch | None = None

    @property
    def name(self) -> str:
        return "off"

    def run(self, command: Command, reach: CommandAccess) -> Finished:  # noqa: ARG002 - it has every reach
        """Run a command without any confinement."""
        return run(replace(command, watch=self.watch))


NAME = "bwrap"

PROXY_PORT = 3128
"""Of the sandbox's own loopback, so that it is always free."""

STATUS_BYTES = 4096

EXIT_CODE_KEY = b'"exit-code"'
"""What bubblewrap writes once the command itself was started and has ended."""

EXEC_FAILURE = "execvp "


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Runs commands in namespaces of their own, at `program`'s hands.

    `common` is what every command has; `filter` is loaded into each, and `hidden`, directories and
    files that may be made later, is seen by none. What `watch` says while one runs ends it.
    With a `user`, the kernel runs commands as that one; only root can do so.
    """

    program: str
    common: Confinement
    limits: ResourceLimits
    filter: bytes | None
    hidden_paths: tuple[Path, ...] = ()
    watch: Watch | None = None
    user: int | None = None

    @property
    def name(self) -> str:
        return "bubblewrap" if self.filter else "bubblewrap, calls not filtered"

    def run(self, command: Command, reach: CommandAccess) -> Finished:
        """Run a command confined; MisconfiguredError where its program is not in the sandbox."""
        if self.user is not None:
            door = () if reach.proxy_socket is None else (reach.proxy_socket,)
            make_usable((*reach.write, *door), reach.read, command.environment)
        confined = self._confinement(command, reach)
        with self._open_descriptors(command, reach) as wires:
            argv = self._with_port_forwarder(command, reach, wires)
            # Before it is the other user, bubblewrap may be refused the directory.
            directory = command.directory if self.user is None else Path("/")
            inside = arguments(confined, directory, argv, wires)
            ended = run(
                replace(
                    command,
                    argv=(self.program, *inside),
                    pass_fds=(*command.pass_fds, *wires.all),
                    limits=self.limits,
                    user=self.user,
                    watch=self.watch,
                )
            )
            status, trouble = _read(wires.status), _read(wires.diagnostics)
        if trouble:
            raise _not_inside(command.argv[0], os.strerror(int(trouble)))
        if ended.exit_code == 1 and EXIT_CODE_KEY not in status:
            raise _not_started(command.argv[0], ended.text)
        return ended

    def _needs_port_forwarder(self, reach: CommandAccess) -> bool:
        return reach.proxy_socket is not None or self.user is not None

    def _with_port_forwarder(
        self, command: Command, reach: CommandAccess, wires: Descriptors
    ) -> Sequence[str]:
        """Give what is started inside: the command, by way of the relay where that is needed."""
        if not self._needs_port_forwarder(reach):
            return command.argv
        user = "-" if self.user is None else str(self.user)
        door = PROXY_SOCKET if reach.proxy_socket else "-"
        relayed = (user, str(command.directory), door, str(PROXY_PORT), *command.argv)
        return (*_port_forwarder(), str(wires.diagnostics), *relayed)

    def _confinement(self, command: Command, reach: CommandAccess) -> Confinement:
        hidden = (*self.hidden_paths, *map(Path, HIDDEN_PROC_PATHS))
        there = [path for path in hidden if os.access(path, os.F_OK)]
        started = (
            (command.argv, _port_forwarder())
            if self._needs_port_forwarder(reach)
            else (command.argv,)
        )
        needed = chain.from_iterable(
            paths_of_command(argv, command.environment) for argv in started
        )
        return replace(
            self.common,
            hide=tuple(path for path in there if path.is_dir()),
            hide_files=tuple(path for path in there if not path.is_dir()),
            read=(*needed, *self.common.read, *reach.read),
            write=(*self.common.write, *reach.write),
            network=reach.network,
            proxy_socket=reach.proxy_socket,
            changes_user=self.user is not None,
        )

    @contextmanager
    def _open_descriptors(self, command: Command, reach: CommandAccess) -> Generator[Descriptors]:
        """Open what bubblewrap reads from and writes to, in memory."""
        with ExitStack() as opened:

            def memory(name: str, content: bytes = b"") -> int:
                wire = os.memfd_create(name)
                opened.callback(os.close, wire)
                os.write(wire, content)
                os.lseek(wire, 0, os.SEEK_SET)
                return wire

            home = command.environment.get("HOME", "/")
            files = {} if self.user is None else passwd_and_group(home)
            yield Descriptors(
                filter=None if self.filter is None else memory("filter", self.filter),
                status=memory("status"),
                diagnostics=memory("trouble") if self._needs_port_forwarder(reach) else None,
                files=tuple((path, memory(path.name, content)) for path, content in files.items()),
            )


def _port_forwarder() -> tuple[str, ...]:
    """Give what starts the relay: Python itself, and none of the packages beside it."""
    script = Path(__file__).with_name("entry_point.py")
    return (str(Path(sys.executable).resolve()), "-I", "-S", str(script))


def _read(wire: int | None) -> bytes:
    return b"" if wire is None else os.pread(wire, STATUS_BYTES, 0)


def _not_started(program: str, said: str) -> MisconfiguredError | UnavailableError:
    last = said.strip().rpartition("\n")[2].removeprefix(f"{NAME}: ")
    if last.startswith(EXEC_FAILURE):
        return _not_inside(program, last.rpartition(": ")[2])
    return UnavailableError(f"The sandbox for {program} cannot be set up: {last}.")


def _not_inside(program: str, why: str) -> MisconfiguredError:
    return MisconfiguredError(
        f"The program {program!r} cannot be started in the sandbox: {why}; install it, mend its"
        " path, or name where it lies in sandbox.read."
    )


# What a program needs in order to start, where it lies outside the system.

SYSTEM_PROGRAMS = (Path("/usr"), Path("/bin"), Path("/sbin"))


def paths_of_command(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[Path, ...]:
    """List the paths of a command that it reads: its program, absolute arguments, and the PATH."""
    program, *arguments = argv
    path = environment.get("PATH", os.defpath)
    started = (
        place
        for place in map(Path, candidate_paths(program, path.encode()))
        if os.access(place, os.X_OK)
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
