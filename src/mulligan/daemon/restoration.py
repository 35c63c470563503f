"""Restore the state of issues from GitHub after the loss of a ledger (RESTORE-1)."""

from collections.abc import Collection, Iterable
from dataclasses import replace

import structlog

from mulligan.domain.errors import GoneError
from mulligan.domain.issue import BRANCH_PREFIX, IssueRef
from mulligan.domain.restoration import rebuild
from mulligan.implement.effects import write_record
from mulligan.implement.ports import LedgerReader, ReadContext, WriteContext

log = structlog.get_logger()


def restore_repository(
    repository: str, known: Collection[IssueRef], context: WriteContext
) -> list[IssueRef]:
    """Rebuild the issues that Mulligan works on or has open pull requests for; list them.

    StandsBackError if there are any, and they are another installation's (OWNER-1).
    """
    try:
        found = dict.fromkeys([*_labelled(repository, context), *_with_pulls(repository, context)])
    except GoneError:
        return []
    unknown = [ref for ref in found if ref not in known]
    if unknown:
        context.owners.require(repository)
    return [ref for ref in unknown if restore_issue(ref, context)]


def may_be_lost(repository: str, known: Collection[IssueRef], ledger: LedgerReader) -> bool:
    """Return whether the ledger knows no issue of a repository, or a restoration may be unfinished.

    Comments are read after the restoration, and every ledger in use has read some.
    """
    return not known or not ledger.comments_read_to(repository)


def confirm_issue(ref: IssueRef, context: WriteContext, *, is_asked: bool = False) -> None:
    """Believe a ledger on the state ref as far as GitHub confirms it, else restore the issue.

    `is_asked`: somebody has just written a command.
    """
    if not context.mirror.confirm(ref, context.tracker.state_mark):
        log.warning("state_not_confirmed", issue=str(ref))
        if restore_issue(ref, context, is_asked=is_asked):
            # It confirms what was restored, so that the next run need not restore it again.
            write_record(ref, context)


def restore_issue(ref: IssueRef, context: WriteContext, *, is_asked: bool = False) -> bool:
    """Rebuild an issue that the ledger does not know; False if there is nothing to rebuild.

    `is_asked`: somebody has just written a command.
    """
    if context.ledger.status(ref).known_since is not None:
        return False
    labels = context.policies.in_force(ref.repository).labels
    try:
        found = context.tracker.find_work(ref, labels)
    except GoneError:
        return False
    if found.record:
        found = replace(found, mirrored=context.mirror.attempts(ref))
    events = rebuild(ref, found, context.clock.now(), is_asked=is_asked)
    done = bool(events) and context.ledger.restore(ref, events)
    if done:
        status = context.ledger.status(ref)
        log.warning("restored", issue=str(ref), stage=status.stage, source=status.restored)
    return done


def _labelled(repository: str, context: ReadContext) -> Iterable[IssueRef]:
    labels = context.policies.in_force(repository).labels
    for label in (labels.running, labels.review, labels.hitl):
        yield from context.tracker.list_labelled(repository, label, with_closed=True)


def _with_pulls(repository: str, context: ReadContext) -> Iterable[IssueRef]:
    for pull in context.tracker.pulls.list_open(repository):
        number = pull.branch.removeprefix(BRANCH_PREFIX)
        if number.isdecimal() and number.isascii() and not number.startswith("0"):
            yield IssueRef(repository, int(number))
