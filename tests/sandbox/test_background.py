"""Work in the background ends with its block, and comes after all other work."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError, WithdrawnError
from mulligan.sandbox.cancellation import CURRENT_CANCELLATION, Cancellation, in_background
from mulligan.sandbox.process import Command, at_idle_priority, run

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
SLEEPS = "touch begun; sleep 600; touch ended"
OTHER, IDLE = "0", "5"
"""SCHED_OTHER and SCHED_IDLE (sched(7))."""


def sh(place: Path, line: str) -> str:
    argv = ("/bin/sh", "-c", line)
    return run(Command(argv, place, ENVIRONMENT, timedelta(minutes=20))).text


def until(happened: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_the_end_of_the_block_stops_its_commands(tmp_path: Path) -> None:
    stopped = list[bool]()

    def call() -> None:
        try:
            sh(tmp_path, SLEEPS)
        except WithdrawnError:
            stopped.append(True)

    with in_background(call):
        until((tmp_path / "begun").exists)
    assert stopped == [True]
    assert not [each for each in threading.enumerate() if each.name.startswith("background")]


def test_so_does_a_block_that_fails(tmp_path: Path) -> None:
    def call() -> None:
        sh(tmp_path, SLEEPS)

    def fail() -> None:
        with in_background(call):
            until((tmp_path / "begun").exists)
            raise UnavailableError("It is broken.")

    with pytest.raises(UnavailableError, match="broken"):
        fail()
    assert not (tmp_path / "ended").exists()


def test_a_bug_in_the_background_is_not_lost() -> None:
    def call() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), in_background(call):
        pass


def test_only_the_block_ends_it(tmp_path: Path) -> None:
    stop, seen = Cancellation(), list[str]()
    token = CURRENT_CANCELLATION.set(stop)
    try:
        with in_background(lambda: seen.append(sh(tmp_path, "touch begun; sleep 0.5; echo end"))):
            until((tmp_path / "begun").exists)
            stop.cancel(WithdrawnError("The label was removed."))
            until(lambda: bool(seen))
    finally:
        CURRENT_CANCELLATION.reset(token)
    assert seen == ["end\n"]


POLICY = "cut -d ' ' -f 41 /proc/self/stat; cat /proc/self/autogroup 2> /dev/null"
"""The scheduling policy of a child of the shell (proc(5)), and what its session's share is."""


def test_commands_at_idle_priority_and_their_children_wait_for_all_others(tmp_path: Path) -> None:
    before = sh(tmp_path, POLICY).split()
    with at_idle_priority():
        idle = sh(tmp_path, POLICY).split()
    assert (before[0], idle[0]) == (OTHER, IDLE)
    assert [*before[-1:], *idle[-1:]] in (["0", "19"], [OTHER, IDLE])
    assert sh(tmp_path, POLICY).split()[0] == OTHER
