"""Find the issues that ask for work; a repository that cannot be asked does not stop the others."""

from collections.abc import Sequence

import structlog

from mulligan.domain.issue import IssueRef
from mulligan.engine.recovery import let_go
from mulligan.engine.worker import A_BUG, Worker
from mulligan.errors import MulliganError
from mulligan.tools import Tools

log = structlog.get_logger()


def poll(
    repositories: Sequence[str], tools: Tools, worker: Worker
) -> tuple[list[IssueRef], dict[str, str]]:
    """Ask every repository; give the issues that may be due, and a sentence for each that failed.

    Whether an issue may really be worked on is decided when it is read afresh
    (domain/eligibility.py).
    """
    found, failed = list[IssueRef](), dict[str, str]()
    for repository in repositories:
        try:
            found += _ask(repository, tools, worker)
        except MulliganError as error:
            failed[repository] = str(error)
        except Exception:
            log.exception("poll_failed", repository=repository)
            failed[repository] = A_BUG
    return found, failed


def _ask(repository: str, tools: Tools, worker: Worker) -> list[IssueRef]:
    """List the labelled issues of a repository whose time has come, oldest first."""
    tools.worktrees.refresh(repository)
    labels = tools.policies.current(repository).labels
    labelled = tools.tracker.labelled(repository, labels.ready, labels.priority)
    let_go(repository, labelled, tools, worker)
    now = tools.clock.now()
    return [ref for ref in labelled if (due := tools.ledger.status(ref).due) is None or due <= now]
