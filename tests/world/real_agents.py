"""The coding agents of npm and PyPI: how they are installed, and pointed at a scripted model."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from mulligan.config.operator import AgentSettings
from mulligan.sandbox.process import Command, run
from world.model_script import Turn

MODEL = "gpt-4o"
MENDED = "mended.txt"
WRITE = f"echo mended > {MENDED}"
EDIT = f"""\
I shall write the file.

{MENDED}
```
<<<<<<< SEARCH
=======
mended
>>>>>>> REPLACE
```
"""
"""Aider has no tools: the answer contains the change."""


NEWEST = bool(os.environ.get("NEWEST"))
"""Whether to try the newest releases instead of the pinned ones (`make check-agents NEWEST=1`)."""


@dataclass(frozen=True)
class Package:
    """Where an agent comes from; `also` is what its own requirements forget."""

    kind: str
    registry: str
    name: str
    version: str
    also: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        if self.registry == "npm":
            return f"{self.name}@{'latest' if NEWEST else self.version}"
        return self.name if NEWEST else f"{self.name}=={self.version}"

    def installed(self, place: Path) -> str:
        """Return the version that `install` installed below a directory."""
        own = place / self.kind
        if self.registry == "npm":
            package = json.loads((own / "node_modules" / self.name / "package.json").read_text())
            return str(package["version"])
        stem = self.name.replace("-", "_")
        (found,) = own.glob(f"lib/python3*/site-packages/{stem}-*.dist-info")
        return found.name.removeprefix(f"{stem}-").removesuffix(".dist-info")


PACKAGES = (
    Package("claude", "npm", "@anthropic-ai/claude-code", "2.1.332"),
    Package("codex", "npm", "@openai/codex", "0.171.0"),
    Package("gemini", "npm", "@google/gemini-cli", "0.61.0"),
    Package("opencode", "npm", "opencode-ai", "1.18.33"),
    Package("aider", "pypi", "aider-chat", "0.86.2"),
    Package("mini", "pypi", "mini-swe-agent", "2.4.6", ("mcp",)),
)


def install(package: Package, place: Path) -> Path:
    """Install an agent below a directory, unless it is there; give where its program is."""
    own = place / package.kind
    directory = own / ("node_modules/.bin" if package.registry == "npm" else "bin")
    done = own / f".installed-{'newest' if NEWEST else package.version}"
    if done.exists():
        return directory
    own.mkdir(parents=True, exist_ok=True)
    if package.registry == "npm":
        _say_and_run(["npm", "install", "--no-audit", "--no-fund", package.wanted], own)
    else:
        _say_and_run([sys.executable, "-m", "venv", "."], own)
        _say_and_run(["bin/pip", "install", "--quiet", package.wanted, *package.also], own)
    done.touch()
    return directory


def _say_and_run(argv: Sequence[str], directory: Path) -> None:
    command = Command(argv, directory, dict(os.environ), timedelta(minutes=10))
    finished = run(command)
    assert finished.exit_code == 0, f"{' '.join(argv)}: {finished.text}"


def settings(kind: str, *more: str, limit: int | None = None) -> AgentSettings:
    """Configure an agent for a scripted model, as an operator would."""
    models = {"claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro", "codex": "gpt-5"}
    litellm = f"{'x' if kind == 'opencode' else 'openai'}/{MODEL}"
    return AgentSettings(
        kind=kind,
        model=models.get(kind, litellm),
        arguments=(*_arguments(kind), *more),
        max_turns=limit,
        timeout=timedelta(minutes=3),
    )


def _arguments(kind: str) -> tuple[str, ...]:
    if kind != "codex":
        return ()
    few = [f"model_providers.mulligan.{name}_max_retries=2" for name in ("request", "stream")]
    return tuple(word for each in few for word in ("-c", each))


def environment(kind: str, address: str, path: str) -> dict[str, str]:
    """Give the variables that an operator would set where Mulligan runs."""
    known: Mapping[str, Mapping[str, str]] = {
        "claude": {
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "k",
            "CLAUDE_CODE_MAX_RETRIES": "2",
        },
        "codex": {"CODEX_API_KEY": "k", "OPENAI_BASE_URL": f"{address}/v1"},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": "k"},
        "opencode": {"OPENCODE_CONFIG_CONTENT": json.dumps(opencode(address))},
    }
    litellm = {"OPENAI_API_BASE": f"{address}/v1", "OPENAI_API_KEY": "k"}
    return {"PATH": path, **known.get(kind, litellm)}


def opencode(address: str, **more: object) -> dict[str, object]:
    """Write opencode's configuration for a provider of one's own, with its price."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{address}/v1", "apiKey": "k"},
        "models": {MODEL: {"cost": {"input": 2.5, "output": 10}}},
    }
    return {"provider": {"x": provider}, "share": "disabled", **more}


def change(kind: str, shell: str = WRITE, edit: str = EDIT) -> tuple[Turn, ...]:
    """Say how a model makes this agent change a file."""
    if kind == "aider":
        return (Turn(edit),)
    return (Turn("I shall write the file.", shell), Turn("Wrote it."))
