"""What tests of every package may ask for."""

import signal
from collections.abc import Generator

import pytest

from world.postgres import Server, server


def pytest_configure() -> None:
    """Hear SIGINT: what a shell starts in the background ignores it, and so do its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres() -> Generator[Server]:
    """One PostgreSQL for all tests of this process, started by the first that asks for it."""
    with server() as made:
        yield made


@pytest.fixture
def postgres_url(postgres: Server) -> Generator[str]:
    """Give the way to a database of the test's own, with an empty ledger."""
    with postgres.fresh() as url:
        yield url
