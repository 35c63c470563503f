"""Say how commands get what setup commands left in a workspace; a process of its own, as JSON.

`python -m world.layer_report DIRECTORY [refused]`. With `refused`, the kernel refuses the
supervisor's mount namespace and not bubblewrap's, as AppArmor's profile for bubblewrap does.
"""

import ctypes
import errno
import json
import os
import platform
import struct
import sys
from dataclasses import replace
from pathlib import Path

from structlog.testing import capture_logs

from mulligan.checks.runner import CommandVerifier
from mulligan.config.operator import (
    AgentSettings,
    Limits,
    Operator,
    RepositorySettings,
    WorkspaceSettings,
)
from mulligan.config.policy import Check
from mulligan.interfaces.bootstrap.sandbox import confine, sandbox_status, with_layers
from world.checkouts import REF, REPOSITORY, calc_remote, worktrees_of

UNSHARE = {"x86_64": 272, "aarch64": 97}
NEW_MOUNT_NAMESPACE = 0x00020000
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
LOAD, IF_EQUAL, IF_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def refuse_mount_namespaces() -> None:
    """Have the kernel refuse `unshare` of a mount namespace; bubblewrap makes its own by `clone`.

    The flags are at 16 (struct seccomp_data).
    """
    steps = (
        (LOAD, 0, 0, 0),
        (IF_EQUAL, 0, 3, UNSHARE[platform.machine()]),
        (LOAD, 0, 0, 16),
        (IF_SET, 0, 1, NEW_MOUNT_NAMESPACE),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    )
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    library, program = ctypes.CDLL(None), Program(len(steps), code)
    assert library.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
    assert library.prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0


def report(place: Path) -> dict[str, object]:
    """Run a setup command, checks and git as an attempt does."""
    root, log = place / "work", place / "log"
    operator = Operator(
        repositories=(RepositorySettings(name=REPOSITORY),),
        agent=AgentSettings(command=("false",)),
        workspace=WorkspaceSettings(root=root),
        # A file system in memory says that it has no space.
        limits=Limits(free_mib=0),
    )
    with capture_logs() as logs:
        layers = with_layers(confine(operator, os.environ), operator, os.environ)
    worktrees = replace(
        worktrees_of(root, calc_remote(place / "remote.git")),
        is_layered=not layers.problem,
        bubblewrap=layers.bubblewrap,
    )
    verifier = CommandVerifier(os.environ, layers.sandbox)
    with worktrees.open(REF) as tree:
        assert verifier.set_up(("mkdir build; echo left | tee build/it > ~/it",), tree, log).passed
        made = tree.keep_set_up()
        said = list[str]()
        for line in ("cat build/it ~/it; rm -r build ~/it", "cat build/it; echo x >> src/calc.py"):
            made.check_out(made.start_sha)
            verifier.check(Check(name="it", run=line), made, log)
            said.append(log.read_text())
        changed = made.changed_files(made.start_sha)
    return {
        "doctor": sandbox_status(operator, os.environ).copies,
        "log": [entry["reason"] for entry in logs if entry["event"] == "layers_unavailable"],
        "mounter": layers.bubblewrap,
        "said": said,
        "changed": changed,
    }


if __name__ == "__main__":
    if sys.argv[2:] == ["refused"]:
        refuse_mount_namespaces()
    sys.stdout.write(json.dumps(report(Path(sys.argv[1]))))
