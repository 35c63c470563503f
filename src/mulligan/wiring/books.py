"""Open all that is written down, in one database that workers may share."""

from dataclasses import dataclass, field

from mulligan.accounts import Accounts
from mulligan.artifacts import Artifacts
from mulligan.attic import Attic, Undisturbed
from mulligan.config.operator import Operator
from mulligan.engine.watch import Listener, WatchedLedger
from mulligan.ports import Leases, Ledger
from mulligan.state.accounts import SqlAccounts
from mulligan.state.attic import SqlAttic
from mulligan.state.database import Database
from mulligan.state.leases import SqlLeases
from mulligan.state.ledger import SqlLedger
from mulligan.state.server_clock import clock_of
from mulligan.text.redact import Redactor
from mulligan.wiring.clock import SystemClock
from mulligan.wiring.records import open_artifacts


@dataclass(frozen=True, slots=True)
class Books:
    """What is written down, and the filter for what is written elsewhere."""

    ledger: Ledger
    leases: Leases
    accounts: Accounts
    artifacts: Artifacts
    redactor: Redactor
    attic: Attic = field(default_factory=Undisturbed)


def open_books(
    operator: Operator, database: Database, redactor: Redactor, hears: Listener
) -> Books:
    """Give what is kept in a database; `hears` hears every event that is recorded here."""
    clock = clock_of(database, SystemClock())
    return Books(
        ledger=WatchedLedger(SqlLedger(database, clock, redactor=redactor), hears),
        leases=SqlLeases(database, clock, operator.limits.lease),
        accounts=SqlAccounts(database, redactor),
        artifacts=open_artifacts(operator, redactor, database),
        redactor=redactor,
        attic=SqlAttic(database, clock),
    )
