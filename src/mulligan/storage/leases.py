"""Leases in the database: at most one worker per issue, ensured by transactions (RECOVERY-2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.sql.functions import count

from mulligan.config.operator import LEASE_TIME
from mulligan.domain.issue import IssueRef, Lease
from mulligan.implement.ports import Clock
from mulligan.storage.database import Database
from mulligan.storage.schema import LEASES_TABLE, WORKERS_TABLE
from mulligan.storage.serialization import write_time

LEASE = LEASES_TABLE.c
WORKER = WORKERS_TABLE.c

CLAIM = text(
    """
    INSERT INTO leases (repository, number, fence, worker, expires)
    VALUES (:repository, :number, 1, :worker, :expires)
    ON CONFLICT (repository, number) DO UPDATE SET
        fence = leases.fence + 1, worker = :worker, expires = :expires
    WHERE leases.expires IS NULL OR leases.expires <= :now
    """
).execution_options(preserve_rowcount=True)


@dataclass(frozen=True, slots=True)
class SqlLeases:
    """Implements Leases with SQLAlchemy."""

    database: Database
    clock: Clock
    time: timedelta = LEASE_TIME

    def claim(self, ref: IssueRef, worker: str, most: int | None = None) -> Lease | None:
        """Without `most`, wait only for other writers of the same row."""
        transaction = self.database.write_rows if most is None else self.database.write
        with transaction() as connection:
            now = self.clock.now()
            if most is not None and _held(connection, now) >= most:
                return None
            values = {"repository": ref.repository, "number": ref.number, "worker": worker}
            times = {"now": write_time(now), "expires": self._after(now)}
            if not connection.execute(CLAIM, values | times).rowcount:
                return None
            fence = connection.execute(select(LEASE.fence).where(_of(ref))).scalar_one()
        return Lease(ref, worker, fence)

    def renew(self, lease: Lease) -> bool:
        with self.database.write_rows() as connection:
            now = self.clock.now()
            longer = {"expires": self._after(now)}
            held = update(LEASES_TABLE).where(_held_by(lease, now))
            return connection.execute(held.values(**longer)).rowcount == 1

    def holds(self, lease: Lease) -> bool:
        with self.database.read() as connection:
            return still_held(connection, lease, self.clock.now())

    def release(self, lease: Lease) -> None:
        mine = and_(_of(lease.issue), LEASE.fence == lease.fence)
        with self.database.write_rows() as connection:
            connection.execute(update(LEASES_TABLE).where(mine).values(worker=None, expires=None))

    def holder(self, ref: IssueRef) -> str | None:
        good = and_(_of(ref), LEASE.expires > write_time(self.clock.now()))
        with self.database.read() as connection:
            return connection.execute(select(LEASE.worker).where(good)).scalar()

    def release_all(self) -> None:
        with self.database.write() as connection:
            connection.execute(update(LEASES_TABLE).values(worker=None, expires=None))

    def heartbeat(self, worker: str) -> Sequence[str]:
        with self.database.write_rows() as connection:
            if not self.database.is_shared:
                return (worker,)
            now = self.clock.now()
            gone = or_(WORKER.worker == worker, WORKER.expires <= write_time(now))
            connection.execute(delete(WORKERS_TABLE).where(gone))
            row = {"worker": worker, "expires": self._after(now)}
            connection.execute(insert(WORKERS_TABLE).values(row))
        return self.present()

    def present(self) -> Sequence[str]:
        """Return the workers with a recent heartbeat."""
        good = WORKER.expires > write_time(self.clock.now())
        wanted = select(WORKER.worker).where(good).order_by(WORKER.worker)
        with self.database.read() as connection:
            return connection.execute(wanted).scalars().all()

    def _after(self, now: datetime) -> str:
        return write_time(now + self.time)


def still_held(connection: Connection, lease: Lease, now: datetime) -> bool:
    """Return, within a transaction, whether a lease is in force."""
    held = {
        "of_repository": lease.issue.repository,
        "of_number": lease.issue.number,
        "of_fence": lease.fence,
        "now": write_time(now),
    }
    return connection.execute(STILL_HELD, held).first() is not None


# Built once: each event of a lease's holder asks this.
STILL_HELD = select(LEASE.fence).where(
    LEASE.repository == bindparam("of_repository"),
    LEASE.number == bindparam("of_number"),
    LEASE.fence == bindparam("of_fence"),
    LEASE.expires > bindparam("now"),
)


def _held_by(lease: Lease, now: datetime) -> ColumnElement[bool]:
    return and_(_of(lease.issue), LEASE.fence == lease.fence, LEASE.expires > write_time(now))


def _held(connection: Connection, now: datetime) -> int:
    good = LEASE.expires > write_time(now)
    return connection.execute(select(count()).select_from(LEASES_TABLE).where(good)).scalar_one()


def _of(ref: IssueRef) -> ColumnElement[bool]:
    return and_(LEASE.repository == ref.repository, LEASE.number == ref.number)
