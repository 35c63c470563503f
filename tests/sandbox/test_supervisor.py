"""Nothing that a command starts outlives it, whoever dies first."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.attempt import TimeLimit
from mulligan.domain.errors import UnavailableError
from mulligan.sandbox.process import run
from mulligan.sandbox.supervisor import (
    ProcessTree,
    candidate_paths,
    descendants,
    memory_of_files,
)
from world.processes import MULLIGAN, processes_in, shell, wait_until, with_argv

DAEMON = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for descriptor in range(3): os.close(descriptor)
open("daemon.up", "w").close()
time.sleep(40)
"""
WAYS_TO_STAY = {
    "in the background": "sleep 40 &",
    "in a session of its own": "setsid sleep 41 &",
    "in a group of its own": "bash -mc 'sleep 42 & disown'",
    "deaf": "(trap '' TERM HUP INT; sleep 43) & sleep 0.1",
    "as a daemon": f"{sys.executable} -I -S -c '{DAEMON}'; until [ -e daemon.up ]; do :; done",
    "stopped": "sleep 44 & kill -STOP $!",
    "in a crowd": "for i in 1 2 3 4 5 6 7 8 9; do (sleep 45 & sleep 46 & sleep 47) & done",
}


@pytest.mark.parametrize("line", WAYS_TO_STAY.values(), ids=WAYS_TO_STAY)
def test_nothing_stays_when_a_command_ends(line: str, tmp_path: Path) -> None:
    finished = run(shell(f"{line}\nexit 5", tmp_path))
    assert (finished.exit_code, processes_in(tmp_path)) == (5, [])
    assert finished.duration < timedelta(seconds=4)


@pytest.mark.parametrize("line", WAYS_TO_STAY.values(), ids=WAYS_TO_STAY)
def test_nothing_stays_at_the_time_out(line: str, tmp_path: Path) -> None:
    finished = run(shell(f"{line}\nsleep 48", tmp_path, timeout=0.6, grace=0.3))
    assert (finished.stopped_by, processes_in(tmp_path)) == (TimeLimit.TIMEOUT, [])


@pytest.mark.parametrize("line", WAYS_TO_STAY.values(), ids=WAYS_TO_STAY)
def test_nothing_stays_when_mulligan_is_killed(line: str, tmp_path: Path) -> None:
    line = f"{line}\ntouch up; sleep 49"
    parent = subprocess.Popen([sys.executable, "-c", MULLIGAN, line, str(tmp_path)])
    wait_until((tmp_path / "up").exists)
    assert processes_in(tmp_path) != []
    parent.kill()
    parent.wait()
    wait_until(lambda: processes_in(tmp_path) == [], seconds=3)


def test_who_is_left_may_say_a_last_word(tmp_path: Path) -> None:
    child = "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.02; done"
    finished = run(shell(f"({child}) & until [ -s command.log ]; do sleep 0.02; done", tmp_path))
    assert finished.text.endswith("bye\n")


def test_who_is_left_at_the_time_out_has_the_whole_grace(tmp_path: Path) -> None:
    child = "trap 'sleep 1; echo bye; exit' TERM; echo up; while :; do sleep 0.02; done"
    finished = run(shell(f"({child}) & sleep 30", tmp_path, timeout=0.5, grace=4))
    assert finished.text.endswith("bye\n")


def test_a_flight_from_the_killer_ends(tmp_path: Path) -> None:
    # Each process lives for a moment only, in a session of its own.
    code = (
        "import os, time\n"
        "until = time.monotonic() + 20\n"
        "while time.monotonic() < until:\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
    )
    (tmp_path / "flee.py").write_text(code)
    finished = run(shell(f"{sys.executable} -I -S flee.py & sleep 0.2", tmp_path))
    assert finished.exit_code == 0
    assert processes_in(tmp_path) == []


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "PIPE", "CHLD"])
def test_a_command_cannot_send_its_keeper_away(name: str, tmp_path: Path) -> None:
    finished = run(shell(f"setsid sleep 50 & kill -{name} $PPID; sleep 0.1; exit 4", tmp_path))
    assert (finished.exit_code, processes_in(tmp_path)) == (4, [])


def test_a_keeper_that_was_stopped_goes_on_at_the_time_out(tmp_path: Path) -> None:
    line = "setsid sleep 51 & kill -STOP $PPID; sleep 52"
    finished = run(shell(line, tmp_path, timeout=0.3, grace=0.3))
    assert (finished.stopped_by, processes_in(tmp_path)) == (TimeLimit.TIMEOUT, [])


def test_a_command_dies_with_its_keeper(tmp_path: Path) -> None:
    finished = run(shell("echo x; kill -KILL $PPID; exec sleep 53", tmp_path))
    assert (finished.exit_code, finished.text) == (-9, "x\n")
    wait_until(lambda: processes_in(tmp_path) == [])


def test_a_keeper_may_die_without_having_listened(tmp_path: Path) -> None:
    line = "kill -STOP $PPID; sleep 0.8; kill -KILL $PPID; exec sleep 53"
    finished = run(shell(line, tmp_path, timeout=0.3))
    assert (finished.exit_code, finished.stopped_by) == (-9, TimeLimit.TIMEOUT)


def test_a_keeper_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "libc.so.6").write_text("not a library")
    command = replace(shell("true", tmp_path), environment={"LD_LIBRARY_PATH": str(tmp_path)})
    with pytest.raises(UnavailableError, match=r"/bin/sh cannot be run.* failed: .*libc.so.6"):
        run(command)


def test_who_outlives_the_keeper_is_not_waited_for(tmp_path: Path) -> None:
    line = "setsid yes & until [ -s command.log ]; do :; done; kill -KILL $PPID; exec sleep 54"
    finished = run(shell(line, tmp_path, timeout=9))
    assert (finished.exit_code, finished.stopped_by) == (-9, None)
    # Nobody reads what it prints any more, so that it ends too.
    wait_until(lambda: processes_in(tmp_path) == [])


def test_a_killed_group_is_the_commands_alone(tmp_path: Path) -> None:
    line = "setsid sleep 55 & trap '' TERM; kill -TERM 0; kill -KILL 0"
    finished = run(shell(line, tmp_path))
    assert (finished.exit_code, processes_in(tmp_path)) == (-9, [])


def test_orphans_are_collected_while_the_command_runs(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "for _ in range(50):\n"
        "    if not (child := os.fork()):\n"
        "        if os.fork(): os._exit(0)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "time.sleep(0.2)\n"
        "keeper = os.getppid()\n"
        "children = open(f'/proc/{keeper}/task/{keeper}/children').read().split()\n"
        "print(children == [str(os.getpid())])\n"
    )
    command = with_argv(shell("", tmp_path), sys.executable, "-I", "-S", "-c", code)
    assert run(command).text == "True\n"


def test_a_system_without_room_for_a_process_is_told(tmp_path: Path) -> None:
    """The keeper says the errno of a fork that failed, and ends."""
    read, write = os.pipe()
    limited = (
        "import os, resource, runpy, sys\n"
        "def full(): raise BlockingIOError(11, 'full')\n"
        "os.fork = full\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    keeper = str(Path(sys.modules[ProcessTree.__module__].__file__ or ""))
    argv = [sys.executable, "-c", limited, keeper, str(write), "-", "-", "true"]
    subprocess.run(argv, pass_fds=[write], check=True)
    os.close(write)
    with os.fdopen(read) as said:
        assert said.read() == "error 11\n"


# In this process


def test_descendants_are_found_below_their_parents() -> None:
    before = descendants().keys()  # What runs the journeys of this worker.
    with subprocess.Popen(["/bin/sh", "-c", "sleep 56 & sleep 57 & wait"]) as parent:
        wait_until(lambda: len(descendants().keys() - before) >= 3)
        found = descendants()
        assert found[parent.pid] == os.getpgid(0)
        for pid in found.keys() - before:
            os.kill(pid, signal.SIGKILL)


def test_files_in_memory_count_though_others_are_closed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = os.memfd_create("held")
    try:
        os.write(held, bytes(5 * 4096))
        listed = [f"/proc/self/fd/{number}" for number in (1000000, held)]

        def open_files(_pid: int) -> list[str]:
            return listed

        monkeypatch.setattr("mulligan.sandbox.supervisor.open_files_of", open_files)
        assert memory_of_files({os.getpid(): 0}) >= 5 * 4096
    finally:
        os.close(held)


NOBODY_REAPS = """
import subprocess
from mulligan.sandbox.supervisor import ProcessTree, verdict
with subprocess.Popen(["/bin/sleep", "58"]) as child:
    assert verdict(ProcessTree(child.pid, ended=-1, bounds=[])) == f"left {child.pid}"
    child.kill()
"""


def test_what_cannot_be_ended_is_named() -> None:
    # In a process of its own: a family kills every child of the process that it is in.
    subprocess.run([sys.executable, "-c", NOBODY_REAPS], check=True)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("program", "path", "expected"),
    [
        ("./a", b"/x", ["./a"]),
        ("/a", None, ["/a"]),
        ("a", None, ["/bin/a", "/usr/bin/a"]),
        ("a", b"/x:/y z", ["/x/a", "/y z/a"]),
        ("a", b":/x::", ["/x/a"]),
        ("a", b"", []),
    ],
)
def test_programs_are_looked_for_where_they_may_be(
    program: str, path: bytes | None, expected: list[str]
) -> None:
    assert candidate_paths(program, path) == expected


def test_a_command_starts_within_the_time_of_a_blink(tmp_path: Path) -> None:
    command = replace(with_argv(shell("", tmp_path), "/bin/true"), log=None)
    times = list[float]()
    for _ in range(20):
        began = time.perf_counter()
        run(command)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.1
