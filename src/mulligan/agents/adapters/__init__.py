"""One file for each coding agent that is built in. Pure."""

from collections.abc import Mapping

from mulligan.agents.adapters.aider import AIDER
from mulligan.agents.adapters.claude import CLAUDE
from mulligan.agents.adapters.codex import CODEX
from mulligan.agents.adapters.gemini import GEMINI
from mulligan.agents.adapters.mini import MINI
from mulligan.agents.adapters.opencode import OPENCODE
from mulligan.config.adapters import Adapter

BUILT_IN: Mapping[str, Adapter] = {
    "claude": CLAUDE,
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "aider": AIDER,
    "mini": MINI,
}
