"""Keep account of what an attempt uses, and hold it to every budget while it runs (SPEC 13a)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date

from mulligan.domain.attempt import Evidence, Fault
from mulligan.domain.case import Case
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run, Spent, spent_in, spent_on
from mulligan.retry.budget import Used, may_go_on, spent_now, used_so_far, used_up
from mulligan.tools import Tools


@dataclass(frozen=True, slots=True)
class Purse:
    """What one run may use. What others have used of the day is read anew at every report."""

    run: Run
    case: Case
    before: Spent
    tools: Tools

    def meter(self, usage: AgentFacts) -> bool:
        """Note what the run has used so far; tell whether it may go on."""
        self.tools.accounts.record(self.run, usage)
        return may_go_on(self._used(self.before.plus(spent_in(usage))), self.tools.budget)

    def exhausted(self, known: Evidence) -> Fault | None:
        """Say which budget is used up, before or after the run; None where none is."""
        used = self._used(spent_now(known))
        return used_up(used, self.tools.budget, ran=known.run is not None)

    def _used(self, now: Spent) -> Used:
        day, history = self.run.day, self.case.history
        used = used_so_far(history, now, self.run.issue.repository, _on(day, self.tools))
        return replace(used, own_day=spent_on(day, history).plus(now))


def open_purse(case: Case, known: Evidence, tools: Tools) -> Purse:
    """Begin the account of the run that comes next in an attempt."""
    ref, number = case.issue.ref, case.status.number
    run = Run(ref, number, len(known.earlier), tools.clock.now(), tools.agent.name)
    return Purse(run, case, spent_now(known), tools)


def spent_today(ref: IssueRef, tools: Tools) -> Fault | None:
    """Say that nothing more may be used today for an issue's repository; None while it may."""
    today = tools.clock.now().astimezone(UTC).date()
    used = used_so_far((), Spent(), ref.repository, _on(today, tools))
    return used_up(used, tools.budget)


def _on(day: date, tools: Tools) -> Mapping[str, Spent]:
    """Ask the accounts only where a day has a budget."""
    limits = (tools.budget.day.allowance, tools.budget.repository_day.allowance)
    is_limited = any((each.usd, each.tokens) != (None, None) for each in limits)
    return tools.accounts.on(day) if is_limited else {}
