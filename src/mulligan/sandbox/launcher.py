"""The launcher process: fork a supervisor for each command, which costs less than starting Python.

process.py starts one for each Mulligan process, with the descriptor of a socket as its argument.
Each message on that socket is one command: a byte, and the descriptors that supervisor.py expects.
The launcher ends when the socket closes, that is, with Mulligan. It uses the standard library only.
"""

import contextlib
import os
import signal
import socket
import sys

from mulligan.sandbox import supervisor

MAX_DESCRIPTORS = 253
"""The most that one message can carry (SCM_MAX_FD in unix(7))."""


def main() -> None:
    """Fork supervisors until Mulligan ends."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    # Where SIGCHLD is ignored, the kernel reaps the supervisors.
    for number in (*supervisor.IGNORED_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(
            requests, 1, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not message:
            return
        fork_supervisor(requests, descriptors)


def fork_supervisor(requests: socket.socket, descriptors: list[int]) -> None:
    """Fork one; if the system cannot, report the error to the control socket."""
    try:
        child = os.fork()
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(descriptors[0], f"error {error.errno}".encode())
    else:
        if child == 0:
            requests.close()
            supervisor.main(descriptors)
            os._exit(0)
    for descriptor in descriptors:
        os.close(descriptor)


if __name__ == "__main__":
    main()
