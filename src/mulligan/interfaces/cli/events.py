"""`mulligan debug events`: print the ledger's events as JSON or text, and write docs/events.md."""

import json
import select
import signal
import sys
from bisect import bisect_left
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import get_args

from pydantic import JsonValue, TypeAdapter

from mulligan.config.schema import DRAFT
from mulligan.domain.events import EVENT_TYPES, Event, RecordedEvent
from mulligan.domain.issue import IssueRef
from mulligan.domain.recorded_effects import Effect
from mulligan.implement.ports import Ledger
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.stores import open_ledger
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.issue_argument import issue_of
from mulligan.interfaces.cli.setup import read_configuration
from mulligan.interfaces.cli.stats import time_ago
from mulligan.interfaces.cli.terminal import OUTPUT_FILTER, print_json
from mulligan.interfaces.event_text import sentence_of
from mulligan.interfaces.json_output import event_row
from mulligan.text.redact import Redactor

# `mulligan debug events`


def events(
    config: Path | None, issue: str | None, since: str | None, *, follow: bool, json: bool
) -> Exit:
    """Print the recorded events and, with `follow`, new ones."""
    begin = _start_number(since)
    operator = read_configuration(config, needs_token=False)
    ref = issue_of(issue, operator) if issue else None
    with open_ledger(operator) as ledger, end_on_broken_pipe():
        after = begin if isinstance(begin, int) else number_at(begin, ledger)
        for page in pages(ledger, ref, after, follow=follow):
            for recorded in page:
                written = (
                    event_json(recorded, OUTPUT_FILTER.redactor)
                    if json
                    else OUTPUT_FILTER.clean(event_text(recorded))
                )
                sys.stdout.write(f"{written}\n")
            sys.stdout.flush()
    return Exit.DONE


POLL_MILLISECONDS = 500
"""Time between two reads of the ledger when there are no new events."""

BATCH_SIZE = 500
"""Events per read."""


def _start_number(since: str | None) -> int | datetime:
    """Parse `--since`: the number of an event, or a duration before now."""
    if since is None:
        return 0
    is_number = since.isascii() and since.isdigit()
    return int(since) if is_number else time_ago(SystemClock().now(), since)


def number_at(time: datetime, ledger: Ledger) -> int:
    """Return the number after which all events are from `at` or later, by binary search."""
    after_each = range(ledger.last_seq())
    return bisect_left(after_each, time, key=lambda after: ledger.events(after=after, most=1)[0].at)


def pages(
    ledger: Ledger, ref: IssueRef | None, after: int, *, follow: bool
) -> Iterator[Sequence[RecordedEvent]]:
    """Yield the events after a number, of one issue or of all; with `follow`, wait for more."""
    while True:
        page = ledger.events(ref, after, BATCH_SIZE)
        yield page
        if page:
            after = page[-1].seq
        elif not follow or reader_closed():
            return


def reader_closed(milliseconds: int = POLL_MILLISECONDS) -> bool:
    """Wait up to `milliseconds`; return early if the reader has closed the output."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return bool(output.poll(milliseconds))


@contextmanager
def end_on_broken_pipe() -> Generator[None]:
    """Let SIGINT and a broken pipe end the process without a message."""
    before = [(each, signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGPIPE)]
    for each, _ in before:
        signal.signal(each, signal.SIG_DFL)
    try:
        yield
    finally:
        for each, kept in before:
            signal.signal(each, kept)


def print_schema() -> Exit:
    """Print the JSON Schema of a line."""
    print_json(schema())
    return Exit.DONE


# One event as a line

Json = dict[str, JsonValue]
JSON: TypeAdapter[Json] = TypeAdapter(Json)


def event_json(recorded: RecordedEvent, redactor: Redactor) -> str:
    """Return an event as one line of JSON in ASCII, without secrets."""
    return json.dumps(redactor.tree(JSON.validate_python(event_row(recorded))))


def event_text(recorded: RecordedEvent) -> str:
    """Return an event as one line for people."""
    parts = (
        f"{recorded.at:%Y-%m-%d %H:%M:%S}",
        f"{recorded.seq}",
        f"{recorded.issue}",
        f"attempt {recorded.attempt}" if recorded.attempt else "",
        recorded.event.kind,
        sentence_of(recorded.event),
    )
    return "  ".join(part for part in parts if part)


# The JSON Schema of a line

FIELDS: Mapping[str, tuple[Json, str]] = {
    "seq": (
        {"type": "integer"},
        "Position in the ledger. Later events have higher numbers, with gaps.",
    ),
    "time": ({"type": "string", "format": "date-time"}, "Time of the event, in UTC."),
    "schema_version": (
        {"type": "integer"},
        "Version of the payload. It changes if a field gets a new meaning, not if one is added.",
    ),
    "name": ({"type": "string"}, "Name of the event, see below."),
    "issue": ({"type": "string"}, "The issue, OWNER/NAME#NUMBER."),
    "epoch": ({"type": "integer"}, "The epoch, from 1; 0 before the first request."),
    "attempt": (
        {"type": ["integer", "null"]},
        "The attempt within the epoch, from 1; null before the first attempt.",
    ),
    "payload": ({"type": "object"}, "Details of the event, see below."),
}
"""The fields of a line in order, with their schemas and meanings."""


def schema() -> Json:
    """Return the JSON Schema of a line."""
    published = JSON.validate_python(TypeAdapter[Event](Event).json_schema(mode="serialization"))
    definitions = JSON.validate_python(published["$defs"])
    for kind in EVENT_TYPES:
        definitions[kind.__name__] = _payload(JSON.validate_python(definitions[kind.__name__]))
    properties: Json = {
        name: {**field_schema, "description": meaning}
        for name, (field_schema, meaning) in FIELDS.items()
    }
    return {
        "$schema": DRAFT,
        "title": "A line of `mulligan debug events --json`",
        "type": "object",
        "properties": properties,
        "required": list(FIELDS),
        "oneOf": [_one(kind) for kind in EVENT_TYPES],
        "$defs": definitions,
    }


def name_of(kind: type[Event]) -> str:
    """Return the recorded name of an event class."""
    return str(kind.model_fields["kind"].default)


def _one(kind: type[Event]) -> JsonValue:
    payload: Json = {"$ref": f"#/$defs/{kind.__name__}"}
    return {"properties": {"name": {"const": name_of(kind)}, "payload": payload}}


def _payload(definition: Json) -> Json:
    """Return the definition of an event without `kind`, which its line has as `name`.

    Effects in it are of the same records, and have a `kind`.
    """
    properties = JSON.validate_python(definition["properties"])
    required = definition.get("required")
    left = [name for name in required if name != "kind"] if isinstance(required, list) else []
    kept = {name: field_schema for name, field_schema in properties.items() if name != "kind"}
    if "effects" in kept:
        effects = JSON.validate_python(kept["effects"])
        kept["effects"] = {**effects, "items": {"oneOf": [*map(_effect, get_args(Effect))]}}
    return {**definition, "properties": kept, "required": left}


def _effect(kind: type[Event]) -> Json:
    named: Json = {"kind": {"const": name_of(kind)}}
    return {"$ref": f"#/$defs/{kind.__name__}", "properties": named, "required": ["kind"]}
