"""What is counted of the work, by tables of what happened."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.errors import UsageError
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.stats import (
    AttemptEntry,
    AttemptPosition,
    Cost,
    Failure,
    FrequentFailure,
    LedgerHistory,
    Milestone,
    MilestoneKind,
    RetryContextEntry,
    Stats,
    cost_of,
    summarise,
)

pytestmark = pytest.mark.pure

NOON = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
ONE, TWO, OTHER = IssueRef("a/b", 1), IssueRef("a/b", 2), IssueRef("x/y", 1)
RED, GREEN = Outcome.CHECKS_FAILED, Outcome.SUCCEEDED


def tried(ref: IssueRef, number: int, outcome: Outcome = RED, epoch: int = 1) -> AttemptEntry:
    """Give an attempt that cost a dollar and a hundred tokens."""
    at = NOON + number * HOUR
    return AttemptEntry(ref, epoch, number, at, outcome, "claude", 1, costs=(1.0,), tokens=(100,))


def at(ref: IssueRef, turn: MilestoneKind, hours: float) -> Milestone:
    when = NOON + hours * HOUR
    return Milestone(ref, turn, when, when - HOUR / 2 if turn is MilestoneKind.ASKED else None)


def informed(each: AttemptEntry, size: int, *sources: str) -> AttemptEntry:
    """Give an attempt with a retry context of `size` bytes, a quarter of them the diff."""
    sections = {"actionable_feedback": 3 * size // 4, "previous_changes": size // 4}
    return replace(each, context=RetryContextEntry(size, sections, sources))


def counted(
    tries: list[AttemptEntry],
    moments: list[Milestone] | None = None,
    stages: list[tuple[IssueRef, Stage]] | None = None,
    since: datetime | None = None,
) -> Stats:
    return summarise(
        LedgerHistory(NOON, tries, moments or [], stages or []), NOON + 99 * HOUR, since
    )


def test_an_empty_ledger_has_no_beginning() -> None:
    found = summarise(LedgerHistory(None, [], [], []), NOON, NOON - HOUR)
    assert found.since is None
    assert found.overall.cost == Cost(None, None, 0, 0)
    assert (found.overall.to_merge, found.places, found.agents) == (None, (), ())


@pytest.mark.parametrize(
    ("since", "begin"),
    [(None, NOON), (NOON - HOUR, NOON), (NOON + HOUR, NOON + HOUR)],
)
def test_it_begins_where_the_ledger_or_the_span_does(
    since: datetime | None, begin: datetime
) -> None:
    assert counted([], since=since).since == begin


def test_attempts_are_numbered_in_their_epoch_and_free_ones_left_out() -> None:
    found = counted(
        [
            tried(ONE, 1, Outcome.INFRASTRUCTURE),
            tried(ONE, 2),
            tried(ONE, 3, GREEN),
            tried(ONE, 4, GREEN, epoch=2),
            tried(TWO, 1),
        ]
    )
    assert found.places == (AttemptPosition(1, 3, 1), AttemptPosition(2, 1, 1))
    assert found.outcomes == {RED: 2, GREEN: 2, Outcome.INFRASTRUCTURE: 1}
    assert (found.overall.attempts, found.overall.counted, found.overall.succeeded) == (5, 4, 2)
    assert found.overall.tried == 2


def test_an_attempt_keeps_its_place_whatever_span_is_asked_for() -> None:
    found = counted([tried(ONE, 1), tried(ONE, 2, GREEN)], since=NOON + 2 * HOUR)
    assert found.places == (AttemptPosition(2, 1, 1),)
    assert found.overall.attempts == 1


@pytest.mark.parametrize(
    ("tries", "cost"),
    [
        (
            [tried(ONE, 1), replace(tried(ONE, 2), costs=(2.0, 0.5), tokens=(1, 2), runs=2)],
            (3.5, 103, 0, 0),
        ),
        ([tried(ONE, 1), replace(tried(ONE, 2), costs=(), tokens=())], (1.0, 100, 1, 1)),
        ([replace(tried(ONE, 1), costs=(2.0,), runs=2)], (2.0, 100, 1, 1)),
        ([replace(tried(ONE, 1), costs=())], (None, 100, 1, 0)),
        ([replace(tried(ONE, 1), tokens=())], (1.0, None, 0, 1)),
        ([replace(tried(ONE, 1), agent="", runs=0, costs=(), tokens=())], (None, None, 0, 0)),
    ],
)
def test_what_was_not_told_is_unknown_and_never_nothing(
    tries: list[AttemptEntry], cost: tuple[float | None, int | None, int, int]
) -> None:
    assert cost_of(tries) == Cost(*cost)


@pytest.mark.parametrize(
    ("usd", "count", "each"), [(3.0, 2, 1.5), (3.0, 0, None), (None, 2, None), (0.0, 2, 0.0)]
)
def test_a_cost_is_divided_where_both_are_known(
    usd: float | None, count: int, each: float | None
) -> None:
    assert Cost(usd, 0, 0, 0).per(count) == each


def test_a_merged_pull_request_costs_all_that_was_spent_by_merges() -> None:
    """What failed issues cost is in it."""
    moments = [at(ONE, MilestoneKind.ASKED, 0), at(ONE, MilestoneKind.MERGED, 5)]
    overall = counted([tried(ONE, 1, GREEN), tried(TWO, 1), tried(TWO, 2)], moments).overall
    assert overall.cost.per(overall.merged) == 3.0


def test_issues_are_counted_once_by_what_became_of_them() -> None:
    moments = [
        at(ONE, MilestoneKind.ASKED, 0),
        at(ONE, MilestoneKind.PUBLISHED, 1),
        at(ONE, MilestoneKind.PUBLISHED, 2),
        at(ONE, MilestoneKind.MERGED, 3),
        at(TWO, MilestoneKind.ASKED, 0),
        at(TWO, MilestoneKind.ASKED, 1),
        at(TWO, MilestoneKind.CLOSED, 2),
        at(OTHER, MilestoneKind.ASKED, 0),
        at(OTHER, MilestoneKind.ESCALATED, 1),
        at(OTHER, MilestoneKind.SKIPPED, 1),
        at(IssueRef("x/y", 2), MilestoneKind.LEFT, 1),
    ]
    stages = [(ONE, Stage.RESOLVED), (TWO, Stage.HITL), (OTHER, Stage.HITL)]
    found = counted([], moments, stages)
    of = found.overall
    assert (of.taken, of.published, of.merged, of.closed, of.left) == (3, 1, 1, 1, 2)
    assert (of.skipped, of.escalated) == (1, 1)
    assert of.stages == {Stage.RESOLVED: 1, Stage.HITL: 2}
    assert list(found.repositories) == ["a/b", "x/y"]
    assert [each.taken for each in found.repositories.values()] == [2, 1]
    late = counted([], moments, stages, since=NOON + 2 * HOUR).overall
    assert (late.taken, late.published, late.merged, late.closed, late.left) == (0, 1, 1, 1, 0)


def test_times_run_from_the_first_request_to_the_first_pull_request_and_its_merge() -> None:
    moments = [
        at(ONE, MilestoneKind.ASKED, 0),
        at(TWO, MilestoneKind.ASKED, 1),
        at(ONE, MilestoneKind.ASKED, 1),
        at(ONE, MilestoneKind.ESCALATED, 1.5),
        at(ONE, MilestoneKind.PUBLISHED, 2),
        at(TWO, MilestoneKind.PUBLISHED, 2),
        at(ONE, MilestoneKind.PUBLISHED, 4),
        at(ONE, MilestoneKind.MERGED, 5),
        at(TWO, MilestoneKind.CLOSED, 9),
        at(ONE, MilestoneKind.ASKED, 20),
        at(ONE, MilestoneKind.MERGED, 22),
        at(OTHER, MilestoneKind.PUBLISHED, 1),
        at(OTHER, MilestoneKind.MERGED, 1),
    ]
    of = counted([], moments).overall
    assert of.to_pull_request == 2 * HOUR
    assert of.to_merge == 4 * HOUR
    late = counted([], moments, since=NOON + 6 * HOUR).overall
    assert (late.to_pull_request, late.to_merge) == (None, 2.5 * HOUR)


def test_what_fails_most_often_comes_first() -> None:
    add, sub, lint = (
        Failure("tests", "f1", "test_add"),
        Failure("tests", "f2", "test_sub"),
        Failure("lint"),
    )
    found = counted(
        [
            replace(tried(ONE, 1), failures=(add, lint)),
            replace(tried(ONE, 2), failures=(sub,)),
            replace(tried(TWO, 1), failures=(add,)),
            replace(tried(OTHER, 1), failures=(add,)),
        ]
    )
    assert found.checks == (
        FrequentFailure("a/b", "tests", attempts=3, issues=2),
        FrequentFailure("a/b", "lint", attempts=1, issues=1),
        FrequentFailure("x/y", "tests", attempts=1, issues=1),
    )
    assert [(each.summary, each.attempts, each.issues) for each in found.failures] == [
        ("test_add", 2, 2),
        ("test_sub", 1, 1),
        ("test_add", 1, 1),
    ]


def test_agents_are_told_apart_and_attempts_without_one_left_out() -> None:
    found = counted(
        [
            tried(ONE, 1),
            replace(tried(ONE, 2, GREEN), agent="codex", costs=()),
            replace(tried(TWO, 1, Outcome.INFRASTRUCTURE), agent="", runs=0, costs=(), tokens=()),
            tried(TWO, 2, Outcome.OVER_BUDGET),
        ]
    )
    assert [
        (each.name, each.attempts, each.counted, each.succeeded, each.cost.usd)
        for each in found.agents
    ] == [("claude", 2, 1, 0, 2.0), ("codex", 1, 1, 1, None)]


def test_a_retry_follows_an_attempt_that_failed_and_counted() -> None:
    tries = [
        tried(ONE, 1),
        tried(ONE, 2, Outcome.INFRASTRUCTURE),
        tried(ONE, 3),
        tried(ONE, 4, GREEN),
        # A review asked for changes: no retry.
        tried(ONE, 5),
        tried(TWO, 1),
        tried(TWO, 2, epoch=2),
        tried(OTHER, 1, GREEN),
    ]
    found = counted(tries)
    of = found.retries
    assert (of.made, of.succeeded, of.issues, of.issues_succeeded) == (3, 1, 2, 1)
    assert [(each.issue, each.attempts, each.retries) for each in found.issues] == [
        (ONE, 5, 2),
        (TWO, 2, 1),
        (OTHER, 1, 0),
    ]
    late = counted(tries, since=NOON + 4 * HOUR)
    assert (late.retries.made, late.retries.succeeded) == (1, 1)
    assert [(each.issue, each.attempts, each.retries) for each in late.issues] == [(ONE, 2, 1)]


def test_an_issue_has_its_last_outcome_its_stage_and_its_cost() -> None:
    found = counted([tried(ONE, 1), tried(ONE, 2, GREEN)], stages=[(ONE, Stage.REVIEW)])
    (of,) = found.issues
    assert (of.outcome, of.stage, of.cost.usd) == (GREEN, Stage.REVIEW, 2.0)


def test_retry_contexts_have_a_mean_size_and_shares_and_succeed_by_kind_of_feedback() -> None:
    tries = [
        tried(ONE, 1),
        informed(tried(ONE, 2), 4000, "check:tests", "check:lint", "diff"),
        informed(tried(ONE, 3, Outcome.INFRASTRUCTURE), 4000, "check:tests"),
        informed(tried(ONE, 4, GREEN), 2000, "guidance", "check:tests"),
    ]
    of = counted(tries).retries
    assert (of.contexts, of.mean_bytes) == (3, 3333)
    assert of.sections == {"actionable_feedback": 7500, "previous_changes": 2500}
    assert [(each.feedback, each.attempts, each.succeeded) for each in of.feedback] == [
        ("check", 2, 1),
        ("diff", 1, 0),
        ("guidance", 1, 1),
    ]
    assert counted(tries, since=NOON + 4 * HOUR).retries.mean_bytes == 2000
    assert counted(tries[:1]).retries.mean_bytes is None


def test_weeks_begin_on_monday_and_have_no_gap() -> None:
    sunday = datetime(2026, 11, 1, 23, 59, tzinfo=UTC)
    found = counted(
        [
            replace(tried(ONE, 1), at=sunday),
            replace(tried(ONE, 2, GREEN), at=sunday + 24 * HOUR * 15),
            replace(tried(TWO, 1, Outcome.INFRASTRUCTURE), at=sunday),
        ],
        [Milestone(ONE, MilestoneKind.MERGED, sunday + 24 * HOUR * 15)],
    )
    assert [
        (f"{each.monday:%m-%d}", each.succeeded, each.failed, each.free, each.merged)
        for each in found.weeks
    ] == [
        ("10-26", 0, 1, 1, 0),
        ("11-02", 0, 0, 0, 0),
        ("11-09", 0, 0, 0, 0),
        ("11-16", 1, 0, 0, 1),
    ]
    assert counted([]).weeks == ()
    long = counted([tried(ONE, 1), replace(tried(ONE, 2), at=NOON + 24 * HOUR * 1000)])
    assert len(long.weeks) == 26


def test_labels_are_counted_by_the_issues_that_have_them() -> None:
    history = LedgerHistory(
        NOON,
        [
            replace(tried(ONE, 1), took=HOUR),
            replace(tried(ONE, 2, GREEN), took=3 * HOUR),
            tried(TWO, 1),
            tried(OTHER, 1),
        ],
        [Milestone(ONE, MilestoneKind.MERGED, NOON)],
        [],
        {ONE: ("bug", "ui"), TWO: ("bug",)},
    )
    found = summarise(history, NOON + HOUR).labels
    assert [(each.name, each.attempts, each.merged, each.took) for each in found] == [
        ("bug", 3, 1, 2 * HOUR),
        ("ui", 2, 1, 2 * HOUR),
    ]
    of_one = summarise(history, NOON + HOUR, label="UI")
    assert (of_one.label, of_one.overall.attempts, of_one.overall.merged) == ("UI", 2, 1)
    assert [each.issue for each in of_one.issues] == [ONE]
    assert summarise(history, NOON + HOUR, NOON, "bug").overall.attempts == 3
    for name, hint in (("bog", "Did you mean 'bug'?"), ("?", "`mulligan stats` lists the labels")):
        with pytest.raises(UsageError, match=re.escape(hint)):
            summarise(history, NOON, label=name)


def test_durations_are_in_the_first_bucket_that_fits() -> None:
    times = (timedelta(seconds=59), timedelta(minutes=1), HOUR, 2 * HOUR)
    found = counted([replace(tried(ONE, n), took=took) for n, took in enumerate(times)]).durations
    assert [each.attempts for each in found] == [1, 1, 0, 0, 0, 0, 0, 1, 1]
    assert counted([tried(ONE, 1)]).durations == ()


def test_the_time_of_attempts_is_added_up_by_step_and_for_those_that_failed() -> None:
    steps = {"agent": HOUR / 2, "wait": HOUR}
    free = replace(tried(ONE, 1, Outcome.INFRASTRUCTURE), took=HOUR)
    red = replace(tried(ONE, 2), took=2 * HOUR, steps=steps)
    green = replace(tried(ONE, 3, GREEN), took=3 * HOUR, steps={"agent": 2 * HOUR})
    found = counted([free, red, green, tried(TWO, 1)]).times
    assert (found.attempts, found.failed) == (6 * HOUR, 2 * HOUR)
    assert [*found.steps.items()] == [("agent", 2.5 * HOUR), ("wait", HOUR)]
    assert counted([]).times.steps == {}
