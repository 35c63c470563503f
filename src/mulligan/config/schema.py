"""The JSON Schema of each configuration file, and its values in words."""

import ast
import inspect
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from itertools import pairwise

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic.fields import FieldInfo

from mulligan.config.operator import OPERATOR_FILE, Operator
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
    schema = schema_of(file)
    if file is File.OPERATOR:
        schema = _with_variables(schema)
        _part(schema, "$defs")["Variable"] = VARIABLE
    return {"$schema": DRAFT, **schema, "title": NAMES[file]}


@cache
def schema_of(file: File) -> Schema:
    """Return the schema of a file's values; every key has its meaning and its default.

    Cached: each mistake in a file needs it, and building it takes 50 ms.
    """
    schema = SCHEMA.validate_python(MODELS[file].model_json_schema())
    definitions = _part(schema, "$defs")
    _describe(schema, MODELS[file])
    for model in _inside(MODELS[file]):
        _describe(_part(definitions, model.__name__), model)
    for each in (schema, *(_part(definitions, name) for name in definitions)):
        each.pop("title", None)
        each.pop("description", None)
    return schema


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


def written(model: type[BaseModel], name: str) -> tuple[str, str]:
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
        found["description"], _ = written(model, name)


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
        found = (
            _part(inner, "items")
            if isinstance(part, int)
            else _part(_part(inner, "properties"), part)
        )
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
    choices = [_in_words(each, schema) for each in _alternatives(at(schema, place), schema)]
    return " or ".join(dict.fromkeys(each for each in choices if each))


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


def _part(schema: Schema, key: str) -> Schema:
    found = schema.get(key)
    return found if isinstance(found, dict) else {}


def _in_words(schema: Schema, root: Schema) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list):
        *others, last = map(str, choices)
        return f"{', '.join(others)} or {last}"
    match schema.get("type"):
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
    items = [*_alternatives(_part(schema, "items"), root)]
    needed = items[0].get("required") if len(items) == 1 else None
    if isinstance(needed, list):
        return f"a list such as [{{{', '.join(f'{key}: …' for key in needed)}}}]"
    inner = " or ".join(_in_words(each, root) for each in items)
    kinds = {"a mapping of keys to values": "mappings", "text": "texts", "a path": "paths"}
    return f"a list of {kinds.get(inner, inner)}" + (", not empty" if "minItems" in schema else "")
