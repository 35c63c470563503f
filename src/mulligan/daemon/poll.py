"""Find the issues that ask for work; a repository that cannot be asked does not stop the others."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from mulligan.daemon.commands import execute_commands, listen
from mulligan.daemon.pull_requests import PullRequestCache, follow
from mulligan.daemon.recovery import let_go_all
from mulligan.daemon.worker import A_BUG, Visit, Worker, is_queued
from mulligan.domain.errors import GoneError, MisconfiguredError, MulliganError, ShutdownError
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import IssueStatus, Phase
from mulligan.implement.ports import Tools
from mulligan.sandbox.cancellation import stopping

MOST_A_MINUTE = 600
"""Requests that one token may send; GitHub's secondary limit counts unchanged answers as well."""

FOR_ONE_POLL = 3
"""Requests for one repository: its list, and room for further pages and for issues at work."""

LONGEST = timedelta(minutes=5)
"""How old the policy may be by which a repository without work is asked; a fetch costs 20 ms."""

log = structlog.get_logger()

A_MOMENT = timedelta(seconds=5)

Known = dict[IssueRef, IssueStatus]
"""Where the issues of one repository stand."""


def stretched(interval: timedelta, repositories: int, requests: int = FOR_ONE_POLL) -> timedelta:
    """Give the time between two polls: `interval`, or as much as all repositories need."""
    return max(interval, timedelta(minutes=1) * repositories * requests / MOST_A_MINUTE)


@dataclass(frozen=True, slots=True)
class Freshness:
    """When each repository was fetched last, and what was heard of it; for one thread at a time."""

    fetched: dict[str, datetime] = field(default_factory=dict[str, datetime])
    ears: PullRequestCache = field(default_factory=PullRequestCache)

    def renew(self, repository: str, tools: Tools, oldest: timedelta) -> str | None:
        """Fetch the base branch, with the policy on it, unless that was done just now.

        Gives what is wrong with a branch that is not there. That does not stop the poll: each
        issue is told so by its attempt.
        """
        now, last = tools.clock.now(), self.fetched.get(repository)
        if last is not None and last <= now < last + oldest:
            return None
        wrong = None
        try:
            tools.worktrees.refresh(repository)
        except MisconfiguredError as error:
            wrong = str(error)
        self.fetched[repository] = now
        return wrong


def poll(
    repositories: Iterable[str], tools: Tools, worker: Worker, freshness: Freshness | None = None
) -> tuple[list[IssueRef], dict[str, str]]:
    """Ask every repository; give the issues that may be due, and a sentence for each that failed.

    Whether an issue may really be worked on is decided when it is read afresh
    (domain/eligibility.py). `freshness` remembers from poll to poll what was fetched when.
    """
    freshness = freshness or Freshness()
    found, failed = list[IssueRef](), dict[str, str]()
    known = _known(tools)
    for repository in repositories:
        if stopping():
            break
        try:
            if wrong := freshness.renew(repository, tools, LONGEST):
                failed[repository] = wrong
            due, problems = _ask(repository, known[repository], tools, worker, freshness.ears)
            failed |= problems
            if due:
                freshness.renew(repository, tools, A_MOMENT)
            found += due
        except ShutdownError:
            break
        except MulliganError as error:
            failed[repository] = str(error)
        except Exception:
            log.exception("poll_failed", repository=repository)
            failed[repository] = A_BUG
    return found, failed


def _known(tools: Tools) -> defaultdict[str, Known]:
    """Read the ledger once for all repositories."""
    known = defaultdict[str, Known](dict)
    for status in tools.ledger.statuses():
        known[status.issue.repository][status.issue] = status
    return known


def _ask(
    repository: str, known: Known, tools: Tools, worker: Worker, ears: PullRequestCache
) -> tuple[list[IssueRef], dict[str, str]]:
    """List the issues of a repository whose time has come, the labelled ones first, oldest first.

    Gives a sentence for each pull request that could not be looked at, too. What people command is
    heard first, and carried out last: a pull request that has ended does not end what was asked
    for afterwards.
    """
    commanded = _hear(repository, known, tools, worker)
    labelled = _labelled(repository, known, tools, worker)
    followed = follow(repository, known.values(), tools, worker, ears)
    known |= {done.issue: tools.ledger.status(done.issue) for done in followed}
    _obey_all(commanded, known, tools, worker)
    let_go_all((status for ref, status in known.items() if ref not in labelled), worker)
    asked = (ref for ref, status in known.items() if status.by_command and is_queued(status))
    due = [ref for ref in dict.fromkeys([*labelled, *asked]) if _is_due(known.get(ref), tools)]
    due += [ref for ref in _returned(known, tools) if ref not in due]
    return due, {str(done.issue): done.problem for done in followed if done.problem}


def _hear(repository: str, known: Known, tools: Tools, worker: Worker) -> list[IssueRef]:
    """Hear what people command, and end the work that it ends; name the issues it is about."""
    noted = listen(repository, known, tools)
    pending = [ref for ref, status in known.items() if status.pending]
    commanded = list(dict.fromkeys([*pending, *noted]))
    worker.heed(commanded)
    return commanded


def _labelled(repository: str, known: Known, tools: Tools, worker: Worker) -> Sequence[IssueRef]:
    """List the labelled issues; where the repository is gone, all that is queued is let go."""
    labels = tools.policies.current(repository).labels
    try:
        return tools.tracker.labelled(repository, labels.ready, labels.priority)
    except GoneError:
        let_go_all(known.values(), worker)
        raise


def _obey_all(refs: Sequence[IssueRef], known: Known, tools: Tools, worker: Worker) -> None:
    """Carry out what was commanded."""
    for ref in refs:
        worker.talk(ref)
        done = worker.safely(ref, partial(_execute_commands, ref))
        if done.problem:
            log.warning("not_obeyed", issue=str(ref), reason=done.problem)
        known[ref] = tools.ledger.status(ref)


def _execute_commands(ref: IssueRef, tools: Tools) -> Visit:
    execute_commands(ref, tools)
    return Visit(ref)


def _returned(known: Known, tools: Tools) -> list[IssueRef]:
    """List the issues whose pull request asks for another attempt, whatever their labels."""
    pending = sorted(ref for ref, status in known.items() if status.feedback)
    now = map(tools.ledger.status, pending)
    return [each.issue for each in now if _is_returned(each) and _is_due(each, tools)]


def _is_returned(status: IssueStatus) -> bool:
    return status.feedback is not None and status.stage is Stage.READY


def _is_due(status: IssueStatus | None, tools: Tools) -> bool:
    """Tell whether an issue waits for nothing; one that is being worked on is not asked about."""
    if status is None:
        return True
    due = status.due is None or status.due <= tools.clock.now()
    return due and status.phase is Phase.IDLE
