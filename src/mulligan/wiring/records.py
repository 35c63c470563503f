"""Open what is kept on this machine, for commands that only look; imports no other adapter."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mulligan.artifacts import Artifacts
from mulligan.config.operator import Operator
from mulligan.domain.figures import Chronicle
from mulligan.errors import UnavailableError
from mulligan.ports import Ledger
from mulligan.state.artifacts import FileArtifacts
from mulligan.state.database import Database, in_haste, open_database, state_directory
from mulligan.state.leases import SqlLeases
from mulligan.state.ledger import SqlLedger
from mulligan.state.lock import holder, locked
from mulligan.state.room import room_for
from mulligan.state.server_clock import clock_of
from mulligan.state.tally import read_chronicle
from mulligan.text.redact import Redactor
from mulligan.wiring.clock import SystemClock

__all__ = [
    "at_work",
    "in_haste",
    "lock_state",
    "open_artifacts",
    "open_ledger",
    "open_records",
    "read_ledger",
]


@contextmanager
def open_ledger(operator: Operator, redactor: Redactor | None = None) -> Generator[Ledger]:
    """Open the ledger; nobody waits for a worker. Who writes has to bring the filter."""
    with open_database(operator.state.url) as database:
        clock = clock_of(database, SystemClock())
        yield SqlLedger(database, clock, redactor=redactor or Redactor())


def read_ledger(operator: Operator) -> Chronicle:
    """Read what the ledger holds, as far as it is counted."""
    with open_database(operator.state.url) as database:
        return read_chronicle(database)


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
    from mulligan.state.shared_artifacts import SharedArtifacts  # noqa: PLC0415

    return SharedArtifacts(files, database, clock_of(database, SystemClock()))


def check_writable(operator: Operator) -> None:
    """See that the ledger can be written; a MulliganError says why not. Changes nothing."""
    with open_database(operator.state.url) as database, database.write():
        pass
    place = state_directory(operator.state.url)
    if place and not room_for(place).writable:
        message = f"{place} cannot be written to; see to the rights on it, and to the disk."
        raise UnavailableError(message)


def state_place(operator: Operator) -> Path:
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
                SqlLeases(database, clock).forget()
        yield


def _claimed_by_work(operator: Operator) -> Path:
    """Give the directory that one worker has to itself: of the state, or its workspace."""
    return state_directory(operator.state.url) or operator.workspace.root
