"""The command-line coding agents that Mulligan knows, one small file each. Pure."""

from collections.abc import Mapping

from mulligan.agent.adapters.aider import AIDER
from mulligan.agent.adapters.claude import CLAUDE
from mulligan.agent.adapters.codex import CODEX
from mulligan.agent.adapters.gemini import GEMINI
from mulligan.agent.adapters.mini import MINI
from mulligan.agent.adapters.opencode import OPENCODE
from mulligan.config.adapters import Adapter

BUILT_IN: Mapping[str, Adapter] = {
    "claude": CLAUDE,
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "aider": AIDER,
    "mini": MINI,
}
