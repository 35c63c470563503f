"""Build the filter of system calls for confined commands, which bubblewrap loads. Pure."""

import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Operations of the kernel's packet filter (linux/bpf_common.h), on words of 32 bits."""
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
"""Offsets of a call's properties (struct seccomp_data); low halves, on little endian."""
ALLOW = 0x7FFF0000
REFUSE = 0x00050000
X32 = 0x40000000
"""The bit that marks calls of the x32 interface, which has other numbers."""

NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
REQUESTS = (0x5412, 0x541C, 0x40086602, 0x401C5820)
"""TIOCSTI and TIOCLINUX for a terminal; FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR for a file."""
FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK; others, like AF_VSOCK, know no namespaces."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor architecture as in the kernel's audit, with its system call numbers.

    `attributes` set attributes of a file, such as access control lists. Git does not see them, so a
    reset would leave them in the worktree for later commands. `io_setup` takes from a number that
    the whole machine has (fs.aio-max-nr).
    """

    audit: int
    chroot: int
    clone: int
    ioctl: int
    socket: int
    io_setup: int
    refused: tuple[int, ...]
    attributes: tuple[int, ...]
    x32: bool = False


BY_NEWER_NUMBERS = (
    *(425, 426, 427),  # io_uring
    *(428, 429, 430, 431, 432, 433, 442, 467),  # the newer ways to mount
    443,  # quotactl_fd
)
"""System calls since 5.1 have the same number everywhere."""
SET_ATTRIBUTES = (463, 469)
"""setxattrat and file_setattr."""
CLONE3 = 435
"""Its flags are in memory that no filter can read."""

MACHINES: Final = {
    "x86_64": Machine(
        audit=0xC000003E,
        chroot=161,
        clone=56,
        ioctl=16,
        socket=41,
        io_setup=206,
        refused=(
            *(165, 166, 155, 272, 308),  # mount, umount2, pivot_root, unshare, setns
            *(248, 249, 250),  # add_key, request_key, keyctl
            *(321, 298, 323),  # bpf, perf_event_open, userfaultfd
            *(246, 320, 175, 313, 176),  # kexec_load, kexec_file_load, and modules
            *(167, 168, 169, 163, 179),  # swapon, swapoff, reboot, acct, quotactl
            *(172, 173, 103, 153, 304),  # iopl, ioperm, syslog, vhangup, open_by_handle_at
            *(164, 227, 159, 305),  # settimeofday, clock_settime, adjtimex, clock_adjtime
            *BY_NEWER_NUMBERS,
        ),
        attributes=(188, 189, 190, *SET_ATTRIBUTES),
        x32=True,
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        chroot=51,
        clone=220,
        ioctl=29,
        socket=198,
        io_setup=0,
        refused=(
            *(40, 39, 41, 97, 268),
            *(217, 218, 219),
            *(280, 241, 282),
            *(104, 294, 105, 273, 106),
            *(224, 225, 142, 89, 60),
            *(116, 58, 265),
            *(170, 112, 171, 266),
            *BY_NEWER_NUMBERS,
        ),
        attributes=(5, 6, 7, *SET_ATTRIBUTES),
    ),
}


def filter_for(machine: str, *, allows_chroot: bool = False) -> bytes | None:
    """Return the filter for a machine, as named by `uname -m`; None for an unknown one.

    With `allows_chroot`, the command needs `chroot_filter` as well, once its root is changed.
    """
    known = MACHINES.get(machine)
    return None if known is None else _assemble(known, allows_chroot=allows_chroot)


def chroot_filter(machine: str) -> bytes | None:
    """Return the filter that refuses nothing but chroot; None for an unknown machine."""
    known = MACHINES.get(machine)
    if known is None:
        return None
    return b"".join([_load(NUMBER), *_refuse_call(known.chroot), _return(ALLOW)])


def _assemble(machine: Machine, *, allows_chroot: bool) -> bytes:
    program = [
        _load(ARCHITECTURE),
        # Calls of another architecture have other numbers.
        _step(JUMP_EQUAL, machine.audit, if_not=0, if_so=1),
        _refuse(errno.ENOSYS),
        _load(NUMBER),
    ]
    if machine.x32:
        program += [_step(JUMP_AT_LEAST, X32, if_so=0, if_not=1), _refuse(errno.ENOSYS)]
    for number in (CLONE3, machine.io_setup):
        # Programs that have another way take it, as on a kernel without the call.
        program += [_step(JUMP_EQUAL, number, if_so=0, if_not=1), _refuse(errno.ENOSYS)]
    for number in (*machine.refused, *(() if allows_chroot else (machine.chroot,))):
        program += _refuse_call(number)
    for number in machine.attributes:
        # Programs that copy attributes expect this error of many file systems.
        program += [_step(JUMP_EQUAL, number, if_so=0, if_not=1), _refuse(errno.EOPNOTSUPP)]
    program += _with_argument(machine.clone, FIRST_ARGUMENT, JUMP_ANY, (NAMESPACES,))
    program += _with_argument(machine.ioctl, SECOND_ARGUMENT, JUMP_EQUAL, REQUESTS)
    program += _only(machine.socket, FAMILIES)
    return b"".join([*program, _return(ALLOW)])


def _refuse_call(number: int) -> list[bytes]:
    return [_step(JUMP_EQUAL, number, if_so=0, if_not=1), _refuse(errno.EPERM)]


def _with_argument(number: int, place: int, test: int, values: Sequence[int]) -> list[bytes]:
    """Refuse a call whose argument passes the test with any of the values."""
    tests = [part for value in values for part in (_step(test, value, 0, 1), _refuse(errno.EPERM))]
    body = [_load(place), *tests, _load(NUMBER)]
    return [_step(JUMP_EQUAL, number, if_so=0, if_not=len(body)), *body]


def _only(number: int, values: Sequence[int]) -> list[bytes]:
    """Refuse a call whose first argument is not one of the values."""
    left = range(len(values), 0, -1)
    tests = [_step(JUMP_EQUAL, value, to, 0) for value, to in zip(values, left, strict=True)]
    body = [_load(FIRST_ARGUMENT), *tests, _refuse(errno.EAFNOSUPPORT)]
    return [_step(JUMP_EQUAL, number, if_so=0, if_not=len(body)), *body]


def _load(place: int) -> bytes:
    return _step(LOAD, place, 0, 0)


def _refuse(number: int) -> bytes:
    return _return(REFUSE | number)


def _return(verdict: int) -> bytes:
    return _step(RETURN, verdict, 0, 0)


def _step(operation: int, value: int, if_so: int, if_not: int) -> bytes:
    """Return one instruction (struct sock_filter); jumps count the instructions to skip."""
    return struct.pack("<HBBI", operation, if_so, if_not, value)
