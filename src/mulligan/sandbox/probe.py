"""Try whether commands can be confined on this machine: one is."""

import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from mulligan.config.operator import SandboxSettings
from mulligan.domain.bounds import Bounds
from mulligan.errors import WorldError
from mulligan.process import Command
from mulligan.sandbox.confinement import Confinement, Network
from mulligan.sandbox.sandbox import NAME, Bubblewrap, Reach
from mulligan.sandbox.seccomp import filter_for
from mulligan.sandbox.trouble import FULL_DISK, NOT_INSTALLED, Surroundings, Trouble, explain
from mulligan.sandbox.user import other_user

MIB = 1024**2
PATIENCE = timedelta(seconds=20)
SEEN = "it works"
"""What the tried command has to print."""
CLOSED = 'for path do test {right} "$path" || echo "$path"; done'
"""Tells which of its arguments cannot be used in one way."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A sandbox that works, or why there is none."""

    sandbox: Bubblewrap | None
    trouble: Trouble | None = None

    @property
    def filters(self) -> bool:
        """Tell whether system calls are filtered, too."""
        return self.sandbox is not None and self.sandbox.filter is not None


def try_out(
    settings: SandboxSettings, environment: Mapping[str, str], hide: tuple[Path, ...] = ()
) -> Tried:
    """Build the sandbox and run a command in it, since being installed is not enough.

    `hide` is what no command may see: Mulligan's state, its worktrees, its token.
    """
    program = shutil.which(NAME, path=environment.get("PATH", os.defpath))
    if program is None:
        return Tried(None, NOT_INSTALLED)
    sandbox = _build(program, settings, hide)
    try:
        with tempfile.TemporaryDirectory(prefix="mulligan-probe-") as directory:
            trouble = _trouble_with(sandbox, Path(directory))
    except OSError:
        return Tried(None, FULL_DISK)
    return Tried(None if trouble else sandbox, trouble)


def _build(program: str, settings: SandboxSettings, hide: tuple[Path, ...]) -> Bubblewrap:
    limits = settings.limits
    common = Confinement(read=settings.read, write=settings.write, tmp_bytes=limits.tmp_mib * MIB)
    hidden = tuple(dict.fromkeys([*hide, *(each.resolve() for each in hide)]))
    bounds = Bounds(limits.processes, limits.memory_mib * MIB, limits.file_mib * MIB)
    calls = filter_for(platform.machine())
    return Bubblewrap(program, common, bounds, calls, hidden, user=other_user())


def _trouble_with(sandbox: Bubblewrap, directory: Path) -> Trouble | None:
    """Confine a command as checks are, and see whether it could print and write."""
    command = Command(
        # Not the shell's own echo, which says nothing of a full disk.
        argv=("/bin/sh", "-c", f"echo {SEEN} | cat > seen && cat seen"),
        directory=directory,
        environment={"PATH": os.defpath},
        timeout=PATIENCE,
    )
    try:
        ended = sandbox.run(command, Reach(write=(directory,), network=Network.NONE))
    except WorldError as error:
        return explain(str(error), surroundings())
    return None if ended.text.strip() == SEEN else explain(ended.text, surroundings())


def closed_to(sandbox: Bubblewrap) -> tuple[str, ...]:
    """List the paths that every command is to have and cannot use, by asking from inside."""
    asked = (("-r", sandbox.common.read), ("-w", sandbox.common.write))
    found = list[str]()
    with suppress(WorldError, OSError), tempfile.TemporaryDirectory(prefix="mulligan-") as place:
        for right, paths in asked:
            command = Command(
                argv=("/bin/sh", "-c", CLOSED.format(right=right), "sh", *map(str, paths)),
                directory=Path(place),
                environment={"PATH": os.defpath},
                timeout=PATIENCE,
            )
            said = sandbox.run(command, Reach(write=(Path(place),))).text
            found += [str(path) for path in paths if str(path) in said.splitlines()]
    return tuple(found)


def surroundings() -> Surroundings:
    """Ask the machine what it lets programs do."""
    return Surroundings(
        apparmor_restricts=_says("kernel/apparmor_restrict_unprivileged_userns", "1"),
        users_may_not=_says("kernel/unprivileged_userns_clone", "0"),
        none_allowed=_says("user/max_user_namespaces", "0"),
        container=any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")),
        unit=_in_a_unit(),
    )


def _says(setting: str, value: str) -> bool:
    try:
        return Path("/proc/sys", setting).read_text().strip() == value
    except OSError:
        return False


def _in_a_unit() -> bool:
    """Tell whether systemd started this process as a service."""
    try:
        return ".service" in Path("/proc/self/cgroup").read_text()
    except OSError:
        return False
