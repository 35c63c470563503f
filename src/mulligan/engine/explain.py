"""Find out why an issue is, or is not, being worked on; nothing is changed, and nothing taken."""

from mulligan.domain.eligibility import Facts, refusal
from mulligan.domain.explanation import Explanation, Surroundings, explain_unread
from mulligan.domain.explanation import explain as word
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus
from mulligan.errors import DeniedError, GoneError, WorldError
from mulligan.survey import gather, look, unmet
from mulligan.tools import Tools


def explain(ref: IssueRef, tools: Tools, at_work: str | None) -> Explanation:
    """Explain one issue; `at_work` names the Mulligan that runs now, if one does.

    UnavailableError where GitHub cannot be asked now.
    """
    try:
        facts = gather(ref, tools)
    except WorldError as error:
        status, exists = tools.ledger.status(ref), not isinstance(error, GoneError)
        return explain_unread(status, _why_unread(status, tools), exists=exists)
    case = look(facts.issue, tools)
    around = Surroundings(
        counted=case.counted,
        most=case.max_attempts,
        holder=tools.leases.holder(ref),
        asked_at=facts.status.asked_at,
        at_work=at_work,
        unreachable=_unreachable(facts, tools),
        overlooked=unmet(facts.issue, tools),
    )
    return word(facts, around)


def _unreachable(facts: Facts, tools: Tools) -> str:
    """Say what keeps an issue that may be worked on waiting: a full disk, or its base branch."""
    if refusal(facts) is not None or facts.status.is_kept:
        return ""
    if short := tools.shortage():
        return short
    try:
        tools.worktrees.refresh(facts.issue.ref.repository)
    except WorldError as error:
        return str(error)
    return ""


def _why_unread(status: IssueStatus, tools: Tools) -> str:
    """Tell an issue that is gone from a repository that is, and from a GitHub that is away."""
    labels = tools.policies.current(status.issue.repository).labels
    try:
        tools.tracker.repository(status.issue.repository)
        reason = tools.tracker.withdrawal(status.issue, status, labels)
    except DeniedError as error:
        return str(error)
    if reason and not status.number:
        return "There is no such issue, or not any more; check its number."
    return reason or "It could not be read a moment ago; ask again."
