"""Polls come as often as is wanted, and no more often than GitHub's limit allows."""

from datetime import timedelta

import pytest

from mulligan.daemon.daemon import HintPace
from mulligan.daemon.poll import REQUESTS_PER_MINUTE, REQUESTS_PER_POLL, poll_interval

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("repositories", "requests", "interval", "seconds"),
    [
        (0, 3, 30, 30),
        (1, 3, 30, 30),
        (100, 3, 30, 30),
        (101, 3, 30, 30.3),
        (1000, 3, 30, 300),
        (1000, 1, 30, 100),
        (10, 3, 1, 3),
        (10, 3, 3600, 3600),
        (1, 3, 0.05, 0.3),
    ],
)
def test_the_interval_stretches_with_what_is_asked(
    repositories: int, requests: int, interval: float, seconds: float
) -> None:
    found = poll_interval(timedelta(seconds=interval), repositories, requests)
    assert found == timedelta(seconds=seconds)


@pytest.mark.parametrize("repositories", [1, 7, 100, 333, 1000, 20_000])
@pytest.mark.parametrize("requests", [1, 3, 10])
def test_a_minute_never_sees_too_many_requests(repositories: int, requests: int) -> None:
    polls_a_minute = timedelta(minutes=1) / poll_interval(timedelta(), repositories, requests)
    assert polls_a_minute * repositories * requests <= REQUESTS_PER_MINUTE * 1.000001


def test_the_polls_of_webhooks_do_not_wait_for_each_other_until_there_are_many() -> None:
    pace = HintPace()
    pauses = [pace.pause_after(1, now=100).total_seconds() for _ in range(7)]
    assert pauses == [0, 0, 0, 0, 0, 1, 2]
    assert pace.pause_after(1, now=110) == timedelta()


@pytest.mark.parametrize("repositories", [1, 3, 20])
def test_webhooks_leave_the_regular_polls_their_requests(repositories: int) -> None:
    """GitHub allows 900 a minute, of which the regular polls may use 600."""
    pace, now, polls = HintPace(), 0.0, 0
    while now <= 60:
        polls += 1
        now += pace.pause_after(repositories, now).total_seconds()
    assert polls * repositories * REQUESTS_PER_POLL <= 300
