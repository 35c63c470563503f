"""One event as one line: JSON with stable fields for programs, words for people. Pure."""

import json
import re
from collections.abc import Mapping
from typing import get_args

from pydantic import JsonValue, TypeAdapter

from mulligan.domain.events import (
    AttemptCompleted,
    CheckFinished,
    Decided,
    Event,
    Recorded,
)
from mulligan.surfaces.shapes import event_row
from mulligan.text.escape import one_line
from mulligan.text.redact import Redactor

Json = dict[str, JsonValue]
JSON: TypeAdapter[Json] = TypeAdapter(Json)
DRAFT = "https://json-schema.org/draft/2020-12/schema"
WIDTH = 200
HASH = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{30,54}\b")
KINDS: tuple[type[Event], ...] = get_args(get_args(Event)[0])
"""Every kind of event there is."""

FIELDS: Mapping[str, tuple[Json, str]] = {
    "seq": ({"type": "integer"}, "Orders all events of one ledger; numbers may be left out."),
    "time": ({"type": "string", "format": "date-time"}, "When it was recorded, in UTC."),
    "schema_version": (
        {"type": "integer"},
        "Of the payload; it grows when a field changes its meaning, not when one is added.",
    ),
    "name": ({"type": "string"}, "What happened."),
    "issue": ({"type": "string"}, "The issue, OWNER/NAME#NUMBER."),
    "epoch": ({"type": "integer"}, "The epoch, from 1; 0 before the first request."),
    "attempt": (
        {"type": ["integer", "null"]},
        "The attempt within the epoch, from 1; null where there was none yet.",
    ),
    "payload": ({"type": "object"}, "What there is to say of it, by its name."),
}
"""The fields of a line, in their order, with their schemas and meanings."""


def line_of(recorded: Recorded, redactor: Redactor) -> str:
    """Write an event as one line of JSON in ASCII, without secrets."""
    return json.dumps(redactor.tree(JSON.validate_python(event_row(recorded))))


def words_of(recorded: Recorded) -> str:
    """Write an event as one line for people; of a hash only its beginning."""
    attempt = f"attempt {recorded.attempt}" if recorded.attempt else ""
    when = f"{recorded.at:%Y-%m-%d %H:%M:%S}"
    about = one_line(HASH.sub(r"\1", _said(recorded.event)), WIDTH)
    parts = (when, f"{recorded.seq}", f"{recorded.issue}", attempt, recorded.event.kind, about)
    return "  ".join(part for part in parts if part)


def _said(event: Event) -> str:
    match event:
        case AttemptCompleted(meta=meta):
            return f"{meta.outcome}: {meta.error}" if meta.error else meta.outcome
        case CheckFinished(check=check):
            return f"{check.name}: {'passed' if check.passed else 'failed'}"
        case Decided(decision=decision):
            return f"{decision.decision}: {decision.reason}"
        case _:
            told: Json = event.model_dump(mode="json", exclude={"kind"})
            return " ".join(f"{key}={value}" for key, value in told.items() if _is_short(value))


def _is_short(value: JsonValue) -> bool:
    return isinstance(value, str | int | float) and value != ""


def schema() -> Json:
    """Give the JSON Schema of a line."""
    made = JSON.validate_python(TypeAdapter[Event](Event).json_schema(mode="serialization"))
    definitions = JSON.validate_python(made["$defs"])
    for kind in KINDS:
        definitions[kind.__name__] = _without_kind(JSON.validate_python(definitions[kind.__name__]))
    properties: Json = {
        name: {**told, "description": said} for name, (told, said) in FIELDS.items()
    }
    return {
        "$schema": DRAFT,
        "title": "A line of `mulligan events --json`",
        "type": "object",
        "properties": properties,
        "required": list(FIELDS),
        "oneOf": [_one(kind) for kind in KINDS],
        "$defs": definitions,
    }


def name_of(kind: type[Event]) -> str:
    """Give the name under which events of a class are recorded."""
    return str(kind.model_fields["kind"].default)


def _one(kind: type[Event]) -> JsonValue:
    payload: Json = {"$ref": f"#/$defs/{kind.__name__}"}
    return {"properties": {"name": {"const": name_of(kind)}, "payload": payload}}


def _without_kind(definition: Json) -> Json:
    properties = JSON.validate_python(definition["properties"])
    required = definition.get("required")
    left = [name for name in required if name != "kind"] if isinstance(required, list) else []
    kept = {name: told for name, told in properties.items() if name != "kind"}
    return {**definition, "properties": kept, "required": left}
