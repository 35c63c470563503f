"""The filter of system calls, run step by step as the kernel does."""

import errno
import struct
from pathlib import Path

import pytest

from mulligan.sandbox.seccomp import ALLOW, MACHINES, REFUSE, chroot_filter, filter_for

pytestmark = pytest.mark.pure
X86, ARM = "x86_64", "aarch64"
EPERM, ENOSYS, NO_FAMILY, NOT_SUPPORTED = (
    REFUSE | number for number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT, errno.EOPNOTSUPP)
)
THREAD, SIGCHLD, NEW_USER = 0x3D0F00, 17, 0x10000000


def verdict(
    machine: str,
    number: int,
    first: int = 0,
    second: int = 0,
    audit: int = 0,
    *,
    program: bytes | None = None,
) -> int:
    """Interpret a filter for one call (struct seccomp_data: nr, arch, pointer, arguments)."""
    program = program or filter_for(machine)
    assert program
    call = struct.pack(
        "<IIQ6Q", number, audit or MACHINES[machine].audit, 0, first, second, *[0] * 4
    )
    steps = list(struct.iter_unpack("<HBBI", program))
    word, place = 0, 0
    while True:
        operation, if_so, if_not, value = steps[place]
        place += 1
        match operation:
            case 0x20:
                (word,) = struct.unpack_from("<I", call, value)
            case 0x15:
                place += if_so if word == value else if_not
            case 0x35:
                place += if_so if word >= value else if_not
            case 0x45:
                place += if_so if word & value else if_not
            case _:
                return value


@pytest.mark.parametrize(
    ("machine", "call", "found"),
    [
        (X86, (0,), ALLOW),  # read
        (X86, (59,), ALLOW),  # execve
        (X86, (101,), ALLOW),  # ptrace, which debuggers and leak checkers need
        (X86, (165,), EPERM),  # mount
        (X86, (272,), EPERM),  # unshare
        (X86, (321,), EPERM),  # bpf
        (X86, (425,), EPERM),  # io_uring_setup
        (X86, (435,), ENOSYS),  # clone3
        (X86, (206,), ENOSYS),  # io_setup
        (ARM, (0,), ENOSYS),
        (X86, (56, THREAD), ALLOW),
        (X86, (56, SIGCHLD), ALLOW),
        (X86, (56, SIGCHLD | NEW_USER), EPERM),
        (X86, (16, 0, 0x5412), EPERM),  # TIOCSTI
        (X86, (16, 0, 0x5412 + 2**32), EPERM),  # the kernel looks at the low half
        (X86, (16, 0, 0x541C), EPERM),
        (X86, (16, 0, 0x5413), ALLOW),  # the size of a window
        (X86, (41, 1), ALLOW),
        (X86, (41, 10), ALLOW),
        (X86, (41, 16), ALLOW),
        (X86, (41, 40), NO_FAMILY),  # AF_VSOCK
        (X86, (41, 38), NO_FAMILY),  # AF_ALG
        (X86, (0x40000000,), ENOSYS),  # read, of x32
        (ARM, (63,), ALLOW),
        (ARM, (40,), EPERM),
        (ARM, (220, NEW_USER), EPERM),
        (ARM, (198, 40), NO_FAMILY),
        (ARM, (198, 2), ALLOW),
        (ARM, (29, 0, 0x5412), EPERM),
        (X86, (188,), NOT_SUPPORTED),  # setxattr
        (X86, (463,), NOT_SUPPORTED),  # setxattrat
        (X86, (191,), ALLOW),  # getxattr
        (ARM, (5,), NOT_SUPPORTED),
        (X86, (16, 0, 0x40086602), EPERM),  # FS_IOC_SETFLAGS
        (X86, (16, 0, 0x80086601), ALLOW),  # FS_IOC_GETFLAGS
    ],
)
def test_what_is_let_through(machine: str, call: tuple[int, ...], found: int) -> None:
    assert verdict(machine, *call) == found


def test_calls_of_another_architecture_are_none() -> None:
    assert verdict(X86, 0, audit=MACHINES[ARM].audit) == ENOSYS


def test_a_processor_that_is_not_known_has_no_filter() -> None:
    assert filter_for("riscv64") is None


@pytest.mark.parametrize("machine", MACHINES)
def test_the_kernel_would_take_it(machine: str) -> None:
    """At most 4096 steps, and every jump lands inside (bpf_check_classic)."""
    steps = list(struct.iter_unpack("<HBBI", filter_for(machine) or b""))
    assert len(steps) < 4096
    jumps = [(at, max(step[1:3])) for at, step in enumerate(steps) if step[0] in {0x15, 0x35, 0x45}]
    assert all(at + 1 + most < len(steps) for at, most in jumps)


def test_the_numbers_are_those_of_this_machines_headers() -> None:
    headers = Path("/usr/include/asm-generic/unistd.h")
    if not headers.exists():
        pytest.skip("the kernel's headers are not installed")
    text = headers.read_text()
    for name, number in (("mount", 40), ("setns", 268), ("keyctl", 219), ("bpf", 280)):
        assert f"#define __NR_{name} {number}\n" in text
        assert number in MACHINES[ARM].refused


@pytest.mark.parametrize(("machine", "chroot"), [(X86, 161), (ARM, 51)])
def test_a_command_in_an_image_can_change_its_root_until_its_own_filter_is_there(
    machine: str, chroot: int
) -> None:
    before, then = filter_for(machine, allows_chroot=True), chroot_filter(machine)
    assert before
    assert then
    assert verdict(machine, chroot) == EPERM
    assert verdict(machine, chroot, program=before) == ALLOW
    assert verdict(machine, chroot, program=then) == EPERM
    assert verdict(machine, chroot + 1, program=then) == ALLOW
    assert chroot_filter("riscv64") is None
