"""Run a command of Mulligan in a process that has loaded it already (world/fork_server_main.py)."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Self

STARTER = Path(__file__).with_name("fork_server_main.py")
ONE_AT_A_TIME = threading.Lock()


@dataclass
class ForkedProcess:
    """A command of Mulligan that runs; it is handled like subprocess.Popen.

    `ended` gets the exit code; the streams are pipes that can be read, or None.
    """

    pid: int
    ended: socket.socket
    stdout: IO[str] | None = None
    stderr: IO[str] | None = None
    returncode: int | None = None

    def poll(self) -> int | None:
        """Give the exit code, negative for a signal; None while it runs."""
        try:
            return self.wait(0)
        except (BlockingIOError, TimeoutError):
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; TimeoutError if that takes longer than so many seconds."""
        if self.returncode is None:
            self.ended.settimeout(timeout)
            self.returncode = int(self.ended.recv(16))
            self.ended.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read what it says until its end; one that takes longer than `timeout` is killed."""
        streams = (self.stdout, self.stderr)
        with ThreadPoolExecutor(len(streams)) as pool:
            said = [
                pool.submit(each.read) if each and not each.closed else None for each in streams
            ]
            try:
                self.wait(timeout)
            except TimeoutError:
                self.kill()
                raise
        self._close()
        out, err = (each.result() if each else "" for each in said)
        return out, err

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        self._close()

    def _close(self) -> None:
        for stream in (self.stdout, self.stderr):
            if stream:
                stream.close()


@cache
def _fork_server() -> socket.socket:
    """Start the one process of this test worker; it ends when the worker does."""
    stack = ExitStack()
    atexit.register(stack.close)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        argv = [sys.executable, str(STARTER), str(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": str(STARTER.parents[1])}
        starter = subprocess.Popen(argv, env=environment, pass_fds=[theirs.fileno()])
        stack.enter_context(starter)
    return stack.enter_context(ours)


def start_forked(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    said: int | IO[str] = subprocess.PIPE,
) -> ForkedProcess:
    """Start `mulligan` with these arguments; its output goes to pipes, or to a file."""
    with ExitStack() as theirs, Path(os.devnull).open() as nothing:
        if isinstance(said, int):
            pipes = [os.pipe() for _ in range(2)]
            for _, writing in pipes:
                theirs.callback(os.close, writing)
            streams = [os.fdopen(reading, encoding="utf-8") for reading, _ in pipes]
            into = [writing for _, writing in pipes]
        else:
            streams, into = [None, None], [said.fileno()] * 2
        process = _fork(arguments, directory, environment, "mulligan", [nothing.fileno(), *into])
    process.stdout, process.stderr = streams
    return process


def run_forked(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    program: str = "mulligan",
    said: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `mulligan` with these arguments to its end; `program` is how it was called.

    What is `said` comes on its standard input.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        into, out, err = files
        into.write(said.encode())
        into.seek(0)
        streams = [each.fileno() for each in files]
        code = _fork(arguments, directory, environment, program, streams).wait()
        out.seek(0)
        err.seek(0)
        told = out.read().decode(), err.read().decode()
    return subprocess.CompletedProcess(["mulligan", *arguments], code, *told)


def _fork(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    program: str,
    streams: Sequence[int],
) -> ForkedProcess:
    message = {
        "program": program,
        "arguments": list(arguments),
        "directory": str(directory),
        "environment": dict(environment),
        "umask": _umask(),
    }
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ONE_AT_A_TIME, theirs:
        body = json.dumps(message).encode()
        socket.send_fds(_fork_server(), [body], [*streams, theirs.fileno()])
    return ForkedProcess(int(ours.recv(16)), ours)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
