"""The ledger in a database: an event and the status that it leads to are one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from mulligan.domain.events import (
    AttemptCompleted,
    BaselineRecorded,
    Event,
    RecordedEvent,
    comments_read_to,
)
from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef, Lease, lease_lost
from mulligan.domain.result import WorkerResultMeta, latest_records
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Clock, Listener, ignore_event
from mulligan.storage.database import Database, raise_cursor, stored_cursor
from mulligan.storage.leases import still_held
from mulligan.storage.schema import (
    BASELINES,
    COMPLETED,
    EVENT,
    EVENTS_TABLE,
    ISSUE,
    ISSUES_TABLE,
    LEARNINGS,
)
from mulligan.storage.serialization import (
    Row,
    folded,
    projection_of,
    record_event,
    recorded_of,
    redacted,
    statuses_of,
    storable,
    values_of,
)
from mulligan.text.redact import Redactor


@dataclass(frozen=True, slots=True)
class SqlLedger:
    """The port Ledger on SQLAlchemy; `clock` gives the time of each event.

    Texts of events are redacted before they are stored, and so wherever they are read.
    """

    database: Database
    clock: Clock
    lease: Lease | None = None
    redactor: Redactor = field(default_factory=Redactor)
    listener: Listener = ignore_event

    def with_lease(self, lease: Lease) -> "SqlLedger":
        return replace(self, lease=lease)

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        with self.database.write() as connection:
            status = self._append(connection, ref, event)
        self.listener(status, event)
        return status

    def restore(self, ref: IssueRef, events: Sequence[Event]) -> bool:
        if not events:
            return False
        with self.database.write() as connection:
            if _stored(connection, ref) is not None:
                return False
            status = [self._append(connection, ref, event) for event in events][-1]
        self.listener(status, events[-1])
        return True

    def _append(self, connection: Connection, ref: IssueRef, event: Event) -> IssueStatus:
        event = redacted(storable(event), self.redactor)
        before = _stored(connection, ref)
        at = self.clock.now()
        if self.lease and not still_held(connection, self.lease, at):
            raise lease_lost(self.lease)
        status = advance(before or IssueStatus(ref), event, at)
        # The database assigns `seq`.
        recorded = record_event(status, event, at, seq=0)
        connection.execute(INSERT_EVENT, values_of(recorded))
        _keep(connection, status, known=before is not None)
        raise_cursor(connection, ref.repository, comments_read_to(event))
        return status

    def status(self, ref: IssueRef) -> IssueStatus:
        with self.database.read() as connection:
            return _stored(connection, ref) or IssueStatus(ref)

    def statuses(self) -> Sequence[IssueStatus]:
        wanted = select(ISSUE.status).order_by(ISSUE.repository, ISSUE.number)
        with self.database.read() as connection:
            stored = connection.execute(wanted).scalars().all()
        return statuses_of(stored)

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        with self.database.read() as connection:
            rows = connection.execute(COMPLETED_OF, _named(ref)).all()
        completed = (recorded_of(Row._make(row)) for row in rows)
        return latest_records(
            recorded.event.meta
            for recorded in completed
            if isinstance(recorded.event, AttemptCompleted)
        )

    def events(
        self, ref: IssueRef | None = None, after: int = 0, most: int | None = None
    ) -> Sequence[RecordedEvent]:
        newer = EVENT.seq > after
        return self._events(newer if ref is None else and_(newer, _events_of(ref)), most)

    def last_seq(self) -> int:
        with self.database.read() as connection:
            return connection.execute(select(func.max(EVENT.seq))).scalar() or 0

    def comments_read_to(self, repository: str) -> int:
        with self.database.read() as connection:
            return stored_cursor(connection, repository) or 0

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        wanted = (
            select(EVENTS_TABLE)
            .where(EVENT.repository == repository, BASELINES, EVENT.body.contains(key))
            .order_by(EVENT.seq.desc())
            .limit(1)
        )
        with self.database.read() as connection:
            row = connection.execute(wanted).first()
        event = recorded_of(Row._make(row)).event if row else None
        return event if isinstance(event, BaselineRecorded) else None

    def learnings(self, repository: str) -> Sequence[RecordedEvent]:
        return self._events(and_(EVENT.repository == repository, LEARNINGS))

    def adopt(self, ref: IssueRef, events: Sequence[RecordedEvent]) -> None:
        """Replace an issue's events with those of another ledger."""
        status = folded(ref, events)
        with self.database.write() as connection:
            connection.execute(delete(EVENTS_TABLE).where(_events_of(ref)))
            connection.execute(delete(ISSUES_TABLE).where(_issue_is(ref)))
            if events:
                connection.execute(insert(EVENTS_TABLE), [*map(values_of, events)])
                connection.execute(insert(ISSUES_TABLE).values(projection_of(status)))
                read_to = max(comments_read_to(each.event) for each in events)
                raise_cursor(connection, ref.repository, read_to)

    def _events(self, which: ColumnElement[bool], most: int | None = None) -> list[RecordedEvent]:
        wanted = select(EVENTS_TABLE).where(which).order_by(EVENT.seq).limit(most)
        with self.database.read() as connection:
            rows = connection.execute(wanted).all()
        return [recorded_of(Row._make(row)) for row in rows]


def _events_of(ref: IssueRef) -> ColumnElement[bool]:
    return and_(EVENT.repository == ref.repository, EVENT.number == ref.number)


def _issue_is(ref: IssueRef) -> ColumnElement[bool]:
    return and_(ISSUE.repository == ref.repository, ISSUE.number == ref.number)


def _stored(connection: Connection, ref: IssueRef) -> IssueStatus | None:
    found = connection.execute(STATUS_OF, _named(ref)).scalar()
    return statuses_of([found])[0] if found is not None else None


def _keep(connection: Connection, status: IssueStatus, *, known: bool) -> None:
    """Insert or update the status; within one transaction this needs no upsert."""
    row = projection_of(status)
    if known:
        connection.execute(UPDATE_ISSUE, row | _named(status.issue))
    else:
        connection.execute(INSERT_ISSUE, row)


# These run dozens of times an issue; SQLAlchemy takes longer to build one than to execute it.

_IS_NAMED = and_(
    ISSUE.repository == bindparam("of_repository"), ISSUE.number == bindparam("of_number")
)

STATUS_OF = select(ISSUE.status).where(_IS_NAMED)

COMPLETED_OF = (
    select(EVENTS_TABLE)
    .where(
        EVENT.repository == bindparam("of_repository"),
        EVENT.number == bindparam("of_number"),
        EVENT.kind == COMPLETED,
    )
    .order_by(EVENT.seq)
)

UPDATE_ISSUE = update(ISSUES_TABLE).where(_IS_NAMED)

INSERT_ISSUE = insert(ISSUES_TABLE)

INSERT_EVENT = insert(EVENTS_TABLE)


def _named(ref: IssueRef) -> dict[str, str | int | None]:
    return {"of_repository": ref.repository, "of_number": ref.number}
