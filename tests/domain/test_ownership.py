"""Who may own a label: whoever has it, whoever finds none, and others only after a lapse."""

from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.ownership import LAPSE, OwnerRecord, StandBack, may_own, renewed

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHORT = LAPSE - timedelta(seconds=1)
THEIRS = OwnerRecord("theirs", NOON, 7)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("unchanged", "take_over", "may"),
    [
        (None, False, True),
        (SHORT, False, False),
        (LAPSE, False, True),
        (timedelta(), True, True),
    ],
)
def test_another_owner_is_replaced_only_after_a_lapse_or_on_request(
    unchanged: timedelta | None, *, take_over: bool, may: bool
) -> None:
    assert may_own(unchanged, take_over=take_over) is may


@pytest.mark.pure
def test_each_renewal_differs_from_the_last_even_if_the_clock_stands() -> None:
    first = renewed(None, "mine", NOON)
    assert first == OwnerRecord("mine", NOON, 1)
    assert renewed(first, "mine", NOON).version != first.version
    assert renewed(THEIRS, "mine", NOON) == OwnerRecord("mine", NOON, 8)


@pytest.mark.pure
def test_the_sentence_says_who_and_what_to_do() -> None:
    assert StandBack("o/r", "mulligan", "abc", NOON).sentence == (
        "o/r: another installation of Mulligan (abc) works on the label `mulligan`. This one"
        " has stood back since 2026-03-01 12:00 UTC. It takes over 5 minutes after the other one"
        " stops. To take over now: `mulligan run --take-over`."
    )
