"""No two attempts of a process run a check on one start tree (BASELINE-1)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import pytest

from mulligan.domain.errors import WithdrawnError
from mulligan.implement.running_baselines import RunningBaselines
from mulligan.sandbox.cancellation import CURRENT_CANCELLATION, Cancellation

ONE, OTHER = ("acme/tools", "a"), ("acme/tools", "b")
LONG, SHORT = timedelta(seconds=30), timedelta(milliseconds=10)


def test_a_key_is_claimed_once() -> None:
    running = RunningBaselines()
    first = running.claim([ONE])
    assert running.claim([ONE, OTHER]).keys() == {OTHER}
    running.release(first)
    assert running.claim([ONE, OTHER]).keys() == {ONE}


def test_a_claim_that_ended_does_not_end_the_next() -> None:
    running = RunningBaselines()
    first = running.claim([ONE])
    running.release(first)
    second = running.claim([ONE])
    running.release(first)
    assert not running.claim([ONE])
    running.release(second)
    assert running.claim([ONE])


def test_whoever_needs_a_key_waits_for_its_turn() -> None:
    running, has_turn = RunningBaselines(), Event()
    claims = running.claim([ONE])

    def wait() -> None:
        with running.turn(ONE, LONG):
            has_turn.set()
            assert not running.claim([ONE])

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        assert not has_turn.wait(0.1)
        running.release(claims)
        waiting.result()
    assert has_turn.is_set()
    assert running.claim([ONE])


def test_a_turn_comes_after_the_timeout_in_any_case() -> None:
    running = RunningBaselines()
    running.claim([ONE])
    with running.turn(ONE, SHORT):
        pass
    assert not running.claim([ONE])


def test_work_that_is_cancelled_waits_no_longer() -> None:
    running, stop = RunningBaselines(), Cancellation()
    running.claim([ONE])
    stop.cancel(WithdrawnError("The label was removed."))
    token = CURRENT_CANCELLATION.set(stop)
    try:
        with pytest.raises(WithdrawnError, match="removed"), running.turn(ONE, LONG):
            pass
    finally:
        CURRENT_CANCELLATION.reset(token)
