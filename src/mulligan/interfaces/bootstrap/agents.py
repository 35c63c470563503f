"""What interfaces know of the built-in agents: their list, and which of them is installed here."""

import os
import shutil
from collections.abc import Mapping

from mulligan.agents.adapters import BUILT_IN_AGENTS

__all__ = ["BUILT_IN_AGENTS", "agent_here"]


def agent_here(environment: Mapping[str, str]) -> str:
    """Name the first built-in agent that is installed here; the first of all where none is."""
    path = environment.get("PATH", os.defpath)
    installed = (
        kind
        for kind, agent in BUILT_IN_AGENTS.items()
        if shutil.which(agent.adapter.program, path=path)
    )
    return next(installed, next(iter(BUILT_IN_AGENTS)))
