"""Which due issue goes first, and which may start beside others."""

from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.domain.order import in_order, is_due, may_start, most_urgent_first, priority_rank
from mulligan.domain.status import IssueStatus, Phase

pytestmark = pytest.mark.pure

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
ONE, TWO, THREE, FOUR = (IssueRef("octo/calc", number) for number in range(1, 5))
OTHER = IssueRef("octo/tool", 1)


@pytest.mark.parametrize(
    ("carried", "rank"),
    [((), 2), (("bug",), 2), (("now",), 0), (("Soon",), 1), (("soon", "NOW"), 0)],
)
def test_the_most_urgent_priority_label_counts(carried: tuple[str, ...], rank: int) -> None:
    assert priority_rank(carried, ("Now", "soon")) == rank


def test_priority_comes_before_age_and_an_issue_is_listed_once() -> None:
    found = [(ONE, ("bug",)), (TWO, ("soon",)), (THREE, ("now",)), (FOUR, ()), (TWO, ("soon",))]
    assert most_urgent_first(found, ("now", "soon")) == [THREE, TWO, ONE, FOUR]
    assert most_urgent_first(found, ()) == [ONE, TWO, THREE, FOUR]


def test_labels_come_before_commands_and_these_before_reviews() -> None:
    assert in_order([TWO], [FOUR, TWO], [THREE, ONE]) == [TWO, FOUR, ONE, THREE]


@pytest.mark.parametrize(
    ("status", "due"),
    [
        (None, True),
        (IssueStatus(ONE), True),
        (IssueStatus(ONE, due=NOW), True),
        (IssueStatus(ONE, due=NOW + timedelta(seconds=1)), False),
        (IssueStatus(ONE, phase=Phase.DECIDED), False),
    ],
)
def test_an_issue_is_due_if_it_is_idle_and_its_wait_is_over(
    status: IssueStatus | None, *, due: bool
) -> None:
    assert is_due(status, NOW) is due


@pytest.mark.parametrize(
    ("running", "concurrency", "per_repository", "started"),
    [
        ([], 3, 1, [ONE, OTHER]),
        ([], 3, 2, [ONE, TWO, OTHER]),
        ([], 2, 2, [ONE, TWO]),
        ([FOUR], 3, 1, [OTHER]),
        ([FOUR], 1, 9, []),
        ([OTHER], 2, 1, [ONE]),
    ],
)
def test_limits_let_other_repositories_go_first(
    running: list[IssueRef], concurrency: int, per_repository: int, started: list[IssueRef]
) -> None:
    waiting = [ONE, TWO, THREE, OTHER]
    waiting = [ref for ref in waiting if ref not in running]
    assert [*may_start(waiting, running, concurrency, per_repository)] == started
