"""Decide what follows an attempt, a review, a failed check on GitHub, or a command. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import Self, assert_never

from mulligan.config.operator import Limits
from mulligan.config.policy import Policy, ReviewSettings, WatchCi
from mulligan.domain.attempt import SHUTDOWN
from mulligan.domain.command import PendingCommand, Verb, aborted, skipped
from mulligan.domain.events import CiFailed, FailedCheck, ReviewReceived
from mulligan.domain.feedback import MAX_REMARKS, Review
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import (
    FREE,
    NO_OUTPUT,
    Decision,
    Escalate,
    OpenPullRequest,
    Outcome,
    Retry,
    StandDown,
    WaitForBudget,
)
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.prompt.outcome_text import explain, pluralize
from mulligan.text.escape import one_line

# The decision after an attempt.

ISSUE_BUDGET = "issue"
"""The name of an issue's own budget; unlike a day's, it is never refilled."""

MAX_EXHAUSTED_DAYS = 2
"""Escalate once an issue has used up most of a day's budget on this many days of an epoch."""


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """The facts of one attempt on which the decision depends."""

    outcome: Outcome
    reason: str = ""
    budget: str | None = None
    probe: bool = False
    eats_budget: bool = False

    @classmethod
    def of(cls, meta: WorkerResultMeta) -> Self:
        """Read the facts from an attempt's record."""
        probe, eats = meta.probe, meta.eats_budget
        return cls(meta.outcome, meta.failure_reason, meta.budget, probe, eats)

    @property
    def reason_sentence(self) -> str:
        """Word the reason as a sentence for people."""
        return explain(self.outcome, self.reason)

    @property
    def is_death(self) -> bool:
        """Tell whether Mulligan was killed during the attempt, other than by a shutdown."""
        return self.outcome is Outcome.INTERRUPTED and self.reason != SHUTDOWN


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of one epoch, each a number of attempts."""

    max_issue_attempts: int = 3
    max_no_output_attempts: int = 3
    consecutive_timeouts: int = 2
    interruptions: int = 3
    infrastructure_retries: int = 5

    @classmethod
    def of(cls, policy: Policy, limits: Limits) -> Self:
        """Combine the limits of the repository's policy and of the operator's configuration."""
        return cls(
            max_issue_attempts=policy.max_issue_attempts,
            max_no_output_attempts=policy.max_no_output_attempts or policy.max_issue_attempts,
            consecutive_timeouts=limits.consecutive_timeouts,
            interruptions=limits.interruptions,
            infrastructure_retries=limits.infrastructure_retries,
        )


def decide(ended: EndedAttempt, history: Sequence[EndedAttempt], policy: RetryPolicy) -> Decision:
    """Decide what follows an attempt; `history` holds the earlier ones of its epoch, oldest first.

    Equal facts give equal decisions, so a restart can decide again.
    """
    match ended.outcome:
        case Outcome.SUCCEEDED:
            return OpenPullRequest()
        case Outcome.CANCELLED:
            return StandDown(reason=ended.reason_sentence)
        case Outcome.OVER_BUDGET if ended.budget != ISSUE_BUDGET:
            return _after_daily_budget(ended, history)
        case Outcome.DENIED if ended.probe:
            # The first refusal of the key was escalated already.
            return Retry(reason=ended.reason_sentence, backoff_step=1)
        case (
            Outcome.BLOCKED
            | Outcome.NOTHING_TO_DO
            | Outcome.DENIED
            | Outcome.MISCONFIGURED
            | Outcome.OVER_BUDGET
        ):
            return Escalate(reason=ended.reason_sentence)
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


def _after_daily_budget(ended: EndedAttempt, history: Sequence[EndedAttempt]) -> Decision:
    """Wait for the next day; escalate an issue that needs more than a day's budget."""
    days = sum(past.eats_budget for past in (*history, ended))
    if not ended.eats_budget or days < MAX_EXHAUSTED_DAYS:
        return WaitForBudget(reason=ended.reason_sentence)
    key = f"budget.{ended.budget}"
    taken = pluralize(days, "day")
    return Escalate(
        reason=f"This issue used up most of {key} on {taken}. Raise {key} in mulligan.yml, or "
        f"split "
        "the issue."
    )


def _after_infrastructure(
    ended: EndedAttempt, history: Sequence[EndedAttempt], policy: RetryPolicy
) -> Decision:
    spent = count_spent(history, policy)
    if spent >= policy.max_issue_attempts:
        return Escalate(reason=_used_up(spent, [*history, ended]))
    faults = 1 + sum(past.outcome is Outcome.INFRASTRUCTURE for past in history)
    if faults > policy.infrastructure_retries:
        times = pluralize(faults, "time")
        return Escalate(
            reason=f"The environment failed {times}. The last failure: {ended.reason_sentence}"
        )
    return Retry(reason=f"Not caused by the agent. {ended.reason_sentence}", backoff_step=faults)


def _within_limits(
    ended: EndedAttempt, history: Sequence[EndedAttempt], policy: RetryPolicy
) -> Decision:
    epoch = [*history, ended]
    spent = count_spent(epoch, policy)
    if spent >= policy.max_issue_attempts:
        return Escalate(reason=_used_up(spent, epoch))
    silent = sum(past.outcome in NO_OUTPUT for past in epoch)
    if ended.outcome in NO_OUTPUT and silent >= policy.max_no_output_attempts:
        return Escalate(
            reason=f"{pluralize(silent, 'attempt')} changed nothing. {ended.reason_sentence}"
        )
    row = _timeouts_in_a_row(epoch)
    if _timed_out(ended) and row >= policy.consecutive_timeouts:
        ran_out = f"{pluralize(row, 'attempt')} in a row timed out"
        return Escalate(reason=f"{ran_out}. {ended.reason_sentence}")
    left = pluralize(policy.max_issue_attempts - spent, "attempt")
    return Retry(reason=f"{_sentence(ended.reason_sentence)} {left} left.")


def count_spent(epoch: Sequence[EndedAttempt], policy: RetryPolicy) -> int:
    """Count the attempts used up: those of the agent, and kills of Mulligan beyond the limit."""
    paid = sum(ended.outcome not in FREE for ended in epoch)
    killed = sum(ended.is_death for ended in epoch)
    return paid + max(0, killed - policy.interruptions)


def _used_up(spent: int, epoch: Sequence[EndedAttempt]) -> str:
    *before, last = epoch
    if any(past.outcome is Outcome.SUCCEEDED for past in before):
        # Attempts on a review share the epoch with the attempt that opened the pull request.
        return f"No attempt is left ({spent} used). The last one failed: {last.reason_sentence}"
    if spent == 1:
        return f"The only attempt failed: {last.reason_sentence}"
    return f"All {spent} attempts failed. The last one: {last.reason_sentence}"


def _timeouts_in_a_row(epoch: Sequence[EndedAttempt]) -> int:
    """Count the last attempts that timed out; attempts that cost nothing do not interrupt them."""
    paid = [ended for ended in epoch if ended.outcome not in FREE]
    return len(list(takewhile(_timed_out, reversed(paid))))


def _timed_out(ended: EndedAttempt) -> bool:
    return ended.outcome is Outcome.AGENT_TIMED_OUT


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", ")")) else f"{text}."


# Reviews and failed checks on GitHub.

REVIEWABLE_STAGES = frozenset({Stage.READY, Stage.REVIEW, Stage.HITL})
"""Stages in which Mulligan acts on a review; a review waits while an attempt runs."""


@dataclass(frozen=True, slots=True)
class AttemptsLeft:
    """The attempts of an epoch: `used` of `limit` are used up."""

    used: int
    limit: int

    @property
    def nothing(self) -> bool:
        """Tell whether no attempt is left."""
        return self.used >= self.limit


def new_reviews(reviews: Sequence[Review], status: IssueStatus) -> list[Review]:
    """Pick the unhandled reviews; none unless at least one of them requests changes."""
    new = [each for each in reviews if each.act not in status.handled]
    return new if any(each.requests_changes for each in new) else []


def is_settled(new: Sequence[Review], settings: ReviewSettings, now: datetime) -> bool:
    """Tell whether the newest review is at least `settings.settle` old."""
    return max(each.at for each in new) + settings.settle <= now


def decide_on_reviews(
    new: Sequence[Review], status: IssueStatus, left: AttemptsLeft, settings: ReviewSettings
) -> ReviewReceived:
    """Decide on reviews: an attempt in this epoch, in a new one, or an escalation (`refused`)."""
    last = max((each for each in new if each.requests_changes), key=lambda each: each.at)
    opens = left.nothing or status.stage is Stage.HITL
    refused = ""
    if opens and status.rounds >= settings.rounds:
        rounds = pluralize(settings.rounds, "round")
        refused = f"Reviews have already started {rounds}, and a review requests changes again."
    return ReviewReceived(
        reviews=tuple(each.id for each in new),
        author=last.author,
        author_id=last.author_id,
        at=last.at,
        remarks=tuple(said for each in new for said in each.remarks)[:MAX_REMARKS],
        opens_epoch=opens and not refused,
        refused=refused,
    )


def decide_on_failed_checks(
    head_sha: str,
    checks: Sequence[FailedCheck],
    status: IssueStatus,
    left: AttemptsLeft,
    settings: WatchCi,
) -> CiFailed:
    """Decide on checks that failed on GitHub: an attempt, or an escalation (`refused`, PR-3)."""
    names = ", ".join(one_line(check.name, 100) for check in checks)
    made, refused = pluralize(status.ci_attempts, "attempt"), ""
    if left.nothing:
        refused = f"Checks of the pull request fail on GitHub, and no attempt is left: {names}."
    elif status.ci_attempts >= settings.max_attempts:
        refused = f"Checks of the pull request still fail on GitHub after {made}: {names}."
    return CiFailed(head_sha=head_sha, checks=tuple(checks), refused=refused)


# Commands.


class CommandAction(StrEnum):
    """What Mulligan does about a command; REPLY only answers it in a comment."""

    OPEN_EPOCH = "open_epoch"
    STAND_DOWN = "stand_down"
    RESOLVE = "resolve"
    SHOW = "show"
    REPLY = "tell"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class CommandDecision:
    """The action on a command, and the `answer` for the ledger and the comment."""

    action: CommandAction
    answer: str


def decide_command(order: PendingCommand, status: IssueStatus, *, is_open: bool) -> CommandDecision:
    """Decide what to do about a command, from the issue's stage when it was given and now."""
    match order.verb:
        case Verb.RETRY | Verb.FIX:
            return _decide_retry(order, status, is_open=is_open)
        case Verb.ABORT:
            return _decide_abort(order, status)
        case Verb.SKIP:
            done = status.stage is Stage.RESOLVED and status.reason == skipped(order)
            return CommandDecision(
                CommandAction.SHOW if done else CommandAction.RESOLVE, skipped(order)
            )
        case Verb.PAUSE:
            return CommandDecision(
                CommandAction.SHOW, "This issue is paused. A running attempt finishes."
            )
        case Verb.RESUME:
            return CommandDecision(CommandAction.SHOW, "Work continues.")
        case Verb.STATUS:
            return CommandDecision(CommandAction.REPLY, "Replied with the status.")
        case Verb.MISTYPED:
            return CommandDecision(CommandAction.REPLY, order.text)
        case _:
            assert_never(order.verb)


def _decide_retry(order: PendingCommand, status: IssueStatus, *, is_open: bool) -> CommandDecision:
    if status.request.act == order.act:
        return CommandDecision(CommandAction.SHOW, "New attempts start.")
    if not is_open:
        return CommandDecision(
            CommandAction.REPLY, "This issue is closed. Reopen it, then write the command again."
        )
    if order.verb is Verb.RETRY and order.stage is Stage.RUNNING:
        said = "An attempt is already running. To start again with an instruction, use `fix:`."
        return CommandDecision(CommandAction.REPLY, said)
    waits_for_nothing = status.epoch and not status.attempt and not status.reason
    if order.verb is Verb.RETRY and status.stage is Stage.READY and waits_for_nothing:
        return CommandDecision(CommandAction.SHOW, "This issue is already queued.")
    return CommandDecision(CommandAction.OPEN_EPOCH, "New attempts start.")


def _decide_abort(order: PendingCommand, status: IssueStatus) -> CommandDecision:
    words = aborted(order)
    if status.stage is Stage.READY and status.epoch:
        return CommandDecision(CommandAction.STAND_DOWN, words)
    if status.stage is Stage.RESOLVED and status.reason == words:
        return CommandDecision(CommandAction.NOTHING, words)
    if order.stage is Stage.RUNNING:
        return CommandDecision(
            CommandAction.REPLY, "The attempt ended before Mulligan could stop it."
        )
    return CommandDecision(
        CommandAction.REPLY, "No attempt is running or queued, so there is nothing to stop."
    )
