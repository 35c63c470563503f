"""Who is on an issue can be asked without taking it."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.implement.ports import Leases
from mulligan.storage.database import open_database
from mulligan.storage.leases import LEASE_TIME, SqlLeases
from mulligan.storage.memory import MemoryLeases
from world.ledgers import url_for
from world.trackers import FrozenClock

REF = IssueRef("octo/hello", 12)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def leases(request: pytest.FixtureRequest, tmp_path: Path, clock: FrozenClock) -> Generator[Leases]:
    if request.param == "memory":
        yield MemoryLeases(clock)
        return
    with open_database(url_for(request, tmp_path)) as database:
        yield SqlLeases(database, clock)


def test_the_holder_is_named_while_the_lease_is_good(leases: Leases, clock: FrozenClock) -> None:
    assert leases.holder(REF) is None
    lease = leases.claim(REF, "vm:1")
    assert lease
    assert leases.holder(REF) == "vm:1"
    assert leases.holder(IssueRef("octo/hello", 13)) is None
    assert leases.holds(lease)
    leases.release(lease)
    assert leases.holder(REF) is None


def test_a_worker_that_was_not_heard_for_long_holds_nothing(
    leases: Leases, clock: FrozenClock
) -> None:
    assert leases.claim(REF, "vm:1")
    clock.time += LEASE_TIME + timedelta(seconds=1)
    assert leases.holder(REF) is None
