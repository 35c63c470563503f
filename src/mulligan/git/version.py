"""Which git is on this machine."""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from mulligan.errors import MisconfiguredError
from mulligan.git.repository import PATH
from mulligan.process import Command, run

SAID = re.compile(r"git version (\d+)\.(\d+)")
PATIENCE = timedelta(seconds=30)


def version(environment: Mapping[str, str]) -> tuple[int, int]:
    """Ask git for its version; MisconfiguredError where there is none."""
    asked = run(
        Command(
            argv=("git", "--version"),
            directory=Path("/"),
            environment={"PATH": environment.get("PATH", PATH)},
            timeout=PATIENCE,
        )
    )
    found = SAID.match(asked.text)
    if found is None:
        message = "What is called git on this machine does not tell its version; install git."
        raise MisconfiguredError(message)
    return int(found[1]), int(found[2])
