"""Write what docs/ repeats from the code; `make docs` runs it.

A page has generated parts, each between the lines `<!-- generated: NAME -->` and
`<!-- end of NAME -->`. The files below docs/schemas are generated whole.
"""

import ast
import inspect
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from mulligan.config.operator import STATE_HOME, Operator
from mulligan.config.policy import Policy
from mulligan.config.schema import DRAFT, File, model_in, published, written
from mulligan.domain.events import EVENT_TYPES, Event
from mulligan.interfaces.cli.events import FIELDS, JSON, Json, name_of, schema
from mulligan.interfaces.json_types import ADAPTERS

# The generated files

ROOT = Path(__file__).parents[1]


def generated(root: Path) -> Mapping[Path, str]:
    """Return each file that is generated or has generated parts, with its content."""
    taken = Counter[str]()
    parts = {
        "architecture.md": {"folders": drawn(root)},
        "configuration.md": {
            "operator keys": "\n".join(_page(Operator, taken)),
            "policy keys": "\n".join(_page(Policy, taken)),
        },
        "events.md": {"fields of a line": fields_of_a_line(), "payloads": payloads()},
    }
    docs = root / "docs"
    return {
        **{docs / name: with_parts(docs / name, of) for name, of in parts.items()},
        **{docs / "schemas" / f"{name}.json": text for name, text in schemas()},
    }


def with_parts(page: Path, parts: Mapping[str, str]) -> str:
    """Return a page with new generated parts, by name; ValueError if the page has no such part."""
    text = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end of {name} -->\n"
        before, begins, rest = text.partition(begin)
        _, ends, after = rest.partition(end)
        if not (begins and ends):
            message = f"{page.name} needs the lines {begin.strip()} and {end.strip()}."
            raise ValueError(message)
        text = f"{before}{begin}\n{part.strip()}\n\n{end}{after}"
    return text


def schemas() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each JSON Schema."""
    yield from ((file.value, _json(published(file))) for file in File)
    yield "events", _json(schema())
    for name, adapter in ADAPTERS.items():
        yield f"output/{name}", _json({"$schema": DRAFT, **adapter.json_schema(mode="validation")})


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def main(root: Path) -> None:
    """Write the files whose content has changed."""
    for path, text in generated(root).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# The folders, in docs/architecture.md

LINE = "-" * 12


def drawn(root: Path) -> str:
    """Give the diagram of both packages, as the block that the page holds."""
    lines = [
        "src/mulligan/",
        *_floors(root, "mulligan", ""),
        "",
        "src/github_simulator/",
        f"  {'':<14} {_job(root / 'src' / 'github_simulator')}",
        *_floors(root, "github_simulator", ""),
    ]
    return "\n".join(["```", *lines, "```", ""])


def _floors(root: Path, package: str, indent: str) -> Iterator[str]:
    """Draw the layers of a package, the highest first; without a contract, its folders."""
    layers = _layers(root, package)
    for position, layer in enumerate(layers or _subfolders(root, package)):
        if layers and position:
            yield f"{indent}  {LINE}"
        for name in (each.strip() for each in re.split(r"[|:]", layer)):
            place = root / "src" / Path(*package.split(".")) / name
            mark = "/" if place.is_dir() else ".py"
            yield f"{indent}  {name + mark:<14} {_job(place)}"
            yield from _floors(root, f"{package}.{name}", f"{indent}  ")


def _layers(root: Path, package: str) -> list[str]:
    """Read the layers that a contract names for a package; none where no contract does."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers" and package in contract["containers"]:
            return contract["layers"]
    return []


def _subfolders(root: Path, package: str) -> list[str]:
    inside = root / "src" / Path(*package.split("."))
    return sorted(found.parent.name for found in inside.glob("*/__init__.py"))


def _job(place: Path) -> str:
    """Give the first sentence of a package or module, without the mark that it is pure."""
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return re.sub(r" \([A-Z]+-\d+[^)]*\)", "", said.partition("\n")[0].removesuffix(" Pure."))


# The keys, in docs/configuration.md

REQUIRED = "required"
NONE = "none"

DERIVED = {
    "url": f"`sqlite:///{STATE_HOME}/mulligan.db`",
    "root": f"`{STATE_HOME}/work`",
}
"""Defaults that depend on the home directory."""

NAMED = {"agents": "strong", "adapters": "tinker", "services": "tinker", "prices": "m-1"}
"""Example names for the keys that hold settings by name."""


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
        meaning, example = written(model, name)
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


# The events, in docs/events.md

RULES = re.compile(r" \([A-Z]+-\d+(?:, [A-Z]+-\d+)*\)")
"""The rule ids in a docstring, which the page omits."""


def fields_of_a_line() -> str:
    """Return the table of the fields of a line."""
    rows = [f"| `{name}` | {_type(of)} | {meaning} |" for name, (of, meaning) in FIELDS.items()]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])


def payloads() -> str:
    """Return the section of each event."""
    definitions = JSON.validate_python(schema()["$defs"])
    return "\n\n".join(_event(kind, definitions) for kind in EVENT_TYPES)


def _event(kind: type[Event], definitions: Json) -> str:
    """Return the section of one event, from its docstring and schema."""
    definition = JSON.validate_python(definitions[kind.__name__])
    properties = JSON.validate_python(definition["properties"])
    rows = [f"| `{name}` | {_type(JSON.validate_python(of))} |" for name, of in properties.items()]
    text = RULES.sub("", re.sub(r"\s*\n\s*", " ", inspect.getdoc(kind) or ""))
    return "\n".join(
        [f"### `{name_of(kind)}`\n", f"{text}\n", "| field | type |", "|---|---|", *rows]
    )


def _type(definition: Json) -> str:
    """Return a JSON Schema type for a table cell."""
    if "anyOf" in definition and isinstance(definition["anyOf"], list):
        return " or ".join(_type(JSON.validate_python(each)) for each in definition["anyOf"])
    if isinstance(given := definition.get("type"), list):
        return " or ".join(map(str, given))
    return " ".join(_type_names(definition)) or "any"


def _type_names(definition: Json) -> Iterator[str]:
    match definition:
        case {"$ref": str(place)}:
            yield f"[{place.rpartition('/')[2]}](schemas/events.json)"
        case {"enum": list(values)}:
            yield ", ".join(f"`{_plain(value)}`" for value in values)
        case {"type": "array", "items": dict(items)}:
            yield f"list of {_type(items)}"
        case {"type": str(name), "format": "date-time"}:
            yield f"{name}, a time"
        case {"type": str(name)}:
            yield name
        case _:
            yield "[one of several](schemas/events.json)"


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT)
