"""Give every benchmark the collection of ratios, and write or check it at the end."""

from collections.abc import Generator

import pytest

from bench.figures import Bench


@pytest.fixture(scope="session")
def bench() -> Generator[Bench]:
    found = Bench()
    yield found
    worse = list(found.finish())
    assert worse == [], "\n".join(worse)
