"""The JSON Schema and the reference page of each configuration file. Pure."""

from collections.abc import Iterator
from enum import StrEnum
from functools import cache

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
    """Give the schema of a file as it is written, with variables, for editors and validators."""
    made = schema_of(file)
    if file is File.OPERATOR:
        made = _with_variables(made)
        _part(made, "$defs")["Variable"] = VARIABLE
    return {"$schema": DRAFT, **made, "title": NAMES[file]}


@cache
def schema_of(file: File) -> Schema:
    """Give the schema of a file's values; every key has its meaning and its default.

    Each mistake in a file asks for it, and making it takes 50 ms.
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
    """Find the settings inside a field, be it one or a tuple of them."""
    inside: tuple[object, ...] = getattr(field.annotation, "__args__", ())
    for candidate in (field.annotation, *inside):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _describe(schema: Schema, model: type[BaseModel]) -> None:
    """Say at each key what it means, and its default as it would be written."""
    defaults = SCHEMA.validate_python(model.model_construct().model_dump(mode="json"))
    properties = _part(schema, "properties")
    for name in properties:
        found = _part(properties, name)
        found.pop("title", None)
        if "default" in found:
            found["default"] = defaults[name]
        found["description"] = model.model_fields[name].description


NARROW = {"const", "enum", "pattern"}
NOT_TEXT = {"integer", "number", "boolean"}


def _with_variables(schema: Schema) -> Schema:
    """Let a variable stand wherever not any text may."""
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


# What may stand in one place


def at(schema: Schema, place: tuple[str | int, ...]) -> Schema:
    """Find the schema of one place; an empty one where nothing may stand."""
    found = schema
    for part in place:
        inner = next(
            (each for each in _alternatives(found, schema) if _holds(each, part)), Schema()
        )
        found = _part(inner, "items") if isinstance(part, int) else _property(inner, part)
    return found


def keys(schema: Schema, place: tuple[str | int, ...]) -> list[str]:
    """List the keys that may stand in a place."""
    return [
        key
        for each in _alternatives(at(schema, place), schema)
        for key in _part(each, "properties")
    ]


def wanted(schema: Schema, place: tuple[str | int, ...]) -> str:
    """Say in words what belongs in a place: `a whole number from 1 to 64`."""
    said = [_in_words(each, schema) for each in _alternatives(at(schema, place), schema)]
    return " or ".join(dict.fromkeys(each for each in said if each))


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    """List what a schema allows, one by one, with references followed."""
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

Two files, both YAML. A key that Mulligan does not know is refused, and so is a secret that is
written out. Durations are written `30s`, `10m`, `1h`. This page is made from the settings
themselves by `make docs`, and so are the JSON Schemas of both files, for editors:
[`mulligan.yml`](schemas/operator.json), [`.github/mulligan.yml`](schemas/policy.json).
`mulligan config check` names every mistake with its line.
"""

OPERATOR = """## `mulligan.yml`: what the operator decides

On the machine that runs Mulligan; `--config FILE`, else `./mulligan.yml`, else
`$MULLIGAN_CONFIG`. A value that is wholly `$NAME` or `${NAME}` comes from the environment.

```yaml
github: {token: $GITHUB_TOKEN}
repositories:
  - name: octocat/hello-world
    policy:
      checks: [{name: tests, run: python -m pytest -q, kind: test}]
agent: {kind: command, command: [python3, /srv/agent.py], timeout: 1h}
```
"""

POLICY = """## `.github/mulligan.yml`: what a repository decides

In each repository, and read from the base branch only, never from what an agent wrote. The
operator's `policy` replaces its top-level keys.

```yaml
max_issue_attempts: 3
checks:
  - {name: lint, run: ruff check ., kind: lint, timeout: 2m}
  - {name: tests, run: python -m pytest -q, kind: test}
scope: {deny: [".github/**"]}
```
"""

DERIVED = {
    "url": f"`sqlite:///{STATE_HOME}/mulligan.db`",
    "root": f"`{STATE_HOME}/work`",
}
"""Defaults that depend on the home directory."""


def reference() -> str:
    """Give the whole page."""
    parts = [OPENING, OPERATOR, *_table(Operator, ""), POLICY, *_table(Policy, "")]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _table(model: type[BaseModel], prefix: str) -> Iterator[str]:
    rows = ["| key | default | meaning |", "|---|---|---|", *_rows(model, prefix)]
    yield "\n".join(rows)


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = model_in(field)
        key = f"{prefix}{name}{_many(field) if inner else ''}"
        default = "" if inner else _default(field, model, name)
        meaning = " ".join((field.description or "").split())
        yield f"| `{key}` | {default} | {meaning} |"
        if inner:
            yield from _rows(inner, f"{key}.")


def _many(field: FieldInfo) -> str:
    """Write how one of several settings is reached: by its place, or by its name."""
    written = str(field.annotation)
    if written.startswith("dict"):
        return ".NAME"
    return "[]" if "tuple" in written else ""


def _default(field: FieldInfo, model: type[BaseModel], name: str) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return DERIVED.get(name, "none")
    written = model.model_construct().model_dump(mode="json", include={name})[name]
    if written in (None, [], ""):
        return "none"
    return f"`{str(written).lower() if isinstance(written, bool) else written}`"
