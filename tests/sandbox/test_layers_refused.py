"""Where a system mounts no layers, commands work on copies, and Mulligan says why."""

import errno
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from mulligan.domain.errors import UnavailableError
from mulligan.domain.layer import Layer
from mulligan.sandbox.home import create_layer, layer_in
from mulligan.sandbox.probe import (
    NEWER_MAY,
    NOT_ALLOWED,
    NOT_HERE,
    NOT_LIKE_FILES,
    choose_layers,
    layer_problem,
)
from mulligan.sandbox.process import Command, Finished, run
from mulligan.sandbox.sandbox import NAME, CommandAccess, Unconfined
from world.confined import overlaying, sandbox

ENVIRONMENT = {"PATH": os.environ["PATH"]}
TESTS = str(Path(__file__).parents[1])


class Report(BaseModel):
    """What world/layer_report.py prints."""

    doctor: str
    log: list[str]
    mounter: str
    said: list[str]
    changed: list[str]


def report(
    place: Path,
    *words: str,
    path: str = ENVIRONMENT["PATH"],
    before: Sequence[str] = (),
    layers: tuple[Layer, ...] = (),
) -> Report:
    """Run an attempt's commands in a process of its own."""
    sandbox()
    argv = (*before, sys.executable, "-m", "world.layer_report", str(place), *words)
    variables = {
        "PATH": path,
        "PYTHONPATH": ":".join((TESTS, *sys.path)),
        "HOME": os.environ["HOME"],
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ended = run(Command(argv, Path("/"), variables, timedelta(minutes=1), layers=layers))
    assert ended.exit_code == 0, ended.text
    return Report.model_validate_json(ended.text.strip().rpartition("\n")[2])


def worked(found: Report) -> bool:
    """Return whether each command had what the setup command left, and git saw a change."""
    return found.said == ["left\nleft\n", "left\n"] and found.changed == ["src/calc.py"]


def older_bubblewrap(place: Path) -> str:
    """Put a bubblewrap without overlays first on a PATH, whatever is installed."""
    real = shutil.which(NAME)
    refuse = '{ echo "bwrap: Unknown option $word" >&2; exit 1; }'
    look = f'for word do [ "$word" != --overlay-src ] || {refuse}; done'
    (place / NAME).write_text(f'#!/bin/sh\n{look}\nexec {real} "$@"\n')
    (place / NAME).chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


def test_where_nothing_is_refused_the_supervisor_mounts_layers(tmp_path: Path) -> None:
    found = report(tmp_path)
    assert worked(found)
    assert (found.doctor, found.log, found.mounter) == ("", [], "")


def test_where_only_bubblewrap_may_it_mounts_the_layers(tmp_path: Path) -> None:
    program = overlaying().program
    found = report(tmp_path, "refused")
    assert worked(found)
    assert (found.doctor, found.log, found.mounter) == ("", [], program)


def test_an_older_bubblewrap_leaves_copies_and_the_reason(tmp_path: Path) -> None:
    found = report(tmp_path, "refused", path=older_bubblewrap(tmp_path))
    assert worked(found)
    assert found.doctor == f"{NOT_ALLOWED} (Operation not permitted){NEWER_MAY}"
    assert found.mounter == ""
    assert [line.partition(": ")[2] for line in found.log] == [f"{found.doctor}."]


def test_a_workspace_on_overlayfs_is_refused_and_said(tmp_path: Path) -> None:
    """In a container, the workspace may lie on the container's own overlay."""
    lower, target = tmp_path / "lower", tmp_path / "layer" / "merged"
    lower.mkdir()
    layer = layer_in(tmp_path / "layer", (lower,), target)
    create_layer(layer, ENVIRONMENT)
    found = report(target, layers=(layer,))
    assert worked(found)
    assert found.doctor == f"{NOT_HERE} (Invalid argument)"
    assert [line.partition(": ")[2] for line in found.log] == [f"{found.doctor}."]


def test_a_file_system_without_user_attributes_is_refused_and_said(tmp_path: Path) -> None:
    """Overlayfs mounts there, and then can note nothing: ramfs is one on every Linux."""
    place = tmp_path / "ramfs"
    place.mkdir()
    mounted = 'mount -t ramfs ramfs "$0" && chmod 755 "$0" && exec "$@"'
    own = ("unshare", "-m") if os.getuid() == 0 else ("unshare", "-Urm")
    found = report(place, before=(*own, "sh", "-c", mounted, str(place)))
    assert worked(found)
    assert found.doctor.startswith(f"{NOT_LIKE_FILES} (rm: ")
    assert [line.partition(": ")[2] for line in found.log] == [f"{found.doctor}."]


@dataclass(frozen=True)
class Refusing:
    """A sandbox whose supervisor cannot mount, for the reason of a system that is not here."""

    number: int
    name = "refusing"

    def worktree_path(self, tree: Path) -> Path:
        return tree

    def run(self, command: Command, access: CommandAccess) -> Finished:
        assert access.layers
        raise UnavailableError(f"The layers of x cannot be mounted: {os.strerror(self.number)}.")


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EPERM, f"{NOT_ALLOWED} (Operation not permitted)"),
        (errno.EACCES, f"{NOT_ALLOWED} (Permission denied)"),
        # Linux before 5.11 does not know `userxattr`; without overlayfs there is no such device.
        (errno.EINVAL, f"{NOT_HERE} (Invalid argument)"),
        (errno.ENODEV, f"{NOT_HERE} (No such device)"),
    ],
)
def test_a_refusal_of_the_system_is_said_plainly(number: int, reason: str, tmp_path: Path) -> None:
    choice = choose_layers(Refusing(number), tmp_path / "work", ENVIRONMENT)
    assert (choice.problem, choice.bubblewrap) == (reason, "")


def test_without_a_sandbox_there_are_no_layers(tmp_path: Path) -> None:
    assert layer_problem(Unconfined(), tmp_path, ENVIRONMENT) == "there is no sandbox"


def test_a_trial_removes_everything_that_it_made(tmp_path: Path) -> None:
    assert layer_problem(sandbox(), tmp_path / "work", ENVIRONMENT) == ""
    assert [*(tmp_path / "work").iterdir()] == []
