"""What follows an attempt: the one place that decides (SPEC 6, O1-O3). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Self, assert_never

from mulligan.config.operator import Limits
from mulligan.config.policy import Policy
from mulligan.domain.attempt import SHUTDOWN
from mulligan.domain.decision import (
    Decision,
    Escalate,
    OpenPullRequest,
    Retry,
    StandDown,
    WaitForBudget,
)
from mulligan.domain.outcome import FREE, NO_OUTPUT, Outcome
from mulligan.domain.result import WorkerResultMeta


@dataclass(frozen=True, slots=True)
class Ended:
    """What the decision looks at in one attempt."""

    outcome: Outcome
    reason: str = ""

    @classmethod
    def of(cls, meta: WorkerResultMeta) -> Self:
        """Take it from an attempt's record."""
        return cls(meta.outcome, meta.failure_reason)

    @property
    def is_death(self) -> bool:
        """Tell whether Mulligan died in it, unasked."""
        return self.outcome is Outcome.INTERRUPTED and self.reason != SHUTDOWN


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of one epoch; all count attempts."""

    max_issue_attempts: int = 3
    max_no_output_attempts: int = 3
    consecutive_timeouts: int = 2
    interruptions: int = 3
    infrastructure_retries: int = 5

    @classmethod
    def of(cls, policy: Policy, limits: Limits) -> Self:
        """Put a repository's and the operator's limits together."""
        return cls(
            max_issue_attempts=policy.max_issue_attempts,
            max_no_output_attempts=policy.max_no_output_attempts or policy.max_issue_attempts,
            consecutive_timeouts=limits.consecutive_timeouts,
            interruptions=limits.interruptions,
            infrastructure_retries=limits.infrastructure_retries,
        )


def count_spent(epoch: Sequence[Ended], policy: RetryPolicy) -> int:
    """Count the attempts of an epoch that cost one: the agent's, and deaths beyond the limit."""
    paid = sum(ended.outcome not in FREE for ended in epoch)
    deaths = sum(ended.is_death for ended in epoch)
    return paid + max(0, deaths - policy.interruptions)


def decide(ended: Ended, history: Sequence[Ended], policy: RetryPolicy) -> Decision:
    """Say what follows an attempt; `history` is the epoch before it, oldest first.

    Pure and total: equal facts give equal decisions.
    """
    match ended.outcome:
        case Outcome.SUCCEEDED:
            return OpenPullRequest()
        case Outcome.CANCELLED:
            return StandDown(reason=ended.reason or "The request was withdrawn.")
        case Outcome.OVER_BUDGET:
            return WaitForBudget(reason=ended.reason or "The budget is used up.")
        case Outcome.BLOCKED | Outcome.NOTHING_TO_DO | Outcome.DENIED | Outcome.MISCONFIGURED:
            return Escalate(reason=_at_once(ended))
        case Outcome.INFRASTRUCTURE:
            return _after_infrastructure(ended, history, policy)
        case (
            Outcome.INTERRUPTED
            | Outcome.AGENT_TIMED_OUT
            | Outcome.AGENT_CRASHED
            | Outcome.ZERO_COMMIT
            | Outcome.ZERO_DIFF
            | Outcome.SCOPE_VIOLATION
            | Outcome.CHECKS_FAILED
            | Outcome.REJECTED
        ):
            return _within_limits(ended, history, policy)
        case _:
            assert_never(ended.outcome)


def _at_once(ended: Ended) -> str:
    """Give the reason of an escalation that no limit had to be reached for."""
    opening = {
        Outcome.BLOCKED: "The agent cannot go on",
        Outcome.NOTHING_TO_DO: "The agent says that there is nothing to do",
        Outcome.DENIED: "Access was refused",
        Outcome.MISCONFIGURED: "The set-up is not complete",
    }[ended.outcome]
    return f"{opening}: {ended.reason}" if ended.reason else f"{opening}."


def _after_infrastructure(ended: Ended, history: Sequence[Ended], policy: RetryPolicy) -> Decision:
    faults = 1 + sum(past.outcome is Outcome.INFRASTRUCTURE for past in history)
    if faults > policy.infrastructure_retries:
        return Escalate(reason=f"Something around the agent failed {faults} times: {ended.reason}")
    return Retry(reason=f"Not the agent's fault: {ended.reason}", backoff_step=faults)


def _within_limits(ended: Ended, history: Sequence[Ended], policy: RetryPolicy) -> Decision:
    epoch = [*history, ended]
    spent = count_spent(epoch, policy)
    if spent >= policy.max_issue_attempts:
        return Escalate(reason=f"All {_attempts(spent)} failed; the last: {ended.reason}")
    silent = sum(past.outcome in NO_OUTPUT for past in epoch)
    if ended.outcome in NO_OUTPUT and silent >= policy.max_no_output_attempts:
        return Escalate(reason=f"{_attempts(silent).capitalize()} changed nothing.")
    row = len(list(takewhile(_timed_out, reversed(epoch))))
    if row >= policy.consecutive_timeouts:
        return Escalate(reason=f"{_attempts(row).capitalize()} in a row ran out of time.")
    left = policy.max_issue_attempts - spent
    return Retry(reason=f"{ended.reason} {_attempts(left).capitalize()} left.")


def _timed_out(ended: Ended) -> bool:
    return ended.outcome is Outcome.AGENT_TIMED_OUT


def _attempts(count: int) -> str:
    return "1 attempt" if count == 1 else f"{count} attempts"
