"""Read the events of a ledger page by page, while others write."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from mulligan.domain.events import Recorded
from mulligan.domain.issue import IssueRef
from mulligan.state.database import Database
from mulligan.state.events import Row, recorded_of, write_time
from mulligan.state.schema import EVENTS_TABLE

EVENT = EVENTS_TABLE.c
MOST = 500
"""Events of one page; each page is a short reading transaction of its own."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events: of one issue, or recorded at `since` or later; None for all."""

    issue: IssueRef | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Events in their order; reading goes on after `upto`, which is where it began at the end."""

    events: Sequence[Recorded]
    upto: int


@dataclass(frozen=True, slots=True)
class EventFeed:
    """The events of a database, from any number on.

    Writers take turns, and a number is given and its event shown in one turn: nothing appears
    below what was read (docs/decisions/0007).
    """

    database: Database

    def page(self, after: int, wanted: Wanted) -> Page:
        """Give what is wanted of the events whose number is above `after`."""
        with self.database.read() as connection:
            upto = _last(after, connection)
            rows = _rows(after, upto, wanted, connection) if upto > after else []
        return Page([recorded_of(row) for row in rows], upto)


def _last(after: int, connection: Connection) -> int:
    """Give the number of a page's last event, wanted or not."""
    numbers = select(EVENT.seq).where(EVENT.seq > after).order_by(EVENT.seq).limit(MOST)
    return max(connection.execute(numbers).scalars(), default=after)


def _rows(after: int, upto: int, wanted: Wanted, connection: Connection) -> list[Row]:
    chosen = select(EVENTS_TABLE).where(EVENT.seq > after, EVENT.seq <= upto).order_by(EVENT.seq)
    if ref := wanted.issue:
        chosen = chosen.where(EVENT.repository == ref.repository, EVENT.number == ref.number)
    if wanted.since:
        chosen = chosen.where(EVENT.at >= write_time(wanted.since))
    return [Row._make(row) for row in connection.execute(chosen)]
