"""A lease is held from one moment on, however long the database takes to write that down."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mulligan.implement.ports import Leases
from mulligan.storage.database import open_database
from mulligan.storage.leases import LEASE_TIME, SqlLeases
from mulligan.storage.memory import MemoryLeases
from world.ledgers import ISSUES, START, migrated

REF = ISSUES[0]


@dataclass
class SlowClock:
    """A clock on which a look takes as long as it is told."""

    at: datetime = START
    takes: timedelta = timedelta()
    looks: int = 0

    def now(self) -> datetime:
        seen, self.at = self.at, self.at + self.takes
        self.looks += 1
        return seen

    def backoff(self, step: int) -> timedelta:
        return timedelta(minutes=step)


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_a_lease_is_renewed_from_the_moment_at_which_it_was_found_good(
    tmp_path: Path, kind: str
) -> None:
    clock = SlowClock()
    with open_database(migrated(tmp_path / "ledger.db")) as database:
        leases: Leases = MemoryLeases(clock) if kind == "memory" else SqlLeases(database, clock)
        lease = leases.claim(REF, "one")
        assert lease
        clock.takes, clock.looks = LEASE_TIME / 2, 0
        assert leases.renew(lease)
        assert clock.looks == 1
        clock.takes, clock.at = timedelta(), START + LEASE_TIME
        assert leases.claim(REF, "two")


def test_a_claim_looks_at_the_clock_once(tmp_path: Path) -> None:
    clock = SlowClock()
    with open_database(migrated(tmp_path / "ledger.db")) as database:
        leases = SqlLeases(database, clock)
        lease = leases.claim(REF, "one")
        assert lease
        leases.release(lease)
        clock.looks = 0
        assert leases.claim(REF, "two", most=1)
        assert clock.looks == 1
