"""Runs that share nothing but a ref of a repository on this disk."""

import itertools
import os
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

from mulligan.git.repository import Remote
from mulligan.implement.ports import Clock
from mulligan.storage.database import open_database
from mulligan.storage.git_ref import LEASE_TIME, RefSession, open_state_ref
from mulligan.storage.ledger import SqlLedger
from mulligan.text.redact import Redactor
from world.ledgers import migrated
from world.repositories import make_remote

RUNS = itertools.count()


def shared_remote(directory: Path) -> Path:
    """Give the repository below a directory, made where it is not there yet."""
    bare = directory / "shared.git"
    return bare if bare.exists() else make_remote(bare, {})


def ref_session(
    directory: Path,
    clock: Clock,
    lease: timedelta = LEASE_TIME,
    redactor: Redactor | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> AbstractContextManager[RefSession]:
    """Begin a run: nothing of it is on this machine yet."""
    return ref_session_on(shared_remote(directory), directory, clock, lease, redactor, sleep)


@contextmanager
def ref_session_on(
    bare: Path,
    directory: Path,
    clock: Clock,
    lease: timedelta = LEASE_TIME,
    redactor: Redactor | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Generator[RefSession]:
    """Begin a run on a repository."""
    url = bare.as_uri()
    environment = {"PATH": os.environ["PATH"]}
    with (
        open_database(migrated(directory / f"run-{next(RUNS)}" / "ledger.db")) as database,
        open_state_ref(environment, lambda: Remote(url)) as ref,
    ):
        book = RefSession(ref, SqlLedger(database, clock), clock, redactor, lease, sleep)
        book.restore()
        yield book
