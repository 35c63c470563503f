"""`mulligan debug config`: validate both files, print settings and JSON Schemas."""

import sys
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import JsonValue, TypeAdapter

from mulligan.config.document import KeyPath, MistakesError
from mulligan.config.load import load_policy, variables
from mulligan.config.operator import Operator
from mulligan.config.policy import Policy
from mulligan.config.schema import File, published
from mulligan.domain.errors import ConfigError, UsageError
from mulligan.domain.issue import REPOSITORY
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import (
    configuration_path,
    describe_configuration,
    read_configuration,
    repository_as_configured,
)
from mulligan.interfaces.cli.terminal import print_json

VALUES: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def check(config: Path | None, policy: Path | None, repository: str | None, *, json: bool) -> Exit:
    """Validate the files as a run would; report every mistake in the first invalid one."""
    try:
        mistakes = _checked(config, policy, repository)
    except ConfigError as error:
        if not json:
            raise
        print_json({"valid": False, "mistakes": _rows(error)})
        return Exit.USAGE
    if json:
        print_json({"valid": True, "mistakes": []})
    else:
        sys.stdout.write("".join(f"{line}\n" for line in mistakes))
    return Exit.DONE


def show(config: Path | None, policy: Path | None, repository: str | None, *, json: bool) -> Exit:
    """Print the settings in force, including defaults; hide values from the environment."""
    if policy:
        operator = _operator(config, policy, repository)
        values = _written(_policy(policy, operator, repository))
    else:
        operator = read_configuration(config, needs_token=False)
        values = _masked(_written(operator), variables(configuration_path(config)))
    if json:
        print_json(values)
    else:
        yaml.safe_dump(values, sys.stdout, sort_keys=False, allow_unicode=True)
    return Exit.DONE


def schema(file: str) -> Exit:
    """Print the JSON Schema of a file."""
    print_json(published(File(file)))
    return Exit.DONE


def _checked(config: Path | None, policy: Path | None, repository: str | None) -> list[str]:
    operator, lines = _operator(config, policy, repository), list[str]()
    if operator:
        lines.append(describe_configuration(configuration_path(config), operator))
    if policy:
        checks = _policy(policy, operator, repository, report_patterns=True).checks
        lines.append(f"{policy} is valid; it names {pluralize(len(checks), 'check')}.")
    return lines


def _operator(config: Path | None, policy: Path | None, repository: str | None) -> Operator | None:
    """Read the operator's file; None if only a policy is to be checked."""
    if repository and not policy:
        raise UsageError("--repository needs a policy file. Name it with --policy FILE.")
    if policy and not (config or repository):
        return None
    return read_configuration(config, needs_token=False)


def _policy(
    path: Path, operator: Operator | None, repository: str | None, *, report_patterns: bool = False
) -> Policy:
    """Read a policy file, with the operator's overrides for its repository."""
    overrides: Mapping[str, JsonValue] = {}
    if operator and repository:
        if not REPOSITORY.fullmatch(repository):
            raise UsageError(f"{repository!r} does not name a repository; write OWNER/NAME.")
        name = repository_as_configured(repository, operator)
        overrides = next(each.policy for each in operator.repositories if each.name == name)
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid file name"
        raise ConfigError(
            f"{path} could not be read ({reason}). Name the policy file with --policy FILE."
        ) from error
    return load_policy(text, overrides, str(path), report_patterns=report_patterns)


def _rows(error: ConfigError) -> list[dict[str, object]]:
    if not isinstance(error, MistakesError):
        return [{"file": None, "line": None, "key": None, "message": str(error)}]
    return [
        {
            "file": error.where,
            "line": mistake.line,
            "key": mistake.key or None,
            "message": mistake.sentence,
        }
        for mistake in error.mistakes
    ]


def _written(settings: Operator | Policy) -> JsonValue:
    return VALUES.validate_python(settings.model_dump(mode="json"))


def _masked(value: JsonValue, hidden: Mapping[KeyPath, str], place: KeyPath = ()) -> JsonValue:
    """Replace a value from the environment with the name of its variable."""
    if place in hidden:
        return f"*** (from ${hidden[place]})"
    if isinstance(value, dict):
        return {key: _masked(inner, hidden, (*place, key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, hidden, (*place, at)) for at, inner in enumerate(value)]
    return value
