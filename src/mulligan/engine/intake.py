"""Find the issues that ask for work, and pass over a repository that cannot be asked."""

from collections.abc import Sequence

import structlog

from mulligan.domain.issue import IssueRef
from mulligan.errors import MulliganError
from mulligan.ports import Tools

log = structlog.get_logger()


def candidates(repository: str, tools: Tools) -> list[IssueRef]:
    """List the labelled issues of a repository that may be due, oldest first.

    Whether each may really be worked on is decided when it is read afresh (domain/eligibility.py).
    """
    tools.worktrees.refresh(repository)
    ready = tools.policies.current(repository).labels.ready
    now = tools.clock.now()
    found = tools.tracker.labelled(repository, ready)
    return [ref for ref in found if (due := tools.ledger.status(ref).due) is None or due <= now]


def poll(repositories: Sequence[str], tools: Tools) -> tuple[list[IssueRef], dict[str, str]]:
    """Ask every repository; give the issues found, and a sentence for each that failed."""
    found, failed = list[IssueRef](), dict[str, str]()
    for repository in repositories:
        try:
            found += candidates(repository, tools)
        except MulliganError as error:
            failed[repository] = str(error)
        except Exception:
            log.exception("poll_failed", repository=repository)
            failed[repository] = "A bug in Mulligan; the log has the traceback."
    return found, failed
