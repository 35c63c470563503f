"""What was done on GitHub, as the ledger has it, and where that leaves an issue's branch."""

from mulligan.domain.events import EffectDone
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import PUSH, IssueStatus
from mulligan.tools import Tools

THE_ONE = "issue"
"""The key of what an issue has one of."""


def done(ref: IssueRef, effect: str, key: str, remote_id: str, tools: Tools) -> None:
    """Record an effect, unless the ledger says so already."""
    if tools.ledger.status(ref).effect(effect, key) != remote_id:
        tools.ledger.append(ref, EffectDone(effect=effect, key=key, remote_id=remote_id))


def held(status: IssueStatus, last: WorkerResultMeta | None) -> str | None:
    """Give the commit that the branch has to be at: what was built on, or was pushed last."""
    if last and last.start_sha != last.base_sha:
        return last.start_sha
    return status.effect(PUSH, status.issue.branch)
