"""Say where every issue stands, for a command that is over at once."""

from collections.abc import Sequence

from mulligan.config.operator import Operator
from mulligan.domain.status import IssueStatus
from mulligan.storage.fast_status import read_fast_status


def read_all_statuses(operator: Operator) -> Sequence[IssueStatus]:
    """Read all statuses, by repository and number; a ledger that is not there yet is made."""
    seen = read_fast_status(operator.state.url)
    if seen is not None:
        return seen
    # Imported here, since it takes as long as all that `mulligan status` does otherwise.
    from mulligan.interfaces.bootstrap.stores import open_ledger  # noqa: PLC0415

    with open_ledger(operator) as ledger:
        return ledger.statuses()
