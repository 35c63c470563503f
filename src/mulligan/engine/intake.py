"""Find the issues that ask for work; a repository that cannot be asked does not stop the others."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import structlog

from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import IssueStatus, Phase
from mulligan.engine.commands import listen, obey
from mulligan.engine.freshness import LONGEST, Freshness
from mulligan.engine.listening import follow
from mulligan.engine.recovery import let_go_all
from mulligan.engine.worker import A_BUG, Visit, Worker, is_queued
from mulligan.errors import GoneError, MulliganError, ShutdownError
from mulligan.stop import stopping
from mulligan.tools import Tools

log = structlog.get_logger()

A_MOMENT = timedelta(seconds=5)

Known = dict[IssueRef, IssueStatus]
"""Where the issues of one repository stand."""


def poll(
    repositories: Sequence[str], tools: Tools, worker: Worker, freshness: Freshness | None = None
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
            due = _ask(repository, known[repository], tools, worker)
            heard = follow(repository, known[repository].values(), tools, worker, freshness.ears)
            failed |= {str(each.issue): each.problem for each in heard if each.problem}
            due += [ref for ref in _returned(known[repository], heard, tools) if ref not in due]
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


def _ask(repository: str, known: Known, tools: Tools, worker: Worker) -> list[IssueRef]:
    """List the labelled issues of a repository whose time has come, oldest first."""
    _talk(repository, known, tools, worker)
    labels = tools.policies.current(repository).labels
    try:
        labelled = tools.tracker.labelled(repository, labels.ready, labels.priority)
    except GoneError:
        let_go_all(known.values(), worker)
        raise
    let_go_all((status for ref, status in known.items() if ref not in labelled), worker)
    commanded = (ref for ref, status in known.items() if status.by_command and is_queued(status))
    asked = dict.fromkeys([*labelled, *commanded])
    return [ref for ref in asked if _is_due(known.get(ref), tools)]


def _talk(repository: str, known: Known, tools: Tools, worker: Worker) -> None:
    """Hear what people command, end the work that it ends, and carry the rest out."""
    noted = listen(repository, known, tools)
    commanded = [ref for ref, status in known.items() if status.pending]
    refs = list(dict.fromkeys([*commanded, *noted]))
    worker.heed(refs)
    for ref in refs:
        done = worker.safely(ref, partial(_obey, ref))
        if done.problem:
            log.warning("not_obeyed", issue=str(ref), reason=done.problem)
        known[ref] = tools.ledger.status(ref)


def _obey(ref: IssueRef, tools: Tools) -> Visit:
    obey(ref, tools)
    return Visit(ref)


def _returned(known: Known, heard: Sequence[Visit], tools: Tools) -> list[IssueRef]:
    """List the issues whose pull request asks for another attempt, whatever their labels."""
    pending = {ref for ref, status in known.items() if status.feedback}
    now = map(tools.ledger.status, sorted(pending | {done.issue for done in heard}))
    return [each.issue for each in now if _is_returned(each) and _is_due(each, tools)]


def _is_returned(status: IssueStatus) -> bool:
    return status.feedback is not None and status.stage is Stage.READY


def _is_due(status: IssueStatus | None, tools: Tools) -> bool:
    """Tell whether an issue waits for nothing; one that is being worked on is not asked about."""
    if status is None:
        return True
    due = status.due is None or status.due <= tools.clock.now()
    return due and status.phase is Phase.IDLE
