"""Commands in a sandbox that fill the disk: a check fails for it, and is told why."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check
from mulligan.domain.attempt import TimeLimit
from mulligan.domain.errors import DiskFullError
from mulligan.domain.host import MIB
from mulligan.sandbox import disk_use
from mulligan.sandbox.disk_use import Amount, written_since
from mulligan.sandbox.home import create_layer, layer_in
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import CommandAccess, place_in
from world.confined import sandbox
from world.trees import plain_worktree

ENVIRONMENT = {"PATH": os.environ["PATH"]}
FILL = "dd if=/dev/zero of=litter bs=1M count=12; echo > done; sleep 60"


@pytest.fixture
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def free_at(_: Path) -> Amount:
        used = sum(found.st_blocks for found in written_since(0, [tmp_path], device))
        return Amount(10_000 * MIB - 512 * used, 1_000_000)

    device = tmp_path.stat().st_dev
    monkeypatch.setattr(disk_use, "free_at", free_at)
    monkeypatch.setattr(disk_use, "LEAST", (8 * MIB, 200))


def watching(tree: Path) -> Callable[[], DiskFullError | None]:
    return lambda: DiskFullError("It is full.", tree) if (tree / "done").exists() else None


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("layered", [False, True])
def test_a_confined_command_is_told_from_others(tmp_path: Path, *, layered: bool) -> None:
    tree, lower = tmp_path / "tree", tmp_path / "lower"
    tree.mkdir()
    lower.mkdir()
    layer = layer_in(tmp_path / "layer", (lower,), tmp_path / "layer" / "merged")
    layer = layer._replace(upper=str(tree)) if layered else None
    if layer:
        create_layer(layer, ENVIRONMENT)
    place = place_in(tree, layer)
    ended = replace(sandbox(), watch=watching(tree)).run(
        Command(("sh", "-c", FILL), place, ENVIRONMENT, timedelta(seconds=25)),
        CommandAccess(worktree=place, layers=(layer,) if layer else ()),
    )
    assert ended.stopped_by is TimeLimit.DISK


@pytest.mark.usefixtures("_small")
def test_a_check_that_fills_the_disk_fails(tmp_path: Path) -> None:
    tree = plain_worktree(tmp_path / "work")
    confined = replace(sandbox(), watch=watching(tree.path))
    check = Check(name="tests", run=FILL, timeout=timedelta(seconds=25))
    result = CommandVerifier(ENVIRONMENT, confined).check(check, tree, tmp_path / "check.log")
    assert (result.passed, result.timed_out) == (False, False)
    assert result.digest.startswith("Mulligan stopped it because it filled the disk")
