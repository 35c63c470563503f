"""What Mulligan does on GitHub. Each effect may happen twice and shows once; each is recorded."""

from datetime import timedelta

import structlog

from mulligan.domain.case import Case
from mulligan.domain.decision import Escalate, Retry, StandDown, WaitForBudget
from mulligan.domain.events import (
    EffectDone,
    Escalated,
    Published,
    PublishStarted,
    RetryScheduled,
    StoodDown,
    Waiting,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus
from mulligan.errors import DeniedError, UnavailableError
from mulligan.survey import look, withdrawal
from mulligan.tools import Tools

PUSH, STATUS_COMMENT, SHOWN_STAGE = "push", "status_comment", "shown_stage"
THE_ONE = "issue"

log = structlog.get_logger()


def announce(case: Case, tools: Tools) -> None:
    """Say on GitHub that an attempt runs; GitHub being away does not stop the attempt."""
    try:
        show(case.issue.ref, tools)
    except UnavailableError as error:
        log.warning("not_announced", issue=str(case.issue.ref), reason=str(error))


def show(ref: IssueRef, tools: Tools) -> None:
    """Make the labels and the status comment say what the ledger says (SPEC L4, H5)."""
    case = look(tools.tracker.read(ref), tools)
    stage = case.status.stage
    labels = tools.policies.current(ref.repository).labels
    tools.tracker.show_stage(ref, stage, labels)
    _done(case, STATUS_COMMENT, THE_ONE, tools.tracker.update_status(case), tools)
    _done(case, SHOWN_STAGE, THE_ONE, stage, tools)


def is_shown(status: IssueStatus) -> bool:
    """Tell whether GitHub was told of the stage in the ledger."""
    return status.effect(SHOWN_STAGE, THE_ONE) == status.stage


def publish(case: Case, tools: Tools) -> Escalate | StandDown | None:
    """Push the verified commit and open the pull request; no agent runs, no attempt is spent.

    What GitHub refuses for good comes back as the escalation that follows (SPEC O5), and a
    request that was withdrawn as the standing down.
    """
    if why := withdrawal(case, tools):
        return StandDown(reason=why)
    ref, verified = case.issue.ref, case.last
    if verified is None or verified.head_sha is None:
        return Escalate(reason="The verified commit is not in the ledger.")
    head, base = verified.head_sha, tools.worktrees.base_branch(ref.repository)
    settings = tools.policies.current(ref.repository).pull_request
    tools.ledger.append(ref, PublishStarted(head_sha=head))
    try:
        tools.worktrees.push(ref, head, case.status.effect(PUSH, ref.branch))
        _done(case, PUSH, ref.branch, head, tools)
        opened = tools.tracker.open_pull_request(case, base, settings)
    except DeniedError as error:
        fix = "Mend this, then put the label on again; the verified commit is kept."
        return Escalate(reason=f"The verified work could not be published: {error}", fix=fix)
    done = Published(pull_request=opened.url, number=opened.number, head_sha=head)
    tools.ledger.append(ref, done)
    show(ref, tools)
    return None


def retry(case: Case, decision: Retry, tools: Tools) -> None:
    """Let the next attempt start: at once, or after its wait."""
    ref, now = case.issue.ref, tools.clock.now()
    step = decision.backoff_step
    due = now + tools.clock.backoff(step) if step else now
    tools.ledger.append(ref, RetryScheduled(due=due, reason=decision.reason))
    if step:
        show(ref, tools)


def wait(case: Case, decision: WaitForBudget, tools: Tools) -> None:
    """Leave the issue until the next budget window, at midnight UTC."""
    now = tools.clock.now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    tools.ledger.append(case.issue.ref, Waiting(until=midnight, reason=decision.reason))
    show(case.issue.ref, tools)


def escalate(case: Case, decision: Escalate, tools: Tools) -> None:
    """Hand the issue to a person: the comment first, then the label (SPEC H1)."""
    ref = case.issue.ref
    escalation = tools.policies.current(ref.repository).escalation
    comment = tools.tracker.ask_for_help(case, escalation)
    tools.ledger.append(ref, Escalated(reason=decision.reason, comment=comment))
    show(ref, tools)


def stand_down(case: Case, decision: StandDown, tools: Tools) -> None:
    """Leave an issue alone that was withdrawn, and take Mulligan's labels off it."""
    tools.ledger.append(case.issue.ref, StoodDown(reason=decision.reason))
    show(case.issue.ref, tools)


def _done(case: Case, effect: str, key: str, remote_id: str, tools: Tools) -> None:
    """Record an effect, unless the ledger says so already."""
    if tools.ledger.status(case.issue.ref).effect(effect, key) != remote_id:
        event = EffectDone(effect=effect, key=key, remote_id=remote_id)
        tools.ledger.append(case.issue.ref, event)
