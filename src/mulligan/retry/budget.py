"""What an attempt may still use, and what it means when that is used up (SPEC 13a). Pure."""

from collections.abc import Sequence
from functools import reduce

from mulligan.config.budget import Budget
from mulligan.domain.attempt import Evidence, Fault
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.spending import Allowance, Spent, spent_by, spent_in, tightest
from mulligan.retry.policy import ISSUE


def allowance_of(history: Sequence[WorkerResultMeta], known: Evidence, budget: Budget) -> Allowance:
    """Give what the next run may use; `history` are the completed attempts at the issue."""
    now = _spent_now(known)
    left = budget.issue.allowance.after(spent_by(history).plus(now))
    return tightest(budget.attempt.allowance.after(now), left)


def used_up(history: Sequence[WorkerResultMeta], known: Evidence, budget: Budget) -> Fault | None:
    """Say that the issue's budget is used up, before or after a run; None where it is not."""
    allowance, spent = budget.issue.allowance, spent_by(history).plus(_spent_now(known))
    if allowance.covers(spent) and (known.run or not allowance.after(spent).is_used_up):
        return None
    told = f"The budget of this issue is used up: {_written(spent)} of {_allowed(allowance)}"
    reason = f"{told}. Raise budget.issue in mulligan.yml, then put the label on again."
    return Fault(Outcome.OVER_BUDGET, reason, budget=ISSUE)


def _spent_now(known: Evidence) -> Spent:
    runs = (spent_in(each.run.facts) for each in known.rounds if each.run)
    return reduce(Spent.plus, runs, Spent())


def _written(spent: Spent) -> str:
    return f"${spent.usd:.2f} and {spent.tokens} tokens"


def _allowed(allowance: Allowance) -> str:
    dollars = [] if allowance.usd is None else [f"${allowance.usd:.2f}"]
    tokens = [] if allowance.tokens is None else [f"{allowance.tokens} tokens"]
    return " and ".join([*dollars, *tokens])
