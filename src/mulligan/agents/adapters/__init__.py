"""The built-in coding agents, one file each. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from mulligan.agents.adapters.aider import AIDER
from mulligan.agents.adapters.claude import CLAUDE
from mulligan.agents.adapters.codex import CODEX
from mulligan.agents.adapters.gemini import GEMINI
from mulligan.agents.adapters.mini import MINI
from mulligan.agents.adapters.opencode import OPENCODE
from mulligan.config.adapters import Adapter


@dataclass(frozen=True, slots=True)
class BuiltInAgent:
    """An agent, the command that installs it on a runner, and the secret with its key."""

    adapter: Adapter
    install: str
    secret: str


BUILT_IN_AGENTS: Mapping[str, BuiltInAgent] = {
    "claude": BuiltInAgent(
        CLAUDE, "npm install --global @anthropic-ai/claude-code@2.1.332", "ANTHROPIC_API_KEY"
    ),
    "codex": BuiltInAgent(CODEX, "npm install --global @openai/codex@0.171.0", "OPENAI_API_KEY"),
    "gemini": BuiltInAgent(
        GEMINI, "npm install --global @google/gemini-cli@0.61.0", "GEMINI_API_KEY"
    ),
    "opencode": BuiltInAgent(
        OPENCODE, "npm install --global opencode-ai@1.18.33", "ANTHROPIC_API_KEY"
    ),
    "aider": BuiltInAgent(AIDER, "pipx install aider-chat==0.86.2", "ANTHROPIC_API_KEY"),
    "mini": BuiltInAgent(
        MINI,
        "pipx install mini-swe-agent==2.4.6 && pipx inject mini-swe-agent mcp",
        "ANTHROPIC_API_KEY",
    ),
}
"""By kind, in the versions that were measured. Every other list of agents derives from this."""

BUILT_IN: Mapping[str, Adapter] = {kind: each.adapter for kind, each in BUILT_IN_AGENTS.items()}
