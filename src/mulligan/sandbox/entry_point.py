"""Inside a sandbox: switch to the sandbox's user, and forward a port to the proxy's socket.

Run as `python -I -S entry_point.py PROBLEM_FD USER PROCESSES DIRECTORY SOCKET PORT PROGRAM ARG…`,
with the standard library only.

USER is the uid and gid to switch to. SOCKET is where the port on loopback leads. Each is `-` for
none. PROCESSES is the limit of that user's processes and threads. DIRECTORY may be closed to others
than USER.

It replaces itself with the program, so that the program's exit status is its own. A separate
process stays to copy, and ends with the sandbox. If the program cannot be started, the errno is
written to PROBLEM_FD, which the program never inherits.
"""

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    # The same functions: importing `signal` and `socket` takes longer than all the rest.
    import _signal as signal

LOOPBACK = "127.0.0.1"
BACKLOG = 128
CHUNK = 65536
SPARE_PROCESSES = 64
IGNORED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""The program receives these signals; the forwarder must deliver its last output."""
RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these from its start; a program expects the default."""


def listen(port: int) -> _socket.socket:
    """Listen on a port, before any client can connect."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind((LOOPBACK, port))
    listener.listen(BACKLOG)
    return listener


def forward_connections(taken: int, proxy_socket: str) -> None:
    """Connect each connection to the socket; never return."""
    import socket  # noqa: PLC0415 - the program need not wait for these
    from threading import Thread  # noqa: PLC0415 - likewise

    listener = socket.socket(fileno=taken)
    while True:
        inner, _ = listener.accept()
        outer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            outer.connect(proxy_socket)
        except OSError:
            inner.close()
            continue
        for way in ((inner, outer), (outer, inner)):
            Thread(target=copy_stream, args=way, daemon=True).start()


def copy_stream(source: "socket.socket", sink: "socket.socket") -> None:
    """Copy one way until the end, and close the other side; if one side fails, both end."""
    try:
        while chunk := source.recv(CHUNK):
            sink.sendall(chunk)
        sink.shutdown(_socket.SHUT_WR)
    except OSError:
        for each in (source, sink):
            shut_down_socket(each)


def shut_down_socket(line: "socket.socket") -> None:
    """Close a connection that may be closed already."""
    try:
        line.shutdown(_socket.SHUT_RDWR)
    except OSError:
        return


def start_forwarder(listener: _socket.socket, door: str) -> None:
    """Copy in a detached process, so that the program has no unexpected child."""
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    try:
        if os.fork() == 0:
            os.setsid()
            for number in IGNORED_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(nowhere, descriptor)
            forward_connections(listener.detach(), door)
    finally:
        os._exit(0)


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
    """Switch the user, start the forwarder, and start the program."""
    trouble, user, processes, directory, door, port, *argv = sys.argv[1:]
    os.set_inheritable(int(trouble), False)  # noqa: FBT003 - it has no name
    # After the switch, the kernel no longer shows this.
    variables = environment()
    if user != "-":
        limit_processes(int(processes))
        change_user(int(user))
    if door != "-":
        listener = listen(int(port))
        start_forwarder(listener, door)
        listener.close()
    os.write(int(trouble), str(exec_program(argv, directory, variables)).encode())
    sys.exit(127)


if __name__ == "__main__":
    main()
