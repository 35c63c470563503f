"""What was used of each budget, and what it means when one is used up (SPEC 13a). Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from mulligan.config.budget import Budget
from mulligan.domain.attempt import Evidence, Fault
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.spending import NOTHING, Allowance, Spent, spent_by, spent_in
from mulligan.retry.policy import ISSUE

REPOSITORY_DAY, DAY = "repository_day", "day"
NAMES: Mapping[str, str] = {
    ISSUE: "of this issue",
    REPOSITORY_DAY: "of this repository for the day",
    DAY: "of the day",
}


@dataclass(frozen=True, slots=True)
class Used:
    """What was used so far: by this attempt, by the issue, and on the day, here and everywhere.

    `own_day` is what the issue has used on the day.
    """

    attempt: Spent = NOTHING
    issue: Spent = NOTHING
    repository_day: Spent = NOTHING
    day: Spent = NOTHING
    own_day: Spent = NOTHING


def used_so_far(
    history: Sequence[WorkerResultMeta], now: Spent, repository: str, day: Mapping[str, Spent]
) -> Used:
    """Add up; `now` is this attempt, and among what the `day` has used, by repository."""
    return Used(
        attempt=now,
        issue=spent_by(history).plus(now),
        repository_day=day.get(repository, Spent()),
        day=reduce(Spent.plus, day.values(), Spent()),
    )


def spent_now(known: Evidence) -> Spent:
    """Add up what the runs of an attempt have used."""
    runs = (spent_in(each.run.facts) for each in known.rounds if each.run)
    return reduce(Spent.plus, runs, Spent())


def may_go_on(used: Used, budget: Budget) -> bool:
    """Tell whether a run is within every budget; the last cent may be used."""
    within_own = budget.attempt.allowance.covers(used.attempt)
    return within_own and all(allowed.covers(spent) for _, allowed, spent in _shared(used, budget))


def used_up(used: Used, budget: Budget, *, ran: bool = False) -> Fault | None:
    """Say which budget, other than the attempt's own, is used up; None where none is.

    One that is used to the last cent is so before a run, but a run that ended may have used it.
    """
    for name, allowed, spent in _shared(used, budget):
        if not allowed.covers(spent) or (not ran and allowed.after(spent).is_used_up):
            eats = name != ISSUE and not allowed.half.covers(used.own_day)
            told = _told(name, allowed, spent)
            return Fault(Outcome.OVER_BUDGET, told, budget=name, eats_budget=eats)
    return None


def _shared(used: Used, budget: Budget) -> Iterator[tuple[str, Allowance, Spent]]:
    yield ISSUE, budget.issue.allowance, used.issue
    yield REPOSITORY_DAY, budget.repository_day.allowance, used.repository_day
    yield DAY, budget.day.allowance, used.day


def _told(name: str, allowed: Allowance, spent: Spent) -> str:
    told = f"The budget {NAMES[name]} is used up: {_written(spent)} of {_allowed(allowed)}."
    if name == ISSUE:
        return f"{told} Raise budget.issue in mulligan.yml, then put the label on again."
    return f"{told} The next day begins at midnight UTC; budget.{name} in mulligan.yml sets it."


def _written(spent: Spent) -> str:
    return f"${spent.usd:.2f} and {spent.tokens} tokens"


def _allowed(allowance: Allowance) -> str:
    dollars = [] if allowance.usd is None else [f"${allowance.usd:.2f}"]
    tokens = [] if allowance.tokens is None else [f"{allowance.tokens} tokens"]
    return " and ".join([*dollars, *tokens])
