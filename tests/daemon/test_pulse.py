"""The pulse counts what the daemon does, and notices a poll that hangs."""

import pytest

from mulligan.daemon.health import DaemonHealth

pytestmark = pytest.mark.pure


def test_a_poll_is_alive_at_each_repository() -> None:
    now = [0.0]
    pulse = DaemonHealth(lambda: now[0])
    with pulse.polling():
        for _ in pulse.each(["octo/one", "octo/two"]):
            assert pulse.quiet == 0
            now[0] += 40
        assert pulse.quiet == 40
    assert (pulse.quiet, pulse.vitals.polls, pulse.vitals.poll_seconds) == (0, 1, 80)


def test_one_repository_that_was_read_is_enough_for_good() -> None:
    pulse = DaemonHealth()
    pulse.asked(2, 2)
    assert not pulse.vitals.served
    pulse.asked(2, 1)
    pulse.asked(2, 2)
    assert (pulse.vitals.served, pulse.vitals.unread, pulse.vitals.failing) == (True, 5, 2)


def test_visits_are_counted_with_those_that_left_something_undone() -> None:
    pulse = DaemonHealth()
    pulse.visited(undone=False)
    pulse.visited(undone=True)
    assert (pulse.vitals.visits, pulse.vitals.undone) == (2, 1)
