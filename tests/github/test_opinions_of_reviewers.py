"""Of each reviewer, the latest opinion counts, as GitHub shows it (PR-2)."""

from datetime import UTC, datetime, timedelta

import pytest

from mulligan.github.pulls import withdrawn_reviews
from mulligan.github.shapes import Account, ReviewShape

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
NONE = frozenset[int]()
ASKS, APPROVED, COMMENTED, DISMISSED = "CHANGES_REQUESTED", "APPROVED", "COMMENTED", "DISMISSED"


def reviews(*given: tuple[str, str]) -> list[ReviewShape]:
    """Make reviews of a person in a state; the second of the first two is a second later."""
    return [
        ReviewShape(
            id=at,
            user=Account(login=login) if login else None,
            state=state,
            submitted_at=NOON + timedelta(seconds=at),
        )
        for at, (login, state) in enumerate(given, 1)
    ]


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        ([], NONE),
        ([("wes", ASKS)], NONE),
        ([("wes", ASKS), ("wes", APPROVED)], frozenset({1})),
        ([("wes", ASKS), ("Wes", APPROVED)], frozenset({1})),
        ([("wes", ASKS), ("wes", COMMENTED)], NONE),
        ([("wes", ASKS), ("mia", APPROVED)], NONE),
        ([("wes", APPROVED), ("wes", ASKS)], NONE),
        ([("wes", ASKS), ("wes", APPROVED), ("wes", ASKS)], frozenset({1})),
        ([("wes", ASKS), ("wes", ASKS), ("wes", APPROVED)], frozenset({1, 2})),
        ([("wes", DISMISSED)], frozenset({1})),
        ([("wes", ASKS), ("wes", DISMISSED)], frozenset({1, 2})),
        ([("wes", DISMISSED), ("wes", ASKS)], frozenset({1})),
        ([("", ASKS), ("", APPROVED)], NONE),
        ([("wes", ASKS), ("wes", "PENDING")], NONE),
    ],
)
def test_a_later_approval_or_dismissal_replaces_what_came_before(
    given: list[tuple[str, str]], gone: frozenset[int]
) -> None:
    assert withdrawn_reviews(reviews(*given)) == gone


def test_reviews_count_by_their_time_and_not_by_their_order() -> None:
    asks, approves = reviews(("wes", ASKS), ("wes", APPROVED))
    assert withdrawn_reviews([approves, asks]) == {1}


def test_a_review_without_a_time_is_not_submitted() -> None:
    asks, approves = reviews(("wes", ASKS), ("wes", APPROVED))
    assert withdrawn_reviews([asks, approves.model_copy(update={"submitted_at": None})]) == NONE
