"""Read the status of every issue with few imports, so that `mulligan status` starts fast."""

from collections.abc import Sequence

from mulligan.config.operator import Operator
from mulligan.domain.hold import Pause
from mulligan.domain.ownership import StandBack
from mulligan.domain.status import IssueStatus
from mulligan.storage.fast_status import read_fast_status


def read_all_statuses(
    operator: Operator,
) -> tuple[Sequence[IssueStatus], Sequence[Pause | StandBack]]:
    """Read all statuses, sorted by repository and number, the pauses, and the other owners.

    Create the ledger if it is missing.
    """
    seen = read_fast_status(operator.state.url)
    if seen is not None:
        return seen
    # Imported here: with the ledger `mulligan status` takes 1.3 s of CPU, without it 0.6 s.
    from mulligan.interfaces.bootstrap import stores  # noqa: PLC0415

    with stores.open_ledger(operator) as ledger:
        held = (*stores.read_pauses(operator), *stores.read_stand_backs(operator))
        return ledger.statuses(), held


def github_address(operator: Operator) -> str:
    """Return the address of GitHub's pages, without a trailing slash."""
    # Imported here: only a terminal shows it.
    from mulligan.github.app import web_url  # noqa: PLC0415

    return web_url(operator.github.api_url)
