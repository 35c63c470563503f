"""Mount layers of directories for one command (overlayfs), in a mount namespace of its own.

It uses the standard library only, since the supervisor does. Source: the kernel's documentation of
overlayfs, and mount(2), user_namespaces(7).
"""

import ctypes
import os
from collections.abc import Iterable

from mulligan.domain.layer import Layer
from mulligan.sandbox.shared_counters import limit_shares, shares

NEW_USER_NAMESPACE = 0x10000000
NEW_MOUNT_NAMESPACE = 0x00020000

MS_NOSUID, MS_NODEV, MS_REC, MS_SLAVE = 2, 4, 16384, 1 << 19


def call(name: str, *arguments: int | bytes | None) -> None:
    """Call a function of the C library; OSError if it does not return 0."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def enter_mount_namespace(*, is_privileged: bool) -> None:
    """Enter a mount namespace, whose mounts nobody else sees; an ordinary user needs another one.

    With `is_privileged`, this process may mount in its user namespace. Otherwise it enters a new
    one, in which it has the same uid and gid.
    """
    user, group = os.getuid(), os.getgid()
    if is_privileged:
        call("unshare", NEW_MOUNT_NAMESPACE)
    else:
        allowed = shares()
        call("unshare", NEW_USER_NAMESPACE | NEW_MOUNT_NAMESPACE)
        # Without this, an ordinary user may not map its group (user_namespaces(7)).
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
        limit_shares(allowed)
    call("mount", None, b"/", None, MS_REC | MS_SLAVE, None)


def mount_layers(layers: Iterable[Layer]) -> None:
    """Mount each layer at its target; OSError if the system or a file system cannot."""
    for layer in layers:
        options = (
            f"lowerdir={':'.join(map(_escaped, layer.lower))}",
            f"upperdir={_escaped(layer.upper)}",
            f"workdir={_escaped(layer.work)}",
            # Without privileges, overlayfs keeps its own notes in user.* attributes.
            "userxattr",
        )
        call(
            "mount",
            b"overlay",
            os.fsencode(layer.target),
            b"overlay",
            MS_NOSUID | MS_NODEV,
            os.fsencode(",".join(options)),
        )


NOTES = "user.overlay."
"""Attributes in which overlayfs notes that a directory hides another one below it."""


def remove_notes(tree: str | os.PathLike[str]) -> None:
    """Remove overlayfs's notes from the directories of a tree that was an upper directory."""
    for directory, _, _ in os.walk(tree):
        for name in os.listxattr(directory, follow_symlinks=False):
            if name.startswith(NOTES):
                os.removexattr(directory, name, follow_symlinks=False)


def _escaped(path: str) -> str:
    """Escape what separates directories and options."""
    for sign in "\\:,":
        path = path.replace(sign, f"\\{sign}")
    return path


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 - pathlib takes long to import
        file.write(text)
