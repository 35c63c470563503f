"""Nothing that an agent started is alive once it was stopped, in the sandbox and without one."""

import os
import signal
import subprocess
import sys
import time
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
way, mark = sys.argv[1:]
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
def detach():
    os.chdir("/")
    os.setsid()
    for descriptor in range(3):
        os.close(descriptor)
def stay():
    os.execvp("sleep", ["sleep", mark])
if way == "child":
    if os.fork() == 0:
        stay()
elif way == "setsid":
    if os.fork() == 0:
        detach(); stay()
elif way == "daemon":
    if os.fork() == 0:
        detach()
        if os.fork() == 0:
            stay()
        os._exit(0)
elif way == "stopped":
    child = os.fork()
    if child == 0:
        detach(); stay()
    time.sleep(0.05)
    os.kill(child, signal.SIGSTOP)
elif way == "chain":
    for _ in range(30):
        if os.fork():
            break
        detach() if _ == 0 else os.setsid()
    else:
        stay()
    os.execvp("sleep", ["sleep", mark])
open("up", "w").close()
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


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "is stopped"])
@pytest.mark.parametrize("way", ["child", "setsid", "daemon", "stopped", "chain"])
@pytest.mark.parametrize("confined", [True, False], ids=["confined", "not confined"])
def test_nothing_is_left_of_what_an_agent_started(
    confined: bool,  # noqa: FBT001
    way: str,
    ends: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    walls = sandbox() if confined else Unconfined()
    mark = f"61.{abs(hash(tmp_path)) % 10**9}"
    command = Command(
        argv=(sys.executable, "-c", AWAY, way, mark),
        directory=tmp_path,
        environment={"PATH": "/usr/bin:/bin"},
        timeout=timedelta(seconds=20 if ends and way != "chain" else 0.5),
        grace=timedelta(seconds=0.2),
        stdin=b"end" if ends else b"",
    )
    started = time.monotonic()
    ended = walls.run(command, CommandAccess(write=(tmp_path,)))
    assert alive(mark) == []
    assert (ended.stopped_by is TimeLimit.TIMEOUT) is not (ends and way != "chain")
    assert time.monotonic() - started < 10


def has_left(pid: int, group: int) -> bool:
    """Tell whether a process is in a group of its own by now; one that has ended is not."""
    with suppress(ProcessLookupError):
        return os.getpgid(pid) != group
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
        wait_until(lambda: any(has_left(int(pid), process.pid) for pid in alive(mark)))
        os.killpg(process.pid, signal.SIGKILL)
    left = alive(mark)
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    assert left
