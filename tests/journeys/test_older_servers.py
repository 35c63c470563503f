"""A server that lacks an endpoint is worked with, or the issue is left alone without a crash."""

from pathlib import Path

import pytest

from github_simulator.world import Fault
from world.place import NAME, mulligan_installation

WORKED, LEFT = 1, 0


@pytest.mark.parametrize(
    ("lacks", "pulls"),
    [
        ("/graphql", WORKED),
        ("/permission", LEFT),
        pytest.param("/check-runs", WORKED, marks=pytest.mark.deep),
        pytest.param("/events", LEFT, marks=pytest.mark.deep),
    ],
)
def test_a_missing_endpoint_is_no_crash(lacks: str, pulls: int, tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}) as here:
        here.agent("pathlib.Path('notes.txt').write_text('two\\n')")
        here.issue()
        here.world.faults = lambda _, path: Fault(404) if path.endswith(lacks) else None
        done = here.run("once")
        assert "Traceback" not in done.stderr
        assert done.returncode in {0, 1, 3}
        assert len(here.world.pulls_of(NAME)) == pulls
