"""Inside a sandbox: switch to the sandbox's user, offer a port to the proxy, and enter an image.

Run as `python -I -S entry_point.py PROBLEM_FD USER PROCESSES DIRECTORY CHANNEL PORT ROOT
ENVIRONMENT FILTER PROGRAM ARG…`, with the standard library only.

USER is the uid and gid to switch to. CHANNEL is the descriptor of a socket of Mulligan, which gets
the socket that listens at PORT of loopback. ROOT is the directory that becomes the program's root:
an image. ENVIRONMENT is the descriptor of the program's variables: an image's own must not reach
the dynamic loader of this Python. FILTER is that of one more filter of system calls. Each is `-`
for none. PROCESSES is the limit of that user's processes and threads. DIRECTORY may be closed to
others than USER.

After the change of root, nothing is imported: the image may have a Python of its own.

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
NOT_FOUND, NO_DIRECTORY = 2, 20
"""ENOENT and ENOTDIR."""
DEFAULT_PATH = os.fsencode(os.defpath)


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


def environment(descriptor: str) -> dict[bytes, bytes]:
    """Return the environment as given; Python adds LC_CTYPE to os.environ (PEP 538)."""
    source = "/proc/self/environ" if descriptor == "-" else int(descriptor)
    with open(source, "rb") as given:
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


NO_CAPABILITY = ((0x20080522, 0), (0,) * 6)
"""No capability at all: header and data of capset(2), version 3."""
DROP_FROM_BOUNDING_SET, LOAD_FILTER, FILTER_MODE = 24, 22, 2
"""Options of prctl(2): PR_CAPBSET_DROP, PR_SET_SECCOMP with SECCOMP_MODE_FILTER."""
SETPCAP, SYS_CHROOT = 8, 18
"""The capabilities that bubblewrap leaves if the program keeps the user (bubblewrap.py)."""
INSTRUCTION_BYTES = 8


def enter(root: str, user: str, filtered: str) -> None:
    """Make a directory the root, without a way back; OSError if the kernel refuses.

    The filter that bubblewrap loads must allow chroot(2); the one that is loaded here refuses it.
    """
    import ctypes  # noqa: PLC0415 - only an image needs it

    library = ctypes.CDLL(None, use_errno=True)

    def require(result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    program = b""
    if filtered != "-":
        with open(int(filtered), "rb") as instructions:
            program = instructions.read()
    os.chroot(root)
    os.chdir("/")
    if user != "-":
        change_user(int(user))
    else:
        for capability in (SYS_CHROOT, SETPCAP):
            require(library.prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0))
        header, data = ((ctypes.c_uint32 * len(part))(*part) for part in NO_CAPABILITY)
        require(library.capset(header, data))
    if program:
        buffer = ctypes.create_string_buffer(program, len(program))

        class Program(ctypes.Structure):
            """The kernel's struct sock_fprog."""

            _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

        given = Program(len(program) // INSTRUCTION_BYTES, ctypes.addressof(buffer))
        require(library.prctl(LOAD_FILTER, FILTER_MODE, ctypes.byref(given), 0, 0))


def exec_program(argv: list[str], directory: str, variables: dict[bytes, bytes]) -> int:
    """Replace this process with the program in its directory; return the errno if that fails."""
    for number in RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(directory)
    except OSError as error:
        return error.errno or 0
    variables[b"PWD"] = os.fsencode(directory)
    reason = NOT_FOUND
    for place in places(os.fsencode(argv[0]), variables.get(b"PATH", DEFAULT_PATH)):
        try:
            os.execve(place, argv, variables)  # noqa: S606 - the purpose of this program
        except OSError as error:
            if error.errno not in {NOT_FOUND, NO_DIRECTORY}:
                reason = error.errno or reason
    return reason


def places(program: bytes, path: bytes) -> list[bytes]:
    """List where a program may be, as execvp(3) does; os.execvpe imports a module for that."""
    if b"/" in program:
        return [program]
    return [os.path.join(directory, program) for directory in path.split(b":")]


def main() -> None:
    """Offer the proxy, switch the user and the root, and start the program."""
    trouble, user, processes, directory, channel, port, root, given, filtered, *argv = sys.argv[1:]
    os.set_inheritable(int(trouble), False)  # noqa: FBT003 - it has no name
    # After the switch, the kernel no longer shows this.
    variables = environment(given)
    if user != "-":
        limit_processes(int(processes))
    if channel != "-":
        offer_proxy(int(port), int(channel))
    if root != "-":
        try:
            enter(root, user, filtered)
        except OSError as error:
            os.write(int(trouble), str(error.errno).encode())
            sys.exit(127)
    elif user != "-":
        change_user(int(user))
    os.write(int(trouble), str(exec_program(argv, directory, variables)).encode())
    sys.exit(127)


if __name__ == "__main__":
    main()
