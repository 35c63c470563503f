"""The data of the pages: issues by who must act, usage, attempts. Pure."""

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
"""Limit of issues in one list."""


class WaitsFor(StrEnum):
    """Reasons why a requested issue waits."""

    QUEUED = "queued"
    DUE = "due"
    PAUSED = "paused"


def waits_for(status: IssueStatus, now: datetime) -> WaitsFor | None:
    """Return what an issue waits for; None if it is worked on, rests, or is resolved."""
    if status.stage is not Stage.READY or status.phase is not Phase.IDLE:
        return None
    if status.paused_by:
        return WaitsFor.PAUSED
    return WaitsFor.DUE if status.due is not None and status.due > now else WaitsFor.QUEUED


def is_under_way(status: IssueStatus) -> bool:
    """Return whether an attempt runs, or its decision is not completely carried out."""
    return status.phase is not Phase.IDLE or status.stage is Stage.RUNNING


@dataclass(frozen=True, slots=True)
class IssueList:
    """A list of issues, cut to the size of a page."""

    shown: tuple[IssueStatus, ...]
    more: int = 0

    @property
    def count(self) -> int:
        """Count all issues of the list, including those not shown."""
        return len(self.shown) + self.more


@dataclass(frozen=True, slots=True)
class Used:
    """The part of a daily budget that is used; `most` is None if there is no limit."""

    name: str
    spent: Spent
    most: AllowanceSettings

    @property
    def share(self) -> float | None:
        """Return the larger share of both limits, from 0 to 1; None without a limit."""
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
    """All issues, by who must act."""

    asked: IssueList
    running: IssueList
    waiting: IssueList
    review: IssueList
    resolved: int


def overview(statuses: Sequence[IssueStatus]) -> Overview:
    """Sort all issues by who must act; keep their order, the longest known first."""
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
    """Return what an issue waits for, as far as the ledger knows."""
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
    """Return today's usage: in total, and by repository if there are several or a budget is set."""
    total = Used("Everything", reduce(Spent.plus, day.values(), Spent()), budget.day)
    limited = budget.repository_day.usd is not None or budget.repository_day.tokens is not None
    each = [Used(name, spent, budget.repository_day) for name, spent in sorted(day.items())]
    return (total, *(each if limited or len(each) > 1 else ()))


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt on its issue's page; `files` are those still stored."""

    meta: WorkerResultMeta
    files: tuple[tuple[str, str], ...]
    is_last: bool = False

    @property
    def spent(self) -> Spent:
        """Return its usage, including fix rounds."""
        return spent_by([self.meta])

    @property
    def red(self) -> tuple[CheckResult, ...]:
        """Return the checks that failed the attempt."""
        return failing(self.meta.checks)

    @property
    def others(self) -> tuple[CheckResult, ...]:
        """Return the other checks."""
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
    """Return the issue's address on GitHub; empty if none was recorded."""
    seen = [each.event.url for each in events if isinstance(each.event, IssueSeen)]
    return next((url for url in reversed(seen) if url), "")


def asked_at(events: Sequence[RecordedEvent]) -> str:
    """Return the address of the last escalation comment; empty if there is none."""
    asked = [each.event.comment for each in events if isinstance(each.event, Escalated)]
    return asked[-1] if asked else ""


def page_of(ref: IssueRef) -> str:
    """Return the path of an issue's page; repository names are safe in paths."""
    return f"/issues/{ref.repository}/{ref.number}"


def _issue_list(issues: Sequence[IssueStatus]) -> IssueList:
    return IssueList(tuple(issues[:MAX_LISTED]), max(0, len(issues) - MAX_LISTED))
