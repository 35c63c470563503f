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
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from annotated_types import Ge, Le
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
    parts = {
        "architecture.md": {"folders": drawn(root)},
        "configuration.md": {
            "operator keys": "\n".join(_page(Operator)),
            "policy keys": "\n".join(_page(Policy, "policy-")),
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

TOP_LEVEL = "Top-level keys"
"""The heading of the keys of a file that hold no further keys, if there are several."""


def _page(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield links to the keys of a file, and a section for each key that holds further keys.

    The heading is outside the fold, so that every link to it works. `prefix` starts the anchors of
    the other top-level keys.
    """
    simple = [name for name, field in model.model_fields.items() if model_in(field) is None]
    listed = simple if len(simple) > 1 else []
    anchors = {
        name: f"{prefix}{name}" if name in listed else _slug(_key(name, model))
        for name in model.model_fields
    }
    yield f"Keys: {', '.join(f'[`{name}`](#{anchor})' for name, anchor in anchors.items())}.\n"
    shown = dict[type[BaseModel], str]()
    for name in model.model_fields:
        if name not in listed:
            yield _section(name, model, shown)
        elif name == listed[0]:
            items = [_item(each, model, anchors[each], "") for each in listed]
            yield f"### {TOP_LEVEL}\n\n{_folded(listed, items)}\n"


def _section(name: str, model: type[BaseModel], shown: dict[type[BaseModel], str]) -> str:
    """Return the section of a key; settings that occur again refer to their first place."""
    key, inner = _key(name, model), model_in(model.model_fields[name])
    parts = [f"### `{key}`", _about(name, model, shown)]
    if inner and inner not in shown:
        shown[inner] = key
        parts.append(_folded([*inner.model_fields], [*_items(inner, key, "", shown)]))
    return "\n\n".join(parts) + "\n"


def _folded(names: list[str], items: list[str]) -> str:
    """Return a list in a fold whose summary names the keys. `markdown` is for MkDocs."""
    summary = ", ".join(f"<code>{name}</code>" for name in names)
    head = f'<details markdown="1">\n<summary>{summary}</summary>'
    return "\n\n".join([head, "\n".join(items), "</details>"])


def _items(
    model: type[BaseModel], above: str, indent: str, shown: dict[type[BaseModel], str]
) -> Iterator[str]:
    """Yield the keys of a model as a list, those inside them indented."""
    for name, field in model.model_fields.items():
        key, inner = f"{above}.{_key(name, model)}", model_in(field)
        yield _item(name, model, _slug(key), indent, shown)
        if inner and inner not in shown:
            shown[inner] = key
            yield from _items(inner, key, f"{indent}    ", shown)


def _item(
    name: str,
    model: type[BaseModel],
    anchor: str,
    indent: str,
    shown: Mapping[type[BaseModel], str] = MappingProxyType({}),
) -> str:
    about = _about(name, model, shown)
    return f'{indent}- <a id="{anchor}"></a>**`{_key(name, model)}`**: {about}'


def _about(name: str, model: type[BaseModel], shown: Mapping[type[BaseModel], str]) -> str:
    """Return a key's meaning, limits, default and example."""
    field, inner = model.model_fields[name], model_in(model.model_fields[name])
    meaning, example = written(model, name)
    parts = [meaning]
    if inner and inner in shown:
        parts.append(f"It has the same keys as `{shown[inner]}`.")
    elif inner is None:
        default = _default(field, model, name)
        required = "Required." if default == REQUIRED else f"Default: {default}."
        parts += [_limits(field), "" if default == NONE else required]
    parts.append(f"Example: `{example}`." if example else "")
    return " ".join(part for part in parts if part)


def _limits(field: FieldInfo) -> str:
    """Return the range of a number; empty if it has no maximum and may be 0 or 1."""
    least = next((each.ge for each in field.metadata if isinstance(each, Ge)), None)
    most = next((each.le for each in field.metadata if isinstance(each, Le)), None)
    if most is not None:
        return f"From {least} to {most}."
    return f"At least {least}." if isinstance(least, int) and least > 1 else ""


def _slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w-]", "", heading.lower())


def _key(name: str, model: type[BaseModel]) -> str:
    field = model.model_fields[name]
    return f"{name}{_many(field) if model_in(field) else ''}"


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
    value = JSON.validate_python(model.model_construct().model_dump(mode="json", include={name}))
    match value[name]:
        case None | [] | "":
            return NONE
        case list(several):
            return f"`[{', '.join(map(str, several))}]`"
        case bool(switch):
            return f"`{str(switch).lower()}`"
        case other:
            return f"`{other}`"


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
