"""A month of work at two repositories, as statistics see it, for tests and for people to look at.

`python tests/world/sample_history.py FILE` writes the page of docs/images/stats.png.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.stats import (
    AttemptEntry,
    Failure,
    LedgerHistory,
    Milestone,
    MilestoneKind,
    RetryContextEntry,
    summarise,
)
from mulligan.interfaces.cli.stats import write_page

BEGIN = datetime(2026, 10, 20, 8, 0, tzinfo=UTC)
END = BEGIN + timedelta(days=31)
RED = (
    Failure("tests", "f1", "tests/test_rates.py::test_round_half_up"),
    Failure("lint", "f2", "src/billing/rates.py:41:89: E501 Line too long"),
    Failure("tests", "f3", "tests/test_export.py::test_empty_month"),
    Failure("types", "f4", 'src/export/csv.py:17: "None" has no attribute "rows"'),
)
OUTCOMES_BY_ISSUE = (
    *([Outcome.SUCCEEDED],) * 11,
    *([Outcome.CHECKS_FAILED, Outcome.SUCCEEDED],) * 6,
    *([Outcome.CHECKS_FAILED, Outcome.CHECKS_FAILED, Outcome.SUCCEEDED],) * 2,
    *([Outcome.CHECKS_FAILED] * 3,) * 2,
    [Outcome.ZERO_COMMIT, Outcome.CHECKS_FAILED, Outcome.SCOPE_VIOLATION],
    [Outcome.INFRASTRUCTURE, Outcome.SUCCEEDED],
    [Outcome.BLOCKED],
    [Outcome.AGENT_TIMED_OUT, Outcome.SUCCEEDED],
)
"""The outcomes of the attempts at each issue."""


def sample_month() -> LedgerHistory:
    """Give the month; of every ninth attempt the cost is not known."""
    tries, moments = list[AttemptEntry](), list[Milestone]()
    stages, labels = list[tuple[IssueRef, Stage]](), dict[IssueRef, tuple[str, ...]]()
    for place, outcomes in enumerate(OUTCOMES_BY_ISSUE):
        ref = IssueRef("acme/billing" if place % 3 else "acme/website", 100 + place)
        at = BEGIN + timedelta(hours=28 * place)
        moments.append(Milestone(ref, MilestoneKind.ASKED, at, asked_at=at))
        for number, outcome in enumerate(outcomes, start=1):
            at += timedelta(minutes=11 + 7 * place % 23)
            tries.append(attempt(ref, number, at, outcome, place))
        labels[ref] = ("bug", "billing") if place % 3 else ("enhancement",)
        stages.append((ref, _end(ref, at, place, outcomes[-1], moments)))
    return LedgerHistory(BEGIN, tries, moments, stages, labels)


def attempt(ref: IssueRef, number: int, at: datetime, outcome: Outcome, place: int) -> AttemptEntry:
    ran = outcome is not Outcome.INFRASTRUCTURE
    told = ran and (place + number) % 9 > 0
    took = timedelta(seconds=95 + 137 * (place + number) % 2400)
    steps = {"wait": took / 4, "agent": took * 0.8, "checks": took * 0.15, "other": took * 0.05}
    failures = (RED[(place + number) % 4],) if outcome is Outcome.CHECKS_FAILED else ()
    return AttemptEntry(
        issue=ref,
        epoch=1,
        number=number,
        at=at,
        outcome=outcome,
        agent=("claude", "codex")[place % 4 == 0] if ran else "",
        runs=int(ran),
        costs=((0.31 + 0.07 * (place % 7)) * number,) if told else (),
        tokens=(180_000 + 9_000 * place,) if ran else (),
        failures=failures,
        context=_context(number, place) if number > 1 else None,
        took=took if ran else None,
        steps=steps if ran else {},
    )


def _context(number: int, place: int) -> RetryContextEntry:
    sections = {
        "what_went_wrong": 240 + 10 * place,
        "actionable_feedback": 2100 + 130 * place,
        "previous_changes": 1500 + 90 * place,
        **({"prior_attempts": 180 * number} if number > 2 else {}),
    }
    sources = ("check:tests" if place % 3 else "outcome", *(("verifier",) * (place % 4 == 1)))
    return RetryContextEntry(sum(sections.values()), sections, (*sources, "diff"))


def _end(
    ref: IssueRef, at: datetime, place: int, outcome: Outcome, moments: list[Milestone]
) -> Stage:
    if outcome is not Outcome.SUCCEEDED:
        moments.append(Milestone(ref, MilestoneKind.ESCALATED, at))
        return Stage.HITL
    moments.append(Milestone(ref, MilestoneKind.PUBLISHED, at))
    if place % 6 == 5:
        return Stage.REVIEW
    turn = MilestoneKind.CLOSED if place % 8 == 7 else MilestoneKind.MERGED
    moments.append(Milestone(ref, turn, at + timedelta(hours=3 + 5 * place % 40)))
    return Stage.RESOLVED


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(write_page(summarise(sample_month(), END)), encoding="utf-8")
