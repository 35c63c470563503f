"""The only module that starts a process: limits, streaming capture, and nothing left behind."""

import contextlib
import errno
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO

from mulligan.domain.attempt import TimeLimit
from mulligan.errors import MisconfiguredError, ShutdownError, UnavailableError

KEEPER = Path(__file__).with_name("keeper.py")
SHUTDOWN = threading.Event()
"""Set once, when Mulligan is told to stop: every running command is then ended."""

TAIL_BYTES = 64 * 1024
GLANCE = 0.2


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run. `environment` is all it gets; output beyond `max_log_bytes` is dropped.

    The tail of the output is kept whatever its size. `stall` is the longest silence allowed.
    `pass_fds` are descriptors it inherits.
    """

    argv: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    timeout: timedelta
    stall: timedelta | None = None
    stdin: bytes = b""
    log: Path | None = None
    max_log_bytes: int = 1024**3
    grace: timedelta = timedelta(seconds=5)
    pass_fds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended; `exit_code` is negative for a signal, as in subprocess."""

    exit_code: int
    duration: timedelta
    tail: bytes
    output_bytes: int
    stopped_by: TimeLimit | None = None

    @property
    def text(self) -> str:
        """Give the end of the output as text; bytes that are not UTF-8 are replaced."""
        return self.tail.decode(errors="replace")


def run(command: Command) -> Finished:
    """Run a command until it and everything it started has ended.

    Raises MisconfiguredError when the program cannot be started, ShutdownError when Mulligan was
    told to stop meanwhile.
    """
    return _Run(command).finish()


@dataclass(slots=True)
class _Run:
    """One command under way: its pipes, its clock, what it printed."""

    command: Command
    started: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    asked: float | None = None
    tail: bytearray = field(default_factory=bytearray)
    size: int = 0
    stopped_by: TimeLimit | None = None

    def finish(self) -> Finished:
        control_read, control_write = os.pipe()
        status_read, status_write = os.pipe()
        try:
            child = self._start(control_read, status_write)
        except BaseException:
            _close(control_write, status_read)
            raise
        finally:
            _close(control_read, status_write)
        try:
            with self._log() as log:
                self._follow(child, log, control_write)
            said = os.read(status_read, 100).decode()
        finally:
            _close(control_write, status_read)
            for stream in (child.stdin, child.stdout):
                if stream:
                    with contextlib.suppress(OSError):
                        stream.close()
            child.wait()
        if SHUTDOWN.is_set() and self.asked is not None and self.stopped_by is None:
            message = "Mulligan was told to stop."
            raise ShutdownError(message)
        return self._ended(said)

    def _start(self, control: int, status: int) -> subprocess.Popen[bytes]:
        keeper = [sys.executable, "-I", "-S", str(KEEPER), str(control), str(status)]
        try:
            return subprocess.Popen(
                [*keeper, *self.command.argv],
                cwd=self.command.directory,
                env=dict(self.command.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
                pass_fds=(control, status, *self.command.pass_fds),
            )
        except OSError as error:
            message = (
                f"{self.command.argv[0]} cannot be started in {self.command.directory}: {error}"
            )
            raise UnavailableError(message) from error

    def _log(self) -> contextlib.AbstractContextManager[IO[bytes] | None]:
        if self.command.log is None:
            return contextlib.nullcontext()
        self.command.log.parent.mkdir(parents=True, exist_ok=True)
        return self.command.log.open("wb", buffering=0)

    def _follow(self, child: subprocess.Popen[bytes], log: IO[bytes] | None, control: int) -> None:
        assert child.stdin and child.stdout  # noqa: S101, PT018 - both were asked for above
        left = memoryview(self.command.stdin)
        os.set_blocking(child.stdin.fileno(), False)
        os.set_blocking(child.stdout.fileno(), False)
        with selectors.DefaultSelector() as waiting:
            waiting.register(child.stdout, selectors.EVENT_READ)
            waiting.register(child.stdin, selectors.EVENT_WRITE)
            while waiting.get_map():
                ready = waiting.select(GLANCE)
                for key, _ in ready:
                    if key.fileobj is child.stdout:
                        if not self._take(child.stdout, log):
                            waiting.unregister(child.stdout)
                    else:
                        left = _feed(child.stdin, left)
                        if not left:
                            waiting.unregister(child.stdin)
                            child.stdin.close()
                self._keep_time(control)
                # A descendant that escaped the keeper may hold the pipe open for ever.
                if not ready and child.poll() is not None:
                    return

    def _take(self, stream: IO[bytes], log: IO[bytes] | None) -> bool:
        chunk = stream.read(TAIL_BYTES)
        if not chunk:
            return chunk is None
        self.heard = time.monotonic()
        if log and self.size < self.command.max_log_bytes:
            log.write(chunk[: self.command.max_log_bytes - self.size])
        self.size += len(chunk)
        self.tail += chunk
        del self.tail[:-TAIL_BYTES]
        return True

    def _keep_time(self, control: int) -> None:
        now = time.monotonic()
        if self.asked is not None:
            if now - self.asked > self.command.grace.total_seconds():
                _say(control, b"K")
            return
        if now - self.started > self.command.timeout.total_seconds():
            self.stopped_by = TimeLimit.TIMEOUT
        elif self.command.stall and now - self.heard > self.command.stall.total_seconds():
            self.stopped_by = TimeLimit.STALL_TIMEOUT
        if self.stopped_by or SHUTDOWN.is_set():
            self.asked = now
            _say(control, b"T")

    def _ended(self, said: str) -> Finished:
        word, _, number = (said.splitlines() or [""])[0].partition(" ")
        if word == "error":
            program = self.command.argv[0]
            why = os.strerror(int(number)) if int(number) != errno.ENOENT else "it is not there"
            message = (
                f"The program {program!r} cannot be started: {why}; install it or mend its path."
            )
            raise MisconfiguredError(message)
        # The keeper itself was killed: so was everything that it kept.
        code = {"exit": 1, "signal": -1}.get(word, 0) * int(number or 0) if word else -9
        duration = timedelta(seconds=time.monotonic() - self.started)
        return Finished(code, duration, bytes(self.tail), self.size, self.stopped_by)


def _feed(stream: IO[bytes], left: memoryview) -> memoryview:
    """Write what the pipe takes; give the rest, nothing where the reader has gone."""
    try:
        return left[os.write(stream.fileno(), left[:65536]) :] if left else left
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return memoryview(b"")


def _say(control: int, word: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(control, word)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
