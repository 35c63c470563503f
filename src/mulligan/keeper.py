"""Its own process: start a command, and see to it that nothing the command started outlives it.

Run as `python -I -S keeper.py CONTROL_FD STATUS_FD PROGRAM ARG…`, with the standard library only.
It is a child subreaper, so that whatever a command detaches (`setsid`, double fork) comes back to
it. The parent writes `T` to ask everything to end and `K` to kill it; when the parent dies, even
by SIGKILL, the control pipe closes and everything is killed. One line on the status pipe says how
the command ended: `exit N`, `signal N` or `error ERRNO`.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
FAREWELL_SECONDS = 0.5


def descendants() -> list[int]:
    """List every living process below this one, from /proc."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                # The second field, the program's name, may hold spaces and brackets.
                state, parent = stat.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    parents[int(name)] = int(parent)
    below, found = {os.getpid()}, list[int]()
    while new := [pid for pid, parent in parents.items() if parent in below and pid not in below]:
        below.update(new)
        found.extend(new)
    return found


def signal_all(number: int) -> None:
    """Send a signal to every descendant."""
    for pid in descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reap(main: int) -> int | None:
    """Collect whatever has ended; give the main command's wait status when it is among it."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == main:
                status = ended
    return status


def sweep(main: int, *, politely: bool) -> int | None:
    """End everything that is left: TERM and a moment where polite, then KILL until none lives."""
    status = reap(main)
    if politely and descendants():
        signal_all(signal.SIGTERM)
        patience = time.monotonic() + FAREWELL_SECONDS
        while descendants() and time.monotonic() < patience:
            time.sleep(0.01)
            status = reap(main) if status is None else status
    while descendants():
        signal_all(signal.SIGKILL)
        time.sleep(0.002)
        late = reap(main)
        status = late if status is None else status
    late = reap(main)
    return late if status is None else status


def start(argv: list[str], status_fd: int) -> int:
    """Fork the command into its own session; it dies with this process."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(status_fd, f"error {error.errno}\n".encode())
    finally:
        os._exit(127)


def watch(main: int, control_fd: int, ended_fd: int) -> int | None:
    """Wait for the command's end or the parent's word; give the wait status once it is known."""
    while True:
        ready, _, _ = select.select([control_fd, ended_fd], [], [])
        if ended_fd in ready:
            os.read(ended_fd, 4096)
            status = reap(main)
            if status is not None:
                return status
        if control_fd in ready:
            word = os.read(control_fd, 1)
            if word == b"T":
                signal_all(signal.SIGTERM)
            else:
                return sweep(main, politely=False)


def main() -> None:
    """Keep one command from its start to the end of the last process it left behind."""
    control_fd, status_fd = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(control_fd, False)
    os.set_inheritable(status_fd, False)
    ended_fd, wakeup_fd = os.pipe()
    os.set_blocking(wakeup_fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)
    pid = start(sys.argv[3:], status_fd)
    for stream in (0, 1, 2):
        os.close(stream)
    status = watch(pid, control_fd, ended_fd)
    late = sweep(pid, politely=True)
    status = late if status is None else status
    code = os.waitstatus_to_exitcode(status) if status is not None else -signal.SIGKILL
    said = f"exit {code}\n" if code >= 0 else f"signal {-code}\n"
    with contextlib.suppress(OSError):
        os.write(status_fd, said.encode())


if __name__ == "__main__":
    main()
