"""The data of the pages: issues by who must act, usage, attempts. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import reduce

from mulligan.config.settings import AllowanceSettings, Budget
from mulligan.domain.command import Verb
from mulligan.domain.events import Escalated, IssueSeen, RecordedEvent
from mulligan.domain.explanation import QUEUED
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.result import CheckResult, SkippedCheck, WorkerResultMeta
from mulligan.domain.spending import UNREPORTED, Spent, spending_text, spent_by
from mulligan.domain.status import IssueStatus, Phase
from mulligan.implement.prompt.outcome_text import broken, failing
from mulligan.interfaces.dashboard.diff_view import DiffView
from mulligan.interfaces.dashboard.prompt_parts import PromptPart

MAX_LISTED = 8
"""Limit of issues in one list of the board."""

PAGE_SIZE = 50
"""Issues on one page of the list of all issues."""


class WaitsFor(StrEnum):
    """Reasons why a requested issue waits."""

    QUEUED = "queued"
    DUE = "due"
    PAUSED = "paused"


def waits_for(status: IssueStatus, now: datetime) -> WaitsFor | None:
    """Return the reason why an issue waits; None if it is worked on, settled or resolved."""
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
    """A list of issues, cut to the size of a page; `more` of all the `count` follow."""

    shown: tuple[IssueStatus, ...]
    count: int
    more: int


@dataclass(frozen=True, slots=True)
class Used:
    """The part of a daily budget that is used; `spent` is None before the day's first run."""

    name: str
    spent: Spent | None
    most: AllowanceSettings

    @property
    def text(self) -> str:
        """Return each amount that is reported or limited: `$0.31 of $5.00 · 52,131 tokens`."""
        limit = spending_text(Spent(self.most.usd, self.most.tokens), " and ")
        if self.spent is None:
            return f"nothing of {limit}" if limit else "nothing"
        spent = self.spent
        amounts = (
            ("cost", Spent(usd=spent.usd), Spent(usd=self.most.usd)),
            ("tokens", Spent(tokens=spent.tokens), Spent(tokens=self.most.tokens)),
        )
        parts = (
            _amount(name, spending_text(used), spending_text(most)) for name, used, most in amounts
        )
        return " · ".join(filter(None, parts)) or "not reported"

    @property
    def share(self) -> float | None:
        """Return the larger share of both limits, from 0 to 1; None without a limit."""
        spent = self.spent or UNREPORTED
        parts = [
            used / most
            for used, most in (
                (spent.usd or 0.0, self.most.usd),
                (spent.tokens or 0, self.most.tokens),
            )
            if most is not None
        ]
        return min(1.0, max(parts)) if parts else None


class ListName(StrEnum):
    """A list of issues that can be requested by its name."""

    ALL = ""
    ASKED = "asked"
    RUNNING = "running"
    WAITING = "waiting"
    REVIEW = "review"
    DONE = "done"


LIST_TITLES: Mapping[ListName, str] = {
    ListName.ALL: "All",
    ListName.ASKED: "Needs human review",
    ListName.RUNNING: "Running",
    ListName.WAITING: "Waiting",
    ListName.REVIEW: "In review",
    ListName.DONE: "Done",
}

LIST_OF_STAGE: Mapping[Stage, ListName] = {
    Stage.HITL: ListName.ASKED,
    Stage.RUNNING: ListName.RUNNING,
    Stage.READY: ListName.WAITING,
    Stage.REVIEW: ListName.REVIEW,
    Stage.RESOLVED: ListName.DONE,
}


def list_of(status: IssueStatus) -> ListName:
    """Return the list that an issue is in."""
    return ListName.RUNNING if is_under_way(status) else LIST_OF_STAGE[status.stage]


def matching(statuses: Iterable[IssueStatus], chosen: ListName, text: str, page: int) -> IssueList:
    """Return a page of the issues in a list that have all words of `text` in title or name."""
    words = text.casefold().split()

    def is_wanted(each: IssueStatus) -> bool:
        if chosen and list_of(each) is not chosen:
            return False
        return not words or all(
            word in f"{each.issue} {each.text.title}".casefold() for word in words
        )

    found = [each for each in statuses if is_wanted(each)]
    return _cut(found, (page - 1) * PAGE_SIZE, PAGE_SIZE)


def overview(statuses: Iterable[IssueStatus]) -> Mapping[ListName, IssueList]:
    """Sort all issues by who must act; keep their order, the longest known first."""
    found = defaultdict[ListName, list[IssueStatus]](list)
    for each in statuses:
        found[list_of(each)].append(each)
    return {name: _cut(found[name], 0, MAX_LISTED) for name in ListName}


def why_waiting(status: IssueStatus, now: datetime) -> str:
    """Return the reason why an issue waits, from the ledger only."""
    match waits_for(status, now):
        case WaitsFor.PAUSED:
            return f"Paused by {status.paused_by}. Resume it to continue."
        case WaitsFor.DUE:
            return status.reason
        case WaitsFor.QUEUED if status.feedback:
            return f"Its pull request needs another attempt. {QUEUED}"
        case _ if status.epoch:
            return status.reason or QUEUED
        case _:
            return status.reason or "Mulligan is checking who requested the work."


def _amount(name: str, used: str, limit: str) -> str:
    """Return what is used, and of what limit; empty if both are unknown."""
    if not limit:
        return used
    return f"{used} of {limit}" if used else f"{name} not reported, limit {limit}"


def used_today(day: Mapping[str, Spent], budget: Budget) -> tuple[Used, ...]:
    """Return today's usage: in total, and by repository if there are several or a budget is set."""
    spent = reduce(Spent.plus, day.values(), UNREPORTED) if day else None
    total = Used("All repositories", spent, budget.day)
    limited = budget.repository_day.usd is not None or budget.repository_day.tokens is not None
    each = [Used(name, spent, budget.repository_day) for name, spent in sorted(day.items())]
    return (total, *(each if limited or len(each) > 1 else ()))


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt on its issue's page; `files` are those still stored."""

    meta: WorkerResultMeta
    files: tuple[tuple[str, str], ...]
    diff: DiffView | None = None
    prompt: tuple[PromptPart, ...] = ()
    log: str = ""

    @property
    def spent(self) -> Spent:
        """Return its usage, including fix rounds."""
        return spent_by([self.meta])

    @property
    def red(self) -> tuple[CheckResult, ...]:
        """Return the checks that failed the attempt, and first those that cannot run."""
        return (*broken(self.meta.checks), *failing(self.meta.checks))

    @property
    def others(self) -> tuple[CheckResult, ...]:
        """Return the other checks."""
        return tuple(each for each in self.meta.checks if each not in self.red)


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """The attempt that has no record yet; `log` is the end of its output so far."""

    status: IssueStatus
    doing: str
    spent: Spent
    log: str = ""
    follow: str = ""
    files: tuple[tuple[str, str], ...] = ()

    @property
    def since(self) -> datetime | None:
        """Return when the attempt started."""
        return self.status.started_at


@dataclass(frozen=True, slots=True)
class Offer:
    """A command that is possible now; `meaning` says what it does.

    With a `warning`, the page shows it and asks for a confirmation.
    """

    verb: Verb
    meaning: str
    warning: str = ""


WITH_TEXT = frozenset({Verb.FIX, Verb.SKIP})
"""The commands that take a text: an instruction, or a reason."""

MEANINGS: Mapping[Verb, str] = {
    Verb.RETRY: "Start new attempts",
    Verb.FIX: "Start new attempts with the instruction",
    Verb.SKIP: "Stop all work on this issue",
    Verb.ABORT: "Stop the work; a retry continues it",
    Verb.PAUSE: "Start no further attempt until it is resumed",
    Verb.RESUME: "End the pause",
}
WARNINGS: Mapping[Verb, str] = {
    Verb.ABORT: "Mulligan stops the running attempt, or removes the issue from the queue.",
    Verb.SKIP: "Mulligan stops all work on this issue and removes its labels. An open pull request"
    " stays open.",
}
OFFERED: Mapping[ListName, tuple[Verb, ...]] = {
    ListName.ASKED: (Verb.RETRY, Verb.FIX, Verb.SKIP),
    ListName.RUNNING: (Verb.ABORT, Verb.FIX, Verb.SKIP),
    ListName.WAITING: (Verb.FIX, Verb.ABORT, Verb.SKIP),
    ListName.REVIEW: (Verb.RETRY, Verb.FIX, Verb.SKIP),
    ListName.DONE: (Verb.RETRY, Verb.FIX),
}


def offers(status: IssueStatus) -> tuple[Offer, ...]:
    """Return the commands that make sense for an issue now."""
    place = list_of(status)
    verbs = OFFERED[place]
    if status.paused_by:
        verbs = (Verb.RESUME, *verbs)
    elif place in {ListName.RUNNING, ListName.WAITING}:
        verbs = (*verbs, Verb.PAUSE)
    return tuple(Offer(verb, MEANINGS[verb], WARNINGS.get(verb, "")) for verb in verbs)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The last attempts side by side, and the names of their checks."""

    shown: tuple[WorkerResultMeta, ...]
    earlier: int
    checks: tuple[str, ...]

    def check(self, meta: WorkerResultMeta, name: str) -> CheckResult | SkippedCheck | None:
        """Return a check in an attempt, by its name."""
        found = (each for each in (*meta.checks, *meta.skipped_checks) if each.name == name)
        return next(found, None)


MAX_COMPARED = 8


def compared(history: Sequence[WorkerResultMeta]) -> Comparison:
    """Put the last attempts side by side."""
    shown = tuple(history[-MAX_COMPARED:])
    names = dict.fromkeys(
        check.name for meta in shown for check in (*meta.checks, *meta.skipped_checks)
    )
    return Comparison(shown, len(history) - len(shown), tuple(names))


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


def _cut(issues: Sequence[IssueStatus], begin: int, most: int) -> IssueList:
    shown = tuple(issues[begin : begin + most])
    return IssueList(shown, len(issues), max(0, len(issues) - begin - most))
