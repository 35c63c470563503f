"""Put right what a worker that died left half done, and let go of what was withdrawn."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial

import structlog

from mulligan.domain.decision import Escalate
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus, Phase
from mulligan.effects import show
from mulligan.engine.worker import Visit, Worker, is_queued, let_go
from mulligan.implement import resume
from mulligan.stop import stopping
from mulligan.tools import Tools

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery came to: a sentence for each issue that failed again, and who was asked."""

    failed: dict[IssueRef, str]
    escalated: bool = False


def recover(tools: Tools, worker: Worker, among: Collection[str] | None = None) -> Recovered:
    """Go on with every issue that nobody is on, wherever a killed process left it (DESIGN 1).

    `among` names the repositories that are served; default: whatever the ledger knows.
    """
    failed, escalated = dict[IssueRef, str](), False
    for status in tools.ledger.statuses():
        if status.phase is Phase.IDLE and (status.is_shown or not status.epoch):
            continue
        if among is not None and status.issue.repository not in among:
            continue
        if stopping():
            break
        done = worker.safely(status.issue, partial(_recover, status.issue))
        escalated |= done.escalated
        if done.problem:
            failed[status.issue] = done.problem
    return Recovered(failed, escalated)


def _recover(ref: IssueRef, tools: Tools) -> Visit:
    log.info("recovered", issue=str(ref), phase=tools.ledger.status(ref).phase)
    decision = resume(ref, tools)
    if not tools.ledger.status(ref).is_shown:
        show(ref, tools)
    return Visit(ref, escalated=isinstance(decision, Escalate))


def let_go_all(unlabelled: Iterable[IssueStatus], worker: Worker) -> None:
    """Stand down from queued issues that lost their label or were closed (SPEC L5).

    That an issue is not among the labelled ones is believed only after it was read itself.
    """
    for ref in (status.issue for status in unlabelled if is_queued(status)):
        with worker.holding(ref) as held:
            if held:
                let_go(ref, held)
