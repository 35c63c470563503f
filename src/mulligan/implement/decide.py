"""Decide what precedes and follows an attempt, and what follows reviews and commands. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import Self, assert_never

from mulligan.config.operator import Limits
from mulligan.config.policy import Escalation, Policy, ReviewSettings, WatchCi
from mulligan.domain.attempt import CHANGES_WITHDRAWN, SHUTDOWN
from mulligan.domain.command import OPENING, PendingCommand, Verb, aborted, skipped
from mulligan.domain.eligibility import (
    PAUSED,
    SETTLED_STAGES,
    TEMPORARY_RULES,
    UNCHANGED,
    Facts,
    changed_text,
    first_broken,
    opens_epoch,
)
from mulligan.domain.events import (
    AttemptCompleted,
    Authorised,
    CiFailed,
    Decided,
    FailedCheck,
    IssueSeen,
    ReviewReceived,
    ReviewsWithdrawn,
)
from mulligan.domain.feedback import MAX_REMARKS, Review
from mulligan.domain.issue import ReviewAct, Stage
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
    WaitForPullRequest,
)
from mulligan.domain.recorded_effects import BlockShown, Obstacle
from mulligan.domain.result import Rest, RestKind, WorkerResultMeta
from mulligan.domain.status import IssueStatus, Phase
from mulligan.domain.verification import Verification
from mulligan.implement.prompt.outcome_text import (
    GONE,
    OVERTAKEN,
    explain,
    pluralize,
    verification_text,
)
from mulligan.implement.result import base_dropped, revised
from mulligan.text.escape import one_line

# Before an attempt.


@dataclass(frozen=True, slots=True)
class Admission:
    """What to record of an issue, and why it must not be worked on (`refusal`; "" to continue).

    `rule` is the broken rule. `text_change` is who changed the text since the request.
    """

    seen: IssueSeen | None = None
    request: Authorised | None = None
    rule: str = ""
    refusal: str = ""
    text_change: str = ""


def decide_admission(facts: Facts) -> Admission:
    """Decide whether an issue may be worked on; the rules are in domain/eligibility.py.

    A new request opens an epoch, even while the issue is paused.
    """
    broken, act = first_broken(facts), facts.act
    rule = broken.rule if broken else ""
    rests = facts.status.stage in SETTLED_STAGES or not facts.status.epoch
    may_open = not broken or (rule == PAUSED and rests)
    return Admission(
        seen=_text_to_record(facts, is_admitted=not broken),
        request=Authorised.of(act) if act and may_open and opens_epoch(facts) else None,
        rule=rule,
        refusal=(broken.refusal or "") if broken else "",
        text_change=changed_text(facts) if rule == UNCHANGED else "",
    )


def _text_to_record(facts: Facts, *, is_admitted: bool) -> IssueSeen | None:
    """Return the text to record: when an act is first seen, and when work starts (TRUST-2)."""
    act, issue, status = facts.act, facts.issue, facts.status
    if act is None or not act.trusted or status.phase is not Phase.IDLE:
        return None
    is_changed = (status.text.sha256, status.text.title) != (issue.text_sha256, issue.title)
    if status.text.act == act.act and not (is_admitted and is_changed):
        return None
    return IssueSeen(
        title=issue.title,
        author=issue.author,
        url=issue.url,
        text_sha256=issue.text_sha256,
        act=str(act.act),
        labels=tuple(sorted(issue.labels - {facts.ready_label})),
    )


def decide_reopening(facts: Facts) -> Authorised | None:
    """Decide whether a newer request than the finished one opens its epoch (LABEL-6)."""
    broken, act = first_broken(facts), facts.act
    stands = broken is None or broken.rule in TEMPORARY_RULES
    return Authorised.of(act) if act and stands and opens_epoch(facts) else None


@dataclass(frozen=True, slots=True)
class Obstructed:
    """The worker lacks disk space or the agent; `is_shown`: the issue shows that already."""

    obstacle: Obstacle
    reason: str
    is_shown: bool = False


@dataclass(frozen=True, slots=True)
class AgentUnavailable:
    """The agent of the attempt rests until then, and others of the repository do not."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Start the attempt."""


Deferral = Obstructed | WaitForBudget | AgentUnavailable

Start = OpenPullRequest | Deferral | StartAttempt


@dataclass(frozen=True, slots=True)
class StartFacts:
    """What the start of an admitted attempt depends on, besides the issue.

    - `has_kept_commit`: the commit of the last attempt waits to be published; `verification` says
      which checks passed on it.
    - `agent_missing`, `disk_shortage` and `budget_used_up` are reasons, "" for none.
    - `at_once`: an operator requests the attempt now.
    """

    status: IssueStatus
    at_once: bool = False
    has_kept_commit: bool = False
    disk_shortage: str = ""
    has_worktree: bool = False
    budget_used_up: str = ""
    agent_unavailable: AgentUnavailable | None = None
    agent_missing: str = ""
    verification: str = ""

    @property
    def frees_disk(self) -> bool:
        """Return whether to delete the issue's own worktree before checking the disk."""
        return bool(self.disk_shortage) and self.has_worktree and not self.has_kept_commit


KEPT = "The commit of the last attempt was kept."


def decide_start(facts: StartFacts) -> Start:
    """Decide whether an admitted attempt may start, or what happens instead."""
    if facts.has_kept_commit:
        return OpenPullRequest(reason=f"{KEPT} {facts.verification}".rstrip())
    if facts.agent_missing:
        return _obstructed(Obstacle.AGENT, facts.agent_missing, facts.status)
    if facts.disk_shortage:
        return _obstructed(Obstacle.DISK, facts.disk_shortage, facts.status)
    if facts.budget_used_up:
        return WaitForBudget(reason=facts.budget_used_up)
    if facts.agent_unavailable and not facts.at_once:
        return facts.agent_unavailable
    return StartAttempt()


def _obstructed(obstacle: Obstacle, reason: str, status: IssueStatus) -> Obstructed:
    """Return this worker's obstacle; `is_shown` if the issue shows such an obstacle already.

    Otherwise, the workers of a fleet would replace each other's text.
    """
    shown = {(each.obstacle, each.epoch) for each in status.effects.all(BlockShown)}
    is_shown = status.obstacle is obstacle and (obstacle, status.epoch) in shown
    return Obstructed(obstacle, reason, is_shown)


# The decision after an attempt.

ISSUE_BUDGET = "issue"
"""The name of an issue's own budget; unlike a day's, it is never refilled."""

MAX_EXHAUSTED_DAYS = 2
"""Escalate once an issue has used up most of a day's budget on this many days of an epoch."""


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """The facts of one attempt on which the decision depends.

    `verification` names the checks that passed, if it succeeded.
    """

    outcome: Outcome
    reason: str = ""
    budget: str | None = None
    eats_budget: bool = False
    verification: str = ""
    rest: Rest | None = None
    keeps_pull: bool = False

    @classmethod
    def of(cls, meta: WorkerResultMeta) -> Self:
        """Read the facts from an attempt's record."""
        succeeded = meta.outcome is Outcome.SUCCEEDED
        return cls(
            outcome=meta.outcome,
            reason=meta.failure_reason,
            verification=verification_text(Verification.of(meta)) if succeeded else "",
            budget=meta.budget,
            eats_budget=meta.eats_budget,
            rest=meta.last_usage.rest if meta.last_usage else None,
            keeps_pull=meta.keeps_pull,
        )

    @property
    def concerns_all_issues(self) -> bool:
        """Return whether the agent failed as it would fail on any issue (OUTCOME-6)."""
        return (
            self.rest is not None
            and self.rest.kind is not RestKind.ASKED
            and self.outcome in {Outcome.DENIED, Outcome.MISCONFIGURED, Outcome.INFRASTRUCTURE}
        )

    @property
    def reason_sentence(self) -> str:
        """Return the reason as a sentence for people."""
        return explain(self.outcome, self.reason)

    @property
    def is_death(self) -> bool:
        """Return whether Mulligan was killed during the attempt, other than by a shutdown."""
        return self.outcome is Outcome.INTERRUPTED and self.reason != SHUTDOWN


def epoch_of(status: IssueStatus, history: Iterable[WorkerResultMeta]) -> list[EndedAttempt]:
    """Return the attempts of the current epoch, oldest first."""
    return [EndedAttempt.of(meta) for meta in history if meta.epoch == status.epoch]


def round_of(status: IssueStatus, history: Iterable[WorkerResultMeta]) -> list[EndedAttempt]:
    """Return the attempts that count together: those for the review, else of the epoch (PR-2)."""
    start = status.review_start or 0
    return epoch_of(status, (meta for meta in history if meta.attempt > start))


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
    """Decide what follows an attempt; `history` holds the earlier ones of its round, oldest first.

    Equal facts give equal decisions, so a restart can decide again.
    """
    if ended.concerns_all_issues:
        return Retry(
            reason=f"Not caused by this issue. {ended.reason_sentence}",
            backoff_step=1,
            not_before=ended.rest.until if ended.rest else None,
            agent_rests=True,
        )
    match ended.outcome:
        case Outcome.SUCCEEDED:
            return OpenPullRequest(reason=ended.verification)
        case Outcome.CANCELLED:
            return StandDown(reason=ended.reason_sentence, keeps_pull=ended.keeps_pull)
        case Outcome.OVER_BUDGET if ended.budget != ISSUE_BUDGET:
            return _after_daily_budget(ended, history)
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
        reason=f"This issue used up most of {key} on {taken}. Raise {key} in mulligan.yml, or split"
        " the issue."
    )


def _after_infrastructure(
    ended: EndedAttempt, history: Sequence[EndedAttempt], policy: RetryPolicy
) -> Decision:
    spent = count_spent(history, policy)
    if spent >= policy.max_issue_attempts:
        return Escalate(reason=_used_up(spent, [*history, ended]))
    faults = 1 + sum(
        past.outcome is Outcome.INFRASTRUCTURE and not past.concerns_all_issues for past in history
    )
    if faults > policy.infrastructure_retries:
        times = pluralize(faults, "time")
        return Escalate(
            reason=f"The environment failed {times}. The last failure: {ended.reason_sentence}"
        )
    return Retry(
        reason=f"Not caused by the agent. {ended.reason_sentence}",
        backoff_step=faults,
        not_before=ended.rest.until if ended.rest else None,
    )


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
    if last.is_death:
        times = pluralize(sum(past.is_death for past in epoch), "time")
        return f"Mulligan crashed {times} during this issue, and no attempt is left."
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


# When the situation has changed since the decision.


@dataclass(frozen=True, slots=True)
class CommitLost:
    """The verified commit of an attempt is lost (COMMIT-2)."""

    attempt: WorkerResultMeta


@dataclass(frozen=True, slots=True)
class ForeignPush:
    """Somebody pushed to the pull request while an attempt ran (PUBLISH-3)."""

    attempt: WorkerResultMeta


@dataclass(frozen=True, slots=True)
class BaseDropped:
    """A force-push removed the base of an attempt's work (WORKTREE-4)."""

    attempt: WorkerResultMeta


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The request is not valid any more; `text_change` names a person who changed the text."""

    reason: str
    text_change: str = ""


@dataclass(frozen=True, slots=True)
class TakenElsewhere:
    """Another installation of Mulligan has a pull request for the request."""

    reason: str


@dataclass(frozen=True, slots=True)
class PublicationRefused:
    """The push or the pull request is refused until a person acts (PUBLISH-1)."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClosedByOthers:
    """Somebody's open pull request closes the issue (HAND-1)."""

    reason: str


@dataclass(frozen=True, slots=True)
class ChangesWithdrawn:
    """The reviews that the work is for no longer request changes (PR-2)."""


LostWork = CommitLost | BaseDropped

Situation = (
    LostWork
    | ForeignPush
    | Withdrawn
    | ChangesWithdrawn
    | ClosedByOthers
    | TakenElsewhere
    | PublicationRefused
)
"""The situation that an effect found, if it differs from the decision's."""


def reconsider(found: Situation) -> Decided | AttemptCompleted:
    """Return the event that replaces a decision which the situation does not allow.

    Work that cannot be published gives its attempt another outcome, which costs no attempt and on
    which `decide` decides again.
    """
    match found:
        case CommitLost(attempt):
            return AttemptCompleted(meta=revised(attempt, Outcome.INTERRUPTED, GONE))
        case ForeignPush(attempt):
            return AttemptCompleted(meta=revised(attempt, Outcome.INTERRUPTED, OVERTAKEN))
        case BaseDropped(attempt):
            record = revised(attempt, Outcome.INFRASTRUCTURE, base_dropped(attempt))
            return AttemptCompleted(meta=record.model_copy(update={"base_dropped": True}))
        case Withdrawn(reason) | TakenElsewhere(reason):
            return Decided(decision=StandDown(reason=reason))
        case ChangesWithdrawn():
            return Decided(decision=StandDown(reason=CHANGES_WITHDRAWN, keeps_pull=True))
        case ClosedByOthers(reason):
            return Decided(decision=WaitForPullRequest(reason=reason))
        case PublicationRefused(reason):
            why = f"Mulligan could not publish the work: {reason}"
            return Decided(decision=Escalate(reason=why, fix=PUBLICATION_FIX))
        case _:
            assert_never(found)


PUBLICATION_FIX = "Fix this, then write /mulligan retry. Mulligan keeps the commit."


def is_foreign(tip: str | None, status: IssueStatus, last: WorkerResultMeta) -> bool:
    """Return whether the head of the remote branch is somebody else's commit (PUBLISH-3)."""
    return tip not in {None, last.head_sha, expected_remote_head(status, last)}


def expected_remote_head(status: IssueStatus, last: WorkerResultMeta | None) -> str | None:
    """Return the commit the remote branch must have: the one worked on, or the last one pushed."""
    if last and last.start_sha != last.base_sha:
        return last.start_sha
    return status.effects.pushed


NOT_VERIFIED = frozenset({Outcome.CHECKS_FAILED, Outcome.REJECTED})
"""Outcomes of a change that passed the guards but not the checks or the reviewer.

The guards do not run on the change of an agent that timed out or gave up.
"""


@dataclass(frozen=True, slots=True)
class ShownWork:
    """The change of an attempt that an escalation shows: in a draft, at its own ref, or both."""

    attempt: WorkerResultMeta
    head_sha: str
    in_draft: bool
    at_ref: bool


def decide_shown_work(last: WorkerResultMeta | None, settings: Escalation) -> ShownWork | None:
    """Decide whether people may see the change of the last attempt (ESCALATION-3).

    Never show a change that did not pass the guards: it may hold secrets. A draft shows unverified
    work only.
    """
    if last is None or last.head_sha is None:
        return None
    cannot_run = any(check.is_broken for check in last.checks) or bool(last.unreviewed)
    is_unclear = last.outcome is Outcome.MISCONFIGURED and cannot_run
    not_verified = last.outcome in NOT_VERIFIED or is_unclear
    if not (not_verified or last.outcome is Outcome.SUCCEEDED):
        return None
    in_draft = settings.draft_pr and not_verified
    return ShownWork(last, last.head_sha, in_draft, settings.push_work)


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
        """Return whether no attempt is left."""
        return self.used >= self.limit


def new_reviews(reviews: Sequence[Review], status: IssueStatus) -> list[Review]:
    """Pick the unhandled reviews; none unless at least one of them requests changes."""
    new = [each for each in reviews if each.act not in status.handled and not each.withdrawn]
    return new if any(each.requests_changes for each in new) else []


def is_settled(new: Sequence[Review], settings: ReviewSettings, now: datetime) -> bool:
    """Return whether the newest review is at least `settings.settle` old."""
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
        remarks=tuple(remark for each in new for remark in each.remarks)[:MAX_REMARKS],
        opens_epoch=opens and not refused,
        refused=refused,
    )


def decide_on_withdrawal(
    reviews: Sequence[Review], status: IssueStatus, epoch: Sequence[EndedAttempt]
) -> ReviewsWithdrawn | None:
    """Decide on requests for changes that were withdrawn; None if there is none (PR-2).

    The work ends if it is for nothing else: no other feedback is pending, and the request of the
    epoch is one of these reviews, or a pull request has answered it.
    """
    pending = status.feedback.received if status.feedback else ()
    gone = tuple(
        each.id
        for each in reviews
        if each.withdrawn
        and (each.id in pending or (each.requests_changes and each.act not in status.handled))
    )
    if not gone:
        return None
    is_all = status.feedback is not None and status.feedback.without(gone) is None
    is_answered = isinstance(status.request.act, ReviewAct) or any(
        past.outcome is Outcome.SUCCEEDED for past in epoch
    )
    return ReviewsWithdrawn(reviews=gone, ends_work=is_all and is_answered)


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
    REPLY = "reply"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class CommandDecision:
    """The action on a command, and the `answer` for the ledger and the comment."""

    action: CommandAction
    answer: str


def decide_command(
    order: PendingCommand, status: IssueStatus, *, is_open: bool, is_labelled: bool = False
) -> CommandDecision:
    """Decide what to do about a command, from the issue's stage when it was given and now.

    `is_labelled`: the issue carries the ready label, so that it is queued before its first epoch.
    """
    if status.is_overtaken(order) and not order.is_done:
        return CommandDecision(CommandAction.REPLY, _overtaken(order))
    match order.verb:
        case Verb.RETRY | Verb.FIX:
            return _decide_retry(order, status, is_open=is_open)
        case Verb.ABORT:
            return _decide_abort(order, status, is_labelled=is_labelled)
        case Verb.SKIP:
            return _decide_skip(order, status)
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
        message = "An attempt is already running. To start again with an instruction, use `fix:`."
        return CommandDecision(CommandAction.REPLY, message)
    waits_for_nothing = status.epoch and not status.attempt and not status.reason
    if order.verb is Verb.RETRY and status.stage is Stage.READY and waits_for_nothing:
        return CommandDecision(CommandAction.SHOW, "This issue is already queued.")
    return CommandDecision(CommandAction.OPEN_EPOCH, "New attempts start.")


def _decide_skip(order: PendingCommand, status: IssueStatus) -> CommandDecision:
    done = status.stage is Stage.RESOLVED and order.is_done
    return CommandDecision(CommandAction.SHOW if done else CommandAction.RESOLVE, skipped(order))


def _overtaken(order: PendingCommand) -> str:
    if order.verb in OPENING:
        return "The work was stopped after this command. To continue, write it again."
    return "New attempts were requested after this command. To stop them, write it again."


def _decide_abort(
    order: PendingCommand, status: IssueStatus, *, is_labelled: bool
) -> CommandDecision:
    words = aborted(order)
    if status.stage is Stage.RESOLVED and order.is_done:
        return CommandDecision(CommandAction.NOTHING, words)
    if status.stage is Stage.READY and (status.epoch or is_labelled):
        return CommandDecision(CommandAction.STAND_DOWN, words)
    if is_labelled and status.stage in SETTLED_STAGES:
        # The label requested new attempts, and is removed with the stage shown again.
        return CommandDecision(CommandAction.SHOW, words)
    if order.stage is Stage.RUNNING:
        return CommandDecision(
            CommandAction.REPLY, "The attempt ended before Mulligan could stop it."
        )
    return CommandDecision(
        CommandAction.REPLY, "No attempt is running or queued, so there is nothing to stop."
    )
