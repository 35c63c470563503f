"""Open what is stored: for a worker, for commands that only read, and to copy it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mulligan.config.operator import Operator
from mulligan.domain.errors import UnavailableError, UsageError
from mulligan.domain.issue import IssueRef
from mulligan.domain.retention import needs_files
from mulligan.domain.stats import LedgerHistory
from mulligan.implement.ports import (
    Artifacts,
    Leases,
    Ledger,
    Listener,
    NoRetention,
    RetentionStore,
    UsageStore,
)
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.storage.artifacts import FileArtifacts, SharedArtifacts
from mulligan.storage.database import Database, open_database, state_directory, without_waiting
from mulligan.storage.leases import SqlLeases
from mulligan.storage.ledger import SqlLedger, WatchedLedger
from mulligan.storage.postgres import clock_of
from mulligan.storage.retention import SqlRetentionStore
from mulligan.storage.state_directory import disk_space_for, holder, locked
from mulligan.storage.stats_query import read_ledger_history
from mulligan.storage.transfer import import_from_ledger
from mulligan.storage.usage import SqlUsageStore
from mulligan.text.redact import Redactor

__all__ = [
    "at_work",
    "lock_state",
    "open_artifacts",
    "open_ledger",
    "open_records",
    "read_ledger",
    "without_waiting",
]


@dataclass(frozen=True, slots=True)
class Stores:
    """What is written down, and the filter for what is written elsewhere."""

    ledger: Ledger
    leases: Leases
    accounts: UsageStore
    artifacts: Artifacts
    redactor: Redactor
    attic: RetentionStore = field(default_factory=NoRetention)


def open_stores(
    operator: Operator, database: Database, redactor: Redactor, hears: Listener
) -> Stores:
    """Give what is kept in a database; `hears` hears every event that is recorded here."""
    clock = clock_of(database, SystemClock())
    return Stores(
        ledger=WatchedLedger(SqlLedger(database, clock, redactor=redactor), hears),
        leases=SqlLeases(database, clock, operator.limits.lease),
        accounts=SqlUsageStore(database, redactor),
        artifacts=open_artifacts(operator, redactor, database),
        redactor=redactor,
        attic=SqlRetentionStore(database, clock),
    )


def copy_state(operator: Operator, other: Operator) -> list[str]:
    """Take over the issues of which the other's ledger knows something newer, and name them.

    UsageError where anybody works with either of the two.
    """
    if operator.state.url == other.state.url:
        message = "Both configurations name the same state.url; there is nothing to copy."
        raise UsageError(message)
    for each in (other, operator):
        if worker := at_work(each):
            message = f"{worker} is at work; stop it, and copy then."
            raise UsageError(message)
    with (
        lock_state(operator, "state copy"),
        open_database(other.state.url) as old,
        open_database(operator.state.url) as new,
    ):
        source, ledger = SqlLedger(old, SystemClock()), SqlLedger(new, SystemClock())
        moved = import_from_ledger(source, ledger)
        for ref in moved:
            if needs_files(ledger.status(ref)):
                _copy_files(ref, (other, old), (operator, new))
    return [str(ref) for ref in moved]


def _copy_files(
    ref: IssueRef, old: tuple[Operator, Database], new: tuple[Operator, Database]
) -> None:
    """Have the files that the next attempt needs where the new ledger's workers find them."""
    here = old[0]
    if old[1].is_shared:
        here = new[0]
        _artifacts(here, old[1]).fetch_issue(ref)
    if new[1].is_shared:
        _artifacts(here, new[1]).share_issue(ref)


def _artifacts(operator: Operator, database: Database) -> SharedArtifacts:
    files = FileArtifacts(operator.workspace.root / "artifacts")
    return SharedArtifacts(files, database, SystemClock())


@contextmanager
def open_ledger(operator: Operator, redactor: Redactor | None = None) -> Generator[Ledger]:
    """Open the ledger; nobody waits for a worker. Who writes has to bring the filter."""
    with open_database(operator.state.url) as database:
        clock = clock_of(database, SystemClock())
        yield SqlLedger(database, clock, redactor=redactor or Redactor())


def read_ledger(operator: Operator) -> LedgerHistory:
    """Read what the ledger holds, as far as it is counted."""
    with open_database(operator.state.url) as database:
        return read_ledger_history(database)


@contextmanager
def open_records(operator: Operator) -> Generator[tuple[Ledger, Artifacts]]:
    """Open the ledger, and the files of all attempts, to look at them."""
    with open_database(operator.state.url) as database:
        clock = clock_of(database, SystemClock())
        yield SqlLedger(database, clock), open_artifacts(operator, database=database)


def open_artifacts(
    operator: Operator, redactor: Redactor | None = None, database: Database | None = None
) -> Artifacts:
    """Give the files of all attempts; who writes any has to bring the filter.

    Those that other workers have shared are among them where their `database` is given.
    """
    files = FileArtifacts(operator.workspace.root / "artifacts", redactor or Redactor())
    if database is None or state_directory(operator.state.url):
        return files
    # Imported here, since most commands look at the files of one worker.
    from mulligan.storage.artifacts import SharedArtifacts  # noqa: PLC0415

    return SharedArtifacts(files, database, clock_of(database, SystemClock()))


def check_writable(operator: Operator) -> None:
    """See that the ledger can be written; a MulliganError says why not. Changes nothing."""
    with open_database(operator.state.url) as database, database.write():
        pass
    place = state_directory(operator.state.url)
    if place and not disk_space_for(place).writable:
        message = f"{place} cannot be written to; see to the rights on it, and to the disk."
        raise UnavailableError(message)


def state_directory_of(operator: Operator) -> Path:
    """Name the directory of the ledger, or that of the work where a server keeps the ledger."""
    return state_directory(operator.state.url) or operator.workspace.root


def at_work(operator: Operator) -> str | None:
    """Name the Mulligan that works here now, or those of the fleet; takes nothing from it."""
    here, url = holder(_claimed_by_work(operator)), operator.state.url
    if here or state_directory(url):
        return here
    with open_database(url) as database:
        clock = clock_of(database, SystemClock())
        workers = SqlLeases(database, clock).present()
    if len(workers) > 1:
        return f"Each of {', '.join(workers[:-1])} and {workers[-1]}"
    return f"The worker {workers[0]}" if workers else None


@contextmanager
def lock_state(operator: Operator, what: str) -> Generator[None]:
    """Hold this place of work for a command that works; UsageError names who has it already.

    Whoever held a lease of a state directory before is dead then, so all its leases are ended.
    Those in a database that workers share run out by themselves.
    """
    url, clock = operator.state.url, SystemClock()
    with locked(_claimed_by_work(operator), what=what, since=clock.now()):
        if state_directory(url):
            with open_database(url) as database:
                SqlLeases(database, clock).release_all()
        yield


def _claimed_by_work(operator: Operator) -> Path:
    """Give the directory that one worker has to itself: of the state, or its workspace."""
    return state_directory(operator.state.url) or operator.workspace.root
