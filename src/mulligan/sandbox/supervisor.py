"""The supervisor process: start one command, limit it, and end everything that it started.

launcher.py forks it and gives it descriptors: a control socket, the Request as JSON, the command's
input, its output, and those that the command inherits. It uses the standard library only. As a
child subreaper it becomes the parent of whatever a command detaches (`setsid`, double fork). Its
first message on the control socket is `started` with its pidfd. Mulligan sends `T` to terminate
everything and `K` to kill it. When Mulligan dies, even by SIGKILL, the socket closes and everything
is killed. Its last message is `exit N`, `signal N`, `error ERRNO` if the command could not be
started, `layers ERRNO` if its layers could not be mounted, `directory ERRNO` if its directory could
not be entered, `left PID…` if something cannot be killed, or `failed ERROR` if the supervisor
itself failed.

In a sandbox, the command is bubblewrap. It would die of SIGTERM and everything in it with it, so it
is never sent one.
"""

import contextlib
import errno
import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import NamedTuple

from mulligan.domain.layer import Layer
from mulligan.sandbox.control_group import ControlGroup
from mulligan.sandbox.layers import (
    NEW_USER_NAMESPACE,
    call,
    enter_mount_namespace,
    mount_layers,
)
from mulligan.sandbox.shared_counters import limit_numbers, limit_shares, shares

PARENT_DEATH_SIGNAL = 1
CHILD_SUBREAPER = 36
MAX_NAMESPACES_FILE = "/proc/sys/user/max_user_namespaces"
"""The limit of the writer's own user namespace (namespaces(7)), not of the machine."""
ORPHAN_GRACE_SECONDS = 0.5
POLL_SECONDS = 0.25
"""Seconds between checks of a sandbox's limits."""
MAX_OPEN_FILES = 100_000
"""Limit of open files of all processes together: each takes memory of the kernel, and 4 µs to
check whether it is in memory."""
MAX_TERMINALS = 1000
"""Limit of pseudoterminals; by default, a machine has 3,072 for all sandboxes (pty(7))."""
TERMINALS = tuple(
    root + file for root in ("", "/mulligan/root") for file in ("/dev/ptmx", "/dev/pts/ptmx")
)
"""The files that create a pseudoterminal each time they are opened; of a command in an image, as
bubblewrap.py places them."""
PIDS_FACTOR = 2
"""The kernel's limit of processes is this many times the configured one, so that the supervisor
ends the command first, with a reason."""
OOM_SCORE = "500"
"""Of 1000; the kernel kills the highest score first (oom_score_adj in proc(5))."""
LOWEST_PRIORITY = "19"
"""The nice value of a session (autogroup in proc(5))."""
KILL_SECONDS = 5.0
"""How long killing is repeated; a process that waits for a broken disk cannot be killed."""
IGNORED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Ignored, so that a command that signals every Python process does not end its supervisor."""
RESET_SIGNALS = (*IGNORED_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)


class Request(NamedTuple):
    """A command to run.

    `limits` are processes, bytes of memory and bytes of a file, for a sandbox; else nothing.
    `user` is the uid that the command may change to: it then starts as root of a user namespace
    that has root and `user` only, and below which no other can be made. This needs root.
    `layers` are mounted for it first; each is a Layer as a list.
    `descriptors` are the numbers under which it finds what it inherits. With `is_idle`, it runs
    while no other process needs the processor.
    """

    argv: list[str]
    directory: str
    environment: dict[str, str]
    limits: list[int]
    user: int | None
    layers: list[tuple[list[str], str, str, str]]
    descriptors: list[int]
    is_idle: bool


class ProcessTree:
    """The command and whatever it has started."""

    def __init__(
        self, main: int, ended: int, bounds: list[int], group: ControlGroup | None = None
    ) -> None:
        self.main = main
        self.ended = ended
        self.bounds = bounds
        self.group = group
        self.is_over_limit = False
        self.status: int | None = None

    def reap(self) -> bool:
        """Reap all ended processes; return whether any process is left.

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
        """Send SIGTERM to everything except bubblewrap, which ends with the processes in it."""
        for pid in descendants():
            if not (self.bounds and pid == self.main):
                send(pid, signal.SIGTERM)

    def exceeded_limit(self) -> str:
        """Return the exceeded limit; "" if none is."""
        if not self.bounds:
            return ""
        processes, memory, _ = self.bounds
        below = descendants()
        exceeded = self.group.exceeded() if self.group else ""
        if exceeded == "pids" or sum(map(threads_of, below)) > processes:
            return f"it exceeded {processes} processes and threads"
        files = open_files(below, MAX_OPEN_FILES + 1)
        if len(files) > MAX_OPEN_FILES:
            return f"it exceeded {MAX_OPEN_FILES} open files"
        # The sum of all resident memory is fast to read, but counts shared memory more than once.
        targets = targets_of(files)
        if sum(target in TERMINALS for target in targets.values()) > MAX_TERMINALS:
            return f"it exceeded {MAX_TERMINALS} terminals"
        held = memory_of_files(targets)
        if exceeded == "memory" or (
            sum(map(resident_memory, below)) + held > memory
            and sum(map(memory_of, below)) + held > memory
        ):
            return f"it used more than {memory // 1024**2} MiB of memory"
        return ""

    def report_limit(self, why: str) -> None:
        """Report the exceeded limit in the command's output."""
        self.is_over_limit = True
        os.write(2, f"\nMulligan ended this command: {why}.\n".encode())

    def close(self) -> str:
        """Remove its groups; return the limit for which the kernel alone ended a part of it."""
        reason = self.exceeded_limit() if self.group and not self.is_over_limit else ""
        if self.group:
            self.group.remove()
        return reason

    def kill(self) -> None:
        """Kill everything repeatedly: the process group catches what forks meanwhile."""
        until = time.monotonic() + KILL_SECONDS
        own = os.getpgid(0)
        while self.reap() and time.monotonic() < until:
            below = descendants()
            for group in {*below.values()} - {own}:
                send(-group, signal.SIGKILL)
            for pid in below:
                send(pid, signal.SIGKILL)
            self.wait(0.002)

    def wait(self, seconds: float, control: int | None = None) -> bool:
        """Wait until a child has ended; return whether the parent has sent something."""
        waiting = select.poll()
        waiting.register(self.ended, select.POLLIN)
        if control is not None:
            waiting.register(control, select.POLLIN)
        ready = {descriptor for descriptor, _ in waiting.poll(seconds * 1000)}
        if self.ended in ready:
            os.read(self.ended, 4096)
        return control in ready


def descendants() -> dict[int, int]:
    """Return every process below this one with its process group, from /proc."""
    known: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    # The second field, the program's name, may contain spaces and brackets.
                    parent, group = stat.read().rpartition(b")")[2].split()[1:3]
            except OSError:
                continue
            known[int(name)] = int(parent), int(group)
    below, found = {os.getpid()}, dict[int, int]()
    while new := {pid for pid in known.keys() - found.keys() if known[pid][0] in below}:
        found.update((pid, known[pid][1]) for pid in new)
        below = new
    return found


def threads_of(pid: int) -> int:
    """Count the threads of a process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[17])
    except OSError:
        return 0


RESIDENT = (b"VmRSS:", b"VmPTE:")
"""All pages of a process, and the page tables, which alone can take gigabytes (proc(5))."""
SHARES = (b"Pss_Anon:", b"Pss_Shmem:")
"""Memory of a process that no file backs, with its share of shared pages."""


def resident_memory(pid: int) -> int:
    """Return the bytes of all pages of a process, shared ones too; 0 if it has ended."""
    return sum_of_lines(f"/proc/{pid}/status", RESIDENT)


def memory_of(pid: int) -> int:
    """Return the bytes of memory of a process that no file on a disk backs; 0 if it has ended."""
    tables = sum_of_lines(f"/proc/{pid}/status", RESIDENT[1:])
    return sum_of_lines(f"/proc/{pid}/smaps_rollup", SHARES) + tables


def sum_of_lines(file: str, names: tuple[bytes, ...]) -> int:
    """Add up lines of a file that give kilobytes; return bytes, 0 if the process has ended."""
    try:
        with open(file, "rb") as lines:
            return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(names))
    except OSError:
        return 0


def targets_of(links: list[str]) -> dict[str, str]:
    """Map links in /proc to what they lead to, without those that are gone."""
    targets: dict[str, str] = {}
    for path in links:
        # A process that closes other files meanwhile must not hide this one.
        with contextlib.suppress(OSError):
            targets[path] = os.readlink(path)
    return targets


def memory_of_files(targets: dict[str, str]) -> int:
    """Return the bytes of the open files in memory (memfd_create(2)), by their links in /proc."""
    sizes: dict[tuple[int, int], int] = {}
    for path, target in targets.items():
        if target.startswith("/memfd:"):
            with contextlib.suppress(OSError):
                found = os.stat(path)
                sizes[found.st_dev, found.st_ino] = 512 * found.st_blocks
    return sum(sizes.values())


def open_files(pids: dict[int, int], most: int) -> list[str]:
    """List the links in /proc to the open files of processes, up to `most`."""
    links: list[str] = []
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                links.append(entry.path)
                if len(links) == most:
                    return links
    return links


def send(target: int, number: int) -> None:
    """Send a signal to a process, or to the group -`target`; ignore one that has ended."""
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process (prctl(2))."""
    call("prctl", option, value, 0, 0, 0)


class UserNamespace:
    """Creates a user namespace with root and one other user, by child and supervisor together."""

    def __init__(self, user: int) -> None:
        self.user = user
        self.made, self.tell_made = os.pipe()
        self.mapped, self.tell_mapped = os.pipe()

    def enter(self) -> int:
        """Create and enter it, in the child; return 0, or an errno."""
        os.close(self.tell_mapped)
        try:
            # The user can then open its own output by name (/dev/stdout), too.
            os.fchown(1, self.user, self.user)
            allowed = shares()
            call("unshare", NEW_USER_NAMESPACE)
            os.write(self.tell_made, b".")
            if not os.read(self.mapped, 1):
                return errno.EPERM
            limit_shares(allowed)
            with open(MAX_NAMESPACES_FILE, "w") as most:
                most.write("0")
        except OSError as error:
            return error.errno or errno.EPERM
        return 0

    def set_up(self, child: int) -> None:
        """Map the users, in the supervisor; then tell the child."""
        os.close(self.tell_made)
        if os.read(self.made, 1):
            try:
                for kind in ("uid", "gid"):
                    with open(f"/proc/{child}/{kind}_map", "w") as users:
                        users.write(f"0 0 1\n{self.user} {self.user} 1\n")
                os.write(self.tell_mapped, b".")
            except OSError:
                pass  # The child reads nothing, and fails.
        os.close(self.tell_mapped)


def set_rlimits(file_size: int) -> None:
    """Limit files and shared numbers, write no core dump, and be killed first without memory."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    size = file_size if most == resource.RLIM_INFINITY else min(file_size, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_numbers()
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write(OOM_SCORE)
    except OSError:
        return


def become_idle() -> None:
    """Have this process and its children wait for all others, as far as the system lets them.

    It is about processor and disk (sched(7)). Where the kernel gives each session the same share
    (autogroup), this session's share becomes the smallest.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with open("/proc/self/autogroup", "w") as group:
            group.write(LOWEST_PRIORITY)
    except OSError:
        return


def exec_command(request: Request, supervisor: int) -> int:
    """Replace this process by the command, in its own session; return an errno if that fails."""
    os.setsid()
    if request.is_idle:
        become_idle()
    if request.limits:
        set_rlimits(request.limits[2])
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != supervisor:
        return errno.ESRCH
    for number in RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    reason = errno.ENOENT
    for place in candidate_paths(request.argv[0], request.environment.get("PATH")):
        try:
            os.execve(place, request.argv, request.environment)  # noqa: S606 - the purpose of this program
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
                reason = error.errno or reason
    return reason


def candidate_paths(program: str, path: str | None) -> list[str]:
    """List the paths where execvp(3) would look, but never the current directory by default."""
    if "/" in program:
        return [program]
    directories = os.defpath if path is None else path
    return [f"{directory}/{program}" for directory in directories.split(":") if directory]


def start(request: Request, control: socket.socket, ended: int) -> ProcessTree:
    """Fork the command, which reports why it cannot be started; OSError if the system cannot."""
    supervisor = os.getpid()
    users = UserNamespace(request.user) if request.user else None
    processes, memory = request.limits[:2] or (0, 0)
    group = (
        ControlGroup({"pids": PIDS_FACTOR * processes, "memory": memory})
        if request.limits
        else None
    )
    main = os.fork()
    if main:
        if users:
            users.set_up(main)
        return ProcessTree(main, ended, request.limits, group)
    try:
        if group:
            group.enter()
        failed = users.enter() if users else 0
        if not failed and (refused := enter_layers(request)):
            control.send(f"layers {refused}".encode())
        else:
            control.send(f"error {failed or exec_command(request, supervisor)}".encode())
    finally:
        os._exit(127)


def enter_layers(request: Request) -> int:
    """Mount the layers of a command, in the child; return 0, or an errno."""
    if not request.layers:
        return 0
    try:
        enter_mount_namespace(is_privileged=os.geteuid() == 0)
        mount_layers([Layer(tuple(lower), *rest) for lower, *rest in request.layers])
        os.chdir(request.directory)
    except OSError as error:
        return error.errno or errno.EPERM
    return 0


def watch(tree: ProcessTree, control: socket.socket) -> None:
    """Wait until nothing is left, or the rest is to be killed: on request or over a limit."""
    terminated, until = False, float("inf")
    while tree.reap():
        if tree.status is not None and not terminated:
            terminated, until = True, time.monotonic() + ORPHAN_GRACE_SECONDS
            tree.terminate()
        left = until - time.monotonic()
        longest = POLL_SECONDS if tree.bounds else 3600
        if tree.wait(min(max(left, 0), longest), control.fileno()):
            if control.recv(1) != b"T":
                return
            if not terminated:
                terminated = True
                tree.terminate()
        elif left <= 0:
            return
        elif why := tree.exceeded_limit():
            tree.report_limit(why)
            return


def verdict(tree: ProcessTree) -> str:
    """Return the final report: how the command ended, or what could not be killed."""
    if tree.reap():
        return " ".join(["left", *map(str, sorted(descendants()))])
    code = os.waitstatus_to_exitcode(tree.status or 0)
    return f"exit {code}" if code >= 0 else f"signal {-code}"


def ignore_signal(*_: object) -> None:
    """Do nothing: Python writes the signal to the wake-up pipe."""


def main(descriptors: list[int]) -> None:
    """Supervise one command until the last process that it started has ended."""
    with open(descriptors[1], "rb", closefd=False) as text:
        request = Request(*json.load(text))
    control = place_descriptors(descriptors, request.descriptors)
    report = ""
    try:
        report = supervise(request, control)
    finally:
        with contextlib.suppress(ConnectionError):
            control.send((report or f"failed {sys.exc_info()[1]!r}").encode())


def supervise(request: Request, control: socket.socket) -> str:
    """Run the command to its end; return the final report."""
    own = os.pidfd_open(os.getpid())
    socket.send_fds(control, [b"started"], [own])
    os.setsid()
    prctl(CHILD_SUBREAPER, 1)
    ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGCHLD, ignore_signal)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    try:
        os.chdir(request.directory)
    except OSError as error:
        return f"directory {error.errno}"
    try:
        tree = start(request, control, ended)
    except OSError as error:
        return f"error {error.errno}"
    close_all_but({2, control.fileno(), ended, wakeup})
    # If Mulligan died before it read `started`, the socket ends with an error.
    try:
        with contextlib.suppress(ConnectionError):
            watch(tree, control)
    finally:
        tree.kill()
    report = verdict(tree)
    if why := tree.close():
        tree.report_limit(why)
    # The kernel may have killed a part of it only, so that the command itself ended well.
    is_killed = tree.is_over_limit and report.startswith("exit")
    return f"signal {int(signal.SIGKILL)}" if is_killed else report


def place_descriptors(given: list[int], numbers: list[int]) -> socket.socket:
    """Put the command's descriptors at their numbers; return the control socket, above all."""
    targets = (0, 1, 2, *numbers)
    above = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, max(targets) + 1) for each in given]
    for each in given:
        os.close(each)
    control, _, stdin, output, *inherited = above
    for source, target in zip((stdin, output, output, *inherited), targets, strict=True):
        os.dup2(source, target)
    for each in {*above} - {control}:
        os.close(each)
    return socket.socket(fileno=control)


def close_all_but(kept: set[int]) -> None:
    """Close the command's descriptors: a reader that waits for their end must not wait for us."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue
