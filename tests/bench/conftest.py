"""Give every benchmark the collection of figures; write or check them at the end."""

import os
from collections.abc import Generator

import pytest

from bench.figures import Bench

FOUND = pytest.StashKey[Bench]()


@pytest.fixture(scope="session")
def bench(pytestconfig: pytest.Config) -> Generator[Bench]:
    found = pytestconfig.stash[FOUND] = Bench()
    yield found
    if os.environ.get("BENCH") == "check":
        worse = found.worse()
        assert worse == [], "\n".join(worse)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the figures of a whole run: one that failed or was interrupted lacks some."""
    found = session.config.stash.get(FOUND, None)
    if found and exitstatus == pytest.ExitCode.OK and os.environ.get("BENCH") == "write":
        found.write()
