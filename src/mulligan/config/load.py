"""Read the configuration files; every mistake is one ConfigError that says where and what to do."""

import re
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import JsonValue, TypeAdapter, ValidationError

from mulligan.config.operator import Operator
from mulligan.config.policy import Policy
from mulligan.errors import ConfigError

VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
SECRET_KEYS = (("github", "token"),)
MAPPING: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def load_operator(path: Path, environment: Mapping[str, str]) -> Operator:
    """Read `mulligan.yml`; values written `$NAME` or `${NAME}` come from `environment`."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"There is no configuration at {path}; write one, or name it with --config FILE."
        raise ConfigError(message) from None
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read: {error}"
        raise ConfigError(message) from error
    content = _mapping(text, str(path))
    _refuse_written_secrets(content, str(path))
    try:
        return Operator.model_validate(_expanded(content, environment, str(path)))
    except ValidationError as error:
        raise ConfigError(_explain(error, str(path))) from error


def load_policy(text: bytes | None, overrides: Mapping[str, JsonValue], where: str) -> Policy:
    """Read a repository's policy file (None where it has none); `overrides` replace whole keys."""
    try:
        content = {} if text is None else _mapping(text.decode("utf-8"), where)
        return Policy.model_validate({**content, **overrides})
    except UnicodeDecodeError as error:
        message = f"{where} is not UTF-8 text; save it as UTF-8."
        raise ConfigError(message) from error
    except ValidationError as error:
        raise ConfigError(_explain(error, where)) from error


def _mapping(text: str, where: str) -> dict[str, JsonValue]:
    try:
        content: object = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        message = f"{where}, line {line}: this is not YAML: {error.problem}."
        raise ConfigError(message) from error
    except (yaml.YAMLError, ValueError) as error:
        message = f"{where}: this is not YAML: {' '.join(str(error).split())}"
        raise ConfigError(message) from error
    try:
        return MAPPING.validate_python({} if content is None else content)
    except ValidationError as error:
        message = f"{where}: keys and values are expected at the top, like `agent: ...`."
        raise ConfigError(message) from error


def _refuse_written_secrets(content: Mapping[str, JsonValue], where: str) -> None:
    for section, key in SECRET_KEYS:
        inside = content.get(section)
        value = inside.get(key) if isinstance(inside, dict) else None
        if isinstance(value, str) and not VARIABLE.fullmatch(value):
            message = (
                f"{where}: {section}.{key} is written out; put it in an environment variable and "
                f"write {key}: $NAME, or in a file and write {key}_file: PATH."
            )
            raise ConfigError(message)


def _expanded(
    value: JsonValue, environment: Mapping[str, str], where: str, key: str = ""
) -> JsonValue:
    """Replace every value that is wholly `$NAME`; shell lines keep their dollars."""
    if isinstance(value, dict):
        return {
            name: _expanded(inner, environment, where, f"{key}.{name}".lstrip("."))
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_expanded(inner, environment, where, key) for inner in value]
    found = VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    name = found[1] or found[2]
    if name not in environment:
        message = f"{where}: {key} asks for the environment variable {name}, which is not set."
        raise ConfigError(message)
    return environment[name]


def _explain(error: ValidationError, where: str) -> str:
    """Say the first mistake of a file in one sentence, and how many more there are."""
    mistakes = error.errors(include_url=False)
    first = mistakes[0]
    key = ".".join(str(part) for part in first["loc"]) or "the file"
    more = f" ({len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
    if first["type"] == "extra_forbidden":
        return (
            f"{where}: {key} is not a key that Mulligan knows; take it out or mend its name.{more}"
        )
    if first["type"] == "missing":
        return f"{where}: {key} is missing.{more}"
    said = first["msg"].removeprefix("Value error, ")
    return f"{where}: {key}: {said}.{more}"
