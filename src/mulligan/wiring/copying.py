"""Take over what another ledger has: from one worker to a fleet, and back."""

from mulligan.config.operator import Operator
from mulligan.domain.issue import IssueRef
from mulligan.domain.retention import needs_files
from mulligan.errors import UsageError
from mulligan.state.artifacts import FileArtifacts
from mulligan.state.database import Database, open_database
from mulligan.state.ledger import SqlLedger
from mulligan.state.moving import copy
from mulligan.state.shared_artifacts import SharedArtifacts
from mulligan.wiring.clock import SystemClock
from mulligan.wiring.records import at_work, lock_state


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
        moved = copy(source, ledger)
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
        _artifacts(here, old[1]).bring(ref)
    if new[1].is_shared:
        _artifacts(here, new[1]).offer(ref)


def _artifacts(operator: Operator, database: Database) -> SharedArtifacts:
    files = FileArtifacts(operator.workspace.root / "artifacts")
    return SharedArtifacts(files, database, SystemClock())
