"""Run a command under a supervisor, with time limits and captured output; no other module does."""

import contextlib
import errno
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO

from mulligan.domain.attempt import ResourceLimits, TimeLimit
from mulligan.domain.errors import MisconfiguredError, MulliganError, UnavailableError
from mulligan.sandbox.cancellation import reason_to_stop
from mulligan.text.redact import Redaction, Redactor

SUPERVISOR_CODE = (
    "import os, sys; sys.path.append(sys.argv.pop(1));"
    "import supervisor; supervisor.main(); os._exit(0)"
)
SUPERVISOR = (sys.executable, "-I", "-S", "-c", SUPERVISOR_CODE, str(Path(__file__).parent))
TAIL_BYTES = 64 * 1024
PIPE_BYTES = 1024 * 1024
"""The maximum size of a pipe (/proc/sys/fs/pipe-max-size)."""
POLL_SECONDS = 0.2
SUPERVISOR_EXIT_SECONDS = 10.0
"""Time limit for the supervisor to kill everything; after that, it is stuck."""
TRANSIENT_ERRNOS = {
    errno.EAGAIN,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EIO,
    errno.ETXTBSY,
}
"""Errors of a start that may succeed later."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run. It gets only `environment`; the log ends after `max_log_bytes`.

    The last 64 KiB of the output are always kept. `stall` is the longest time without output, and
    `grace` the time between SIGTERM and SIGKILL. `pass_fds` are the descriptors it inherits.
    With a `redactor`, all output is redacted first, and sizes count redacted bytes.
    `limits` apply to a sandbox only. `on_output` gets each chunk and may return a limit that stops
    the command; `watch` is polled and may return the error that stops it; `on_stop` is called once,
    when the command is told to end.
    With a `user`, it starts as root of a user namespace in which it may become that user.
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
    redactor: Redactor | None = None
    limits: ResourceLimits | None = None
    user: int | None = None
    on_output: Callable[[bytes], TimeLimit | None] | None = None
    watch: Callable[[], MulliganError | None] | None = None
    on_stop: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a command; `exit_code` is the negative signal number after a signal."""

    exit_code: int
    duration: timedelta
    tail: bytes
    output_bytes: int
    stopped_by: TimeLimit | None = None

    @property
    def text(self) -> str:
        """The end of the output as text; bytes that are not UTF-8 are replaced."""
        return self.tail.decode(errors="replace")


def run(command: Command) -> Finished:
    """Run a command until it and everything it started has ended.

    Raises MisconfiguredError if the program cannot be started, UnavailableError if it cannot be
    started for now or cannot be killed, ShutdownError at a shutdown, and the reason of this
    thread's Cancellation.
    """
    if reason := reason_to_stop():
        raise reason
    with _open(command.log) as log, contextlib.closing(_start(command)) as supervisor:
        running = _Run(command, supervisor, log, command.redactor and command.redactor.stream())
        report = running.follow()
    return running.result(report)


@dataclass(frozen=True, slots=True)
class _Supervisor:
    """The supervisor process of a command, the socket to it, and the command's output."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    output: IO[bytes]

    def send(self, word: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self.control.send(word)

    def final_report(self) -> str:
        """Read its final report (supervisor.py); "" if it was killed before."""
        with contextlib.suppress(ConnectionError):
            return self.control.recv(4096).decode()
        return ""

    def close(self) -> None:
        """Wait for its end; once its socket closes, it kills whatever is left."""
        self.control.close()
        self.output.close()
        try:
            self.process.wait(SUPERVISOR_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _start(command: Command) -> _Supervisor:
    program = command.argv[0]
    try:
        with contextlib.ExitStack() as unless_started:
            ours, theirs = map(unless_started.enter_context, socket.socketpair())
            process = _spawn(command, theirs)
            unless_started.pop_all()
            theirs.close()
    except OSError as error:
        message = f"{program} cannot be started in {command.directory}: {error.strerror}."
        raise UnavailableError(message) from error
    except ValueError as error:
        message = f"{program!r} cannot be started: {error}; fix its arguments."
        raise MisconfiguredError(message) from error
    assert process.stdout  # noqa: S101 - it is requested below
    os.set_blocking(process.stdout.fileno(), False)
    return _Supervisor(process, ours, process.stdout)


def _spawn(command: Command, control: socket.socket) -> subprocess.Popen[bytes]:
    # A file in memory, not a pipe: it can be read late, in part or never, without blocking.
    with open(os.memfd_create("stdin"), "w+b") as stdin:  # noqa: PTH123 - it has no path
        stdin.write(command.stdin)
        stdin.seek(0)
        return subprocess.Popen(
            [
                *(*SUPERVISOR, str(control.fileno()), str(command.limits or "-")),
                *(str(command.user or "-"), *command.argv),
            ],
            cwd=command.directory,
            env=dict(command.environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
            pass_fds=(control.fileno(), *command.pass_fds),
        )


def _open(log: Path | None) -> contextlib.AbstractContextManager[IO[bytes] | None]:
    if log is None:
        return contextlib.nullcontext()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("wb", buffering=0)
    except OSError as error:
        raise _log_error(str(log), error) from error


def _write(log: IO[bytes], chunk: bytes) -> None:
    left = memoryview(chunk)
    try:
        while left:
            left = left[log.write(left) :]
    except OSError as error:
        raise _log_error(log.name, error) from error


@dataclass(slots=True)
class _Run:
    """One running command: its times and its output."""

    command: Command
    supervisor: _Supervisor
    log: IO[bytes] | None
    redaction: Redaction | None
    tail: bytearray = field(default_factory=bytearray)
    size: int = 0
    started: float = field(default_factory=time.monotonic)
    last_output_at: float = field(default_factory=time.monotonic)
    term_sent_at: float | None = None
    killed: bool = False
    cancelled_by: MulliganError | None = None
    stopped_by: TimeLimit | None = None

    def follow(self) -> str:
        """Read output until the command has ended; return the supervisor's final report."""
        supervisor = self.supervisor
        with selectors.DefaultSelector() as waiting:
            waiting.register(supervisor.control, selectors.EVENT_READ)
            waiting.register(supervisor.output, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in waiting.select(POLL_SECONDS)}
                # The supervisor holds the output open too: it never ends before the final report.
                if supervisor.output.fileno() in ready:
                    self._take()
                if supervisor.control.fileno() in ready:
                    self._drain()
                    if self.redaction:
                        self._keep(self.redaction.end())
                    return supervisor.final_report()
                self._enforce_limits()

    def _take(self) -> int:
        """Read and keep a chunk of output; return its size, 0 if there is none now."""
        try:
            chunk = os.read(self.supervisor.output.fileno(), TAIL_BYTES)
        except BlockingIOError:
            return 0
        self.last_output_at = time.monotonic()
        self._keep(self.redaction.feed(chunk) if self.redaction else chunk)
        return len(chunk)

    def _keep(self, chunk: bytes) -> None:
        if self.log and self.size < self.command.max_log_bytes:
            _write(self.log, chunk[: self.command.max_log_bytes - self.size])
        self.size += len(chunk)
        self.tail += chunk
        del self.tail[:-TAIL_BYTES]
        if self.command.on_output:
            self.stopped_by = self.stopped_by or self.command.on_output(chunk)

    def _drain(self) -> None:
        """Read what is still in the pipe, and no more: an escaped process may print without end."""
        taken = 0
        while taken < PIPE_BYTES and (more := self._take()):
            taken += more

    def _enforce_limits(self) -> None:
        now = time.monotonic()
        if self.term_sent_at is None:
            self._check_limits(now)
        elif not self.killed and now - self.term_sent_at > self.command.grace.total_seconds():
            self.killed, self.term_sent_at = True, now
            self.supervisor.send(b"K")
            self.supervisor.process.send_signal(signal.SIGCONT)  # The command may have stopped it.
        elif self.killed and now - self.term_sent_at > SUPERVISOR_EXIT_SECONDS:
            self.supervisor.process.kill()

    def _check_limits(self, now: float) -> None:
        stall = self.command.stall
        if now - self.started > self.command.timeout.total_seconds():
            self.stopped_by = self.stopped_by or TimeLimit.TIMEOUT
        elif not self.stopped_by and stall and now - self.last_output_at > stall.total_seconds():
            self.stopped_by = TimeLimit.STALL_TIMEOUT
        elif not self.stopped_by:
            self.cancelled_by = reason_to_stop() or (self.command.watch and self.command.watch())
        if self.stopped_by or self.cancelled_by:
            self.term_sent_at = now
            if self.command.on_stop:
                self.command.on_stop()
            self.supervisor.send(b"T")

    def result(self, report: str) -> Finished:
        """Turn the supervisor's final report into the result of the command."""
        word, _, rest = report.partition("\n")[0].partition(" ")
        if self.cancelled_by:
            raise self.cancelled_by
        match word:
            case "exit" | "signal":
                code = int(rest) if word == "exit" else -int(rest)
            case "error":
                raise _not_started(self.command.argv[0], int(rest))
            case _:
                code = self._died_with_supervisor(word, rest)
        lasted = timedelta(seconds=time.monotonic() - self.started)
        return Finished(code, lasted, bytes(self.tail), self.size, self.stopped_by)

    def _died_with_supervisor(self, word: str, rest: str) -> int:
        """Return the signal that killed the supervisor, and so the command; else raise."""
        program, code = self.command.argv[0], self.supervisor.process.returncode
        if word:
            why = f"{program} left processes that cannot be killed ({rest}); restart the machine."
        elif code >= 0:
            *_, last = self.tail.decode(errors="replace").strip().split("\n")
            why = f"{program} cannot be run, since its keeper failed: {last}"
        else:
            return code
        raise UnavailableError(why)


def _not_started(program: str, number: int) -> MisconfiguredError | UnavailableError:
    why = os.strerror(number)
    if number in TRANSIENT_ERRNOS:
        return UnavailableError(f"{program} cannot be started for now: {why}.")
    if number == errno.ENOENT:
        why = "it was not found, or the interpreter in its first line was not"
    failed = f"The program {program!r} cannot be started: {why}"
    return MisconfiguredError(f"{failed}; install it or fix its path.")


def _log_error(log: str, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"The log {log} could not be written: {error.strerror}; free some disk space."
    )
