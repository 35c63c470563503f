"""Say how an agent is started: its arguments, its environment, its files. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mulligan.agent.adapters import BUILT_IN
from mulligan.config.adapters import Adapter, Fact
from mulligan.config.budget import Price
from mulligan.config.operator import AgentSettings
from mulligan.errors import ConfigError

LONGEST_ARGUMENT = 120_000
"""Bytes; Linux takes 131,072 for one argument (MAX_ARG_STRLEN)."""

PROMPT_FILE = "prompt.md"


@dataclass(frozen=True, slots=True)
class Own:
    """What the operator knows of agents that are not built in, of prices, and of hosts.

    `name` is what this one is called, where it has a name.
    """

    adapters: Mapping[str, Adapter]
    prices: Mapping[str, Price]
    hosts: tuple[str, ...] = ()
    name: str = ""


NONE = Own({}, {})


@dataclass(frozen=True, slots=True)
class Invocation:
    """How one run is started; `files` are paths in its home and what is in them."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    stdin: bytes
    files: Mapping[str, str]
    record: Path | None


def adapter_of(settings: AgentSettings, own: Mapping[str, Adapter]) -> Adapter:
    """Find how an agent is called; ConfigError where its kind is not known."""
    if settings.kind == "command":
        return Adapter(program=settings.command[0], arguments=settings.command[1:])
    found = own.get(settings.kind) or BUILT_IN.get(settings.kind)
    if found is None:
        known = ", ".join([*BUILT_IN, *own, "command"])
        message = f"agent.kind: {settings.kind!r} is not known; write one of {known}."
        raise ConfigError(message)
    return found


def tells_its_words(adapter: Adapter) -> bool:
    """Tell whether an agent's words are marked in its output, and the rest is none of them."""
    return any(Fact.SAID in rule.take for rule in adapter.reads)


def program_of(settings: AgentSettings, adapter: Adapter) -> tuple[str, ...]:
    """Give the program, and the arguments that come before all others."""
    if settings.kind == "command":
        return (adapter.program,)
    return settings.command or (adapter.program,)


def invoke(
    settings: AgentSettings, adapter: Adapter, prompt: str, home: Path, *, contained: bool
) -> Invocation:
    """Say how a run is started; `contained` tells that Mulligan's sandbox is around it."""
    given = home / PROMPT_FILE
    record = home / adapter.record if adapter.record else None
    as_argument = prompt.replace("\0", "")
    files = dict(adapter.files)
    if adapter.prompt == "argument" and len(as_argument.encode()) > LONGEST_ARGUMENT:
        as_argument = f"Read your task in the file {given}, all of it, and do it."
    if "{prompt_file}" in adapter.arguments or str(given) in as_argument:
        files[PROMPT_FILE] = prompt
    words = {
        "{prompt}": as_argument,
        "{prompt_file}": str(given),
        "{record}": str(record),
        "{model}": settings.model,
        "{turns}": str(settings.max_turns),
    }
    template = _template(settings, adapter, contained=contained)
    filled = [_filled(argument, words) for argument in template]
    return Invocation(
        argv=(*program_of(settings, adapter), *filled),
        environment=adapter.variables,
        stdin=prompt.encode() if adapter.prompt == "stdin" else b"",
        files=files,
        record=record,
    )


def _template(settings: AgentSettings, adapter: Adapter, *, contained: bool) -> tuple[str, ...]:
    return (
        *adapter.arguments,
        *(adapter.model_arguments if settings.model else ()),
        *(adapter.turns_arguments if settings.max_turns else ()),
        *(adapter.contained_arguments if contained else adapter.uncontained_arguments),
        *settings.arguments,
    )


def _filled(argument: str, words: Mapping[str, str]) -> str:
    """Fill in one word per argument, so that nothing in a prompt is taken for another."""
    for word, value in words.items():
        if word in argument:
            return argument.replace(word, value)
    return argument
