"""Parse the Action's inputs, and the facts about its runner. Pure."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from pydantic import JsonValue

from mulligan.config.load import read_content, read_operator
from mulligan.config.operator import Operator
from mulligan.config.settings import parse_duration
from mulligan.domain.errors import UsageError
from mulligan.domain.issue import REPOSITORY

WHERE = "the inputs of the Action"
EVENT = re.compile(r"[a-z_]{1,40}")
NUMBER = re.compile(r"[1-9][0-9]{0,5}")
DIGITS = re.compile(r"[0-9]{1,20}")
SERVER = "https://github.com"
KEPT_GITHUB_KEYS = (("github", "app"), ("github", "ca_file"))
"""Keys of `github` that come from the file, not from the run."""
MIN_LEASE = timedelta(minutes=1)
"""The minimum lease, longer than any slow answer from GitHub."""


@dataclass(frozen=True, slots=True)
class Runner:
    """The runner of a run; `worker` is its name on the state ref, without the machine's name."""

    repository: str
    event: str
    worker: str
    place: Path
    server: str = SERVER
    output: Path | None = None
    summary: Path | None = None


@dataclass(frozen=True, slots=True)
class Inputs:
    """The workflow's inputs; `given` are the operator's keys that follow from them."""

    given: Mapping[str, JsonValue] = field(repr=False)
    agent: Mapping[str, JsonValue]
    sandbox: str = ""
    config: str = ""
    attempts: int | None = None
    limit: int | None = None
    lease: timedelta | None = None


def runner_of(variables: Mapping[str, str], nonce: str) -> Runner:
    """Read the runner's variables; UsageError outside a workflow run."""
    repository, temp = variables.get("GITHUB_REPOSITORY", ""), variables.get("RUNNER_TEMP", "")
    if not REPOSITORY.fullmatch(repository) or not temp:
        raise UsageError(
            "`mulligan action` works only in a GitHub workflow. Elsewhere, run `mulligan once`."
        )
    event = variables.get("GITHUB_EVENT_NAME", "")
    run = f"{_digits(variables, 'GITHUB_RUN_ID')}.{_digits(variables, 'GITHUB_RUN_ATTEMPT')}"
    return Runner(
        repository=repository,
        event=event if EVENT.fullmatch(event) else "an event",
        worker=f"run-{run}-{nonce}",
        place=Path(temp, "mulligan-state"),
        server=variables.get("GITHUB_SERVER_URL") or SERVER,
        output=_path(variables, "GITHUB_OUTPUT"),
        summary=_path(variables, "GITHUB_STEP_SUMMARY"),
    )


def inputs_of(variables: Mapping[str, str], runner: Runner) -> Inputs:
    """Read the INPUT_* variables; an empty one counts as not given."""
    values = {
        name.removeprefix("INPUT_"): value.strip()
        for name, value in variables.items()
        if name.startswith("INPUT_")
    }
    given: dict[str, JsonValue] = {
        "github": {
            "api_url": variables.get("GITHUB_API_URL") or "https://api.github.com",
            "token": values.get("GITHUB_TOKEN") or None,
        },
        "state": {"url": f"sqlite:///{runner.place}/mulligan.db"},
        "workspace": {"root": str(runner.place / "work")},
    }
    lease = values.get("LEASE")
    return Inputs(
        given=given,
        agent=_agent(values),
        sandbox=values.get("SANDBOX", ""),
        config=values.get("CONFIG", ""),
        attempts=_number(values, "ATTEMPTS"),
        limit=_number(values, "LIMIT"),
        lease=_lease(lease) if lease else None,
    )


def operator_of(
    inputs: Inputs, runner: Runner, variables: Mapping[str, str], text: bytes | None
) -> Operator:
    """Merge the inputs with the operator's file from the base branch, if one is named."""
    where = inputs.config or WHERE
    written = read_content(text or b"", where)
    # Unless the file names an app, the token is the run's.
    by_app = bool(_keys(written.get("github")).get("app"))
    github = _keys(inputs.given["github"])
    given: dict[str, JsonValue] = {
        **inputs.given,
        "github": {key: each for key, each in github.items() if key != "token" or not by_app},
        "repositories": [_repository(runner.repository, written.get("repositories"))],
    }
    if inputs.agent:
        given["agent"] = {**_keys(written.get("agent")), **inputs.agent}
    if inputs.sandbox:
        given["sandbox"] = {**_keys(written.get("sandbox")), "mode": inputs.sandbox}
    elif "sandbox" not in written:
        given["sandbox"] = "required"
    return read_operator(text or b"", variables, where, given, KEPT_GITHUB_KEYS)


def bootstrap_operator(inputs: Inputs, runner: Runner, variables: Mapping[str, str]) -> Operator:
    """Return a configuration that suffices to read the base branch, before the agent is known."""
    given: dict[str, JsonValue] = {
        **inputs.given,
        "repositories": [{"name": runner.repository}],
        "agent": {"kind": "command", "command": ["none"]},
    }
    return read_operator(b"", variables, WHERE, given)


def _keys(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _agent(values: Mapping[str, str]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    if values.get("AGENT"):
        found["kind"] = values["AGENT"]
    if values.get("COMMAND"):
        found["command"] = [*_arguments(values["COMMAND"])]
    if values.get("MODEL"):
        found["model"] = values["MODEL"]
    if values.get("AGENT_ENV"):
        found["env"] = [*values["AGENT_ENV"].split()]
    return found


def _arguments(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(
            f"The input `command` is not a valid command line ({error}). Fix its quotes."
        ) from error


def _repository(name: str, listed: JsonValue) -> dict[str, JsonValue]:
    """Return the file's settings for this repository; the Action works on no other."""
    entries = listed if isinstance(listed, list) else []
    for entry in entries:
        if isinstance(entry, dict) and str(entry.get("name")).lower() == name.lower():
            return {**entry, "name": name}
    return {"name": name}


def _digits(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name, "")
    return value if DIGITS.fullmatch(value) else "0"


def _path(variables: Mapping[str, str], name: str) -> Path | None:
    return Path(variables[name]) if variables.get(name) else None


def _number(values: Mapping[str, str], name: str) -> int | None:
    value = values.get(name, "")
    if not value:
        return None
    if not NUMBER.fullmatch(value):
        raise UsageError(
            f"The input `{name.lower()}` is {value[:20]!r}; write a whole number of at least 1."
        )
    return int(value)


def _lease(value: str) -> timedelta:
    try:
        found = parse_duration(value)
    except ValueError as error:
        raise UsageError(f"The input `lease` is {value[:20]!r}; {error}.") from error
    if found < MIN_LEASE:
        raise UsageError(
            f"The input `lease` is {value[:20]!r}; write 60s or more, so that a"
            " slow run keeps its lease."
        )
    return found
