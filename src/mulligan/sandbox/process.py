"""Run a command under a supervisor, with time limits and captured output; no other module does."""

import atexit
import contextlib
import errno
import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO

from mulligan.domain.attempt import ResourceLimits, TimeLimit
from mulligan.domain.errors import (
    DiskFullError,
    MisconfiguredError,
    MulliganError,
    NotStartedError,
    UnavailableError,
)
from mulligan.domain.layer import Layer
from mulligan.sandbox.cancellation import reason_to_stop
from mulligan.sandbox.disk_use import DiskUse
from mulligan.text.redact import Redaction, Redactor

LAUNCHER_CODE = (
    "import sys; sys.path.append(sys.argv.pop(1));"
    "from mulligan.sandbox import launcher; launcher.main()"
)
ISOLATED_PYTHON = (sys.executable, "-X", "utf8", "-I", "-S", "-c")
LAUNCHER = (*ISOLATED_PYTHON, LAUNCHER_CODE, str(Path(__file__).parents[2]))
LAUNCHER_ANSWER_SECONDS = 10.0
"""Time limit for the launcher to fork; after that, somebody has stopped it."""
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
    Of a full disk, the files that it wrote in its `places` are its own.
    With a `user`, it starts as root of a user namespace in which it may become that user. The
    `layers` are mounted for it alone (layers.py).
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
    layers: tuple[Layer, ...] = ()
    on_output: Callable[[bytes], TimeLimit | None] | None = None
    watch: Callable[[], MulliganError | None] | None = None
    places: tuple[Path, ...] = ()
    on_stop: Callable[[], None] | None = None


_IS_IDLE: ContextVar[bool] = ContextVar("idle", default=False)


@contextlib.contextmanager
def at_idle_priority() -> Generator[None]:
    """Run the commands that this block starts only while no other process needs the processor."""
    token = _IS_IDLE.set(True)
    try:
        yield
    finally:
        _IS_IDLE.reset(token)


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

    @property
    def last_line(self) -> str:
        """The last line of the output; empty if there is none."""
        return self.text.strip().rpartition("\n")[2]


def run(command: Command) -> Finished:
    """Run a command until it and everything it started has ended.

    Raises MisconfiguredError if the program cannot be started, UnavailableError if it cannot be
    started for now or cannot be killed, ShutdownError at a shutdown, and the reason of this
    thread's Cancellation.
    """
    if reason := reason_to_stop():
        raise reason
    began, disk = time.monotonic(), DiskUse(command.places)
    with _open(command.log) as log, contextlib.closing(_start(command)) as supervisor:
        redaction = command.redactor and command.redactor.stream()
        running = _Run(command, supervisor, log, redaction, began, disk)
        report = running.follow()
    running.blame_for_disk()
    return running.result(report)


class _Launcher:
    """The launcher process of this process (launcher.py), started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def ask(self, descriptors: Sequence[int]) -> socket.socket:
        """Ask for a supervisor that gets these descriptors; return the socket that was used."""
        with self._lock:
            requests = self._requests or self._start()
            with contextlib.suppress(ConnectionError):
                socket.send_fds(requests, [b"."], descriptors)
            return requests

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as unless_started:
            unless_started.enter_context(ours)
            self._process = subprocess.Popen(
                (*LAUNCHER, str(theirs.fileno())),
                cwd="/",
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
            unless_started.pop_all()
        self._requests = ours
        return ours

    def end(self, used: socket.socket | None = None) -> None:
        """End it, and start another for the next command; with `used`, only the one behind it."""
        with self._lock:
            if self._process and self._requests and used in {None, self._requests}:
                self._requests.close()
                self._process.kill()
                self._process.wait()
                self._process = self._requests = None

    def forget(self) -> None:
        """Forget the launcher after a fork: it belongs to the parent process."""
        self._lock = threading.Lock()
        if self._process and self._requests:
            self._requests.close()
            self._process.returncode = 0  # It cannot be waited for here.
            self._process = self._requests = None


_launcher = _Launcher()
atexit.register(_launcher.end)
os.register_at_fork(after_in_child=_launcher.forget)


@dataclass(frozen=True, slots=True)
class _Supervisor:
    """The supervisor of a command (`pidfd`), the socket to it, and the command's output."""

    pidfd: int
    control: socket.socket
    output: IO[bytes]

    def send(self, word: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self.control.send(word)

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def final_report(self) -> str:
        """Read its final report (supervisor.py); "" if it was killed before."""
        with contextlib.suppress(ConnectionError):
            return self.control.recv(4096).decode()
        return ""

    def close(self) -> None:
        """Wait for its end; once its socket closes, it kills whatever is left."""
        self.control.close()
        self.output.close()
        if not self._has_ended(SUPERVISOR_EXIT_SECONDS):
            self.signal(signal.SIGKILL)
            self._has_ended(SUPERVISOR_EXIT_SECONDS)
        os.close(self.pidfd)

    def _has_ended(self, seconds: float) -> bool:
        waiting = select.poll()
        waiting.register(self.pidfd, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))


def _start(command: Command) -> _Supervisor:
    program = command.argv[0]
    try:
        request = _request(command)
    except ValueError as error:
        raise MisconfiguredError(
            f"{program!r} cannot be started: {error}; fix the command or its variables."
        ) from error
    try:
        # A command without a sandbox can end or stop the launcher, too; then there is a new one.
        found = _ask_launcher(command, request) or _ask_launcher(command, request)
    except OSError as error:
        raise UnavailableError(
            f"{program} cannot be started in {command.directory}: {error.strerror}."
        ) from error
    if not found:
        raise UnavailableError(f"{program} cannot be started: {sys.executable} ends or hangs.")
    return found


def _request(command: Command) -> bytes:
    """Write what supervisor.py reads as its Request; ValueError if no program can get that."""
    limits, environment = command.limits, dict[str, str]()
    for name, value in command.environment.items():
        if not name or "=" in name:
            raise ValueError(f"a variable cannot have the name {name!r}")
        environment[_as_utf8(name)] = _as_utf8(value)
    request = (
        [_as_utf8(argument) for argument in command.argv],
        _as_utf8(str(command.directory)),
        environment,
        [limits.processes, limits.memory, limits.file_size] if limits else [],
        command.user,
        [list(layer) for layer in command.layers],
        command.pass_fds,
        _IS_IDLE.get(),
    )
    return json.dumps(request).encode()


def _as_utf8(text: str) -> str:
    """Decode what this system makes of a text as the launcher does, whatever the locale here."""
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")
    return encoded.decode(errors="surrogateescape")


def _ask_launcher(command: Command, request: bytes) -> _Supervisor | None:
    """Have a supervisor forked; None if nobody answers, OSError if the system cannot."""
    with contextlib.ExitStack() as unless_started:
        control, output, used = _hand_over(command, request, unless_started)
        control.settimeout(LAUNCHER_ANSWER_SECONDS)
        answer, received = b"", list[int]()
        with contextlib.suppress(TimeoutError, ConnectionError):
            answer, received, *_ = socket.recv_fds(control, 64, 1, socket.MSG_CMSG_CLOEXEC)
        if received:
            unless_started.pop_all()
            control.settimeout(None)
            return _Supervisor(received[0], control, output)
    word, _, number = answer.decode().partition(" ")
    if word == "error":
        raise OSError(int(number), os.strerror(int(number)))
    _launcher.end(used)
    return None


def _hand_over(
    command: Command, request: bytes, opened: contextlib.ExitStack
) -> tuple[socket.socket, IO[bytes], socket.socket]:
    """Send the launcher what a supervisor needs; return what answers it, and the launcher asked."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    opened.enter_context(control)
    with theirs, _in_memory(request) as text, _in_memory(command.stdin) as stdin:
        read, write = os.pipe()
        output = opened.enter_context(io.FileIO(read))
        try:
            os.set_blocking(read, False)
            given = (theirs.fileno(), text.fileno(), stdin.fileno(), write, *command.pass_fds)
            return control, output, _launcher.ask(given)
        finally:
            os.close(write)


@contextlib.contextmanager
def _in_memory(content: bytes) -> Generator[IO[bytes]]:
    """Put this into a file in memory: unlike a pipe, it can be read late, in part or never."""
    with io.FileIO(os.memfd_create("input"), "w+") as made:
        made.write(content)
        made.seek(0)
        yield made


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
    began: float
    """Before the command runs; its time limits count from `started`, when it surely does."""
    disk: DiskUse
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
            self.supervisor.signal(signal.SIGCONT)  # The command may have stopped it.
        elif self.killed and now - self.term_sent_at > SUPERVISOR_EXIT_SECONDS:
            self.supervisor.signal(signal.SIGKILL)

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
            if isinstance(self.cancelled_by, DiskFullError):
                self.disk.note_stop(self.cancelled_by)
            if self.command.on_stop:
                self.command.on_stop()
            self.supervisor.send(b"T")

    def blame_for_disk(self) -> None:
        """Make a full disk a limit of the command if it filled the disk itself."""
        error = self.cancelled_by
        if isinstance(error, DiskFullError) and self.disk.has_filled(error):
            self.cancelled_by, self.stopped_by = None, TimeLimit.DISK

    def result(self, report: str) -> Finished:
        """Turn the supervisor's final report into the result of the command."""
        word, _, rest = report.partition(" ")
        if self.cancelled_by:
            raise self.cancelled_by
        match word:
            case "exit" | "signal":
                code = int(rest) if word == "exit" else -int(rest)
            case "":
                code = -signal.SIGKILL  # The command dies with its supervisor.
            case _:
                raise self._error(word, rest)
        lasted = timedelta(seconds=time.monotonic() - self.began)
        return Finished(code, lasted, bytes(self.tail), self.size, self.stopped_by)

    def _error(self, word: str, rest: str) -> MisconfiguredError | UnavailableError:
        """Return why the command did not run, or has not ended."""
        program = self.command.argv[0]
        match word:
            case "error":
                return _not_started(program, int(rest))
            case "layers":
                why = os.strerror(int(rest))
                return UnavailableError(f"The layers of {program} cannot be mounted: {why}.")
            case "directory":
                where, why = self.command.directory, os.strerror(int(rest))
                return UnavailableError(f"{program} cannot be started in {where}: {why}.")
            case "left":
                why = f"left processes that cannot be killed ({rest}); restart the machine"
                return UnavailableError(f"{program} {why}.")
            case _:
                return UnavailableError(f"The supervisor of {program} failed: {rest}.")


def _not_started(program: str, number: int) -> MisconfiguredError | UnavailableError:
    why = os.strerror(number)
    if number in TRANSIENT_ERRNOS:
        return UnavailableError(f"{program} cannot be started for now: {why}.")
    if number == errno.ENOENT:
        why = "it was not found, or the interpreter in its first line was not"
    failed = f"The program {program!r} cannot be started: {why}"
    return NotStartedError(f"{failed}; install it or fix its path.")


def _log_error(log: str, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"The log {log} could not be written: {error.strerror}; free some disk space."
    )
