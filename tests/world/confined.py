"""A sandbox that works, or the reason why a test is skipped."""

import os
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from mulligan.config.operator import SandboxLimits, SandboxSettings
from mulligan.sandbox.probe import layer_problem, probe_sandbox
from mulligan.sandbox.sandbox import NAME, Bubblewrap

GENEROUS_LIMITS = SandboxLimits()


@cache
def _unavailable_reason() -> str:
    return str(probe_sandbox(SandboxSettings(), os.environ).problem or "")


def sandbox(hide: tuple[Path, ...] = (), limits: SandboxLimits = GENEROUS_LIMITS) -> Bubblewrap:
    """Give a sandbox, built as wiring builds it; skip the test where none works.

    In CI, where bubblewrap is installed, one that does not work is a failure.
    """
    if why := _unavailable_reason():
        if os.environ.get("CI") == "true" and shutil.which(NAME):
            pytest.fail(why)
        pytest.skip(why)
    made = probe_sandbox(SandboxSettings(limits=limits), os.environ, hide).sandbox
    assert made
    return made


@cache
def _overlay_problem(program: str) -> str:
    with tempfile.TemporaryDirectory() as place:
        own = replace(sandbox(), program=program, mounts_layers=True)
        return layer_problem(own, Path(place), os.environ)


def overlaying() -> Bubblewrap:
    """Give a sandbox whose bubblewrap mounts the layers; skip the test where it is too old."""
    own = replace(sandbox(), mounts_layers=True)
    if "Unknown option" in (why := _overlay_problem(own.program)):
        pytest.skip("this bubblewrap is older than 0.11, which has overlays")
    assert not why
    return own


def usable_mode() -> str:
    """Give the mode in which Mulligan starts here: `auto`, or `off` where no sandbox works."""
    return "off" if _unavailable_reason() else "auto"
