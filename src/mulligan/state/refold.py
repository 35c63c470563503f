"""Fold every status anew from the events, which are all that counts."""

from itertools import islice

from sqlalchemy import Connection, delete, insert, select

from mulligan.state.events import Row, projection_of, replay
from mulligan.state.schema import EVENTS_TABLE, ISSUES_TABLE

AT_ONCE = 1000
"""Rows in one statement; PostgreSQL takes a long silence in a transaction for a frozen worker."""


def fold_anew(connection: Connection) -> None:
    """Throw away what is stored of the statuses, and store what follows from the events now.

    A later version may find in the same events what an earlier one did not look for.
    """
    wanted = select(EVENTS_TABLE).order_by(EVENTS_TABLE.c.seq)
    rows = connection.execute(wanted.execution_options(yield_per=AT_ONCE))
    found = map(projection_of, replay(Row._make(row) for row in rows).values())
    connection.execute(delete(ISSUES_TABLE))
    while some := [*islice(found, AT_ONCE)]:
        connection.execute(insert(ISSUES_TABLE), some)
