"""Bring pull requests up to date that wait for nothing else, by merging the base branch."""

from functools import partial

import structlog

from mulligan.domain.events import BroughtUpToDate
from mulligan.domain.feedback import OpenPull
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import MERGE, PUSH, IssueStatus, Phase
from mulligan.done import done
from mulligan.effects import show
from mulligan.engine.worker import Visit, Worker
from mulligan.errors import DeniedError, WorldError
from mulligan.survey import objection
from mulligan.tools import Tools

REFUSED = "merge_refused"
"""The effect that a merge could not be pushed, by base and head: it is not tried again."""

log = structlog.get_logger()


def keep_up(status: IssueStatus, pull: OpenPull, tools: Tools, worker: Worker) -> Visit | None:
    """Merge the base branch, where the policy wants it and GitHub says that only that is missing.

    GitHub is asked while the head lacks commits of the base, free of charge while nothing changed.
    A head that Mulligan did not push last is left to whoever made it.
    """
    ref = status.issue
    if pull.head_sha in status.merged_since:
        return worker.safely(ref, partial(_finish, ref, pull.head_sha))
    base = tools.worktrees.base_sha(ref.repository)
    if base is None or not tools.policies.current(ref.repository).update_branch:
        return None
    try:
        wanted = _is_wanted(status, pull, base, tools)
    except WorldError as error:
        return Visit(ref, problem=str(error))
    return worker.safely(ref, partial(_update, ref, pull.head_sha, base)) if wanted else None


def _pushed(status: IssueStatus) -> str | None:
    return status.effect(PUSH, status.issue.branch)


def _is_wanted(status: IssueStatus, pull: OpenPull, base: str, tools: Tools) -> bool:
    ref, head = status.issue, pull.head_sha
    if head != _pushed(status) or status.effect(REFUSED, f"{base}:{head}"):
        return False
    behind = tools.worktrees.is_behind(ref, base, head)
    return behind and tools.tracker.pulls.state(ref, pull.number).is_behind


def _update(ref: IssueRef, head: str, base: str, tools: Tools) -> Visit:
    """Merge and push. The commit is known to be Mulligan's own before anybody can see it."""
    status = tools.ledger.status(ref)
    if status.stage is not Stage.REVIEW or status.phase is not Phase.IDLE:
        return Visit(ref)
    commit = tools.policies.current(ref.repository).commit
    merged = tools.worktrees.merge(ref, base, head, commit)
    if merged is None:
        return Visit(ref)
    done(ref, MERGE, f"{base}:{head}", merged, tools)
    try:
        why = _unfit(ref, base, tools)
        if not why:
            tools.worktrees.push(ref, merged, head)
    except DeniedError as error:
        # Somebody pushed meanwhile, or the server wants no such commit: it is left to people.
        why = str(error)
    if why:
        log.warning("not_updated", issue=str(ref), reason=why)
        done(ref, REFUSED, f"{base}:{head}", "refused", tools)
        return Visit(ref)
    return _finish(ref, merged, tools)


def _unfit(ref: IssueRef, base: str, tools: Tools) -> str:
    """Check once more, right before a push; say why there may be none.

    Neither the base that is merged, nor what the pull request stands on, may have been taken off
    the base branch; and who asked for the work has to be somebody who may (SPEC T1). A text that
    was changed since the work was published does not matter.
    """
    stands_on = {(meta.start_sha, meta.base_sha) for meta in tools.ledger.history(ref)[-1:]}
    merged = {base, tools.ledger.status(ref).updated_to} - {""}
    for start, known in [*((sha, sha) for sha in merged), *stands_on]:
        if not tools.worktrees.is_in_base(ref, start, known):
            return f"The base branch was force-pushed and no longer contains {known[:10]}."
    wrong = objection(ref, tools)
    return f"{wrong.reason}." if wrong and not wrong.by_edit else ""


def _finish(ref: IssueRef, merged: str, tools: Tools) -> Visit:
    """Record a merge that was pushed, and say so in the status comment."""
    status = tools.ledger.status(ref)
    base = status.merged_since.get(merged)
    if base and status.stage is Stage.REVIEW and status.phase is Phase.IDLE:
        tools.ledger.append(ref, BroughtUpToDate(base_sha=base, head_sha=merged))
        log.info("brought_up_to_date", issue=str(ref), base=base)
        show(ref, tools)
    return Visit(ref)
