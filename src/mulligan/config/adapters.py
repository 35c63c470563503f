"""The settings of an agent adapter, built in or your own: its command line and output."""

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, field_validator

from mulligan.config.settings import Settings

HEADER = re.compile(r"[A-Za-z0-9-]+: ?[^\r\n{}]*\{key\}")
LITTERED = r"^\.?[\w-][^\s/\\]*/?$"
"""A name, with `*` for anything but at its beginning, and a slash at its end for a directory."""


class Fact(StrEnum):
    """What a line of an agent's output may tell."""

    SESSION = "session_id"
    MODEL = "model"
    VERSION = "version"
    TURNS = "turns"
    INPUT = "input_tokens"
    CACHED = "cached_tokens"
    OUTPUT = "output_tokens"
    COST = "cost_usd"
    STOP = "stop_reason"
    SAID = "said"
    ACTIVITY = "activity"
    STATUS = "api_status"
    MESSAGE = "api_message"
    REFUSED = "refused"


class Meaning(StrEnum):
    """What a line means for the run."""

    RESULT = "result"
    """It is the record that ends a run; without it the run was cut off."""
    FAILED = "failed"
    """The model's service ended the run."""
    LIMIT = "limit"
    """A limit of the agent's own ended the run."""
    REFUSED = "refused"
    """A tool was refused."""
    WAITING = "waiting"
    """The model's service refused a call, and the agent tries again."""
    PROGRESS = "progress"
    """The model answered; what the service refused before is past."""


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Paths = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""Dotted paths into a JSON line (`*`: each of a list; `role=tool`: those with it), or groups."""


class Rule(Settings):
    """What is read from one kind of line; every rule that fits a line is applied, in order."""

    where: dict[str, JsonValue] = Field(default_factory=dict)
    """Paths in a JSON line and what has to be there; a list: one of it; null: nothing."""
    matching: dict[str, str] = Field(default_factory=dict)
    """Paths in a JSON line and regular expressions that have to be found there."""
    line: str = ""
    """A regular expression for a line that is not JSON; its named groups are the facts."""
    means: Meaning | None = None
    """result, failed, limit, refused, waiting or progress."""
    once: str = ""
    """A path to an id: of lines with the same id only the first is read."""
    take: dict[Fact, Paths] = Field(default_factory=dict[Fact, Paths])
    """Facts and where they are; what a later line says replaces them."""
    add: dict[Fact, Paths] = Field(default_factory=dict[Fact, Paths])
    """Numbers that are summed over all lines."""
    put: dict[Fact, str] = Field(default_factory=dict[Fact, str])
    """Facts that follow from the line itself."""

    @field_validator("line")
    @classmethod
    def _a_pattern(cls, line: str) -> str:
        return _compiled(line)

    @field_validator("matching")
    @classmethod
    def _patterns(cls, matching: dict[str, str]) -> dict[str, str]:
        return {path: _compiled(pattern) for path, pattern in matching.items()}


def _compiled(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        message = f"{pattern!r} is not a regular expression: {error}"
        raise ValueError(message) from error
    return pattern


class Service(Settings):
    """A model's service that an agent calls: where it is, and which key it is sent."""

    url: str
    """Its base URL, as the agent has it."""
    url_variable: str = ""
    """The variable with which the agent is pointed at another base URL."""
    url_arguments: tuple[str, ...] = ()
    """Arguments that point it there, with {url} filled in."""
    keys: dict[str, str] = Field(default_factory=dict)
    """Variables that hold a key, by name, and the header that it is sent in, as `NAME: {key}`."""

    @field_validator("keys")
    @classmethod
    def _headers(cls, keys: dict[str, str]) -> dict[str, str]:
        for header in keys.values():
            if not HEADER.fullmatch(header):
                message = f"{header!r} is not a header with its key; write NAME: {{key}}"
                raise ValueError(message)
        return keys


class Adapter(Settings):
    """How a command-line coding agent is called, and how what it prints is read."""

    program: str
    """The program; found along PATH."""
    arguments: tuple[str, ...] = ()
    """Its arguments; {model}, {prompt}, {prompt_file} and {record} are filled in."""
    model_arguments: tuple[str, ...] = ()
    """Added where agent.model is set."""
    turns_arguments: tuple[str, ...] = ()
    """Added where agent.max_turns is set, as {turns}."""
    contained_arguments: tuple[str, ...] = ()
    """Added where Mulligan's sandbox is around it: its own must not fight that."""
    uncontained_arguments: tuple[str, ...] = ()
    """Added where no sandbox is around it."""
    version_arguments: tuple[str, ...] = ()
    """With which it only says its version, as the manifests of its attempts have it."""
    prompt: Literal["stdin", "argument", "file"] = "stdin"
    """How the prompt goes in: standard input, or wherever {prompt} or {prompt_file} stands."""
    environment: tuple[str, ...] = ()
    """Names of variables that it is given where they are set."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Variables that it always has."""
    services: dict[str, Service] = Field(default_factory=dict)
    """The models' services that it can call, by a name of yours."""
    idle_hosts: tuple[str, ...] = ()
    """Hosts that it asks for by itself and does without; that they are refused is only logged."""
    files: dict[str, str] = Field(default_factory=dict)
    """Files that its home has, by path."""
    record: str = ""
    """The name of a JSON file that it writes at {record}, read after its output."""
    litter: tuple[Annotated[str, Field(pattern=LITTERED)], ...] = ()
    """Names of what it leaves behind that is no work: `.tinker*`, or `.tinker/`, a directory."""
    reads: tuple[Rule, ...] = ()
    """How its output is read."""
    needs_result: bool = False
    """Whether a run without a result record was cut off."""
    usage: Literal["message", "turn", "end", "none"] = "none"
    """How often it says what it has used; a budget is enforced that often."""
    fix: str = ""
    """What to do where its tools are refused."""
