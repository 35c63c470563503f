"""Delete what retention does not keep: artifacts, worktrees, images, old histories."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from mulligan.config.operator import Retention
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.issue import IssueRef
from mulligan.domain.recorded_effects import Effect
from mulligan.domain.retention import (
    AttemptFiles,
    has_rested,
    may_be_forgotten,
    needs_files,
    outdated,
)
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import (
    BotContext,
    NoRetention,
    ReadContext,
    RetentionStore,
    WriteContext,
)
from mulligan.sandbox.cancellation import stopping

MIB = 1 << 20

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """The retention settings, and the store that deletes the histories of old issues."""

    settings: Retention = field(default_factory=Retention)
    histories: RetentionStore = field(default_factory=NoRetention)


def clean_up(context: BotContext, worker: Worker, retention: RetentionPlan) -> dict[IssueRef, str]:
    """Delete the data that retention does not keep; return an error for each issue that failed.

    Each issue is checked again under its lease, so that no worker starts on it meanwhile.
    """
    # List the files before reading the ledger, so that it knows every attempt that has files.
    found = context.artifacts.attempts()
    known = {status.issue: status for status in context.ledger.statuses()}
    keep, now = retention.settings, context.clock.now()
    files, failed = _outdated(found, known, keep, now), dict[IssueRef, str]()
    unused = [ref for ref in known if _is_unused(ref, keep.worktrees, context)]
    work = {
        ref: partial(_clean_up, ref, files.get(ref, ()), keep.worktrees)
        for ref in (*files, *unused)
    }
    context.images.prune(now - keep.images)
    before = now - keep.ledger
    for ref in retention.histories.outdated(before):
        of_issue = [each for each in found if each.issue == ref]
        work[ref] = partial(_forget, ref, of_issue, (retention.histories, before))
    for ref in sorted(work):
        if stopping():
            break
        done = worker.run_leased(ref, work[ref], is_local=True)
        if done.problem:
            failed[ref] = done.problem
    return failed


def _outdated(
    found: Sequence[AttemptFiles],
    known: Mapping[IssueRef, IssueStatus],
    keep: Retention,
    now: datetime,
) -> Mapping[IssueRef, Sequence[AttemptFiles]]:
    """Choose the files to delete, by issue; keep those of issues that the ledger does not know."""
    free = {ref for ref, status in known.items() if not needs_files(status)}
    kept = {files.issue for files in found} - free
    oldest = now - keep.artifacts
    by_issue = defaultdict[IssueRef, list[AttemptFiles]](list)
    for files in outdated(found, kept, oldest, keep.artifacts_mib * MIB):
        by_issue[files.issue].append(files)
    return by_issue


def _is_unused(ref: IssueRef, keep: timedelta, context: ReadContext) -> bool:
    """Return whether an issue has a worktree here that retention no longer keeps."""
    if not context.worktrees.exists(ref):
        return False
    events = context.ledger.events(ref)
    # Effects do not count: the newest comment id is recorded on any issue of a repository.
    last = max(each.at for each in events if not isinstance(each.event, Effect))
    return has_rested(context.ledger.status(ref), last, context.clock.now(), keep)


def _clean_up(
    ref: IssueRef, files: Sequence[AttemptFiles], keep: timedelta, context: WriteContext
) -> Visit:
    deleted = () if needs_files(context.ledger.status(ref)) else files
    for each in deleted:
        context.artifacts.remove(ref, each.number)
    if unused := _is_unused(ref, keep, context):
        context.git.discard(ref)
    log.info("cleaned_up", issue=str(ref), attempts=len(deleted), worktree=unused)
    return Visit(ref)


def _forget(
    ref: IssueRef,
    files: Sequence[AttemptFiles],
    history: tuple[RetentionStore, datetime],
    context: WriteContext,
) -> Visit:
    """Delete an issue's artifacts and worktree, then its events."""
    if not may_be_forgotten(context.ledger.status(ref)):
        return Visit(ref)
    for each in files:
        context.artifacts.remove(ref, each.number)
    if context.worktrees.exists(ref):
        context.git.discard(ref)
    store, before = history
    if store.forget(ref, before):
        log.info("history_removed", issue=str(ref))
    return Visit(ref)
