"""Fixtures for all tests."""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from mulligan.interfaces.cli.terminal import OUTPUT_FILTER, OutputFilter
from world.postgres import Server, server

# No deadline and no complaint of slowness: the machine may have other work. The suite tries the
# same examples each time; `make test-deep` tries many, and others each time.
SLOW_MACHINE = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile(
    "suite", max_examples=30, deadline=None, derandomize=True, suppress_health_check=SLOW_MACHINE
)
settings.register_profile(
    "deep", max_examples=500, deadline=None, suppress_health_check=SLOW_MACHINE
)
settings.load_profile("suite")


MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a directory there that is this user's alone
MEMORY_BYTES = 4 * 1024**3


def is_roomy(place: Path) -> bool:
    """Return whether the tests may write to a file system in memory, programs included."""
    if not os.access(place, os.W_OK):
        return False
    found = os.statvfs(place)
    may_run = not found.f_flag & os.ST_NOEXEC
    return may_run and found.f_bavail * found.f_frsize > MEMORY_BYTES


def pytest_configure() -> None:
    """Restore the default of SIGINT, which background jobs of a shell and their children ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    # Rich draws the variables of every frame, which takes a second for a deep one.
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])
    # Making and removing fifty thousand directories takes a disk minutes.
    if is_roomy(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_xdist_auto_num_workers() -> int:
    """Use a worker more than there are processors: tests of daemons and time limits mostly wait."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_finish() -> None:
    """Collect no garbage while tests are found, and never look through what was found."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _short_waits() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Let a git server that fails be asked again at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mulligan.git.repository.REMOTE_WAIT_SECONDS", 0.01)
        yield


@pytest.fixture(autouse=True)
def _new_output_filter() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Forget the configuration and the secrets that a command read in this process."""
    yield
    OUTPUT_FILTER.config, OUTPUT_FILTER.redactor = None, OutputFilter().redactor


@pytest.fixture(scope="session")
def postgres() -> Generator[Server]:
    """One PostgreSQL for all tests of this process, started by the first that asks for it."""
    with server() as made:
        yield made


@pytest.fixture
def postgres_url(postgres: Server) -> str:
    """Give the way to a database with an empty ledger."""
    return postgres.emptied()
