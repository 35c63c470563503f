"""Write docs/events.md from the events themselves, so that it cannot fall behind. Pure."""

import inspect
import json
import re
from collections.abc import Iterator

from pydantic import JsonValue

from mulligan.domain.events import Event
from mulligan.surfaces.cli.event_lines import FIELDS, JSON, KINDS, Json, name_of, schema

RULES = re.compile(r" \((?:SPEC )?[A-Z]?\d+[a-z]?(?:, [A-Z]\d+[a-z]?)*\)")
"""Where a docstring names the rules that it follows, which no reader of the page knows."""

OPENING = """# Events

The ledger is a list of events, and `mulligan events --json` prints it for other programs, one line
of JSON for each, in ASCII and without secrets:

```console
$ mulligan events --json --follow --since 17
```

It begins at the first event, after the one of a number (`--since 17`), or so long ago
(`--since 7d`; `--since 0s` for what comes from now on). `--issue OWNER/NAME#N` picks one issue.

With `--follow` it goes on until it is interrupted, as `tail -f` does: whatever any Mulligan records
in that ledger is printed within about a second, and nothing waits for the reader. A program that
keeps the last `seq` it has handled, and begins after it, misses nothing and gets nothing twice;
where several workers write, an event whose predecessor is still being written waits for it.

What retention removes is not printed any more ([Operating](operating.md#what-is-removed)); of an
issue that was forgotten there is one event, `forgotten`, under a number of its own.

This page is made from the code by `make docs`, and so is the
[JSON Schema of a line](schemas/events.json), which `mulligan events --schema` prints too. Later
versions add names and fields: pass over those that you do not know.
"""

LINE = """## A line

| field | type | meaning |
|---|---|---|"""

PAYLOADS = """## Payloads

By the name of the event. Times are in UTC, and `_ms` is milliseconds.
"""


def reference() -> str:
    """Give the whole page."""
    fields = [f"| `{name}` | {_type(told)} | {said} |" for name, (told, said) in FIELDS.items()]
    parts = [OPENING, "\n".join([LINE, *fields]), PAYLOADS]
    definitions = JSON.validate_python(schema()["$defs"])
    parts += [_section(kind, definitions) for kind in KINDS]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def _section(kind: type[Event], definitions: Json) -> str:
    """Describe one kind by its docstring and the schema of its payload."""
    told = JSON.validate_python(definitions[kind.__name__])
    properties = JSON.validate_python(told["properties"])
    rows = [f"| `{name}` | {_type(JSON.validate_python(of))} |" for name, of in properties.items()]
    text = RULES.sub("", re.sub(r"\s*\n\s*", " ", inspect.getdoc(kind) or ""))
    return "\n".join(
        [f"### `{name_of(kind)}`\n", f"{text}\n", "| field | type |", "|---|---|", *rows]
    )


def _type(told: Json) -> str:
    """Name a type as a reader knows it."""
    if "anyOf" in told and isinstance(told["anyOf"], list):
        return " or ".join(_type(JSON.validate_python(each)) for each in told["anyOf"])
    if isinstance(given := told.get("type"), list):
        return " or ".join(map(str, given))
    return " ".join(_words(told)) or "any"


def _words(told: Json) -> Iterator[str]:
    match told:
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
