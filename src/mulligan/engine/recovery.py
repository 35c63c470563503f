"""Put right what a worker that died left half done, and let go of what was withdrawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from mulligan.domain.decision import Decision, Escalate
from mulligan.domain.events import StoodDown
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import IssueStatus, Phase
from mulligan.effects import is_shown, show
from mulligan.engine.worker import Worker
from mulligan.errors import MulliganError
from mulligan.implement import resume
from mulligan.tools import Tools

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
        if status.phase is Phase.IDLE and (is_shown(status) or not status.epoch):
            continue
        try:
            escalated |= isinstance(_recover(status.issue, worker), Escalate)
        except MulliganError as error:
            failed[status.issue] = str(error)
    return Recovered(failed, escalated)


def _recover(ref: IssueRef, worker: Worker) -> Decision | None:
    with worker.holding(ref) as tools:
        if tools is None:
            return None
        phase = tools.ledger.status(ref).phase
        log.info("recovered", issue=str(ref), phase=phase)
        decision = resume(ref, tools)
        if not is_shown(tools.ledger.status(ref)):
            show(ref, tools)
        return decision


def let_go(repository: str, labelled: Sequence[IssueRef], tools: Tools, worker: Worker) -> None:
    """Stand down from queued issues that lost their label or were closed (SPEC L5).

    That an issue is not among the `labelled` ones is believed only after it was read itself.
    """
    for status in tools.ledger.statuses():
        ref = status.issue
        if ref.repository == repository and ref not in labelled and _queued(status):
            with worker.holding(ref) as held:
                if held and (reason := _withdrawal(ref, held)):
                    held.ledger.append(ref, StoodDown(reason=reason))
                    show(ref, held)


def _queued(status: IssueStatus) -> bool:
    """Tell whether an issue that was labelled waits for an attempt."""
    waits = status.phase is Phase.IDLE and status.stage is Stage.READY
    return waits and status.act.startswith("labeled:")


def _withdrawal(ref: IssueRef, tools: Tools) -> str | None:
    labels = tools.policies.current(ref.repository).labels
    return tools.tracker.withdrawal(ref, tools.ledger.status(ref), labels)
