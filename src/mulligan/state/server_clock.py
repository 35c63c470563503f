"""The time by the clock of the database's server, which is one for all workers of a fleet."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import DateTime, func, select

from mulligan.ports import Clock
from mulligan.state.database import Database

MOMENT = select(func.clock_timestamp(type_=DateTime(timezone=True)))


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The port Clock: leases run out at the same time for all, whatever their machines say."""

    database: Database
    own: Clock

    def now(self) -> datetime:
        """Ask the server, in UTC; UnavailableError where it stays away."""
        with self.database.read() as connection:
            return connection.execute(MOMENT).scalar_one().astimezone(UTC)

    def backoff(self, step: int) -> timedelta:
        """Give the wait of the k-th backoff step."""
        return self.own.backoff(step)


def clock_of(database: Database, own: Clock) -> Clock:
    """Give the clock that all share who share the database."""
    return ServerClock(database, own) if database.is_shared else own
