"""Ready-made commands for the shell, and a look at the processes that are really there."""

import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from mulligan.sandbox.process import Command, Finished, run
from world.fork_server import ForkedProcess

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
MULLIGAN = """
import sys
from datetime import timedelta
from pathlib import Path
from mulligan.sandbox.process import Command, run
environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
directory, limit = Path(sys.argv[2]), timedelta(minutes=1)
print(run(Command(["/bin/sh", "-c", sys.argv[1]], directory, environment, limit)).output_bytes)
"""
"""A process of its own that runs a line in a directory, so that it can be stopped and killed."""


HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)
"""Ports below the range of outgoing connections, which could take a free port first."""


def free_port() -> int:
    """Return a free port of loopback for a server that needs its number."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


def shell(
    line: str,
    directory: Path,
    *,
    timeout: float = 120,
    stall: float | None = None,
    grace: float = 5,
    stdin: bytes = b"",
) -> Command:
    """Write a command for /bin/sh; times are seconds."""
    return Command(
        argv=("/bin/sh", "-c", line),
        directory=directory,
        environment=PATH,
        timeout=timedelta(seconds=timeout),
        stall=None if stall is None else timedelta(seconds=stall),
        grace=timedelta(seconds=grace),
        stdin=stdin,
        log=directory / "command.log",
    )


def with_argv(command: Command, *argv: str) -> Command:
    """Run something else instead of the shell."""
    return replace(command, argv=argv)


LAUNCHER_PID = "ps -o ppid= -p $PPID"


def end_launcher(here: Path) -> None:
    """Kill the process that forks the supervisors; the next command starts another."""
    run(shell(f"kill -KILL $({LAUNCHER_PID})", here))


def output_of(line: str, directory: Path) -> str:
    """Run a line and give what it printed."""
    finished: Finished = run(shell(line, directory))
    assert finished.exit_code == 0, finished
    return finished.text.strip()


def processes_in(directory: Path) -> list[str]:
    """List the processes that work in a directory, by pid and command line; zombies do not."""
    found = list[str]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").readlink() == directory:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append(f"{entry.name} {line.decode(errors='replace')}")
            except OSError:
                continue
    return found


def wait_until(true: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for something to become true; fail where it does not."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not become true"
        time.sleep(0.01)


def said_until(daemon: ForkedProcess, words: str) -> str:
    """Read what a process says on standard error, up to the line with these words."""
    assert daemon.stderr
    said = ""
    while words not in said:
        line = daemon.stderr.readline()
        assert line, said
        said += line
    return said
