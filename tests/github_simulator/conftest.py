"""What the tests of the simulator start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from world.in_process import in_process
from world.simulated import Reach, SimulatedGitHub, simulated_github


@pytest.fixture
def reach(request: pytest.FixtureRequest) -> Reach:
    """Give how the simulator is asked: by a call, or as the test's parameter says."""
    return getattr(request, "param", in_process)


@pytest.fixture
def github(tmp_path: Path, reach: Reach) -> Iterator[SimulatedGitHub]:
    """Run a simulated GitHub with one repository."""
    with simulated_github(tmp_path, reach) as started:
        yield started
