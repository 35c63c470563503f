"""Whether this machine has what the agent needs to start."""

import os
from collections.abc import Mapping
from pathlib import Path

from mulligan.config.operator import AgentSettings
from mulligan.domain.machine import Presence
from mulligan.keeper import places


def look_for(settings: AgentSettings, environment: Mapping[str, str]) -> Presence:
    """Look for the agent's program as it will be started, its files and its variables."""
    program, *arguments = settings.command
    path = environment.get("PATH", os.defpath).encode()
    found = (place for place in places(program, path) if _runs(Path(place)))
    return Presence(
        program=next(found, None),
        missing_files=tuple(
            each for each in arguments if each.startswith("/") and not os.access(each, os.F_OK)
        ),
        missing_variables=tuple(name for name in settings.env if name not in environment),
    )


def _runs(place: Path) -> bool:
    return os.access(place, os.X_OK) and place.is_file()
