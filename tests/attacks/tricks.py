"""What untrusted code would try, by the standard library alone: prints the names of what worked.

Run as a program: names of tricks with commas, then what they are about (`Target`), as JSON. Each is
tried in a process of its own.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SECRET = b"ghs_only_for_mulligan"
"""Never written out in a command line of the tests, only in that of Mulligan's stand-in."""
MEMORY, PROCESSES, FILE = 400 * 1024**2, 80, 16 * 1024**2
PTRACE_ATTACH, NEW_USER, TIOCSTI, NOBODY = 16, 0x10000000, 0x5412, 0xFFFFFFFF
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Target:
    """Mulligan's stand-in, and what is its own; `descriptor` is a file that it has open.

    `hold` is for how many seconds a trick keeps what it took, so that a limit can notice.
    """

    pid: int
    port: int
    abstract: str
    place: str
    descriptor: int
    hold: float = 0.7

    @property
    def root(self) -> Path:
        return Path(self.place)

    def alive(self) -> bool:
        return (
            Path(f"/proc/{self.pid}/stat").exists()
            and ") T " not in Path(f"/proc/{self.pid}/stat").read_text()
        )


def every(name: str) -> bytes:
    """Read a file of all processes that can be seen but this one."""
    found = b""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found += (entry / name).read_bytes()
            except OSError:
                continue
    return found


def read_its_own_environment(_: Target) -> bool:
    return SECRET in Path("/proc/self/environ").read_bytes()


def read_the_environment_of_others(_: Target) -> bool:
    return SECRET in every("environ")


def read_the_arguments_of_others(_: Target) -> bool:
    return SECRET in every("cmdline")


def read_the_memory_of_others(target: Target) -> bool:
    spans = Path(f"/proc/{target.pid}/maps").read_text().splitlines()
    with Path(f"/proc/{target.pid}/mem").open("rb", buffering=0) as memory:
        for span in (line for line in spans if "[stack]" in line):
            start, end = (int(part, 16) for part in span.split()[0].split("-"))
            memory.seek(start)
            return SECRET in memory.read(end - start)
    return False


def trace_mulligan(target: Target) -> bool:
    return LIBC.ptrace(PTRACE_ATTACH, target.pid, 0, 0) == 0


def kill_mulligan(target: Target) -> bool:
    os.kill(target.pid, signal.SIGKILL)
    return True


def freeze_mulligan(target: Target) -> bool:
    os.kill(target.pid, signal.SIGSTOP)
    return True


def read_an_open_file(target: Target) -> bool:
    return SECRET in os.pread(target.descriptor, 100, 0)


def read_the_key_file(target: Target) -> bool:
    return SECRET in (target.root / "state" / "token").read_bytes()


def write_the_ledger(target: Target) -> bool:
    (target.root / "state" / "mulligan.db").write_text("mine")
    return True


def read_the_users_home(target: Target) -> bool:
    return SECRET in (target.root / "home" / ".netrc").read_bytes()


def link_the_key_here(target: Target) -> bool:
    os.link(target.root / "state" / "token", "hard")
    return SECRET in Path("hard").read_bytes()


def read_through_a_symbolic_link(target: Target) -> bool:
    Path("soft").unlink(missing_ok=True)
    Path("soft").symlink_to(target.root / "state" / "token")
    return SECRET in Path("soft").read_bytes()


def replace_the_git_link(_: Target) -> bool:
    Path(".git").rename("git-was-here")
    Path(".git").write_text("gitdir: /tmp/mine\n")
    return True


def look_into_another_issue(target: Target) -> bool:
    return bool((target.root / "work" / "issue-2" / "secret.txt").read_text())


def change_another_issue(target: Target) -> bool:
    (target.root / "work" / "issue-2" / "secret.txt").write_text("mine")
    return True


def change_the_mirror(target: Target) -> bool:
    (target.root / "work" / "mirror.git" / "objects" / "pack").write_text("mine")
    return True


def change_a_program(target: Target) -> bool:
    (target.root / "tools" / "helper").write_text("mine")
    return True


def talk(family: int, kind: int, address: object) -> bool:
    """Say something, and hear it back."""
    with socket.socket(family, kind) as line:
        line.settimeout(2)
        line.connect(address)  # pyright: ignore[reportArgumentType] - one of three forms
        line.send(b"hello")
        return line.recv(10) == b"hello"


def reach_a_port(target: Target) -> bool:
    return talk(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", target.port))


def send_a_datagram(target: Target) -> bool:
    return talk(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", target.port))


def reach_an_abstract_socket(target: Target) -> bool:
    return talk(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + target.abstract)


def reach_a_socket_file(target: Target) -> bool:
    return talk(socket.AF_UNIX, socket.SOCK_STREAM, f"{target.place}/state/docker.sock")


def make_a_user_namespace(_: Target) -> bool:
    return LIBC.unshare(NEW_USER) == 0


def type_into_the_terminal(_: Target) -> bool:
    """Type as the person at the terminal, in a child whose terminal it is."""
    child, _terminal = os.forkpty()
    if child == 0:
        try:
            fcntl.ioctl(0, TIOCSTI, b"x")
        except OSError as error:
            # EIO: the call was let through, and the kernel has it switched off.
            os._exit(0 if error.errno == errno.EIO else 3)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def use_the_kernels_keys(_: Target) -> bool:
    return (
        LIBC.syscall({"x86_64": 248}.get(os.uname().machine, 217), b"user", b"k", b"v", 1, -3) > 0
    )


def fill_the_memory(target: Target) -> bool:
    taken = bytearray(MEMORY)
    for place in range(0, MEMORY, 4096):
        taken[place] = 1
    time.sleep(target.hold)
    return True


def fill_files_in_memory(target: Target) -> bool:
    """Write what no process maps, and so none has among its pages; each file is small."""
    part = bytes(4 * 1024**2)
    files = [os.memfd_create("filled") for _part in range(MEMORY // len(part))]
    for file in files:
        os.write(file, part)
    time.sleep(target.hold)
    for file in files:
        os.close(file)
    return True


def share_much_memory(target: Target) -> bool:
    with mmap.mmap(-1, MEMORY) as shared:
        for place in range(0, MEMORY, 4096):
            shared[place] = 1
        time.sleep(target.hold)
    return True


def fill_detached_memory(target: Target) -> bool:
    """Fill shared memory of System V, which no process has attached afterwards."""
    LIBC.shmat.restype = ctypes.c_void_p
    part = MEMORY // 8
    made = [LIBC.shmget(0, part, 0o1600) for _part in range(8)]
    for segment in made:
        place = LIBC.shmat(segment, None, 0)
        ctypes.memset(place, 1, part)
        LIBC.shmdt(ctypes.c_void_p(place))
    time.sleep(target.hold)
    for segment in made:
        LIBC.shmctl(segment, 0, None)
    return True


def send_files_in_memory(target: Target) -> bool:
    """Fill files in memory, and leave them in sockets that nobody reads."""
    part, held = bytes(4 * 1024**2), list[socket.socket]()
    for _part in range(MEMORY // len(part)):
        file, pair = os.memfd_create("filled"), socket.socketpair()
        os.write(file, part)
        socket.send_fds(pair[0], [b"."], [file])
        os.close(file)
        held += pair
    time.sleep(target.hold)
    return True


def fill_the_temporary_directory(target: Target) -> bool:
    """Write small files to a directory in memory, and close them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        for name in range(MEMORY // 4 // 1024**2):
            Path(directory, str(name)).write_bytes(bytes(4 * 1024**2))
        time.sleep(target.hold)
    return True


def start_many_threads(target: Target) -> bool:
    done = threading.Event()
    many = [threading.Thread(target=done.wait) for _ in range(PROCESSES)]
    for each in many:
        each.start()
    time.sleep(target.hold)
    done.set()
    return True


def start_many_processes(target: Target) -> bool:
    many = [subprocess.Popen(["sleep", "5"]) for _ in range(PROCESSES)]
    time.sleep(target.hold)
    for each in many:
        each.kill()
        each.wait()
    return True


def open_many_files(target: Target) -> bool:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for _ in range(min(most, 6_000) - 50):
        os.open("/dev/null", os.O_RDONLY)
    # A child has them all open, too.
    for _ in range(30):
        if os.fork() == 0:
            break
    time.sleep(6 * target.hold)
    return True


def open_many_terminals(target: Target) -> bool:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for _ in range(1_100):
        os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    time.sleep(target.hold)
    return True


def take_requests_of_the_machine(_: Target) -> bool:
    """Take one of the requests for asynchronous input and output, which all programs share."""
    context = ctypes.c_ulong(0)
    number = {"x86_64": 206}.get(os.uname().machine, 0)
    return LIBC.syscall(number, 1, ctypes.byref(context)) == 0


def write_a_huge_file(_: Target) -> bool:
    with Path("huge").open("wb") as file:
        file.write(bytes(FILE))
    return True


def leave_an_attribute_behind(_: Target) -> bool:
    """Git does not see it: not on a directory, and not on a file whose content is the same."""
    everybody = struct.pack("<IHHIHHIHHI", 2, 1, 7, NOBODY, 4, 5, NOBODY, 32, 5, NOBODY)
    for name, value in (("user.left", b"x"), ("system.posix_acl_default", everybody)):
        try:
            os.setxattr(".", name, value)
        except OSError:
            continue
        return True
    return False


def leave_a_process_behind(target: Target) -> bool:
    line = f"sleep 0.5; touch survived; exec sleep 3.{target.pid}"
    subprocess.Popen(
        ["setsid", "sh", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return False


TRICKS: dict[str, Callable[[Target], bool]] = {
    trick.__name__: trick
    for trick in (
        read_its_own_environment,
        read_the_environment_of_others,
        read_the_arguments_of_others,
        read_the_memory_of_others,
        trace_mulligan,
        kill_mulligan,
        freeze_mulligan,
        read_an_open_file,
        read_the_key_file,
        write_the_ledger,
        read_the_users_home,
        link_the_key_here,
        read_through_a_symbolic_link,
        replace_the_git_link,
        look_into_another_issue,
        change_another_issue,
        change_the_mirror,
        change_a_program,
        reach_a_port,
        send_a_datagram,
        reach_an_abstract_socket,
        reach_a_socket_file,
        make_a_user_namespace,
        type_into_the_terminal,
        use_the_kernels_keys,
        fill_the_memory,
        fill_files_in_memory,
        share_much_memory,
        fill_detached_memory,
        send_files_in_memory,
        fill_the_temporary_directory,
        start_many_threads,
        start_many_processes,
        open_many_files,
        open_many_terminals,
        take_requests_of_the_machine,
        write_a_huge_file,
        leave_an_attribute_behind,
    )
}


LAST = ("trace_mulligan", "freeze_mulligan", "kill_mulligan")
TRICKS_IN_ORDER = [*(trick for trick in TRICKS if trick not in LAST), *LAST]
"""Whatever ends Mulligan's stand-in comes last."""


def works(trick: Callable[[Target], bool], target: Target) -> bool:
    """Try in a child, which may be killed for it."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = 0 if trick(target) else 3
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    names, about = sys.argv[1:]
    for name in names.split(","):
        if works(TRICKS.get(name, leave_a_process_behind), Target(**json.loads(about))):
            sys.stdout.write(f"{name}\n")
            sys.stdout.flush()
