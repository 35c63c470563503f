"""Show a person what the last attempt left: on a ref of its own, or as a draft (SPEC H3)."""

import structlog

from mulligan.domain.case import Case
from mulligan.domain.events import Drafted
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import PUSH, PUSHED_WORK
from mulligan.done import done, held
from mulligan.errors import DeniedError, MisconfiguredError, WorldError
from mulligan.retry.record import base_dropped
from mulligan.survey import has_base, look, objection
from mulligan.tools import Tools

NOT_VERIFIED = frozenset({Outcome.CHECKS_FAILED, Outcome.REJECTED})
"""Outcomes of work that the guards let pass, and that does not hold.

No guard has looked at what an agent left that ran out of time, or gave up.
"""

log = structlog.get_logger()


def push_work(ref: IssueRef, tools: Tools) -> None:
    """Push what the last attempt left, for people to look at; best effort.

    Never what no guard let pass: it may hold what must not leave this machine.
    """
    last = next(reversed(tools.ledger.history(ref)), None)
    if last is None or last.head_sha is None:
        return
    if last.outcome not in {*NOT_VERIFIED, Outcome.SUCCEEDED}:
        return
    try:
        if why := _unfit(ref, last, tools):
            log.warning("work_not_pushed", issue=str(ref), reason=why)
            return
        pushed = tools.worktrees.push_attempt(ref, last.head_sha, last.number)
    except WorldError as error:
        log.warning("work_not_pushed", issue=str(ref), reason=str(error))
        return
    done(ref, PUSHED_WORK, str(last.number), pushed, tools)


def draft_work(ref: IssueRef, tools: Tools) -> str:
    """Show what the last attempt left as a draft; say why not, where that is refused for good.

    Work that no guard let pass stays here, and so does what was asked for by somebody who may not
    any more, or on another text (SPEC T1), or made on what the base branch has no longer. A pull
    request that is no draft of Mulligan's stays as it is, since what was not verified never takes
    the place of what was; so does one that somebody pushed to.
    """
    last = next(reversed(tools.ledger.history(ref)), None)
    if last is None or last.head_sha is None or last.outcome not in NOT_VERIFIED:
        return ""
    try:
        if _is_taken(ref, last, tools):
            return ""
        case = look(tools.tracker.read(ref), tools)
        if why := _unfit(ref, last, tools):
            return why
        _show(case, last, last.head_sha, tools)
    except (DeniedError, MisconfiguredError) as error:
        log.warning("not_drafted", issue=str(ref), reason=str(error))
        _take_back(ref, tools)
        return str(error)
    return ""


def _unfit(ref: IssueRef, last: WorkerResultMeta, tools: Tools) -> str:
    """Check base, people and text once more, right before a push; say why there may be none."""
    if not has_base(ref, last, tools):
        return base_dropped(last)
    wrong = objection(ref, tools)
    return f"{wrong.reason}." if wrong else ""


def _is_taken(ref: IssueRef, last: WorkerResultMeta, tools: Tools) -> bool:
    """Tell whether there is a pull request that must not be changed."""
    status = tools.ledger.status(ref)
    if status.pull_number is None:
        return False
    pull = tools.tracker.pulls.state(ref, status.pull_number)
    if not (status.draft_of and pull.is_open and pull.is_draft):
        return True
    return tools.worktrees.tip(ref) not in {None, last.head_sha, held(status, last)}


def _show(case: Case, last: WorkerResultMeta, head: str, tools: Tools) -> None:
    ref = case.issue.ref
    tools.worktrees.push(ref, head, held(case.status, last))
    done(ref, PUSH, ref.branch, head, tools)
    opened = tools.tracker.open_draft(case, tools.worktrees.base_branch(ref.repository))
    if opened.elsewhere:
        return
    shown = (case.status.draft_of, case.status.pull_number)
    if shown != (last.number, opened.number):
        drafted = Drafted(
            pull_request=opened.url, number=opened.number, head_sha=head, attempt=last.number
        )
        tools.ledger.append(ref, drafted)


def _take_back(ref: IssueRef, tools: Tools) -> None:
    """Remove the branch that no draft came of; best effort."""
    status = tools.ledger.status(ref)
    pushed = status.effect(PUSH, ref.branch)
    if status.pull_number is not None or pushed is None:
        return
    try:
        tools.worktrees.drop(ref, {pushed})
    except WorldError as error:
        log.warning("branch_left", issue=str(ref), reason=str(error))
