"""Its own process: start a command, and see to it that nothing the command started outlives it.

Started by process.py with WIRE_FD BOUNDS USER PROGRAM ARG…, on the standard library. It is
imported: Python would compile a file that it runs for each command, a fifth of what that costs. As
a child subreaper it has whatever a command detaches (`setsid`, double fork) come back to it. On the
wire, a socket, the parent writes `T` to ask everything to end and `K` to kill it; when the parent
dies, even by SIGKILL, the wire closes and everything is killed. One line back says how the command
ended: `exit N`, `signal N`, `error ERRNO` where it could not be started, or `left PID…` where
something cannot be killed.

BOUNDS are `-`, or the most processes, bytes of memory and bytes in a file that a sandbox may have:
PROGRAM is one then. It would die of TERM and take all in it along, so it is not sent any.

USER is `-`, or a number that the command may become: then it starts as root of a user namespace in
which there are root and USER, and below which no other can be made. Only root can give it that.
"""

import _ctypes
import errno
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # The same functions: importing enum for `signal`, and `ctypes` and `contextlib`, would double
    # the time that a command needs to start (16 ms instead of 9 ms).
    import _signal as signal

PARENT_DEATH_SIGNAL = 1
CHILD_SUBREAPER = 36
NEW_USER_NAMESPACE = 0x10000000
MAX_NAMESPACES_FILE = "/proc/sys/user/max_user_namespaces"
"""Of the user namespace of whoever writes it (namespaces(7)), not of the machine."""
ORPHAN_GRACE_SECONDS = 0.5
POLL_SECONDS = 0.25
"""How often the bounds of a sandbox are looked after."""
OOM_SCORE = "500"
"""Of 1000; the kernel picks whoever has most (oom_score_adj in proc(5))."""
KILL_SECONDS = 5.0
"""How long killing is repeated; a process that waits for a broken disk cannot be killed."""
IGNORED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""A command that signals every Python it sees must not end its keeper."""
RESET_SIGNALS = (*IGNORED_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)


class ProcessTree:
    """The command and whatever it has started."""

    def __init__(self, main: int, ended: int, bounds: list[int]) -> None:
        self.main = main
        self.ended = ended
        self.bounds = bounds
        self.status: int | None = None

    def reap(self) -> bool:
        """Collect whatever has ended; tell whether anything is left.

        A process without children has no descendants either, since orphans come back here.
        """
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.main:
                    self.status = status
        except ChildProcessError:
            return False

    def terminate(self) -> None:
        """Send everything TERM, once; a sandbox ends with what is in it."""
        for pid in descendants():
            if not (self.bounds and pid == self.main):
                send(pid, signal.SIGTERM)

    def exceeded_limit(self) -> str:
        """Say which bound is passed; nothing where none is."""
        if not self.bounds:
            return ""
        processes, memory, _ = self.bounds
        below = descendants()
        if len(below) > processes:
            return f"it had more than {processes} processes"
        if sum(map(memory_of, below)) > memory:
            return f"it used more than {memory // 1024**2} MiB of memory"
        return ""

    def kill(self) -> None:
        """Kill everything, again and again: what forks meanwhile is caught by its group."""
        until = time.monotonic() + KILL_SECONDS
        own = os.getpgid(0)
        while self.reap() and time.monotonic() < until:
            below = descendants()
            for group in {*below.values()} - {own}:
                send(-group, signal.SIGKILL)
            for pid in below:
                send(pid, signal.SIGKILL)
            self.wait(0.002)

    def wait(self, seconds: float, wire: int | None = None) -> bool:
        """Wait until something has ended; tell whether the parent has said something."""
        waiting = select.poll()
        waiting.register(self.ended, select.POLLIN)
        if wire is not None:
            waiting.register(wire, select.POLLIN)
        ready = {descriptor for descriptor, _ in waiting.poll(seconds * 1000)}
        if self.ended in ready:
            os.read(self.ended, 4096)
        return wire in ready


def descendants() -> dict[int, int]:
    """Map every process below this one to its process group, as /proc has it now."""
    known: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    # The second field, the program's name, may hold spaces and brackets.
                    parent, group = stat.read().rpartition(b")")[2].split()[1:3]
            except OSError:
                continue
            known[int(name)] = int(parent), int(group)
    below, found = {os.getpid()}, dict[int, int]()
    while new := {pid for pid in known.keys() - found.keys() if known[pid][0] in below}:
        found.update((pid, known[pid][1]) for pid in new)
        below = new
    return found


def memory_of(pid: int) -> int:
    """Give the bytes of memory that a process shares with no file; 0 for one that is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as pages:
            resident, shared = pages.read().split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def send(target: int, number: int) -> None:
    """Send a signal to a process, or to the group -`target`, that may be gone by now."""
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process (prctl(2))."""
    call("prctl", (option, value, 0, 0, 0))


def call(name: str, arguments: tuple[int, ...]) -> None:
    """Call a function of the C library, which gives 0 where all is well."""
    program = _ctypes.dlopen(None, 0)  # pyright: ignore[reportArgumentType] - None: this program
    failed: int = _ctypes.call_function(_ctypes.dlsym(program, name), arguments)
    if failed:
        raise OSError(errno.EPERM, f"{name} is refused")


class UserNamespace:
    """How a user namespace with root and one other user is made: in the child, with the keeper."""

    def __init__(self, user: int) -> None:
        self.user = user
        self.made, self.tell_made = os.pipe()
        self.mapped, self.tell_mapped = os.pipe()

    def enter(self) -> int:
        """Enter it, in the child; an errno where that fails."""
        os.close(self.tell_mapped)
        try:
            # So that the user can open its own output by name (/dev/stdout), too.
            os.fchown(1, self.user, self.user)
            call("unshare", (NEW_USER_NAMESPACE,))
            os.write(self.tell_made, b".")
            if not os.read(self.mapped, 1):
                return errno.EPERM
            with open(MAX_NAMESPACES_FILE, "w") as most:
                most.write("0")
        except OSError as error:
            return error.errno or errno.EPERM
        return 0

    def set_up(self, child: int) -> None:
        """Say in the keeper which users there are; the child is told once it is done."""
        os.close(self.tell_made)
        if os.read(self.made, 1):
            try:
                for kind in ("uid", "gid"):
                    with open(f"/proc/{child}/{kind}_map", "w") as users:
                        users.write(f"0 0 1\n{self.user} {self.user} 1\n")
                os.write(self.tell_mapped, b".")
            except OSError:
                pass  # The child finds that nothing is said.
        os.close(self.tell_mapped)


def set_rlimits(file_size: int) -> None:
    """Limit the size of files, leave no core, and be the first to go where memory is short."""
    import resource  # noqa: PLC0415 - most commands go without it

    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    size = file_size if most == resource.RLIM_INFINITY else min(file_size, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write(OOM_SCORE)
    except OSError:
        return


def exec_command(argv: list[str], bounds: list[int], keeper: int) -> int:
    """Turn this new process into the command, in its own session; an errno where that fails."""
    os.setsid()
    if bounds:
        set_rlimits(bounds[2])
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != keeper:
        return errno.ESRCH
    for number in RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    environment = given_environment()
    reason = errno.ENOENT
    for place in candidate_paths(argv[0], environment.get(b"PATH")):
        try:
            os.execve(place, argv, environment)  # noqa: S606 - what this program is for
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
                reason = error.errno or reason
    return reason


def given_environment() -> dict[bytes, bytes]:
    """Give the environment; Python adds LC_CTYPE to os.environ where no locale is set (PEP 538)."""
    with open("/proc/self/environ", "rb") as given:
        variables = (entry.partition(b"=") for entry in given.read().split(b"\0") if entry)
        return {name: value for name, _, value in variables}


def candidate_paths(program: str, path: bytes | None) -> list[str]:
    """List where a program may be, as execvp(3), but never the current directory by omission."""
    if "/" in program:
        return [program]
    directories = os.defpath if path is None else os.fsdecode(path)
    return [f"{directory}/{program}" for directory in directories.split(":") if directory]


def start(
    argv: list[str], bounds: list[int], users: UserNamespace | None, wire: int, ended: int
) -> ProcessTree | None:
    """Fork the command; None where the system cannot, which is told then."""
    keeper = os.getpid()
    try:
        main = os.fork()
    except OSError as error:
        os.write(wire, f"error {error.errno}\n".encode())
        return None
    if main:
        if users:
            users.set_up(main)
        return ProcessTree(main, ended, bounds)
    try:
        failed = users.enter() if users else 0
        os.write(wire, f"error {failed or exec_command(argv, bounds, keeper)}\n".encode())
    finally:
        os._exit(127)


def watch(family: ProcessTree, wire: int) -> None:
    """Return when nothing is left: at the parent's word, or a moment after the command's end."""
    asked, until = False, float("inf")
    while family.reap():
        if family.status is not None and not asked:
            asked, until = True, time.monotonic() + ORPHAN_GRACE_SECONDS
            family.terminate()
        left = until - time.monotonic()
        longest = POLL_SECONDS if family.bounds else 3600
        if family.wait(min(max(left, 0), longest), wire):
            if os.read(wire, 1) != b"T":
                family.kill()
                return
            if not asked:
                asked = True
                family.terminate()
        elif left <= 0:
            family.kill()
            return
        elif why := family.exceeded_limit():
            os.write(2, f"\nMulligan ended this command: {why}.\n".encode())
            family.kill()
            return


def verdict(family: ProcessTree) -> str:
    """Say how it ended; whatever could not be killed comes first."""
    if family.reap():
        return " ".join(["left", *map(str, sorted(descendants()))])
    code = os.waitstatus_to_exitcode(family.status or 0)
    return f"exit {code}" if code >= 0 else f"signal {-code}"


def ignore_signal(*_: object) -> None:
    """Do nothing: that a signal came is written to the wake-up pipe."""


def main() -> None:
    """Keep one command from its start to the end of the last process it left behind."""
    wire = int(sys.argv[1])
    os.set_inheritable(wire, False)  # noqa: FBT003 - it has no name
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGCHLD, ignore_signal)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    prctl(CHILD_SUBREAPER, 1)
    bounds = [int(bound) for bound in sys.argv[2].split(":") if bound != "-"]
    users = None if sys.argv[3] == "-" else UserNamespace(int(sys.argv[3]))
    family = start(sys.argv[4:], bounds, users, wire, ended)
    if family is None:
        return
    close_all_but({2, wire, ended, wakeup})
    watch(family, wire)
    try:
        os.write(wire, f"{verdict(family)}\n".encode())
    except ConnectionError:
        return


def close_all_but(kept: set[int]) -> None:
    """Let go of the command's descriptors: who waits for the end of one must not wait for us."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue


if __name__ == "__main__":
    main()
    os._exit(0)
