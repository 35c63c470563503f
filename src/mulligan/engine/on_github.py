"""Watch the checks that GitHub runs on Mulligan's own heads (SPEC P4)."""

from functools import partial

import structlog

from mulligan.domain.ci import (
    MOST_CHECKS,
    CheckRun,
    CiPassed,
    FailedCheck,
    failed_of,
    key_of,
    latest,
    passed_of,
    told_apart,
)
from mulligan.domain.feedback import OpenPull
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import PUSH, IssueStatus, Phase
from mulligan.effects import show
from mulligan.engine.worker import Visit, Worker
from mulligan.errors import WorldError
from mulligan.implement import resume
from mulligan.retry.policy import Ended, RetryPolicy, count_spent
from mulligan.retry.returned import Left, failed_on_github
from mulligan.tools import Tools

MOST_LOGS = 5
"""Of one head; further checks that failed are told by name."""

Seen = tuple[str, tuple[CheckRun, ...]]
"""A head, and what ran on it when it was looked at last."""

log = structlog.get_logger()


def watch(
    status: IssueStatus, pull: OpenPull, tools: Tools, worker: Worker, seen: dict[IssueRef, Seen]
) -> Visit | None:
    """Look at the checks of a pull request in review, where the policy has them count.

    They are read at every poll, free of charge while nothing changed; what was `seen` already
    comes to nothing.
    """
    ref = status.issue
    watches = tools.policies.current(ref.repository).watch_ci.enabled
    if not watches or status.effect(PUSH, ref.branch) != pull.head_sha:
        return None
    try:
        now = (pull.head_sha, latest(tools.tracker.pulls.checks(ref, pull.head_sha)))
    except WorldError as error:
        return Visit(ref, problem=str(error))
    if seen.get(ref) == now:
        return None
    done = worker.safely(ref, partial(_judge, ref, now))
    if not (done.problem or done.skipped):
        seen[ref] = now
    return done


def left(status: IssueStatus, tools: Tools) -> Left:
    """Count what the epoch has left."""
    history, repository = tools.ledger.history(status.issue), status.issue.repository
    policy = RetryPolicy.of(tools.policies.current(repository), tools.limits)
    epoch = [Ended.of(meta) for meta in history if meta.epoch == status.epoch]
    return Left(count_spent(epoch, policy), policy.max_issue_attempts)


def _judge(ref: IssueRef, now: Seen, tools: Tools) -> Visit:
    """Take in what the checks came to, once for each head; those that still run come to nothing."""
    status, (head, runs) = tools.ledger.status(ref), now
    rests = status.stage is Stage.REVIEW and status.phase is Phase.IDLE
    if not rests or status.effect(PUSH, ref.branch) != head:
        return Visit(ref)
    failed, passed = failed_of(runs), passed_of(runs)
    if failed and key_of(head) not in status.heard:
        _take_in(status, head, failed, tools)
    elif passed and passed != status.ci_passed:
        tools.ledger.append(ref, CiPassed(head_sha=head, count=passed))
        show(ref, tools)
    return Visit(ref)


def _take_in(status: IssueStatus, head: str, failed: tuple[CheckRun, ...], tools: Tools) -> None:
    ref = status.issue
    shown = failed[:MOST_CHECKS]
    told = [
        FailedCheck(name=name, digest=_digest(ref, run, tools) if at < MOST_LOGS else "")
        for at, (name, run) in enumerate(zip(told_apart(shown), shown, strict=True))
    ]
    settings = tools.policies.current(ref.repository).watch_ci
    event = failed_on_github(head, told, status, left(status, tools), settings)
    tools.ledger.append(ref, event)
    log.info("failed_on_github", issue=str(ref), checks=len(failed), refused=event.refused)
    if event.refused:
        resume(ref, tools)


def _digest(ref: IssueRef, run: CheckRun, tools: Tools) -> str:
    output = tools.tracker.pulls.log(ref, run)
    return tools.verifier.condense(output) if output.strip() else ""
