"""A tracker at its desk: a simulated GitHub on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from world.trackers import TrackerEnvironment, tracker_environment


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found
