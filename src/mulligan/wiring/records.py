"""Open what is kept on this machine, for commands that only look; imports no other adapter."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mulligan.artifacts import Artifacts
from mulligan.config.operator import Operator
from mulligan.errors import UnavailableError
from mulligan.ports import Ledger
from mulligan.state.artifacts import FileArtifacts
from mulligan.state.database import open_database, state_directory
from mulligan.state.leases import SqlLeases
from mulligan.state.ledger import SqlLedger
from mulligan.state.lock import holder, locked
from mulligan.state.room import room_for
from mulligan.text.redact import Redactor
from mulligan.wiring.clock import SystemClock


@contextmanager
def open_ledger(operator: Operator, redactor: Redactor | None = None) -> Generator[Ledger]:
    """Open the ledger; nobody waits for a worker. Who writes has to bring the filter."""
    with open_database(operator.state.url) as database:
        yield SqlLedger(database, SystemClock(), redactor=redactor or Redactor())


def open_artifacts(operator: Operator, redactor: Redactor | None = None) -> Artifacts:
    """Give the files of all attempts; who writes any has to bring the filter."""
    return FileArtifacts(operator.workspace.root / "artifacts", redactor or Redactor())


def check_writable(operator: Operator) -> None:
    """See that the ledger can be written; a MulliganError says why not. Changes nothing."""
    with open_database(operator.state.url) as database, database.write():
        pass
    place = state_directory(operator.state.url)
    if not room_for(place).writable:
        message = f"{place} cannot be written to; see to the rights on it, and to the disk."
        raise UnavailableError(message)


def state_place(operator: Operator) -> Path:
    """Name the directory of the ledger, which only its user can read."""
    return state_directory(operator.state.url)


def at_work(operator: Operator) -> str | None:
    """Name the Mulligan that works with this state now, if one does; takes nothing from it."""
    return holder(state_directory(operator.state.url))


@contextmanager
def lock_state(operator: Operator, what: str) -> Generator[None]:
    """Hold the state directory for a command that works; UsageError names who has it already.

    Whoever held a lease before is dead then, so all leases are ended.
    """
    url, clock = operator.state.url, SystemClock()
    with locked(state_directory(url), what=what, since=clock.now()):
        with open_database(url) as database:
            SqlLeases(database, clock).forget()
        yield
