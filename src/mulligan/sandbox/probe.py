"""Try whether commands can be confined on this machine, and say what fixes it where not."""

import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from mulligan.config.operator import SandboxSettings
from mulligan.domain.attempt import ResourceLimits
from mulligan.domain.errors import WorldError
from mulligan.domain.host import MIB, Network
from mulligan.sandbox.bubblewrap import Confinement
from mulligan.sandbox.home import clear, create_layer, layer_in
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import NAME, Bubblewrap, CommandAccess, Sandbox, Unconfined
from mulligan.sandbox.seccomp import filter_for
from mulligan.sandbox.user import sandbox_user


@dataclass(frozen=True, slots=True)
class SandboxProblem:
    """Why commands cannot be confined, and the cure."""

    message: str
    fix: str

    def __str__(self) -> str:
        """Say both."""
        return f"{self.message} {self.fix}"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A sandbox that works, or why there is none."""

    sandbox: Bubblewrap | None
    problem: SandboxProblem | None = None

    @property
    def filters(self) -> bool:
        """Return whether system calls are filtered, too."""
        return self.sandbox is not None and self.sandbox.filter is not None


PROBE_TIMEOUT = timedelta(seconds=20)

PROBE_OUTPUT = "it works"
"""The expected output of the trial command."""


def probe_sandbox(
    settings: SandboxSettings, environment: Mapping[str, str], hide: tuple[Path, ...] = ()
) -> ProbeResult:
    """Build the sandbox and run a command in it, since being installed is not enough.

    `hide` is what no command may see: Mulligan's state, its worktrees, its token.
    """
    program = shutil.which(NAME, path=environment.get("PATH", os.defpath))
    if program is None:
        return ProbeResult(None, NOT_INSTALLED)
    sandbox = _build(program, settings, hide)
    try:
        with tempfile.TemporaryDirectory(prefix="mulligan-probe-") as directory:
            trouble = _trouble_with(sandbox, Path(directory))
    except OSError:
        return ProbeResult(None, FULL_DISK)
    return ProbeResult(None if trouble else sandbox, trouble)


def _build(program: str, settings: SandboxSettings, hide: tuple[Path, ...]) -> Bubblewrap:
    limits = settings.limits
    common = Confinement(read=settings.read, write=settings.write, tmp_bytes=limits.tmp_mib * MIB)
    hidden = tuple(dict.fromkeys([*hide, *(each.resolve() for each in hide)]))
    bounds = ResourceLimits(limits.processes, limits.memory_mib * MIB, limits.file_mib * MIB)
    calls = filter_for(platform.machine())
    return Bubblewrap(program, common, bounds, calls, hidden, user=sandbox_user())


def _trouble_with(sandbox: Bubblewrap, directory: Path) -> SandboxProblem | None:
    """Confine a command as checks are, and see whether it could print and write."""
    command = Command(
        # Not the shell's own echo, which says nothing of a full disk.
        argv=("/bin/sh", "-c", f"echo {PROBE_OUTPUT} | cat > seen && cat seen"),
        directory=directory,
        environment={"PATH": os.defpath},
        timeout=PROBE_TIMEOUT,
    )
    try:
        ended = sandbox.run(command, CommandAccess(write=(directory,), network=Network.NONE))
    except WorldError as error:
        return explain_problem(str(error), read_namespace_support())
    return (
        None
        if ended.text.strip() == PROBE_OUTPUT
        else explain_problem(ended.text, read_namespace_support())
    )


ACCESS_TEST = 'for path do test {right} "$path" || echo "$path"; done'
"""Tells which of its arguments cannot be used in one way."""


def unusable_paths(sandbox: Bubblewrap) -> tuple[str, ...]:
    """List the paths that every command is to have and cannot use, by asking from inside."""
    asked = (("-r", sandbox.common.read), ("-w", sandbox.common.write))
    found = list[str]()
    with suppress(WorldError, OSError), tempfile.TemporaryDirectory(prefix="mulligan-") as place:
        for right, paths in asked:
            if not paths:
                continue
            command = Command(
                argv=("/bin/sh", "-c", ACCESS_TEST.format(right=right), "sh", *map(str, paths)),
                directory=Path(place),
                environment={"PATH": os.defpath},
                timeout=PROBE_TIMEOUT,
            )
            output = sandbox.run(command, CommandAccess(write=(Path(place),))).text
            found += [str(path) for path in paths if str(path) in output.splitlines()]
    return tuple(found)


# Layers of directories.


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """A sandbox that mounts layers, or the `problem` for which its commands get copies."""

    sandbox: Sandbox
    problem: str = ""

    @property
    def bubblewrap(self) -> str:
        """Return the bubblewrap that mounts layers; empty if the supervisor does."""
        sandbox = self.sandbox
        if isinstance(sandbox, Bubblewrap) and sandbox.mounts_layers:
            return sandbox.program
        return ""


def choose_layers(sandbox: Sandbox, directory: Path, environment: Mapping[str, str]) -> LayerChoice:
    """Let the supervisor mount the layers of a directory, or bubblewrap if that fails."""
    problem = layer_problem(sandbox, directory, environment)
    if problem and isinstance(sandbox, Bubblewrap):
        other = replace(sandbox, mounts_layers=True)
        still = layer_problem(other, directory, environment)
        if not still:
            return LayerChoice(other)
        is_older = "Unknown option" in still and problem.startswith(NOT_ALLOWED)
        problem += NEWER_MAY if is_older else ""
    return LayerChoice(sandbox, problem)


NOT_ALLOWED = "AppArmor, a container or Linux before 5.11 does not let Mulligan mount layers"
NOT_HERE = "layers cannot lie in workspace.root, as on the overlay of a container or in old Linux"
NOT_LIKE_FILES = "layers in workspace.root fail, as on a file system without user attributes"
NEWER_MAY = "; bubblewrap 0.11 or newer may be allowed to"
"""Why commands get copies; the words of the system follow in brackets."""

LAYER_TEST = (
    'test "$(cat given)" = old && echo new > given && rm -r directory && mkdir directory'
    ' && test -z "$(ls directory)" && mv mine moved && test "$(cat given)" = new && echo "$0"'
)
"""Reads, overwrites, removes and renames what is in the lower directories."""


def layer_problem(sandbox: Sandbox, directory: Path, environment: Mapping[str, str]) -> str:
    """Try a layer in a directory; return why commands need copies there, or an empty string."""
    if isinstance(sandbox, Unconfined):
        return "there is no sandbox"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="layer-", dir=directory) as place:
            return _layer_problem(sandbox, Path(place), environment)
    except OSError as error:
        return error.strerror or "the disk refused"


def _layer_problem(sandbox: Sandbox, place: Path, environment: Mapping[str, str]) -> str:
    lower = place / "lower"
    (lower / "directory" / "inside").mkdir(parents=True)
    (lower / "given").write_text("old\n")
    (place / "tree").mkdir()
    (place / "tree" / "mine").touch()
    layer = layer_in(place / "layer", (place / "tree", lower), place / "layer" / "merged")
    create_layer(layer, environment)
    command = Command(
        argv=("/bin/sh", "-c", LAYER_TEST, PROBE_OUTPUT),
        directory=Path(layer.target),
        environment={"PATH": os.defpath},
        timeout=PROBE_TIMEOUT,
    )
    access = CommandAccess(
        worktree=Path(layer.target), layers=(layer,), owned=(place / "tree", lower)
    )
    try:
        ended = sandbox.run(command, access)
    except WorldError as error:
        return _refusal(str(error).rstrip("."))
    finally:
        clear(place / "layer", environment)
    is_whole = (lower / "given").read_text() == "old\n" and (lower / "directory").is_dir()
    if ended.text.strip() == PROBE_OUTPUT and is_whole:
        return ""
    return f"{NOT_LIKE_FILES} ({ended.last_line or 'the trial said nothing'})"


def _refusal(error: str) -> str:
    """Say plainly why the supervisor could not mount a layer."""
    before, refused, why = error.partition("cannot be mounted: ")
    if not refused:
        return before
    is_allowed = not any(word in why for word in REFUSED)
    return f"{NOT_HERE if is_allowed else NOT_ALLOWED} ({why})"


# What keeps a sandbox from working, and the cure.

DEBIAN = "Install it, on Debian and Ubuntu with: apt-get install bubblewrap."

NOT_INSTALLED = SandboxProblem("bubblewrap is not installed.", DEBIAN)

TOO_OLD = SandboxProblem("bubblewrap is older than 0.8.", "Install a newer one.")

APPARMOR = SandboxProblem(
    "AppArmor does not allow programs to create namespaces.",
    "Allow it: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile for bwrap that"
    " has `userns,`.",
)

USERS_MAY_NOT = SandboxProblem(
    "Only root can create user namespaces on this machine.",
    "Allow it: sysctl kernel.unprivileged_userns_clone=1.",
)

NONE_ALLOWED = SandboxProblem(
    "No user namespaces can be created: the limit is reached, or this is already a sandbox.",
    "Raise it: sysctl user.max_user_namespaces=10000, or start Mulligan outside that sandbox.",
)

CONTAINER = SandboxProblem(
    "This container cannot create namespaces.",
    "Start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    " --security-opt systempaths=unconfined; or set sandbox to off and trust the container.",
)

UNIT = SandboxProblem(
    "The systemd unit blocks bubblewrap.",
    "Remove from the unit the settings that its comments name: RestrictNamespaces,"
    " ProtectKernelTunables, ProtectKernelLogs, ProtectHostname, ProcSubset,"
    " RestrictSUIDSGID, DynamicUser.",
)

FULL_DISK = SandboxProblem(
    "There is no disk space for the directory of a sandboxed command.", "Make room."
)

NETWORK = "loopback:"
"""The last word of bubblewrap's error if it cannot make a network namespace."""

NO_SPACE = "No space left on device"

REFUSED = ("not permitted", "ermission denied")


@dataclass(frozen=True, slots=True)
class NamespaceSupport:
    """The machine's settings about namespaces; each is off on a machine without it."""

    apparmor_restricts: bool = False
    users_may_not: bool = False
    none_allowed: bool = False
    container: bool = False
    unit: bool = False


def explain_problem(output: str, around: NamespaceSupport) -> SandboxProblem:
    """Return the reason of bubblewrap's error, from the settings of the machine."""
    last = output.strip().rpartition("\n")[2].rpartition("set up: ")[2].strip(".")
    if "Unknown option" in last:
        return TOO_OLD
    if NO_SPACE in output:
        return FULL_DISK
    if "exceeded" in last or around.none_allowed:
        return NONE_ALLOWED
    if around.apparmor_restricts and ("uid map" in last or NETWORK in last):
        return APPARMOR
    if any(word in last for word in REFUSED):
        for holds, reason in (
            (around.container, CONTAINER),
            (around.unit, UNIT),
            (around.apparmor_restricts, APPARMOR),
            (around.users_may_not, USERS_MAY_NOT),
        ):
            if holds:
                return reason
    return SandboxProblem(
        f"bubblewrap does not work here: {last or 'it says nothing'}.",
        "Fix the cause, or set `sandbox: off`.",
    )


def read_namespace_support() -> NamespaceSupport:
    """Read the machine's settings about namespaces."""
    return NamespaceSupport(
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
    """Return whether systemd started this process as a service."""
    try:
        return ".service" in Path("/proc/self/cgroup").read_text()
    except OSError:
        return False
