"""Store this installation's id and renewals, and whom it stands back for (OWNER-2)."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select

from mulligan.domain.ownership import OwnerRecord, StandBack
from mulligan.implement.ports import Clock
from mulligan.storage.database import Database
from mulligan.storage.schema import INSTALLATION_TABLE, OWNERS_TABLE, RENEWALS_TABLE
from mulligan.storage.serialization import stand_back_of, write_time

OWNER = OWNERS_TABLE.c

RENEWAL = RENEWALS_TABLE.c

KEPT_RENEWALS = 50
"""More than the workers of a fleet that may try to renew a record at once."""


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
    """Implements Sightings in the ledger, for its workers and for the next start.

    All times are of the ledger's own clock, so that it does not matter if another one is wrong.
    """

    database: Database
    clock: Clock

    def note_renewal(self, repository: str, version: str) -> None:
        """Forget old renewals."""
        of_repository = RENEWAL.repository == repository
        newest = select(RENEWAL.id).where(of_repository).order_by(RENEWAL.id.desc())
        with self.database.write() as connection:
            row = {"repository": repository, "version": version}
            connection.execute(insert(RENEWALS_TABLE).values(row))
            old = connection.execute(newest.offset(KEPT_RENEWALS).limit(1)).scalar()
            if old is not None:
                connection.execute(delete(RENEWALS_TABLE).where(of_repository, RENEWAL.id <= old))

    def is_own(self, repository: str, version: str) -> bool:
        of_repository = RENEWAL.repository == repository
        wanted = select(RENEWAL.id).where(of_repository, RENEWAL.version == version)
        with self.database.read() as connection:
            return connection.execute(wanted.limit(1)).first() is not None

    def see(
        self, repository: str, ready_label: str, record: OwnerRecord
    ) -> tuple[StandBack, timedelta]:
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
        with self.database.write() as connection:
            connection.execute(delete(OWNERS_TABLE).where(OWNER.repository == repository))

    def all(self) -> Sequence[StandBack]:
        wanted = select(OWNER.repository, OWNER.ready_label, OWNER.owner, OWNER.since)
        with self.database.read() as connection:
            rows = connection.execute(wanted.order_by(OWNER.repository)).all()
        return [stand_back_of(*row) for row in rows]
