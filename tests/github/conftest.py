"""A tracker at its desk: a simulated GitHub on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from world.trackers import Desk, desk


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as found:
        yield found
