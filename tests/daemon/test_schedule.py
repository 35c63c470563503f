"""Ticks come at once and at their interval, one at a time, and none is under way afterwards."""

import threading
import time
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from apscheduler.schedulers import base
from structlog.testing import capture_logs

from mulligan.daemon import daemon
from mulligan.daemon.daemon import run_periodically
from world.processes import wait_until

OFTEN, SELDOM = timedelta(milliseconds=20), timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


def test_a_tick_comes_at_once_and_again() -> None:
    often, seldom = list[datetime](), list[datetime]()
    ticks = {
        "often": (lambda: often.append(now()), lambda: OFTEN),
        "seldom": (lambda: seldom.append(now()), lambda: SELDOM),
    }
    with run_periodically(ticks, now()):
        wait_until(lambda: len(often) >= 3)
    assert len(seldom) == 1


def test_a_tick_never_comes_twice_at_a_time_and_is_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ticks = [threading.Event() for _ in range(3)]
    under_way, most = list[int](), list[int]()

    def slow() -> None:
        under_way.append(1)
        most.append(len(under_way))
        if len(most) <= len(ticks):
            ticks[len(most) - 1].wait(OFTEN.total_seconds() * 5)
        under_way.pop()

    with run_periodically({"slow": (slow, lambda: OFTEN)}, now()):
        wait_until(lambda: len(most) >= 3)
    assert set(most) == {1}
    assert under_way == []
    assert caplog.messages == []


def test_ticks_that_were_missed_are_made_up_for_once() -> None:
    seen = list[datetime]()
    long_ago = now() - timedelta(days=1)
    with run_periodically({"daily": (lambda: seen.append(now()), lambda: SELDOM)}, long_ago):
        wait_until(lambda: seen != [])
    assert len(seen) == 1


def test_a_tick_that_breaks_comes_again() -> None:
    calls = list[int]()

    def broken() -> None:
        calls.append(1)
        raise RuntimeError(len(calls))

    jobs = {"broken": (broken, lambda: OFTEN)}
    with capture_logs() as logs, run_periodically(jobs, now()):
        wait_until(lambda: len(calls) >= 2)
    assert {each["event"] for each in logs} == {"broken_failed"}


def test_ticks_go_on_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks, behind = list[int](), [timedelta()]

    class Clock(datetime):
        """The machine's clock, as APScheduler and the daemon read it."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Clock":
            return cls.fromtimestamp((datetime.now(tz) - behind[0]).timestamp(), tz)

    for module in (base, daemon):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(daemon, "CLOCK_CHECK", OFTEN)
    jobs = {"often": (lambda: ticks.append(1), lambda: OFTEN)}
    with capture_logs() as logs, run_periodically(jobs, now()):
        wait_until(lambda: len(ticks) >= 2)
        behind[0] = timedelta(hours=2)
        wait_until(lambda: logs != [])
        before = len(ticks)
        wait_until(lambda: len(ticks) >= before + 3)
    assert [(each["event"], each["seconds"]) for each in logs] == [("clock_set_back", 7200)]


def test_an_interval_may_change_while_it_ticks() -> None:
    calls, intervals = list[int](), [OFTEN, OFTEN, SELDOM]

    def interval() -> timedelta:
        return intervals[min(len(calls), 2)]

    with run_periodically({"slower": (lambda: calls.append(1), interval)}, now()):
        wait_until(lambda: len(calls) >= 2)
        time.sleep(OFTEN.total_seconds() * 5)
    assert len(calls) <= 3


def test_an_interval_of_nothing_is_a_short_one() -> None:
    calls = list[int]()
    with run_periodically({"at once": (lambda: calls.append(1), timedelta)}, now()):
        wait_until(lambda: len(calls) >= 2)
    assert len(calls) < 100
