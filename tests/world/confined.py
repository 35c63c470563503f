"""A sandbox that works, or the reason why a test is skipped."""

import os
from functools import cache
from pathlib import Path

import pytest

from mulligan.config.operator import SandboxLimits, SandboxSettings
from mulligan.sandbox.probe import try_out
from mulligan.sandbox.sandbox import Bubblewrap

GENEROUS = SandboxLimits()


@cache
def _why_not() -> str:
    return str(try_out(SandboxSettings(), os.environ).trouble or "")


def sandbox(hide: tuple[Path, ...] = (), limits: SandboxLimits = GENEROUS) -> Bubblewrap:
    """Give a sandbox, built as wiring builds it; skip the test where none works."""
    if why := _why_not():
        pytest.skip(why)
    made = try_out(SandboxSettings(limits=limits), os.environ, hide).sandbox
    assert made
    return made
