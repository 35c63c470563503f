"""The data of the pages: issues sorted by who has to act, usage, attempts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import reduce

from mulligan.config.settings import AllowanceSettings, Budget
from mulligan.domain.events import Escalated, IssueSeen, RecordedEvent
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.spending import Spent, spent_by
from mulligan.domain.status import IssueStatus, Phase
from mulligan.implement.prompt.outcome_text import failing

MAX_LISTED = 100
"""Issues that one list shows."""


class WaitsFor(StrEnum):
    """Reasons why a requested issue waits."""

    QUEUED = "queued"
    DUE = "due"
    PAUSED = "paused"


def waits_for(status: IssueStatus, now: datetime) -> WaitsFor | None:
    """Say what an issue waits for; None where it is worked on, rests, or is done with."""
    if status.stage is not Stage.READY or status.phase is not Phase.IDLE:
        return None
    if status.paused_by:
        return WaitsFor.PAUSED
    return WaitsFor.DUE if status.due is not None and status.due > now else WaitsFor.QUEUED


def is_under_way(status: IssueStatus) -> bool:
    """Tell whether an attempt runs, or what it came to is not carried out yet."""
    return status.phase is not Phase.IDLE or status.stage is Stage.RUNNING


@dataclass(frozen=True, slots=True)
class IssueList:
    """A list of issues, cut to what a page can show."""

    shown: tuple[IssueStatus, ...]
    more: int = 0

    @property
    def count(self) -> int:
        """Count all that belong to it."""
        return len(self.shown) + self.more


@dataclass(frozen=True, slots=True)
class Used:
    """What was used of a budget today; `most` is None where there is no limit."""

    name: str
    spent: Spent
    most: AllowanceSettings

    @property
    def share(self) -> float | None:
        """Give the fuller of both, as a part of 1; None without a limit."""
        parts = [
            used / most
            for used, most in (
                (self.spent.usd, self.most.usd),
                (self.spent.tokens, self.most.tokens),
            )
            if most is not None
        ]
        return min(1.0, max(parts)) if parts else None


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything there is, by who has to act."""

    asked: IssueList
    running: IssueList
    waiting: IssueList
    review: IssueList
    resolved: int


def overview(statuses: Sequence[IssueStatus]) -> Overview:
    """Sort all issues; those that ask for a person longest known first, as they come."""
    under_way = [each for each in statuses if is_under_way(each)]
    rest = [each for each in statuses if not is_under_way(each)]
    by_stage = {stage: [each for each in rest if each.stage is stage] for stage in Stage}
    return Overview(
        asked=_issue_list(by_stage[Stage.HITL]),
        running=_issue_list(under_way),
        waiting=_issue_list(by_stage[Stage.READY]),
        review=_issue_list(by_stage[Stage.REVIEW]),
        resolved=len(by_stage[Stage.RESOLVED]),
    )


def why_waiting(status: IssueStatus, now: datetime) -> str:
    """Say what an issue waits for, as far as the ledger knows."""
    match waits_for(status, now):
        case WaitsFor.PAUSED:
            return f"{status.paused_by} paused it; /mulligan resume continues it."
        case WaitsFor.DUE:
            return status.reason
        case WaitsFor.QUEUED if status.feedback:
            return "Its pull request needs another attempt. A worker starts it next."
        case _ if status.epoch:
            return status.reason or "A worker starts it next."
        case _:
            return status.reason or "Mulligan is checking who requested the work."


def used_today(day: Mapping[str, Spent], budget: Budget) -> tuple[Used, ...]:
    """Say what was used today: of all, and by repository where several did or a budget is set."""
    total = Used("Everything", reduce(Spent.plus, day.values(), Spent()), budget.day)
    limited = budget.repository_day.usd is not None or budget.repository_day.tokens is not None
    each = [Used(name, spent, budget.repository_day) for name, spent in sorted(day.items())]
    return (total, *(each if limited or len(each) > 1 else ()))


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt as the page of its issue shows it; `files` are those that are still kept."""

    meta: WorkerResultMeta
    files: tuple[tuple[str, str], ...]
    is_last: bool = False

    @property
    def spent(self) -> Spent:
        """Give what it used, fix rounds among it."""
        return spent_by([self.meta])

    @property
    def red(self) -> tuple[CheckResult, ...]:
        """Give the checks that failed it."""
        return failing(self.meta.checks)

    @property
    def others(self) -> tuple[CheckResult, ...]:
        """Give the checks that did not."""
        return tuple(each for each in self.meta.checks if not each.fails)


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """The attempt that has no record yet."""

    number: int
    attempt: int
    since: datetime | None
    doing: str
    spent: Spent
    files: tuple[tuple[str, str], ...]


def address_of(events: Sequence[RecordedEvent]) -> str:
    """Find where the issue is on GitHub; empty where nothing was recorded of that."""
    seen = [each.event.url for each in events if isinstance(each.event, IssueSeen)]
    return next((url for url in reversed(seen) if url), "")


def asked_at(events: Sequence[RecordedEvent]) -> str:
    """Find the comment of the last escalation; empty if there is none."""
    asked = [each.event.comment for each in events if isinstance(each.event, Escalated)]
    return asked[-1] if asked else ""


def page_of(ref: IssueRef) -> str:
    """Give the path of an issue's page; the names of repositories are safe in paths."""
    return f"/issues/{ref.repository}/{ref.number}"


def _issue_list(issues: Sequence[IssueStatus]) -> IssueList:
    return IssueList(tuple(issues[:MAX_LISTED]), max(0, len(issues) - MAX_LISTED))
