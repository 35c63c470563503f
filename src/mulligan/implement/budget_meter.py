"""Record what an attempt uses, and stop it when a budget is used up (BUDGET-1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from functools import reduce

from mulligan.config.settings import Budget
from mulligan.domain.attempt import AttemptState, Fault
from mulligan.domain.issue import IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts, WorkerResultMeta
from mulligan.domain.spending import (
    UNREPORTED,
    Allowance,
    Run,
    Spent,
    spending_text,
    spent_by,
    spent_in,
    spent_on,
)
from mulligan.implement.decide import ISSUE_BUDGET
from mulligan.implement.ports import CodingAgent, ReadContext


@dataclass(frozen=True, slots=True)
class Used:
    """The usage so far, one for each budget; `own_day` is what this issue used on the day."""

    attempt: Spent = UNREPORTED
    issue: Spent = UNREPORTED
    repository_day: Spent = UNREPORTED
    day: Spent = UNREPORTED
    own_day: Spent = UNREPORTED


@dataclass(frozen=True, slots=True)
class BudgetMeter:
    """Meters one run; the day's usage of other runs is read again at every report."""

    run: Run
    case: IssueContext
    spent_before: Spent
    context: ReadContext

    def meter(self, usage: AgentFacts) -> bool:
        """Record the usage of the run so far; return whether it may continue."""
        self.context.usage.record(self.run, usage)
        return may_go_on(self._used(self.spent_before.plus(spent_in(usage))), self.context.budget)

    @property
    def allowance(self) -> Allowance:
        """What the attempt's budget leaves for the run."""
        return self.context.budget.attempt.allowance.after(self.spent_before)

    def exhausted(self, known: AttemptState) -> Fault | None:
        """Return which budget is used up, before or after the run; None for none."""
        used = self._used(spent_now(known))
        return used_up(used, self.context.budget, ran=known.run is not None)

    def _used(self, now: Spent) -> Used:
        day, history = self.run.day, self.case.history
        used = used_so_far(history, now, self.run.issue.repository, _used_on(day, self.context))
        return replace(used, own_day=spent_on(day, history).plus(now))


def open_budget_meter(
    case: IssueContext, known: AttemptState, agent: CodingAgent, context: ReadContext
) -> BudgetMeter:
    """Start metering the next run of an attempt."""
    ref, number = case.issue.ref, case.status.number
    run = Run(ref, number, len(known.earlier), context.clock.now(), agent.name)
    return BudgetMeter(run, case, spent_now(known), context)


def spent_today(ref: IssueRef, context: ReadContext) -> Fault | None:
    """Return which of today's budgets is used up for an issue's repository; None for none."""
    today = context.clock.now().astimezone(UTC).date()
    used = used_so_far((), UNREPORTED, ref.repository, _used_on(today, context))
    return used_up(used, context.budget)


def spent_now(known: AttemptState) -> Spent:
    """Add up the usage of all runs of an attempt."""
    runs = (spent_in(each.run.facts) for each in known.rounds if each.run)
    return reduce(Spent.plus, runs, UNREPORTED)


# What was used, against every budget.

REPOSITORY_DAY, DAY = "repository_day", "day"

NAMES: Mapping[str, str] = {
    ISSUE_BUDGET: "of this issue",
    REPOSITORY_DAY: "of this repository for the day",
    DAY: "of the day",
}


def used_so_far(
    history: Sequence[WorkerResultMeta], now: Spent, repository: str, day: Mapping[str, Spent]
) -> Used:
    """Add up; `now` is this attempt's usage, `day` the day's by repository, `now` included."""
    return Used(
        attempt=now,
        issue=spent_by(history).plus(now),
        repository_day=day.get(repository, UNREPORTED),
        day=reduce(Spent.plus, day.values(), UNREPORTED),
    )


def _used_on(day: date, context: ReadContext) -> Mapping[str, Spent]:
    """Read the day's usage by repository; nothing is read if no day has a budget."""
    limits = (context.budget.day.allowance, context.budget.repository_day.allowance)
    is_limited = any((each.usd, each.tokens) != (None, None) for each in limits)
    return context.usage.used_on(day) if is_limited else {}


def may_go_on(used: Used, budget: Budget) -> bool:
    """Return whether a run is within every budget; exactly the limit is within."""
    within_own = budget.attempt.allowance.covers(used.attempt)
    return within_own and all(allowed.covers(spent) for _, allowed, spent in _shared(used, budget))


def used_up(used: Used, budget: Budget, *, ran: bool = False) -> Fault | None:
    """Return which budget, other than the attempt's own, is used up; None for none.

    Exactly the limit counts as used up before a run, but not after one (`ran`).
    """
    for name, allowed, spent in _shared(used, budget):
        if not allowed.covers(spent) or (not ran and allowed.after(spent).is_used_up):
            eats = name != ISSUE_BUDGET and not allowed.half.covers(used.own_day)
            reason = _describe_budget(name, allowed, spent)
            return Fault(Outcome.OVER_BUDGET, reason, budget=name, eats_budget=eats)
    return None


def _shared(used: Used, budget: Budget) -> Iterator[tuple[str, Allowance, Spent]]:
    yield ISSUE_BUDGET, budget.issue.allowance, used.issue
    yield REPOSITORY_DAY, budget.repository_day.allowance, used.repository_day
    yield DAY, budget.day.allowance, used.day


def _describe_budget(name: str, allowed: Allowance, spent: Spent) -> str:
    limit = spending_text(Spent(allowed.usd, allowed.tokens), " and ")
    used = spending_text(spent, " and ") or "nothing"
    message = f"The budget {NAMES[name]} is used up: {used} of {limit}."
    if name == ISSUE_BUDGET:
        return f"{message} Raise budget.issue in mulligan.yml, then add the label again."
    limit_key = f"budget.{name} in mulligan.yml sets the limit"
    return f"{message} The next day begins at midnight UTC; {limit_key}."
