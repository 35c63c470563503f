"""The parts of an attempt's time add up to the whole, over one attempt and over several."""

from datetime import datetime, timedelta

import pytest

from mulligan.domain.attempt_times import Part, attempt_times, time_waited, total_times
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AttemptTimes
from world.attempts import NINE, attempt

pytestmark = pytest.mark.pure

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def test_what_was_not_measured_is_the_rest() -> None:
    measured = {Part.WORKTREE: SECOND, Part.AGENT: 12 * MINUTE, Part.CHECKS: 2.4 * SECOND}
    found = attempt_times(measured, 13 * MINUTE, 20 * MINUTE, set_up_reused=True)
    assert found == AttemptTimes(
        waited_ms=1_200_000,
        worktree_ms=1000,
        agent_ms=720_000,
        checks_ms=2400,
        other_ms=56_600,
        set_up_reused=True,
    )


@pytest.mark.parametrize("tick", [0.0004, 0.0005, 0.0006, 0.0009])
def test_rounding_makes_no_part_longer_than_the_whole(tick: float) -> None:
    measured = dict.fromkeys(Part, tick * SECOND)
    found = attempt_times(measured, tick * SECOND * len(Part), timedelta())
    assert found
    assert found.other_ms >= 0


def test_a_clock_that_was_set_back_leaves_no_parts() -> None:
    assert attempt_times({Part.SET_UP: MINUTE}, 59 * SECOND, timedelta()) is None


@pytest.mark.parametrize(
    ("requested", "earlier", "waited"),
    [
        (NINE - 20 * MINUTE, 0, 20 * MINUTE),
        (NINE + MINUTE, 0, timedelta()),  # GitHub's clock is ahead.
        (None, 0, timedelta()),
        (NINE - 20 * MINUTE, 2, 5 * MINUTE),
    ],
)
def test_an_attempt_waits_for_the_one_before_it_or_else_since_the_request(
    requested: datetime | None, earlier: int, waited: timedelta
) -> None:
    ends = [NINE - 9 * MINUTE, NINE - 5 * MINUTE][:earlier]
    past = [
        attempt(number, Outcome.CHECKS_FAILED).model_copy(update={"finished_at": end})
        for number, end in enumerate(ends, start=1)
    ]
    assert time_waited(NINE, requested, past) == waited


def test_an_attempt_without_recorded_parts_counts_as_other_time() -> None:
    times = AttemptTimes(waited_ms=1, worktree_ms=2, set_up_ms=3, agent_ms=4, checks_ms=5)
    timed = attempt(1, Outcome.CHECKS_FAILED).model_copy(update={"times": times})
    reused = AttemptTimes(agent_ms=40, reviewer_ms=6, other_ms=7, set_up_reused=True)
    again = attempt(2, Outcome.SUCCEEDED).model_copy(update={"times": reused})
    killed = attempt(3, Outcome.INTERRUPTED)
    assert total_times([timed, again, killed]) == AttemptTimes(
        waited_ms=1,
        worktree_ms=2,
        set_up_ms=3,
        set_up_reused=True,
        agent_ms=44,
        checks_ms=5,
        reviewer_ms=6,
        other_ms=250_007,
    )
