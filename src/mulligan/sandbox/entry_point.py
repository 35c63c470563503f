"""Inside a sandbox: become the user of the sandbox, and lead a port to the socket that leads out.

Run as `python -I -S entry_point.py TROUBLE_FD USER PROCESSES DIRECTORY SOCKET PORT PROGRAM ARG…`,
with the standard library only. USER is the number of the user and the group to become, and SOCKET
what the port of loopback leads to; each is `-` for none. PROCESSES is how many processes and
threads that user may have. DIRECTORY may be closed to others than USER. It turns into the program,
so that how that ends is how this ends; a process of its own stays behind and copies.
It dies with the sandbox. Where the program cannot be started, the number of the error is written to
TROUBLE_FD, which the program never has.
"""

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    # The same functions: what `signal` and `socket` import takes longer than all the rest.
    import _signal as signal

LOOPBACK = "127.0.0.1"
BACKLOG = 128
CHUNK = 65536
SPARE_PROCESSES = 64
IGNORED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Who is asked to end is the program; what it still has to say goes through here."""
RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores from its start on, and a program does not expect to be ignored."""


def listen(port: int) -> _socket.socket:
    """Take connections at a port, before there is anybody to make one."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind((LOOPBACK, port))
    listener.listen(BACKLOG)
    return listener


def forward_connections(taken: int, proxy_socket: str) -> None:
    """Join each connection with a new one to the socket; never return."""
    import socket  # noqa: PLC0415 - the program need not wait for these
    from threading import Thread  # noqa: PLC0415 - as above

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
    """Copy one way until the end, which is passed on; where one side breaks off, both end."""
    try:
        while chunk := source.recv(CHUNK):
            sink.sendall(chunk)
        sink.shutdown(_socket.SHUT_WR)
    except OSError:
        for each in (source, sink):
            shut_down_socket(each)


def shut_down_socket(line: "socket.socket") -> None:
    """End a connection that may have ended."""
    try:
        line.shutdown(_socket.SHUT_RDWR)
    except OSError:
        return


def start_forwarder(listener: _socket.socket, door: str) -> None:
    """Copy in a process that is nobody's child, so that the program finds none it did not start."""
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
    """Give the environment as it was given; to os.environ Python adds LC_CTYPE (PEP 538)."""
    with open("/proc/self/environ", "rb") as given:
        variables = (entry.partition(b"=") for entry in given.read().split(b"\0") if entry)
        return {name: value for name, _, value in variables}


def change_user(user: int) -> None:
    """Become another user in all respects, without the right to do so again."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def limit_processes(most: int) -> None:
    """Have the kernel refuse further processes and threads of the user, in this namespace alone.

    A little more than the supervisor allows, which then ends the command and says why.
    """
    import resource  # noqa: PLC0415 - the program of another user need not wait for it

    limit = most + SPARE_PROCESSES
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def exec_program(argv: list[str], directory: str, variables: dict[bytes, bytes]) -> int:
    """Turn into the program in its directory; an errno where that fails."""
    for number in RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(directory)
        variables[b"PWD"] = os.fsencode(directory)
        os.execvpe(argv[0], argv, variables)  # noqa: S606 - what this program is for
    except OSError as error:
        return error.errno or 0


def main() -> None:
    """Change the user, open the way out, and start the program."""
    trouble, user, processes, directory, door, port, *argv = sys.argv[1:]
    os.set_inheritable(int(trouble), False)  # noqa: FBT003 - it has no name
    # Once the user is another one, the kernel shows this no more.
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
