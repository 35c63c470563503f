"""Store this installation's id, and the other installations that it stands back for (OWNER-2)."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select

from mulligan.domain.ownership import OwnerRecord, StandBack
from mulligan.implement.ports import Clock
from mulligan.storage.database import Database
from mulligan.storage.schema import INSTALLATION_TABLE, OWNERS_TABLE
from mulligan.storage.serialization import stand_back_of, write_time

OWNER = OWNERS_TABLE.c


def installation_id(database: Database) -> str:
    """Return the id of this installation; the first call chooses one."""
    with database.read() as connection:
        found = connection.execute(select(INSTALLATION_TABLE.c.id)).scalar()
    if found:
        return found
    with database.write() as connection:
        found = connection.execute(select(INSTALLATION_TABLE.c.id)).scalar()
        if not found:
            found = secrets.token_hex(6)
            connection.execute(insert(INSTALLATION_TABLE).values(id=found))
    return found


@dataclass(frozen=True, slots=True)
class SqlSightings:
    """Remembers other owners in the ledger, for all its workers and for the next start.

    All times are of the ledger's own clock, so that it does not matter if another one is wrong.
    """

    database: Database
    clock: Clock

    def see(
        self, repository: str, ready_label: str, record: OwnerRecord
    ) -> tuple[StandBack, timedelta]:
        """Note another owner; return for how long its record was seen unchanged."""
        now = self.clock.now()
        with self.database.write() as connection:
            of_repository = OWNER.repository == repository
            known = connection.execute(select(OWNERS_TABLE).where(of_repository)).first()
            same_owner = known and (known.ready_label, known.owner) == (
                ready_label,
                record.installation,
            )
            since = datetime.fromisoformat(known.since) if known and same_owner else now
            seen = now
            if known and same_owner and known.version == record.version:
                seen = min(now, datetime.fromisoformat(known.seen))
            row = {
                "repository": repository,
                "ready_label": ready_label,
                "owner": record.installation,
                "since": write_time(since),
                "version": record.version,
                "seen": write_time(seen),
            }
            if known is None or tuple(known) != tuple(row.values()):
                connection.execute(delete(OWNERS_TABLE).where(of_repository))
                connection.execute(insert(OWNERS_TABLE).values(row))
        return StandBack(repository, ready_label, record.installation, since), now - seen

    def forget(self, repository: str) -> None:
        """Note that this installation owns a repository's label."""
        with self.database.write() as connection:
            connection.execute(delete(OWNERS_TABLE).where(OWNER.repository == repository))

    def all(self) -> Sequence[StandBack]:
        """List the other owners, by repository."""
        wanted = select(OWNER.repository, OWNER.ready_label, OWNER.owner, OWNER.since)
        with self.database.read() as connection:
            rows = connection.execute(wanted.order_by(OWNER.repository)).all()
        return [stand_back_of(*row) for row in rows]
