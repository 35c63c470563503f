"""Pauses are kept until they are ended, by whatever process."""

from pathlib import Path

import pytest

from mulligan.domain.hold import EVERYTHING
from mulligan.storage.database import open_database
from mulligan.storage.pauses import SqlPauses
from world.ledgers import TickingClock, url_for


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_for(request, tmp_path)


def test_pauses_outlive_the_process_that_made_them(url: str) -> None:
    clock = TickingClock()
    with open_database(url) as database:
        pauses = SqlPauses(database, clock)
        assert list(pauses.all()) == []
        pauses.pause("o/r")
        first = pauses.all()
        pauses.pause("o/r")
        pauses.pause(EVERYTHING)
    with open_database(url) as database:
        pauses = SqlPauses(database, clock)
        assert [each.repository for each in pauses.all()] == [EVERYTHING, "o/r"]
        assert pauses.all()[1] == first[0]
        pauses.resume("o/other")
        pauses.resume("o/r")
        assert [each.repository for each in pauses.all()] == [EVERYTHING]
        pauses.pause("o/r")
        pauses.resume(EVERYTHING)
        assert list(pauses.all()) == []
