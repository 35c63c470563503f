"""Nothing that an agent started is alive once it was stopped, in the sandbox and without one."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.attempt import TimeLimit
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import CommandAccess, Unconfined
from world.confined import sandbox
from world.processes import wait_until

AWAY = """
import os, signal, subprocess, sys, time
ways, mark = sys.argv[1:]
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
def detach():
    os.chdir("/")
    os.setsid()
    for descriptor in range(3):
        os.close(descriptor)
def stay():
    os.execvp("sleep", ["sleep", mark])
def chain():
    for step in range(30):
        if os.fork():
            break
        os.setsid()
        if step == 0:
            detach()
    stay()
if "child" in ways and os.fork() == 0:
    stay()
if "setsid" in ways and os.fork() == 0:
    detach(); stay()
if "daemon" in ways and os.fork() == 0:
    detach()
    if os.fork() == 0:
        stay()
    os._exit(0)
if "stopped" in ways:
    child = os.fork()
    if child == 0:
        detach(); stay()
    time.sleep(0.05)
    os.kill(child, signal.SIGSTOP)
if "chain" in ways and os.fork() == 0:
    chain()
print("up", flush=True)
if sys.stdin.read() == "end":
    sys.exit(0)
time.sleep(60)
"""


def alive(mark: str) -> list[str]:
    """List the processes with a word of ours among their arguments."""
    found = list[str]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(entry.name)
        except OSError:
            continue
    return found


def stop_once_up(output: bytes) -> TimeLimit | None:
    return TimeLimit.TIMEOUT if b"up" in output else None


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "is stopped"])
@pytest.mark.parametrize("confined", [True, False], ids=["confined", "not confined"])
def test_nothing_is_left_of_what_an_agent_started(
    confined: bool,  # noqa: FBT001
    ends: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    walls = sandbox() if confined else Unconfined()
    mark = f"61.{abs(hash(tmp_path)) % 10**9}"
    command = Command(
        argv=(sys.executable, "-c", AWAY, "child setsid daemon stopped chain", mark),
        directory=tmp_path,
        environment={"PATH": "/usr/bin:/bin"},
        timeout=timedelta(seconds=50),
        grace=timedelta(seconds=0.2),
        stdin=b"end" if ends else b"",
        on_output=None if ends else stop_once_up,
    )
    ended = walls.run(command, CommandAccess(write=(tmp_path,)))
    assert b"up" in ended.tail
    assert alive(mark) == []
    assert ended.stopped_by is (None if ends else TimeLimit.TIMEOUT)


def has_left(pid: str, group: int) -> bool:
    """Return whether a process sleeps in another group; before that, it forks once more."""
    with suppress(OSError):
        asleep = Path("/proc", pid, "comm").read_text() == "sleep\n"
        return asleep and os.getpgid(int(pid)) != group
    return False


def test_the_search_finds_who_is_alive(tmp_path: Path) -> None:
    """A process group that is killed, as naive programs do it, leaves those that left it."""
    mark = f"62.{abs(hash(tmp_path)) % 10**9}"
    with subprocess.Popen(
        [sys.executable, "-c", AWAY, "daemon", mark],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        wait_until(lambda: any(has_left(pid, process.pid) for pid in alive(mark)))
        os.killpg(process.pid, signal.SIGKILL)
    left = alive(mark)
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    assert left
