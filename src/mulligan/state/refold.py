"""Fold every status anew from the events, which are all that counts."""

from sqlalchemy import Connection, delete, insert, select

from mulligan.state.events import Row, projection_of, replay
from mulligan.state.schema import EVENTS_TABLE, ISSUES_TABLE


def fold_anew(connection: Connection) -> None:
    """Throw away what is stored of the statuses, and store what follows from the events now.

    A later version may find in the same events what an earlier one did not look for.
    """
    wanted = select(EVENTS_TABLE).order_by(EVENTS_TABLE.c.seq)
    rows = connection.execute(wanted.execution_options(yield_per=1000))
    found = replay(Row._make(row) for row in rows)
    connection.execute(delete(ISSUES_TABLE))
    if found:
        connection.execute(insert(ISSUES_TABLE), [*map(projection_of, found.values())])
