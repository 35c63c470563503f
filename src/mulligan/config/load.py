"""Read and validate the configuration files; each mistake has its line, key and fix."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from mulligan.config.document import (
    ConfigMistake,
    Document,
    KeyPath,
    MistakesError,
    NotReadableError,
    dotted,
    read_document,
)
from mulligan.config.operator import Operator
from mulligan.config.policy import POLICY_FILE, POLICY_FILES, REPORT_PATTERNS, Policy
from mulligan.config.schema import File, keys, schema_of, wanted
from mulligan.domain.errors import ConfigError
from mulligan.text.secret_shapes import passwords_in

# The operator's file

EMPTY = (
    "the file is empty; run `mulligan init` to write one, or see docs/configuration.md for "
    "every key"
)


def load_operator(
    path: Path, environment: Mapping[str, str], *, needs_token: bool = True
) -> Operator:
    """Read `mulligan.yml`; replace values `$NAME` and `${NAME}` from `environment`.

    Without `needs_token`, a token whose variable is not set is empty.
    """
    document = _document(_text_of(path), str(path))
    if not document.content:
        raise MistakesError(str(path), [ConfigMistake(None, "", EMPTY)])
    if not needs_token:
        environment = {**_empty_token(document), **environment}
    return _operator(document, environment, str(path), {})


def read_operator(
    text: bytes,
    environment: Mapping[str, str],
    where: str,
    given: Mapping[str, JsonValue],
    beside: Collection[KeyPath] = (),
) -> Operator:
    """Read the text of a configuration; `given` replaces whole keys, without expanding variables.

    `beside` are keys within those, such as ("github", "app"), that the text may add.
    """
    document = _without(_document(_decoded(text, where), where), given, frozenset(beside))
    return _operator(document, environment, where, given)


def _operator(
    document: Document,
    environment: Mapping[str, str],
    where: str,
    given: Mapping[str, JsonValue],
) -> Operator:
    wrong = [*_secrets(document), *_unset(document, environment)]
    content = _joined(_mapping(document.content, environment), given)
    try:
        operator = Operator.model_validate(content)
    except ValidationError as error:
        reported = {mistake.key for mistake in wrong}
        found = findings(error, document, File.OPERATOR)
        raise MistakesError(
            where, [*wrong, *(each for each in found if each.key not in reported)]
        ) from None
    if wrong:
        raise MistakesError(where, wrong)
    return operator


def read_content(text: bytes, where: str) -> Mapping[str, JsonValue]:
    """Return the keys of a configuration as they are written."""
    return _document(_decoded(text, where), where).content


def variables(path: Path) -> dict[KeyPath, str]:
    """Return the environment variable of each value in a file that comes from one."""
    content = _document(_text_of(path), str(path)).content
    return {place: name for place, value in _texts(content) if (name := _variable(value))}


# The policy file


def policy_file(existing: Collection[str], where: str) -> str:
    """Return which of POLICY_FILES exists, the first if none does; ConfigError if both do."""
    found = [name for name in POLICY_FILES if name in existing]
    if len(found) > 1:
        raise ConfigError(
            f"{where} has {' and '.join(found)}. Mulligan reads one; delete the other."
        )
    return found[0] if found else POLICY_FILE


def policy_in(directory: Path) -> str:
    """Return the path of a policy in a clone, as `policy_file` does."""
    existing = [name for name in POLICY_FILES if (directory / name).exists()]
    return policy_file(existing, str(directory))


POLICIES_KEPT = 64

_read_policy = lru_cache(POLICIES_KEPT)(read_document)
"""Cached: each step of an attempt reads the policy, and parsing YAML takes milliseconds."""


def load_policy(
    text: bytes | None,
    overrides: Mapping[str, JsonValue],
    where: str,
    *,
    defaults: Mapping[str, JsonValue] | None = None,
    report_patterns: bool = False,
) -> Policy:
    """Read a repository's policy file (None if it has none); `overrides` replace whole keys.

    `defaults` are for keys that are still missing. With `report_patterns`, a pattern of a check
    that would find nothing is a mistake, too.
    """
    document = _document(_decoded(text or b"", where), where, _read_policy)
    context = REPORT_PATTERNS if report_patterns else None
    try:
        content = {**(defaults or {}), **document.content, **overrides}
        return Policy.model_validate(content, context=context)
    except ValidationError as error:
        raise MistakesError(where, [*findings(error, document, File.POLICY)]) from None


def load_valid_part(
    text: bytes | None,
    overrides: Mapping[str, JsonValue],
    defaults: Mapping[str, JsonValue] | None = None,
) -> Policy:
    """Return the valid top-level keys of an invalid policy file, with `overrides` on top."""
    try:
        content = _document(_decoded(text or b"", ""), "", _read_policy).content
    except ConfigError:
        content = {}
    try:
        Policy.model_validate(content)
    except ValidationError as error:
        wrong = {each["loc"][0] for each in error.errors() if each["loc"]}
        content = {key: value for key, value in content.items() if key not in wrong}
    return Policy.model_validate({**(defaults or {}), **content, **overrides})


# The text of a file


def _above(path: Path) -> Path | None:
    """Return the nearest file of this name above the current directory."""
    depths = range(1, len(Path.cwd().parents) + 1)
    return next((up for depth in depths if (up := Path(*[".."] * depth) / path).is_file()), None)


def _text_of(path: Path) -> str:
    try:
        return _decoded(path.read_bytes(), str(path))
    except FileNotFoundError:
        above = _above(path) if path.name == str(path) else None
        fix = (
            f"There is one above: add --config {above}."
            if above
            else "Run `mulligan init` to write one, or name another file with --config FILE."
        )
        raise ConfigError(f"No configuration at {path}. {fix}") from None
    except IsADirectoryError:
        raise ConfigError(
            f"{path} is a directory, not a configuration file. Name a file with --config FILE."
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid file name"
        raise ConfigError(
            f"Mulligan cannot read {path} ({reason}). Correct its permissions, or name "
            f"another file."
        ) from error


def _decoded(text: bytes, where: str) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise MistakesError(
            where, [ConfigMistake(line, "", "this is not UTF-8 text; save the file as UTF-8")]
        ) from None


def _document(text: str, where: str, read: Callable[[str], Document] = read_document) -> Document:
    try:
        return read(text)
    except NotReadableError as error:
        raise MistakesError(where, error.mistakes) from None


# Variables and secrets

VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def _variable(value: str) -> str | None:
    """Return the variable of a value that is exactly `$NAME`; shell commands keep their dollars."""
    found = VARIABLE.fullmatch(value)
    return (found[1] or found[2]) if found else None


def _texts(value: JsonValue, place: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _texts(inner, (*place, position))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*place, key))


def _expanded(value: JsonValue, environment: Mapping[str, str]) -> JsonValue:
    """Replace every variable that is set."""
    if isinstance(value, dict):
        return _mapping(value, environment)
    if isinstance(value, list):
        return [_expanded(inner, environment) for inner in value]
    name = _variable(value) if isinstance(value, str) else None
    return environment.get(name, value) if name else value


def _mapping(
    content: Mapping[str, JsonValue], environment: Mapping[str, str]
) -> dict[str, JsonValue]:
    return {name: _expanded(inner, environment) for name, inner in content.items()}


TOKEN_KEY: KeyPath = ("github", "token")
WRITTEN_SECRETS: tuple[KeyPath, ...] = (TOKEN_KEY, ("github", "webhook_secret"))

REGISTRIES: KeyPath = ("sandbox", "registries")


def _unset(document: Document, environment: Mapping[str, str]) -> Iterator[ConfigMistake]:
    for place, value in _texts(document.content):
        name = _variable(value)
        if name and name not in environment:
            message = (
                f"needs the environment variable {name}, which is not set; run `export {name}=…`"
            )
            yield ConfigMistake(document.line(place), dotted(place), message)


def _empty_token(document: Document) -> dict[str, str]:
    name = _variable(dict(_texts(document.content)).get(TOKEN_KEY, ""))
    return {name: ""} if name else {}


WRITTEN_OUT = (
    "is a secret in the file; put it into an environment variable and write {key}: $NAME, or into "
    "a file and write {key}_file: PATH"
)


def _secrets(document: Document) -> Iterator[ConfigMistake]:
    """Yield a mistake for each secret written in the file itself (CONFIG-2)."""
    for key in WRITTEN_SECRETS:
        spot = document.spots.get(key)
        if spot and spot.is_plain and spot.found != "empty":
            value = dict(_texts(document.content)).get(key, "")
            if not _variable(value):
                yield ConfigMistake(spot.line, dotted(key), WRITTEN_OUT.format(key=key[-1]))
    for place, value in _texts(document.content):
        if place[:2] == REGISTRIES and place[-1] in {"password", "token"} and not _variable(value):
            message = "is a secret in the file; put it into an environment variable and write $NAME"
            yield ConfigMistake(document.line(place), dotted(place), message)
        if str(place[-1]).endswith("url") and passwords_in(value):
            message = (
                "contains a password; put the whole value into an environment variable and "
                "write $NAME"
            )
            yield ConfigMistake(document.line(place), dotted(place), message)


# Keys that are given elsewhere


def _without(document: Document, keys: Collection[str], beside: Collection[KeyPath]) -> Document:
    """Remove the keys that are given elsewhere."""
    content = dict[str, JsonValue]()
    for key, value in document.content.items():
        if key not in keys:
            content[key] = value
        elif isinstance(value, dict):
            kept = {name: inner for name, inner in value.items() if (key, name) in beside}
            content |= {key: kept} if kept else {}
    spots = {
        place: spot
        for place, spot in document.spots.items()
        if not place or place[0] not in keys or place[:2] in beside
    }
    return Document(content, spots)


def _joined(
    content: Mapping[str, JsonValue], given: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Merge the given keys into the content, with the `beside` keys that it kept."""
    found = {**content, **given}
    for key, value in given.items():
        kept = content.get(key)
        if isinstance(kept, dict) and isinstance(value, dict):
            found[key] = {**kept, **value}
    return found


# Mistakes as sentences


def findings(error: ValidationError, document: Document, file: File) -> Iterator[ConfigMistake]:
    """Yield a mistake for each validation error, with the values as they were written."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    meant = {place for each in found if (place := _suggested_key(each, file))}
    for each in found:
        place = each["loc"]
        if each["type"] == "missing" and place in meant:
            continue
        inner = (other["loc"] for other in found if other["loc"] != place)
        if each["type"] == "too_short" and any(loc[: len(place)] == place for loc in inner):
            # pydantic does not count invalid values: a list of one bad value is also "too short".
            continue
        yield ConfigMistake(document.line(place), dotted(place), _message(each, document, file))


def _message(each: ErrorDetails, document: Document, file: File) -> str:
    place, schema = each["loc"], schema_of(file)
    spot = document.spots.get(place) or document.spots.get(place[:-1])
    match each["type"]:
        case "extra_forbidden":
            return _unknown(str(place[-1]), keys(schema, place[:-1]))
        case "missing":
            return f"is missing; write {wanted(schema, place)}"
        case "value_error":
            message = each["msg"].removeprefix("Value error, ")
            return (
                f"is {spot.found}; {message}" if spot and spot.is_plain else f"is wrong: {message}"
            )
        case _:
            found = spot.found if spot else "wrong"
            return f"is {found}; write {wanted(schema, place)}"


def _suggested_key(each: ErrorDetails, file: File) -> KeyPath | None:
    """Return the path of the key that an unknown key probably means, or None."""
    if each["type"] != "extra_forbidden":
        return None
    *outer, name = each["loc"]
    near = get_close_matches(str(name), keys(schema_of(file), tuple(outer)), n=1)
    return (*outer, near[0]) if near else None


def _unknown(name: str, known: list[str]) -> str:
    message = "is an unknown key"
    if near := get_close_matches(name, known, n=1):
        return f"{message}; did you mean {near[0]}?"
    return f"{message}; remove it, or write one of {', '.join(known)}"
