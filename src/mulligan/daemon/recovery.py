"""Complete the unfinished work of a killed worker, and stand down from withdrawn requests."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import structlog

from mulligan.daemon.worker import (
    Visit,
    Worker,
    is_queued,
    stand_down_if_withdrawn,
    waits_for_answer,
)
from mulligan.domain.errors import ShutdownError
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Escalate
from mulligan.domain.status import STATUS_EDIT_INTERVAL, IssueStatus, Phase
from mulligan.implement.effects import reopen_or_show, write_deferred_status
from mulligan.implement.phase import resume
from mulligan.implement.ports import ReadContext, WriteContext
from mulligan.sandbox.cancellation import sleep_until_cancelled, stopping

Wait = Callable[[float], None]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of recovery: an error for each issue that failed again, and any escalation."""

    failed: dict[IssueRef, str]
    escalated: bool = False


def recover(
    context: ReadContext,
    worker: Worker,
    among: Collection[str] | None = None,
    *,
    only_idle: bool = False,
) -> Recovered:
    """Resume every unfinished issue without a lease holder, whatever its phase (RECOVERY-1).

    `among` limits this to some repositories; default: all in the ledger. With `only_idle`, only
    write the comments of idle issues that are out of date: visits of a fleet resume the others.
    """
    failed, escalated = dict[IssueRef, str](), False
    for status in context.ledger.statuses():
        is_unshown = status.has_deferred_comment or (status.epoch and not status.is_shown)
        if only_idle if status.phase is not Phase.IDLE else not is_unshown:
            continue
        if among is not None and status.issue.repository not in among:
            continue
        if stopping():
            break
        done = worker.run_leased(status.issue, partial(_recover, status.issue))
        escalated |= done.escalated
        if done.problem:
            failed[status.issue] = done.problem
    return Recovered(failed, escalated)


def _recover(ref: IssueRef, context: WriteContext) -> Visit:
    phase = context.ledger.status(ref).phase
    decision = resume(ref, context)
    status = context.ledger.status(ref)
    if status.has_deferred_comment:
        write_deferred_status(ref, context)
    elif not status.is_shown:
        reopen_or_show(ref, context)
    log.info("recovered", issue=str(ref), phase=phase)
    return Visit(ref, escalated=isinstance(decision, Escalate))


def write_deferred_comments(
    context: ReadContext, worker: Worker, among: Collection[str], wait: Wait = sleep_until_cancelled
) -> None:
    """Write the delayed status comments, for a run that no other pass follows (STATUS-1)."""
    with suppress(ShutdownError):
        if _write_deferred(context, worker, among):
            wait(STATUS_EDIT_INTERVAL.total_seconds())
            _write_deferred(context, worker, among)


def _write_deferred(context: ReadContext, worker: Worker, among: Collection[str]) -> bool:
    """Write the delayed comments; return whether any must wait longer."""
    known = context.ledger.statuses()
    delayed = [
        each.issue for each in known if each.has_deferred_comment and each.issue.repository in among
    ]
    for ref in () if stopping() else delayed:
        worker.run_leased(ref, partial(_recover, ref))
    return not stopping() and any(
        context.ledger.status(ref).has_deferred_comment for ref in delayed
    )


def stand_down_unlabelled(unlabelled: Iterable[IssueStatus], worker: Worker) -> None:
    """Stand down from queued issues that lost their label or were closed (LABEL-5).

    Each issue is read itself first, since the list of labelled issues may be out of date.
    """
    for ref in (status.issue for status in unlabelled if is_queued(status)):
        with worker.claim_lease(ref) as leased:
            if leased:
                stand_down_if_withdrawn(ref, leased)


def end_closed(unlisted: Iterable[IssueStatus], worker: Worker) -> None:
    """End the issues that wait for a maintainer and were closed or are gone (LABEL-5).

    Each issue is read itself first: it may only have lost its label.
    """
    for ref in (status.issue for status in unlisted if waits_for_answer(status)):
        done = worker.run_leased(ref, partial(_end_closed, ref))
        if done.problem:
            log.warning("issue_not_read", issue=str(ref), reason=done.problem)


def _end_closed(ref: IssueRef, context: WriteContext) -> Visit:
    stand_down_if_withdrawn(ref, context)
    return Visit(ref)
