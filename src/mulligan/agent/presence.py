"""Whether this machine has what the agent needs to start."""

import os
from collections.abc import Mapping
from pathlib import Path

from mulligan.agent.invocation import adapter_of, program_of
from mulligan.config.adapters import Adapter
from mulligan.config.operator import AgentSettings
from mulligan.domain.machine import Presence
from mulligan.keeper import places


def look_for(
    settings: AgentSettings,
    environment: Mapping[str, str],
    own: Mapping[str, Adapter] | None = None,
) -> Presence:
    """Look for the agent's program as it will be started, its files and its variables."""
    adapter = adapter_of(settings, own or {})
    program, *before = program_of(settings, adapter)
    arguments = [*before, *(adapter.arguments if settings.kind == "command" else ())]
    path = environment.get("PATH", os.defpath).encode()
    found = (place for place in places(program, path) if _runs(Path(place)))
    return Presence(
        program=next(found, None),
        wanted=program,
        missing_files=tuple(
            each for each in arguments if each.startswith("/") and not os.access(each, os.F_OK)
        ),
        missing_variables=tuple(name for name in settings.env if name not in environment),
    )


def _runs(place: Path) -> bool:
    return os.access(place, os.X_OK) and place.is_file()
