"""The JSON Schema and the reference page of each configuration file. Pure."""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from itertools import pairwise

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic.fields import FieldInfo

from mulligan.config.operator import OPERATOR_FILE, STATE_HOME, Operator
from mulligan.config.policy import POLICY_FILE, Policy

# The files and their schemas

Schema = dict[str, JsonValue]
SCHEMA: TypeAdapter[Schema] = TypeAdapter(Schema)
DRAFT = "https://json-schema.org/draft/2020-12/schema"

VARIABLE: Schema = {
    "description": "A variable of the environment.",
    "type": "string",
    "pattern": r"^\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)$",
}


class File(StrEnum):
    """The two configuration files."""

    OPERATOR = "operator"
    POLICY = "policy"


MODELS: dict[File, type[BaseModel]] = {File.OPERATOR: Operator, File.POLICY: Policy}
NAMES = {File.OPERATOR: OPERATOR_FILE, File.POLICY: POLICY_FILE}


def published(file: File) -> Schema:
    """Return the schema of a file as users write it, with variables, for editors and validators."""
    made = schema_of(file)
    if file is File.OPERATOR:
        made = _with_variables(made)
        _part(made, "$defs")["Variable"] = VARIABLE
    return {"$schema": DRAFT, **made, "title": NAMES[file]}


@cache
def schema_of(file: File) -> Schema:
    """Return the schema of a file's values; every key has its meaning and its default.

    Cached: each mistake in a file needs it, and building it takes 50 ms.
    """
    made = SCHEMA.validate_python(MODELS[file].model_json_schema())
    definitions = _part(made, "$defs")
    _describe(made, MODELS[file])
    for model in _inside(MODELS[file]):
        _describe(_part(definitions, model.__name__), model)
    for each in (made, *(_part(definitions, name) for name in definitions)):
        each.pop("title", None)
        each.pop("description", None)
    return made


def _inside(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for field in model.model_fields.values():
        if inner := model_in(field):
            yield inner
            yield from _inside(inner)
    if model is Operator:
        yield Policy
        yield from _inside(Policy)


def model_in(field: FieldInfo) -> type[BaseModel] | None:
    """Return the settings model of a field, if any, including that of a tuple."""
    inside: tuple[object, ...] = getattr(field.annotation, "__args__", ())
    for candidate in (field.annotation, *inside):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


@cache
def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring of each field of a model, by the field's name.

    pydantic's `use_attribute_docstrings` does the same, but reads the source of every model at
    every start: 95 to 155 ms of the 520 to 790 ms that `mulligan status` took.
    """
    (found,) = ast.parse(inspect.getsource(model)).body
    statements = found.body if isinstance(found, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(statements)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _written(model: type[BaseModel], name: str) -> tuple[str, str]:
    """Return a field's meaning and its example, which may be empty, from the model or its base."""
    declared = (base for base in model.__mro__ if name in inspect.get_annotations(base))
    meaning, _, example = meanings(next(declared))[name].partition("\n\nExample: ")
    return " ".join(meaning.split()), example


def _describe(schema: Schema, model: type[BaseModel]) -> None:
    """Add to each key its meaning, and its default as written in a file."""
    defaults = SCHEMA.validate_python(model.model_construct().model_dump(mode="json"))
    properties = _part(schema, "properties")
    for name in properties:
        found = _part(properties, name)
        found.pop("title", None)
        if "default" in found:
            found["default"] = defaults[name]
        found["description"], _ = _written(model, name)


NARROW = {"const", "enum", "pattern"}
NOT_TEXT = {"integer", "number", "boolean"}


def _with_variables(schema: Schema) -> Schema:
    """Allow a variable wherever the schema does not allow any text."""
    made: Schema = {
        key: value if key == "default" else _opened(value) for key, value in schema.items()
    }
    if not (NARROW & set(schema) or schema.get("type") in NOT_TEXT):
        return made
    about = {key: made.pop(key) for key in ("default", "description") if key in made}
    return {"anyOf": [made, {"$ref": "#/$defs/Variable"}], **about}


def _opened(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _with_variables(value)
    return [_opened(each) for each in value] if isinstance(value, list) else value


# Values that a place allows


def at(schema: Schema, place: tuple[str | int, ...]) -> Schema:
    """Return the schema of one place; an empty one if nothing is allowed there."""
    found = schema
    for part in place:
        inner = next(
            (each for each in _alternatives(found, schema) if _holds(each, part)), Schema()
        )
        found = _part(inner, "items") if isinstance(part, int) else _property(inner, part)
    return found


def keys(schema: Schema, place: tuple[str | int, ...]) -> list[str]:
    """List the keys that a place allows."""
    return [
        key
        for each in _alternatives(at(schema, place), schema)
        for key in _part(each, "properties")
    ]


def wanted(schema: Schema, place: tuple[str | int, ...]) -> str:
    """Describe the values of a place: `a whole number from 1 to 64`."""
    said = [_in_words(each, schema) for each in _alternatives(at(schema, place), schema)]
    return " or ".join(dict.fromkeys(each for each in said if each))


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    """Yield the alternatives of a schema, with references resolved."""
    reference, several = schema.get("$ref"), schema.get("anyOf")
    if isinstance(reference, str):
        yield from _alternatives(_part(_part(root, "$defs"), reference.rpartition("/")[2]), root)
    elif isinstance(several, list):
        for each in several:
            yield from _alternatives(each if isinstance(each, dict) else {}, root)
    else:
        yield schema


def _holds(schema: Schema, part: str | int) -> bool:
    return "items" in schema if isinstance(part, int) else part in _part(schema, "properties")


def _property(schema: Schema, name: str) -> Schema:
    return _part(_part(schema, "properties"), name)


def _part(schema: Schema, key: str) -> Schema:
    found = schema.get(key)
    return found if isinstance(found, dict) else {}


def _in_words(schema: Schema, root: Schema) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list):
        *others, last = map(str, choices)
        return f"{', '.join(others)} or {last}"
    match schema.get("type"):
        case "string" if "const" in schema:
            return str(schema["const"])
        case "integer":
            return _whole_number(schema)
        case "boolean":
            return "" if "const" in schema else "true or false"
        case "string":
            return "a path" if schema.get("format") == "path" else _text(schema)
        case "array":
            return _list(schema, root)
        case "object":
            return "a mapping of keys to values"
        case _:
            return ""


def _whole_number(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    return f"a whole number from {least}" + (f" to {most}" if most is not None else " up")


def _text(schema: Schema) -> str:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if most is not None:
        return f"text of {least or 0} to {most} characters"
    return "text, not empty" if least else "text"


def _list(schema: Schema, root: Schema) -> str:
    inner = " or ".join(
        _in_words(each, root) for each in _alternatives(_part(schema, "items"), root)
    )
    kinds = {"a mapping of keys to values": "mappings", "text": "texts", "a path": "paths"}
    return f"a list of {kinds.get(inner, inner)}" + (", not empty" if "minItems" in schema else "")


# The page docs/configuration.md

OPENING = """# Configuration

Mulligan reads two YAML files. It refuses unknown keys, and secrets that are written into a file.
Write durations as `30s`, `10m` or `1h`. [Sample configurations](samples.md) has complete files for
several languages.

`mulligan config check` reports every mistake with its line. For your editor, use the JSON Schemas:
[`mulligan.yml`](schemas/operator.json), [`.github/mulligan.yml`](schemas/policy.json).

This page is generated from the code by `make docs`.
"""

OPERATOR = """## `mulligan.yml`: the operator's configuration

This file is on the machine that runs Mulligan. Mulligan reads the file of `--config FILE`, else
`./mulligan.yml`, else the file that `$MULLIGAN_CONFIG` names. A value that is only `$NAME` or
`${NAME}` comes from the environment.

```yaml
github: {token: $GITHUB_TOKEN}
repositories:
  - name: octocat/hello-world
    policy:
      checks: [{name: tests, run: python -m pytest -q, kind: test}]
agent: {kind: command, command: [python3, /srv/agent.py], timeout: 1h}
```
"""

POLICY = """## `.github/mulligan.yml`: the policy of a repository

This file is in each repository. Mulligan reads it from the base branch only, never from an agent's
change. The operator's `policy` replaces its top-level keys.

```yaml
max_issue_attempts: 3
checks:
  - {name: lint, run: ruff check ., kind: lint, timeout: 2m}
  - {name: tests, run: python -m pytest -q, kind: test}
scope: {deny: [".github/**"]}
```
"""

REQUIRED = "required"
NONE = "none"

DERIVED = {
    "url": f"`sqlite:///{STATE_HOME}/mulligan.db`",
    "root": f"`{STATE_HOME}/work`",
}
"""Defaults that depend on the home directory."""

NAMED = {"agents": "strong", "adapters": "tinker", "services": "tinker", "prices": "m-1"}
"""Example names for the keys that hold settings by name."""


def reference() -> str:
    """Return the whole page."""
    taken = Counter[str]()
    parts = [OPENING, OPERATOR, *_page(Operator, taken), POLICY, *_page(Policy, taken)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _page(model: type[BaseModel], taken: Counter[str]) -> Iterator[str]:
    keys = [f"[`{name}`](#{_anchor(name, model, taken)})" for name in model.model_fields]
    yield f"Keys: {', '.join(keys)}.\n"
    yield from _sections(model, "", {})


def _anchor(name: str, model: type[BaseModel], taken: Counter[str]) -> str:
    """Return the anchor of a top-level key on GitHub, which numbers equal headings."""
    field = model.model_fields[name]
    written = f"{name}{_many(field) if model_in(field) else ''}"
    anchor = re.sub(r"[^\w-]", "", written.lower())
    taken[anchor] += 1
    return anchor if taken[anchor] == 1 else f"{anchor}-{taken[anchor] - 1}"


def _sections(
    model: type[BaseModel], prefix: str, shown: dict[type[BaseModel], str]
) -> Iterator[str]:
    """Yield one section per key; settings that occur again refer to their first place."""
    for name, field in model.model_fields.items():
        inner = model_in(field)
        key = f"{prefix}{name}{_many(field) if inner else ''}"
        meaning, example = _written(model, name)
        if inner is None:
            yield _section(key, meaning, _default(field, model, name), example)
        elif inner in shown:
            yield f"### `{key}`\n\n{meaning} It has the same keys as `{shown[inner]}`.\n"
        else:
            yield f"### `{key}`\n\n{meaning}\n"
            shown[inner] = key
            yield from _sections(inner, f"{key}.", shown)


def _section(key: str, meaning: str, default: str, example: str) -> str:
    value = "\n".join(_nested(key.split("."), example or default.strip("`")))
    about = "Required." if default == REQUIRED else f"Default: {default}."
    if default == NONE and "Default:" in meaning:
        about = ""  # The meaning gives the default.
    parts = [f"### `{key}`", meaning, about, f"```yaml\n{value}\n```\n"]
    return "\n\n".join(part for part in parts if part)


def _nested(path: list[str], value: str, indent: str = "") -> Iterator[str]:
    """Yield a value at its place in the file, as YAML."""
    first, *rest = path
    name = first.removesuffix("[]")
    if not rest:
        yield f"{indent}{name}: {value}".replace("\n", f"\n{indent}")
    elif rest[0] == "NAME":
        yield f"{indent}{name}:"
        yield from _nested([NAMED[name], *rest[1:]], value, f"{indent}  ")
    else:
        yield f"{indent}{name}:"
        inside = [*_nested(rest, value, f"{indent}    " if name != first else f"{indent}  ")]
        if name != first:
            inside[0] = f"{indent}  - {inside[0].strip()}"
        yield from inside


def _many(field: FieldInfo) -> str:
    """Return the path suffix for one of several settings: its position, or its name."""
    written = str(field.annotation)
    if written.startswith("dict"):
        return ".NAME"
    return "[]" if "tuple" in written else ""


def _default(field: FieldInfo, model: type[BaseModel], name: str) -> str:
    if field.is_required():
        return REQUIRED
    if field.default_factory is not None:
        return DERIVED.get(name, NONE)
    written = model.model_construct().model_dump(mode="json", include={name})[name]
    if written in (None, [], ""):
        return NONE
    return f"`{str(written).lower() if isinstance(written, bool) else written}`"
