"""Put right what a worker that died left half done, and let go of what was withdrawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from mulligan.domain.decision import Escalate
from mulligan.domain.events import StoodDown
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import IssueStatus, Phase
from mulligan.effects import is_shown, show
from mulligan.engine.worker import Worker
from mulligan.errors import MulliganError
from mulligan.ports import Tools

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery came to: a sentence for each issue that failed again, and who was asked."""

    failed: dict[IssueRef, str]
    escalated: bool = False


def recover(tools: Tools, worker: Worker) -> Recovered:
    """Go on with every issue that nobody is on, wherever a killed process left it (DESIGN 1)."""
    failed, escalated = dict[IssueRef, str](), False
    for status in tools.ledger.statuses():
        try:
            if status.phase is not Phase.IDLE:
                log.info("recovered", issue=str(status.issue), phase=status.phase)
                escalated |= isinstance(worker.recover(status.issue), Escalate)
            elif status.epoch and not is_shown(status):
                show(status.issue, tools)
        except MulliganError as error:
            failed[status.issue] = str(error)
    return Recovered(failed, escalated)


def let_go(repository: str, labelled: Sequence[IssueRef], tools: Tools) -> None:
    """Stand down from queued issues that lost their label or were closed (SPEC L5).

    That an issue is not among the `labelled` ones is believed only after it was read itself.
    """
    for status in tools.ledger.statuses():
        if status.issue.repository == repository and _queued(status):
            reason = None if status.issue in labelled else _withdrawal(status, tools)
            if reason:
                tools.ledger.append(status.issue, StoodDown(reason=reason))
                show(status.issue, tools)


def _queued(status: IssueStatus) -> bool:
    """Tell whether an issue that was labelled waits for an attempt."""
    waits = status.phase is Phase.IDLE and status.stage is Stage.READY
    return waits and status.act.startswith("labeled:")


def _withdrawal(status: IssueStatus, tools: Tools) -> str | None:
    labels = tools.policies.current(status.issue.repository).labels
    return tools.tracker.withdrawal(status.issue, status, labels)
