"""Delete the events of old, resolved issues, one issue per transaction (LEDGER-3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, exists, insert, select, update

from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.recorded_effects import EFFECT_KINDS
from mulligan.domain.retention import may_be_forgotten, remnant_of
from mulligan.domain.status import IssueStatus, Phase
from mulligan.implement.ports import Clock
from mulligan.storage.database import Database
from mulligan.storage.schema import EVENT, EVENTS_TABLE, ISSUE, ISSUES_TABLE, RUNS_TABLE
from mulligan.storage.serialization import (
    Row,
    projection_of,
    record_event,
    recorded_of,
    statuses_of,
    values_of,
    write_time,
)

EFFECTS = ("effect_done", *EFFECT_KINDS)
"""Kinds of events that are no activity; before version 2, all had one kind."""

REMNANT = "forgotten"
"""The kind of the remnant of `forget`, which is no activity either."""


@dataclass(frozen=True, slots=True)
class SqlRetentionStore:
    """Implements RetentionStore with SQLAlchemy."""

    database: Database
    clock: Clock

    def outdated(self, before: datetime) -> Sequence[IssueRef]:
        wanted = select(ISSUE.repository, ISSUE.number).where(_is_old(before))
        with self.database.read() as connection:
            rows = connection.execute(wanted.order_by(ISSUE.repository, ISSUE.number)).all()
        return [IssueRef(repository, number) for repository, number in rows]

    def forget(self, ref: IssueRef, before: datetime) -> bool:
        of_issue = and_(ISSUE.repository == ref.repository, ISSUE.number == ref.number)
        with self.database.write() as connection:
            found = connection.execute(
                select(ISSUE.status).where(of_issue, _is_old(before))
            ).scalar()
            current = statuses_of([found])[0] if found is not None else None
            if current is None or not may_be_forgotten(current):
                return False
            own = and_(EVENT.repository == ref.repository, EVENT.number == ref.number)
            rows = connection.execute(select(EVENTS_TABLE).where(own)).all()
            events = [recorded_of(Row._make(row)).event for row in rows]
            event, at = remnant_of(current, events), self.clock.now()
            status = advance(IssueStatus(ref), event, at)
            for table in (EVENTS_TABLE, RUNS_TABLE):
                own = and_(table.c.repository == ref.repository, table.c.number == ref.number)
                connection.execute(delete(table).where(own))
            remnant = values_of(record_event(status, event, at, seq=0))
            connection.execute(insert(EVENTS_TABLE).values(remnant))
            connection.execute(update(ISSUES_TABLE).where(of_issue).values(projection_of(status)))
        return True


def _is_old(before: datetime) -> ColumnElement[bool]:
    own = and_(EVENT.repository == ISSUE.repository, EVENT.number == ISSUE.number)
    last = (
        select(EVENT.at)
        .where(own, EVENT.kind.not_in(EFFECTS))
        .order_by(EVENT.seq.desc())
        .limit(1)
        .correlate(ISSUES_TABLE)
        .scalar_subquery()
    )
    more = exists().where(own, EVENT.kind.not_in([*EFFECTS, REMNANT])).correlate(ISSUES_TABLE)
    return and_(
        ISSUE.stage == Stage.RESOLVED.value,
        ISSUE.phase == Phase.IDLE.value,
        last < write_time(before),
        more,
    )
