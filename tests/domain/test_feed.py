"""How far a ledger may be read while several write to it."""

from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.feed import PATIENCE, settled

pytestmark = pytest.mark.pure

NOON = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
OLD = NOON - PATIENCE
NEW = OLD + timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("numbers", "upto"),
    [
        ([], 4),
        ([(5, NEW), (6, NEW)], 6),
        ([(6, NEW)], 4),
        ([(5, NEW), (7, NEW), (8, NEW)], 5),
        ([(5, OLD), (7, OLD), (8, NEW)], 8),
        ([(9, OLD)], 9),
        ([(5, NEW), (7, NOON + timedelta(hours=1))], 5),
    ],
)
def test_behind_a_gap_nothing_is_read_until_it_is_old(
    numbers: list[tuple[int, datetime]], upto: int
) -> None:
    assert settled(numbers, 4, NOON) == upto
