"""Store which repositories are paused, for all workers of a ledger (DAEMON-7)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from mulligan.domain.hold import Pause
from mulligan.implement.ports import Clock
from mulligan.storage.database import Database
from mulligan.storage.schema import PAUSES_TABLE
from mulligan.storage.serialization import pause_of, write_time


@dataclass(frozen=True, slots=True)
class SqlPauses:
    """The pauses in the database; one repository, or EVERYTHING, is paused at most once."""

    database: Database
    clock: Clock

    def all(self) -> Sequence[Pause]:
        """List the pauses, that of everything first."""
        with self.database.read() as connection:
            rows = connection.execute(select(PAUSES_TABLE).order_by(PAUSES_TABLE.c.repository))
            return [pause_of(row.repository, row.since) for row in rows]

    def pause(self, repository: str) -> None:
        """Pause a repository, or EVERYTHING; a pause that exists keeps its time."""
        row = {"repository": repository, "since": write_time(self.clock.now())}
        with self.database.write() as connection:
            known = select(PAUSES_TABLE.c.repository).where(PAUSES_TABLE.c.repository == repository)
            if connection.execute(known).scalar() is None:
                connection.execute(insert(PAUSES_TABLE).values(row))

    def resume(self, repository: str) -> None:
        """End the pause of a repository; EVERYTHING ends all pauses."""
        ended = delete(PAUSES_TABLE)
        if repository:
            ended = ended.where(PAUSES_TABLE.c.repository == repository)
        with self.database.write() as connection:
            connection.execute(ended)
