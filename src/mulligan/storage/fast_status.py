"""Read the status of every issue without opening the ledger for work.

An SQLite file that is up to date needs no SQLAlchemy and no migrations, which take longer than
reading it.
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from mulligan.domain.hold import Pause
from mulligan.domain.ownership import StandBack
from mulligan.domain.status import IssueStatus
from mulligan.storage import HEAD, VERSION_TABLE
from mulligan.storage.serialization import pause_of, stand_back_of, statuses_of

SQLITE_URL = re.compile(r"sqlite(?:\+pysqlite)?:///([\w ~./-]+)")
"""A URL that names a file by characters that mean nothing else in it."""

REVISION = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 - a name of ours
PAUSES = "SELECT repository, since FROM pauses ORDER BY repository"
OWNERS = "SELECT repository, ready_label, owner, since FROM owners ORDER BY repository"
STATUSES = "SELECT status FROM issues ORDER BY repository, number"


def read_fast_status(url: str) -> tuple[Sequence[IssueStatus], Sequence[Pause | StandBack]] | None:
    """Read all statuses by repository and number, the pauses, and the other owners.

    None if the ledger needs a migration, or has a fault; the caller then opens it for work.
    """
    named = SQLITE_URL.fullmatch(url)
    if not named:
        return None
    place = Path(named[1]).expanduser().absolute().as_uri()
    try:
        # A missing file is not created. The last connection cleans up, as elsewhere.
        with closing(sqlite3.connect(f"{place}?mode=rw", uri=True)) as connection:
            stored = _stored(connection)
    except sqlite3.Error:
        return None
    return None if stored is None else (statuses_of(stored[0]), stored[1])


def _stored(connection: sqlite3.Connection) -> tuple[list[str], list[Pause | StandBack]] | None:
    # One snapshot for all, also during a migration.
    connection.execute("BEGIN")
    if connection.execute(REVISION).fetchone() != (HEAD,):
        return None
    statuses = [status for (status,) in connection.execute(STATUSES)]
    pauses = [pause_of(*row) for row in connection.execute(PAUSES)]
    return statuses, [*pauses, *(stand_back_of(*row) for row in connection.execute(OWNERS))]
