"""Inside a sandbox: switch to the sandbox's user, and offer a port that leads to the proxy.

Run as `python -I -S entry_point.py PROBLEM_FD USER PROCESSES DIRECTORY CHANNEL PORT PROGRAM ARG…`,
with the standard library only.

USER is the uid and gid to switch to. CHANNEL is the descriptor of a socket of Mulligan, which gets
the socket that listens at PORT of loopback. Each is `-` for none. PROCESSES is the limit of that
user's processes and threads. DIRECTORY may be closed to others than USER.

It replaces itself with the program, so that the program's exit status is its own. If the program
cannot be started, the errno is written to PROBLEM_FD, which the program never inherits.
"""

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # The same functions: importing `signal` takes longer than all the rest.
    import _signal as signal

LOOPBACK = "127.0.0.1"
BACKLOG = 128
SPARE_PROCESSES = 64
RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these from its start; a program expects the default."""


def offer_proxy(port: int, channel: int) -> None:
    """Listen on a port, and send Mulligan the listening socket: it accepts the connections.

    The program does not inherit the sockets. Through a Unix socket to Mulligan, it could send
    descriptors.
    """
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind((LOOPBACK, port))
    listener.listen(BACKLOG)
    sent = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, listener.fileno().to_bytes(4, sys.byteorder))
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, fileno=channel)
    line.sendmsg([b"."], [sent])
    line.close()
    listener.close()


def environment() -> dict[bytes, bytes]:
    """Return the environment as given; Python adds LC_CTYPE to os.environ (PEP 538)."""
    with open("/proc/self/environ", "rb") as given:
        variables = (entry.partition(b"=") for entry in given.read().split(b"\0") if entry)
        return {name: value for name, _, value in variables}


def change_user(user: int) -> None:
    """Switch to another user completely, without a way back."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def limit_processes(most: int) -> None:
    """Limit the user's processes and threads in this namespace, by the kernel.

    The limit is slightly above the supervisor's, which stops the command with a reason.
    """
    import resource  # noqa: PLC0415 - the program of another user need not wait for it

    limit = most + SPARE_PROCESSES
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def exec_program(argv: list[str], directory: str, variables: dict[bytes, bytes]) -> int:
    """Replace this process with the program in its directory; return the errno if that fails."""
    for number in RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(directory)
        variables[b"PWD"] = os.fsencode(directory)
        os.execvpe(argv[0], argv, variables)  # noqa: S606 - the purpose of this program
    except OSError as error:
        return error.errno or 0


def main() -> None:
    """Switch the user, offer the proxy, and start the program."""
    trouble, user, processes, directory, channel, port, *argv = sys.argv[1:]
    os.set_inheritable(int(trouble), False)  # noqa: FBT003 - it has no name
    # After the switch, the kernel no longer shows this.
    variables = environment()
    if user != "-":
        limit_processes(int(processes))
        change_user(int(user))
    if channel != "-":
        offer_proxy(int(port), int(channel))
    os.write(int(trouble), str(exec_program(argv, directory, variables)).encode())
    sys.exit(127)


if __name__ == "__main__":
    main()
