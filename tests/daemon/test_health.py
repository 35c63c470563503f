"""The pulse counts what the daemon does, and notices a poll that hangs."""

import pytest

from mulligan.daemon.health import DaemonHealth

pytestmark = pytest.mark.pure


def test_a_poll_is_alive_at_each_repository() -> None:
    now = [0.0]
    pulse = DaemonHealth(lambda: now[0])
    with pulse.note_poll():
        for _ in pulse.note_each(["octo/one", "octo/two"]):
            assert pulse.seconds_since_beat == 0
            now[0] += 40
        assert pulse.seconds_since_beat == 40
    assert (pulse.seconds_since_beat, pulse.snapshot.polls, pulse.snapshot.poll_seconds) == (
        0,
        1,
        80,
    )


def test_one_repository_that_was_read_is_enough_for_good() -> None:
    pulse = DaemonHealth()
    pulse.asked(2, 2)
    assert not pulse.snapshot.has_succeeded
    pulse.asked(2, 1)
    pulse.asked(2, 2)
    assert (
        pulse.snapshot.has_succeeded,
        pulse.snapshot.failed_repositories,
        pulse.snapshot.failing,
    ) == (True, 5, 2)


def test_visits_are_counted_with_those_that_left_something_undone() -> None:
    pulse = DaemonHealth()
    pulse.visited(undone=False)
    pulse.visited(undone=True)
    assert (pulse.snapshot.visits, pulse.snapshot.undone) == (2, 1)
