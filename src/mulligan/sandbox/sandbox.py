"""Run a command with what it needs and nothing else."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mulligan.domain.bounds import Bounds
from mulligan.errors import MisconfiguredError, UnavailableError
from mulligan.process import Command, Finished, run
from mulligan.sandbox.confinement import Confinement, Network, Wires, arguments
from mulligan.sandbox.programs import brought

NAME = "bwrap"
STATUS_BYTES = 4096
STARTED = b'"exit-code"'
"""What bubblewrap writes once the command itself was started and has ended."""
NOT_THERE = "execvp "


@dataclass(frozen=True, slots=True)
class Reach:
    """What one command needs besides the system, its program and the PATH."""

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    network: Network = Network.NONE


class Sandbox(Protocol):
    """A way to run what is not trusted: `Bubblewrap`, or not at all confined."""

    @property
    def name(self) -> str: ...

    def run(self, command: Command, reach: Reach) -> Finished:
        """Run a command as `process.run` does; what it starts cannot get further either."""
        ...


class Unconfined:
    """Runs commands with all the rights of Mulligan's own user."""

    name = "off"

    def run(self, command: Command, reach: Reach) -> Finished:  # noqa: ARG002 - it has every reach
        """Run a command without any confinement."""
        return run(command)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Runs commands in namespaces of their own, at `program`'s hands.

    `common` is what every command has; `filter` is loaded into each, and `hidden`, directories and
    files that may be made later, is seen by none.
    """

    program: str
    common: Confinement
    bounds: Bounds
    filter: bytes | None
    hidden: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return "bubblewrap" if self.filter else "bubblewrap, calls not filtered"

    def run(self, command: Command, reach: Reach) -> Finished:
        """Run a command confined; MisconfiguredError where its program is not in the sandbox."""
        there = [path for path in self.hidden if os.access(path, os.F_OK)]
        confined = replace(
            self.common,
            hide=tuple(path for path in there if path.is_dir()),
            hide_files=tuple(path for path in there if not path.is_dir()),
            read=(*brought(command.argv, command.environment), *self.common.read, *reach.read),
            write=(*self.common.write, *reach.write),
            network=reach.network,
        )
        with _wires(self.filter) as wires:
            inside = arguments(confined, command.directory, command.argv, wires)
            ended = run(
                replace(
                    command,
                    argv=(self.program, *inside),
                    pass_fds=(*command.pass_fds, *wires.all),
                    bounds=self.bounds,
                )
            )
            assert wires.status is not None  # noqa: S101 - it is made below
            status = os.pread(wires.status, STATUS_BYTES, 0)
        if ended.exit_code == 1 and STARTED not in status:
            raise _not_started(command.argv[0], ended.text)
        return ended


@contextmanager
def _wires(program: bytes | None) -> Generator[Wires]:
    """Open what bubblewrap reads from and writes to, in memory."""
    status = os.memfd_create("status")
    loaded = None if program is None else os.memfd_create("filter")
    try:
        if program and loaded is not None:
            os.write(loaded, program)
            os.lseek(loaded, 0, os.SEEK_SET)
        yield Wires(loaded, status)
    finally:
        for each in (status, loaded):
            if each is not None:
                os.close(each)


def _not_started(program: str, said: str) -> MisconfiguredError | UnavailableError:
    last = said.strip().rpartition("\n")[2].removeprefix(f"{NAME}: ")
    if last.startswith(NOT_THERE):
        why = last.rpartition(": ")[2]
        return MisconfiguredError(
            f"The program {program!r} cannot be started in the sandbox: {why}; install it, mend its"
            " path, or name where it lies in sandbox.read."
        )
    return UnavailableError(f"The sandbox for {program} cannot be set up: {last}.")
