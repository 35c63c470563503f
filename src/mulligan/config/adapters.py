"""The settings of an agent adapter, built in or your own: its command line and output."""

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, field_validator

from mulligan.config.settings import Settings

HEADER = re.compile(r"[A-Za-z0-9-]+: ?[^\r\n{}]*\{key\}")
LITTERED = r"^\.?[\w-][^\s/\\]*/?$"
"""A name, with `*` as a wildcard except at its beginning; a trailing slash marks a directory."""


class Fact(StrEnum):
    """A fact that a line of an agent's output may contain."""

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
    """The meaning of a line for the run."""

    RESULT = "result"
    """The final record of a run; without it, the run was cut off."""
    FAILED = "failed"
    """The model's service ended the run."""
    CRASHED = "crashed"
    """The agent reports an error of its own; its change is not complete."""
    LIMIT = "limit"
    """A limit of the agent's own ended the run."""
    REFUSED = "refused"
    """A tool was refused."""
    WAITING = "waiting"
    """The model's service refused a call, and the agent tries again."""
    PROGRESS = "progress"
    """The model answered; earlier refusals by the service no longer matter."""


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Paths = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""Dotted paths into a JSON line (`*`: each of a list; `role=tool`: those with it), or groups."""


class Rule(Settings):
    """How to read one kind of line; every matching rule is applied, in order."""

    where: dict[str, JsonValue] = Field(default_factory=dict)
    """Paths in a JSON line and their required values. A list: one of its values. null: no
    value.

    Example: {kind: end, ok: true}
    """
    matching: dict[str, str] = Field(default_factory=dict)
    """Paths in a JSON line and regular expressions that must match a value there that is not empty.

    Example: {message: 'rate limit'}
    """
    line: str = ""
    r"""A regular expression of RE2 for a line that is not JSON. Its named groups are the facts.

    Example: '^tokens: (?P<tokens>\d+)'
    """
    means: Meaning | None = None
    """result, failed, crashed, limit, refused, waiting or progress.

    Example: result
    """
    once: str = ""
    """The path of an id. Of several lines with one id, only the first counts.

    Example: message.id
    """
    take: dict[Fact, Paths] = Field(default_factory=dict[Fact, Paths])
    """Facts and their paths. A later line replaces an earlier value.

    Example: {said: summary}
    """
    add: dict[Fact, Paths] = Field(default_factory=dict[Fact, Paths])
    """Facts that are summed over all lines, and their paths.

    Example: {input_tokens: usage.prompt}
    """
    put: dict[Fact, str] = Field(default_factory=dict[Fact, str])
    """Facts with a fixed value for a matching line.

    Example: {stop_reason: limit}
    """

    @field_validator("line")
    @classmethod
    def _a_pattern(cls, line: str) -> str:
        return _compiled(line)

    @field_validator("matching")
    @classmethod
    def _patterns(cls, matching: dict[str, str]) -> dict[str, str]:
        return {path: _compiled(pattern) for path, pattern in matching.items()}


def _compiled(pattern: str) -> str:
    # Imported only where there is a rule, as in policy.py.
    from mulligan.domain.patterns import PatternError, expression  # noqa: PLC0415

    try:
        expression(pattern)
    except PatternError as error:
        raise ValueError(f"{pattern!r} is refused; {error}") from error
    return pattern


class Service(Settings):
    """A model's service that an agent calls: its address, and how it receives the key."""

    url: str
    """The base URL, as the agent uses it.

    Example: https://api.tinker.example/v1
    """
    url_variable: str = ""
    """The environment variable that sets another base URL.

    Example: TINKER_URL
    """
    url_arguments: tuple[str, ...] = ()
    """Arguments that set another base URL, with {url} filled in.

    Example: [--base-url, '{url}']
    """
    keys: dict[str, str] = Field(default_factory=dict)
    """Variables that hold a key, each with the header that sends it, as `NAME: {key}`.

    Example: {TINKER_API_KEY: 'Authorization: Bearer {key}'}
    """

    @field_validator("keys")
    @classmethod
    def _headers(cls, keys: dict[str, str]) -> dict[str, str]:
        for header in keys.values():
            if not HEADER.fullmatch(header):
                raise ValueError(f"{header!r} is not a header with its key; write NAME: {{key}}")
        return keys


class Adapter(Settings):
    """How to start a command-line coding agent, and how to read its output."""

    program: str
    """The program, found on the PATH.

    Example: tinker
    """
    arguments: tuple[str, ...] = ()
    """Its arguments. Mulligan fills in {model}, {prompt}, {prompt_file} and {record}.

    Example: [--task, '{prompt_file}']
    """
    model_arguments: tuple[str, ...] = ()
    """Arguments to add if agent.model is set.

    Example: [--model, '{model}']
    """
    turns_arguments: tuple[str, ...] = ()
    """Arguments to add if agent.max_turns is set, as {turns}.

    Example: [--max-turns, '{turns}']
    """
    contained_arguments: tuple[str, ...] = ()
    """Arguments to add inside Mulligan's sandbox, to switch off the agent's own.

    Example: [--no-sandbox]
    """
    uncontained_arguments: tuple[str, ...] = ()
    """Arguments to add without a sandbox.

    Example: [--sandbox]
    """
    version_arguments: tuple[str, ...] = ()
    """Arguments that print only the version, for the manifests.

    Example: [--version]
    """
    prompt: Literal["stdin", "argument", "file"] = "stdin"
    """How the agent gets the prompt. `stdin`: on standard input. `argument`: at the place of
    {prompt}. `file`: in the file at {prompt_file}."""
    environment: tuple[str, ...] = ()
    """Names of variables to pass to the agent if they are set.

    Example: [TINKER_API_KEY]
    """
    variables: dict[str, str] = Field(default_factory=dict)
    """Variables that are always set.

    Example: {TINKER_TELEMETRY: "0"}
    """
    services: dict[str, Service] = Field(default_factory=dict)
    """The models' services that it calls, by name."""
    idle_hosts: tuple[str, ...] = ()
    """Hosts that the agent contacts without need. A refused request to them is only logged.

    Example: [telemetry.tinker.example]
    """
    files: dict[str, str] = Field(default_factory=dict)
    """Files to create in the agent's home, by path.

    Example: {.tinker/settings: 'color = never'}
    """
    record: str = ""
    """The name of a JSON file that the agent writes at {record}. Mulligan reads it after the
    output.

    Example: result.json
    """
    litter: tuple[Annotated[str, Field(pattern=LITTERED)], ...] = ()
    """Names of files that the agent leaves behind and that are not part of its change. A
    directory ends with a slash.

    Example: [.tinker/]
    """
    reads: tuple[Rule, ...] = ()
    """The rules that read its output."""
    needs_result: bool = False
    """Whether a run without a result record counts as cut off."""
    usage: Literal["message", "turn", "end", "none"] = "none"
    """How often the agent reports its usage: after each `message`, after each `turn`, at the `end`
    or never (`none`). Mulligan checks budgets that often."""
    fix: str = ""
    """Advice for the case that the agent's tools are refused.

    Example: start tinker with --trust
    """
