"""The user for confined commands if Mulligan runs as root, and the files it owns."""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import UnavailableError
from mulligan.sandbox.process import Command, run

SANDBOX_UID = 65530
"""The kernel's number of that user, and of its group. Debian and systemd give it to nobody, and it
is below 65536, which is all that many containers have."""

NAME = "mulligan-sandbox"


def is_root() -> bool:
    """Return whether Mulligan runs as root, whose rights a flaw in the sandbox would expose."""
    return os.geteuid() == 0


def sandbox_user() -> int | None:
    """Return the uid for confined commands; None if Mulligan is not root, or has no other uid.

    In a container whose root is an ordinary user outside, there may be no second uid.
    """
    available = all(_has(SANDBOX_UID, Path(f"/proc/self/{kind}_map")) for kind in ("uid", "gid"))
    return SANDBOX_UID if is_root() and available else None


def _has(number: int, ids: Path) -> bool:
    """Return whether a uid is mapped in this user namespace (user_namespaces(7))."""
    spans = (map(int, line.split()) for line in ids.read_text().splitlines())
    return any(first <= number < first + count for first, _, count in spans)


NOT_OWN = ("(", "!", "-uid", str(SANDBOX_UID), "-o", "!", "-gid", str(SANDBOX_UID), ")")

CHOWN_TIMEOUT = timedelta(minutes=10)


def make_usable(
    own: Iterable[Path], readable: Iterable[Path], environment: Mapping[str, str]
) -> None:
    """Return `own` to the sandbox's user, and let it read `readable`, recursively.

    No command may run in `own`. Paths in `readable` keep their owner, and become readable for the
    group. Missing paths are skipped. UnavailableError if the file system does not allow it.
    """
    try:
        for path in readable:
            _let_read(path)
    except OSError as error:
        raise _not_allowed(str(error)) from error
    if existing := [str(place) for place in own if os.path.lexists(place)]:
        _give(existing, environment)


def _let_read(path: Path) -> None:
    """Let the sandbox's group read a path that is not open to all; others may change it."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return
        needed = stat.S_IXGRP | stat.S_IRGRP if stat.S_ISDIR(found.st_mode) else stat.S_IRGRP
        is_open = found.st_mode & needed >> 3 == needed >> 3
        if not is_open and (found.st_gid != SANDBOX_UID or found.st_mode & needed != needed):
            os.chown(path, -1, SANDBOX_UID, follow_symlinks=False)
            path.chmod(stat.S_IMODE(found.st_mode) | needed)
        for below in path.iterdir() if stat.S_ISDIR(found.st_mode) else ():
            _let_read(below)
    except FileNotFoundError:
        return


def _give(places: Sequence[str], environment: Mapping[str, str]) -> None:
    """Change the owner with find, which handles paths of any depth."""
    # Root must not run a program from a relative path.
    path = [each for each in environment.get("PATH", os.defpath).split(":") if each[:1] == "/"]
    change = ("-exec", "chown", "-h", f"{SANDBOX_UID}:{SANDBOX_UID}", "{}", "+")
    argv = ("find", *places, "-xdev", *NOT_OWN, *change)
    ended = run(Command(argv, Path("/"), {"PATH": ":".join(path), "LC_ALL": "C"}, CHOWN_TIMEOUT))
    if ended.exit_code or ended.stopped_by:
        raise _not_allowed(ended.last_line)


def _not_allowed(why: str) -> UnavailableError:
    return UnavailableError(
        f"The files of a command cannot be given to the user that it is to run as ({why}); start"
        " Mulligan as an ordinary user, or put workspace.root on another file system."
    )


def passwd_and_group(
    home: str, read: Callable[[str], bytes], ids: tuple[int, int] = (SANDBOX_UID, SANDBOX_UID)
) -> dict[Path, bytes]:
    """Return /etc/passwd and /etc/group, with the user and group of `ids` if they lack it.

    `read` returns a file of the system; empty if there is none.
    """
    user, group = ids
    accounts, groups = "/etc/passwd", "/etc/group"
    return {
        Path(accounts): _with(read(accounts), user, f"{NAME}:x:{user}:{group}::{home}:/bin/sh\n"),
        Path(groups): _with(read(groups), group, f"{NAME}:x:{group}:\n"),
    }


def read_system(path: str) -> bytes:
    """Return a file of this machine; empty if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _with(known: bytes, number: int, line: str) -> bytes:
    fields = (each.split(b":") for each in known.splitlines())
    if any(each[2:3] == [str(number).encode()] for each in fields):
        return known
    known = known.rstrip(b"\n")
    return known + (b"\n" if known else b"") + line.encode()
