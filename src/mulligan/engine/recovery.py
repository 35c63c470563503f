"""Put right what a process that died left half done (DESIGN 1)."""

import structlog

from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus, Phase
from mulligan.effects import is_shown, show
from mulligan.errors import WorldError
from mulligan.implement import resume
from mulligan.ports import Tools

log = structlog.get_logger()


def recover(tools: Tools) -> dict[IssueRef, str]:
    """Resume every issue that somebody left; give the sentence for each that failed again.

    Only to be called while no worker is on any issue: the lock on the state directory sees to it.
    """
    failed = dict[IssueRef, str]()
    for status in tools.ledger.statuses():
        try:
            _recover(status, tools)
        except WorldError as error:
            failed[status.issue] = str(error)
    return failed


def _recover(status: IssueStatus, tools: Tools) -> None:
    if status.phase is not Phase.IDLE:
        log.info("recovered", issue=str(status.issue), phase=status.phase)
        resume(status.issue, tools)
    elif status.epoch and not is_shown(status):
        show(status.issue, tools)
