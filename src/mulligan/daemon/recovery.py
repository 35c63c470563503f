"""Put right what a worker that died left half done, and let go of what was withdrawn."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import structlog

from mulligan.daemon.worker import Visit, Worker, is_queued, let_go
from mulligan.domain.errors import ShutdownError
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Escalate
from mulligan.domain.status import BETWEEN_EDITS, IssueStatus, Phase
from mulligan.implement.effects import show, tell_late
from mulligan.implement.phase import resume
from mulligan.implement.ports import Tools
from mulligan.sandbox.cancellation import rest, stopping

Wait = Callable[[float], None]

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
        untold = status.is_late or (status.epoch and not status.is_shown)
        if status.phase is Phase.IDLE and not untold:
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
    status = tools.ledger.status(ref)
    if status.is_late:
        tell_late(ref, tools)
    elif not status.is_shown:
        show(ref, tools)
    return Visit(ref, escalated=isinstance(decision, Escalate))


def catch_up(tools: Tools, worker: Worker, among: Collection[str], wait: Wait = rest) -> None:
    """Write the status comments that were put off, since no other pass follows (SPEC H5)."""
    with suppress(ShutdownError):
        if _tell_all(tools, worker, among):
            wait(BETWEEN_EDITS.total_seconds())
            _tell_all(tools, worker, among)


def _tell_all(tools: Tools, worker: Worker, among: Collection[str]) -> bool:
    """Write what is late; tell whether anything is still too early."""
    known = tools.ledger.statuses()
    late = [each.issue for each in known if each.is_late and each.issue.repository in among]
    for ref in () if stopping() else late:
        worker.safely(ref, partial(_recover, ref))
    return not stopping() and any(tools.ledger.status(ref).is_late for ref in late)


def let_go_all(unlabelled: Iterable[IssueStatus], worker: Worker) -> None:
    """Stand down from queued issues that lost their label or were closed (SPEC L5).

    That an issue is not among the labelled ones is believed only after it was read itself.
    """
    for ref in (status.issue for status in unlabelled if is_queued(status)):
        with worker.holding(ref) as held:
            if held:
                let_go(ref, held)
