"""Visit one issue: attempt after attempt, until it rests in review, with a person, or waiting."""

from dataclasses import dataclass

import structlog

from mulligan.domain.case import Skipped
from mulligan.domain.decision import Escalate, Retry
from mulligan.domain.issue import AuthorisingAct, IssueRef
from mulligan.errors import MulliganError
from mulligan.implement import implement
from mulligan.ports import Tools
from mulligan.stop import stopping

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Visit:
    """What a visit came to; `problem` says what failed around the agent, if anything did."""

    issue: IssueRef
    attempts: int = 0
    skipped: str | None = None
    problem: str | None = None
    escalated: bool = False


def visit(
    ref: IssueRef, tools: Tools, most: int | None = None, act: AuthorisingAct | None = None
) -> Visit:
    """Work an issue until it rests, with at most `most` attempts; never raises.

    Expected faults become the visit's problem. A bug is logged with its traceback; the attempt it
    ended is recovered by the next pass.
    """
    made = 0
    try:
        while (most is None or made < most) and not stopping():
            result = implement(ref, tools, act)
            if isinstance(result, Skipped):
                return Visit(ref, made, skipped=result.reason)
            made += 1
            if stopping() or not isinstance(result, Retry) or result.backoff_step:
                return _rested(ref, made, tools, escalated=isinstance(result, Escalate))
        return Visit(ref, made)
    except MulliganError as error:
        return Visit(ref, made, problem=str(error))
    except Exception:
        log.exception("visit_failed", issue=str(ref))
        return Visit(ref, made, problem="A bug in Mulligan; the log has the traceback.")


def _rested(ref: IssueRef, made: int, tools: Tools, *, escalated: bool) -> Visit:
    status = tools.ledger.status(ref)
    waits = status.due is not None and status.due > tools.clock.now()
    problem = status.reason if waits else None
    return Visit(ref, made, problem=problem, escalated=escalated)
