"""Leave others a part of what the kernel counts for all commands of a user together.

It uses the standard library only, since the supervisor does. Source: namespaces(7), inotify(7),
fanotify(7), getrlimit(2).
"""

import contextlib
import resource

COUNTERS = ("inotify_instances", "inotify_watches", "fanotify_groups", "fanotify_marks")
USER_LIMIT = "/proc/sys/user/max_{}"
"""The limit of the reader's user namespace; those of the namespaces around it apply, too."""
MACHINE_LIMIT = "/proc/sys/fs/{}/max_user_{}"
NUMBERS = (resource.RLIMIT_SIGPENDING, 12)
"""Pending signals and timers, and bytes of message queues (RLIMIT_MSGQUEUE in linux/resource.h)."""


def share_of(limit: int) -> int:
    """Return how much of a limit one command may have: three quarters."""
    return limit * 3 // 4


def shares() -> dict[str, int]:
    """Return the share of each counter that one command may have; call it before `limit_shares`."""
    found: dict[str, int] = {}
    for name in COUNTERS:
        kind, _, what = name.partition("_")
        limits: list[int] = []
        for path in (USER_LIMIT.format(name), MACHINE_LIMIT.format(kind, what)):
            with contextlib.suppress(OSError), open(path) as file:  # noqa: PTH123 - pathlib takes long to import
                limits.append(int(file.read()))
        if limits:
            found[name] = share_of(min(limits))
    return found


def limit_shares(found: dict[str, int]) -> None:
    """Limit the counters of the user namespace that this process has just entered.

    Outside of one of its own, it would change the limits of the machine.
    """
    for name, most in found.items():
        # Without a writable /proc/sys, as in some containers, the limits stay those of the machine.
        with contextlib.suppress(OSError), open(USER_LIMIT.format(name), "w") as file:  # noqa: PTH123 - see above
            file.write(str(most))


def limit_numbers() -> None:
    """Limit what the kernel counts by resource limits."""
    for number in NUMBERS:
        _, most = resource.getrlimit(number)
        if most != resource.RLIM_INFINITY:
            resource.setrlimit(number, (share_of(most), share_of(most)))
