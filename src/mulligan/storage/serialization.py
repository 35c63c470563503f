"""Convert events and statuses to JSON for the ledger's rows, and back. Pure."""

import json
from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json

from mulligan.domain.errors import ConfigError
from mulligan.domain.events import (
    EVENT_SCHEMA_VERSION,
    EVENTS,
    Event,
    RecordedEvent,
    comments_read_to,
)
from mulligan.domain.fold import advance
from mulligan.domain.hold import Pause
from mulligan.domain.issue import IssueRef
from mulligan.domain.ownership import StandBack
from mulligan.domain.status import IssueStatus, PullStatus, Request, SeenText
from mulligan.storage.old_events import upgraded
from mulligan.text.redact import Redactor

SubRecord = Request | SeenText | PullStatus
"""The parts of a status whose defaults are omitted."""


class Row(NamedTuple):
    """One stored event; `at` is ISO 8601 in UTC with microseconds, so that it sorts as text."""

    seq: int
    at: str
    repository: str
    number: int
    epoch: int
    attempt: int | None
    kind: str
    schema_version: int
    body: str
    checksum: str | None = None

    @property
    def issue(self) -> IssueRef:
        """Name the issue that the event is about."""
        return IssueRef(self.repository, self.number)


def record_event(status: IssueStatus, event: Event, at: datetime, seq: int) -> RecordedEvent:
    """Note that an event happened to an issue, whose status `status` already holds it."""
    return RecordedEvent(
        seq=seq,
        at=at,
        issue=status.issue,
        epoch=status.epoch,
        attempt=status.attempt or None,
        event=event,
    )


def storable(event: Event) -> Event:
    """Return the event as it can be stored: a lone surrogate becomes `?`."""
    try:
        event.model_dump_json()
    except PydanticSerializationError:
        whole = json.dumps(event.model_dump(), default=str, ensure_ascii=False)
        return EVENTS.validate_json(whole.encode(errors="replace"))
    return event


def redacted(event: Event, redactor: Redactor) -> Event:
    """Return the event without secrets in any of its texts."""
    written: JsonValue = event.model_dump(mode="json")
    clean = redactor.tree(written)
    return event if clean == written else EVENTS.validate_python(clean)


def values_of(recorded: RecordedEvent) -> dict[str, str | int | None]:
    """Write an event as the values of a row, all but `seq`, which the database gives."""
    row = Row(
        seq=recorded.seq,
        at=write_time(recorded.at),
        repository=recorded.issue.repository,
        number=recorded.issue.number,
        epoch=recorded.epoch,
        attempt=recorded.attempt,
        kind=recorded.event.kind,
        schema_version=EVENT_SCHEMA_VERSION,
        body=recorded.event.model_dump_json(),
    )
    values = {**row._asdict(), "checksum": checksum_of(row)}
    return {name: value for name, value in values.items() if name != "seq"}


def checksum_of(row: Row) -> str:
    """Compute the checksum of a row without its number; damage on a disk changes it."""
    text = json.dumps([value for name, value in row._asdict().items() if name not in UNCHECKED])
    return sha256(text.encode()).hexdigest()[:16]


UNCHECKED = frozenset({"seq", "checksum"})


def recorded_of(row: Row) -> RecordedEvent:
    """Read a row back; ConfigError where a newer version wrote it, or it is damaged."""
    if row.schema_version > EVENT_SCHEMA_VERSION:
        raise _not_readable(row)
    if row.checksum is not None and row.checksum != checksum_of(row):
        raise ConfigError(
            f"Event {row.seq} of the ledger, of {row.issue}, is damaged; restore a backup."
        )
    try:
        event = event_of(row.body, row.schema_version)
    except ValueError as error:
        raise _not_readable(row) from error
    return RecordedEvent(
        seq=row.seq,
        at=datetime.fromisoformat(row.at),
        issue=row.issue,
        epoch=row.epoch,
        attempt=row.attempt,
        event=event,
    )


def event_of(body: str, version: int) -> Event:
    """Read an event as a version stored it; ValueError if it cannot be read."""
    if version == 1:
        return EVENTS.validate_python(upgraded(from_json(body)))
    return EVENTS.validate_json(body)


def replay(events: Iterable[RecordedEvent]) -> tuple[dict[IssueRef, IssueStatus], dict[str, int]]:
    """Fold events, in order: the status of each issue, and each repository's `comments_read_to`."""
    found, cursors = dict[IssueRef, IssueStatus](), dict[str, int]()
    for recorded in events:
        ref = recorded.issue
        before = found.get(ref) or IssueStatus(ref)
        found[ref] = advance(before, recorded.event, recorded.at)
        if read_to := comments_read_to(recorded.event):
            cursors[ref.repository] = max(read_to, cursors.get(ref.repository, 0))
    return found, cursors


def folded(ref: IssueRef, events: Iterable[RecordedEvent]) -> IssueStatus:
    """Fold the events of one issue, in order."""
    status = IssueStatus(ref)
    for each in events:
        status = advance(status, each.event, each.at)
    return status


def projection_of(status: IssueStatus) -> dict[str, str | int | None]:
    """Write a status as the values of its row."""
    return {
        "repository": status.issue.repository,
        "number": status.issue.number,
        "stage": status.stage.value,
        "phase": status.phase.value,
        "due": write_time(status.due) if status.due else None,
        "status": written(status),
    }


def write_time(at: datetime) -> str:
    """Write a time in UTC, always at the same length."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def pause_of(repository: str, since: str) -> Pause:
    """Read a row of the table of pauses."""
    return Pause(repository, datetime.fromisoformat(since))


def stand_back_of(repository: str, ready_label: str, owner: str, since: str) -> StandBack:
    """Read a row of the table of owners."""
    return StandBack(repository, ready_label, owner, datetime.fromisoformat(since))


def _not_readable(row: Row) -> ConfigError:
    return ConfigError(
        f"Event {row.seq} of the ledger, {row.kind!r} of {row.issue}, cannot be read by this"
        " Mulligan; use the newer version that wrote it, or restore a backup."
    )


def written(status: IssueStatus) -> str:
    """Write a status as JSON."""
    return _one().dump_json(status, by_alias=True, exclude=_unchanged(status)).decode()


Excluded = dict[str, "bool | Excluded"]


def _unchanged(record: IssueStatus | SubRecord) -> Excluded:
    """Return the fields with their values before any event, which rows omit.

    That saves a third of the size. After a change of a default, add a migration that folds all
    statuses again.
    """
    found: Excluded = {}
    for each in fields(record):
        value: object = getattr(record, each.name)
        if value == each.default:
            found[each.name] = True
        elif isinstance(value, SubRecord):
            found[each.name] = _unchanged(value)
    return found


def statuses_of(stored: Iterable[str]) -> list[IssueStatus]:
    """Read statuses as they are stored, all in one go: 10,000 take about 0.1 s."""
    try:
        return _many().validate_json(f"[{','.join(stored)}]")
    except ValidationError as error:
        raise ConfigError(
            "This version cannot read a status in the ledger; install a newer version."
        ) from error


@cache
def _one() -> TypeAdapter[IssueStatus]:
    return TypeAdapter(IssueStatus)


@cache
def _many() -> TypeAdapter[list[IssueStatus]]:
    return TypeAdapter(list[IssueStatus])
