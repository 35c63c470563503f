"""What the tests of the simulator start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from world.simulated import Hub, hub


@pytest.fixture
def github(tmp_path: Path) -> Iterator[Hub]:
    """Run a simulated GitHub with one repository."""
    with hub(tmp_path) as running:
        yield running
