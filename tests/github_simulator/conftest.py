"""What the tests of the simulator start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from world.simulated import SimulatedGitHub, simulated_github


@pytest.fixture
def github(tmp_path: Path) -> Iterator[SimulatedGitHub]:
    """Run a simulated GitHub with one repository."""
    with simulated_github(tmp_path) as running:
        yield running
