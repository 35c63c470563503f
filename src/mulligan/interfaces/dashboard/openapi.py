"""The description of the JSON API in OpenAPI 3.1, made from the types of its answers. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue, TypeAdapter

from mulligan import __version__
from mulligan.interfaces.json_types import Inspection, Row, StatsRow, StatusRow


class Failure(Row):
    """Why a request failed."""

    error: str


class EventRow(Row):
    """An event of the ledger, as a line of `mulligan debug events --json`."""

    seq: int
    time: datetime
    schema_version: int
    name: str
    issue: str
    epoch: int
    attempt: int | None
    payload: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query or, if it is in the path, of the address."""

    name: str
    meaning: str
    schema: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Operation:
    """An address that answers GET with JSON of a type."""

    path: str
    summary: str
    answer: TypeAdapter[object]
    query: Sequence[Parameter] = ()


NUMBER: Mapping[str, JsonValue] = {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}
TEXT: Mapping[str, JsonValue] = {"type": "string"}
FAILURES = {
    "400": "A parameter is invalid.",
    "401": "The access key is missing or wrong.",
    "404": "The ledger has no such issue.",
    "503": "Mulligan is starting, or the ledger is unavailable.",
}
IN_PATH = {"owner": TEXT, "name": TEXT, "number": {"type": "integer", "minimum": 1}}
AFTER = Parameter("after", "Only events with a higher `seq`.", NUMBER)
LIMIT = Parameter("limit", "At most so many events.", {**NUMBER, "maximum": 500})
SINCE = Parameter(
    "since",
    "Only the last days or hours, such as 30d or 12h.",
    {**TEXT, "pattern": "^[0-9]{1,4}[dh]$"},
)
ISSUE = "/issues/{owner}/{name}/{number}"
OPERATIONS = (
    Operation("/issues", "List every issue with its status", TypeAdapter(list[StatusRow])),
    Operation(ISSUE, "Show the history of an issue", TypeAdapter(Inspection)),
    Operation("/events", "List events of the ledger", TypeAdapter(list[EventRow]), (AFTER, LIMIT)),
    Operation("/stats", "Show the statistics", TypeAdapter(StatsRow), (SINCE,)),
)
ROOT = "/api/v1"
REFERENCES = "#/components/schemas/{model}"
"""How a schema names another one."""


def description() -> dict[str, JsonValue]:
    """Return the whole description."""
    failure: TypeAdapter[object] = TypeAdapter(Failure)
    adapters = {**{each.path: each.answer for each in OPERATIONS}, "failure": failure}
    schemas, shared = TypeAdapter.json_schemas(
        [(name, "serialization", adapter) for name, adapter in adapters.items()],
        ref_template=REFERENCES,
    )
    return PLAIN.validate_python(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Mulligan",
                "version": __version__,
                "description": "What Mulligan does, read from its ledger.",
            },
            "servers": [{"url": ROOT}],
            "security": [{"key": []}],
            "paths": {
                each.path: {
                    "get": _operation(
                        each,
                        schemas[each.path, "serialization"],
                        schemas["failure", "serialization"],
                    )
                }
                for each in OPERATIONS
            },
            "components": {
                "schemas": shared["$defs"],
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


PLAIN: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def _operation(of: Operation, schema: object, failure: object) -> dict[str, object]:
    in_path = [name for name in IN_PATH if f"{{{name}}}" in of.path]
    return {
        "summary": of.summary,
        "operationId": of.path.strip("/").split("/")[0] + ("_of_one" if in_path else ""),
        "parameters": [
            *({"name": n, "in": "path", "required": True, "schema": IN_PATH[n]} for n in in_path),
            *(
                {"name": p.name, "in": "query", "description": p.meaning, "schema": p.schema}
                for p in of.query
            ),
        ],
        "responses": {
            "200": {"description": "The answer.", "content": _json(schema)},
            **{
                status: {
                    "description": meaning,
                    "content": _json(failure),
                }
                for status, meaning in FAILURES.items()
            },
        },
    }


def _json(schema: object) -> dict[str, object]:
    return {"application/json": {"schema": schema}}
