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
from mulligan.retry.words import counted, explain

ISSUE = "issue"
"""The budget that no later window fills again."""

DAYS_EATEN = 2
"""On how many days of an epoch an issue may use up most of a budget of the day."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What the decision looks at in one attempt."""

    outcome: Outcome
    reason: str = ""
    budget: str | None = None
    probe: bool = False
    eats_budget: bool = False

    @classmethod
    def of(cls, meta: WorkerResultMeta) -> Self:
        """Take it from an attempt's record."""
        probe, eats = meta.probe, meta.eats_budget
        return cls(meta.outcome, meta.failure_reason, meta.budget, probe, eats)

    @property
    def told(self) -> str:
        """Give the reason as a sentence for a person."""
        return explain(self.outcome, self.reason)

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
            return StandDown(reason=ended.told)
        case Outcome.OVER_BUDGET if ended.budget != ISSUE:
            return _after_a_day(ended, history)
        case Outcome.DENIED if ended.probe:
            # A person was asked when the key was refused first.
            return Retry(reason=ended.told, backoff_step=1)
        case (
            Outcome.BLOCKED
            | Outcome.NOTHING_TO_DO
            | Outcome.DENIED
            | Outcome.MISCONFIGURED
            | Outcome.OVER_BUDGET
        ):
            return Escalate(reason=ended.told)
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


def _after_a_day(ended: Ended, history: Sequence[Ended]) -> Decision:
    """Wait for the next day, but not for ever: an issue may need more than any day has."""
    days = sum(past.eats_budget for past in (*history, ended))
    if not ended.eats_budget or days < DAYS_EATEN:
        return WaitForBudget(reason=ended.told)
    key = f"budget.{ended.budget}"
    taken = counted(days, "day")
    return Escalate(
        reason=f"This issue has used up most of {key} on {taken}, and would again; raise {key} in "
        "mulligan.yml, or split the issue."
    )


def _after_infrastructure(ended: Ended, history: Sequence[Ended], policy: RetryPolicy) -> Decision:
    spent = count_spent(history, policy)
    if spent >= policy.max_issue_attempts:
        return Escalate(reason=_used_up(spent, ended))
    faults = 1 + sum(past.outcome is Outcome.INFRASTRUCTURE for past in history)
    if faults > policy.infrastructure_retries:
        times = counted(faults, "time")
        return Escalate(reason=f"Something around the agent failed {times}, the last: {ended.told}")
    return Retry(reason=f"This was not the agent's doing. {ended.told}", backoff_step=faults)


def _within_limits(ended: Ended, history: Sequence[Ended], policy: RetryPolicy) -> Decision:
    epoch = [*history, ended]
    spent = count_spent(epoch, policy)
    if spent >= policy.max_issue_attempts:
        return Escalate(reason=_used_up(spent, ended))
    silent = sum(past.outcome in NO_OUTPUT for past in epoch)
    if ended.outcome in NO_OUTPUT and silent >= policy.max_no_output_attempts:
        return Escalate(reason=f"{counted(silent, 'attempt')} changed nothing. {ended.told}")
    row = _timeouts_in_a_row(epoch)
    if _timed_out(ended) and row >= policy.consecutive_timeouts:
        ran_out = f"{counted(row, 'attempt')} in a row ran out of time"
        return Escalate(reason=f"{ran_out}. {ended.told}")
    left = counted(policy.max_issue_attempts - spent, "attempt")
    return Retry(reason=f"{_sentence(ended.told)} {left} left.")


def _used_up(spent: int, last: Ended) -> str:
    if spent == 1:
        return f"The only attempt failed: {last.told}"
    return f"All {spent} attempts failed, the last: {last.told}"


def _timeouts_in_a_row(epoch: Sequence[Ended]) -> int:
    """Count them from the end; what was not the agent's doing does not break the row."""
    paid = [ended for ended in epoch if ended.outcome not in FREE]
    return len(list(takewhile(_timed_out, reversed(paid))))


def _timed_out(ended: Ended) -> bool:
    return ended.outcome is Outcome.AGENT_TIMED_OUT


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", ")")) else f"{text}."
