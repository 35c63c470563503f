"""Nothing that a command starts outlives it, whoever dies first."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.attempt import TimeLimit
from mulligan.sandbox.process import ISOLATED_PYTHON, LAUNCHER, LAUNCHER_CODE, run
from mulligan.sandbox.supervisor import (
    candidate_paths,
    descendants,
    memory_of,
    memory_of_files,
    resident_memory,
    targets_of,
)
from world.processes import (
    LAUNCHER_PID,
    MULLIGAN,
    output_of,
    processes_in,
    shell,
    wait_until,
    with_argv,
)

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
    assert finished.duration < timedelta(seconds=30)


def test_nothing_stays_at_the_time_out(tmp_path: Path) -> None:
    def stay(way: str) -> tuple[TimeLimit | None, list[str]]:
        place = tmp_path / way.replace(" ", "-")
        place.mkdir()
        line = f"{WAYS_TO_STAY[way]}\nsleep 48"
        return run(shell(line, place, timeout=0.6, grace=0.3)).stopped_by, processes_in(place)

    with ThreadPoolExecutor(len(WAYS_TO_STAY)) as threads:
        found = list(threads.map(stay, WAYS_TO_STAY))
    assert found == [(TimeLimit.TIMEOUT, list[str]())] * len(WAYS_TO_STAY)


@pytest.mark.parametrize("line", WAYS_TO_STAY.values(), ids=WAYS_TO_STAY)
def test_nothing_stays_when_mulligan_is_killed(line: str, tmp_path: Path) -> None:
    line = f"{line}\ntouch up; sleep 49"
    parent = subprocess.Popen([sys.executable, "-c", MULLIGAN, line, str(tmp_path)])
    wait_until((tmp_path / "up").exists)
    assert processes_in(tmp_path) != []
    parent.kill()
    parent.wait()
    wait_until(lambda: processes_in(tmp_path) == [], seconds=30)


DIES_EARLY = """
import os, signal, socket, time
def die(*_):
    while not os.path.exists("up"): time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
socket.recv_fds = die
"""


def test_nothing_stays_when_mulligan_is_killed_before_it_hears_of_the_start(tmp_path: Path) -> None:
    program = [sys.executable, "-c", DIES_EARLY + MULLIGAN, "sleep 50 & touch up; sleep 51"]
    subprocess.run([*program, str(tmp_path)], cwd=tmp_path, check=False)
    wait_until(lambda: processes_in(tmp_path) == [], seconds=30)


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
def test_a_command_cannot_send_its_supervisor_away(name: str, tmp_path: Path) -> None:
    finished = run(shell(f"setsid sleep 50 & kill -{name} $PPID; sleep 0.1; exit 4", tmp_path))
    assert (finished.exit_code, processes_in(tmp_path)) == (4, [])


def test_a_supervisor_that_was_stopped_goes_on_at_the_time_out(tmp_path: Path) -> None:
    line = "setsid sleep 51 & kill -STOP $PPID; sleep 52"
    finished = run(shell(line, tmp_path, timeout=0.3, grace=0.3))
    assert (finished.stopped_by, processes_in(tmp_path)) == (TimeLimit.TIMEOUT, [])


def test_a_command_dies_with_its_supervisor(tmp_path: Path) -> None:
    finished = run(shell("echo x; kill -KILL $PPID; exec sleep 53", tmp_path))
    assert (finished.exit_code, finished.text) == (-9, "x\n")
    wait_until(lambda: processes_in(tmp_path) == [])


def test_a_supervisor_may_die_without_having_listened(tmp_path: Path) -> None:
    line = "kill -STOP $PPID; sleep 0.8; kill -KILL $PPID; exec sleep 53"
    finished = run(shell(line, tmp_path, timeout=0.3))
    assert (finished.exit_code, finished.stopped_by) == (-9, TimeLimit.TIMEOUT)


def test_who_outlives_the_supervisor_is_not_waited_for(tmp_path: Path) -> None:
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
        "supervisor = os.getppid()\n"
        "children = open(f'/proc/{supervisor}/task/{supervisor}/children').read().split()\n"
        "print(children == [str(os.getpid())])\n"
    )
    command = with_argv(shell("", tmp_path), sys.executable, "-I", "-S", "-c", code)
    assert run(command).text == "True\n"


# The launcher


def test_the_launcher_may_be_killed(tmp_path: Path) -> None:
    line = f"kill -KILL $({LAUNCHER_PID}); sleep 0.1; echo goes on; setsid sleep 59 &"
    finished = run(shell(line, tmp_path))
    assert (finished.exit_code, finished.text) == (0, "goes on\n")
    assert processes_in(tmp_path) == []
    assert output_of("echo another", tmp_path) == "another"


def test_the_launcher_may_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(shell(f"kill -STOP $({LAUNCHER_PID})", tmp_path)).exit_code == 0
    monkeypatch.setattr("mulligan.sandbox.process.LAUNCHER_ANSWER_SECONDS", 5)
    assert output_of("echo another", tmp_path) == "another"


def test_threads_share_a_launcher_that_is_killed_meanwhile(tmp_path: Path) -> None:
    lines = ["exit 3"] * 60
    lines[20] = f"kill -KILL $({LAUNCHER_PID}); exit 3"
    with ThreadPoolExecutor(8) as pool:
        commands = [replace(shell(line, tmp_path), log=None) for line in lines]
        assert {finished.exit_code for finished in pool.map(run, commands)} == {3}


def test_the_launcher_ends_with_mulligan(tmp_path: Path) -> None:
    line = f"{LAUNCHER_PID} > pid; touch up; sleep 60"
    parent = subprocess.Popen([sys.executable, "-c", MULLIGAN, line, str(tmp_path)])
    wait_until((tmp_path / "up").exists)
    launcher = Path("/proc", (tmp_path / "pid").read_text().strip())
    assert b"launcher.main" in (launcher / "cmdline").read_bytes()
    parent.kill()
    parent.wait()
    wait_until(lambda: not launcher.exists(), seconds=30)


FORKED = f"""
import os
{MULLIGAN}
sys.stdout.flush()
if child := os.fork():
    os.waitpid(child, 0)
print(run(Command(["/bin/sh", "-c", sys.argv[1]], directory, environment, limit)).text)
"""


def test_a_forked_process_starts_a_launcher_of_its_own(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", FORKED, LAUNCHER_PID, str(tmp_path)]
    said = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split()
    assert len({*said[1:]}) == 2, said


def test_what_a_command_is_given_is_in_no_other_process(tmp_path: Path) -> None:
    command = shell("tr '\\0' ' ' < /proc/$PPID/environ; cat /proc/$PPID/cmdline", tmp_path)
    secret = {**command.environment, "SECRET": "s3cret"}
    told = run(replace(command, environment=secret))
    assert told.exit_code == 0
    assert "s3cret" not in told.text
    assert "PPID" not in told.text


FULL = """
def full(*_):
    raise BlockingIOError(11, "full")
"""
FAULTS = {
    "the launcher cannot fork": (
        f"{FULL}\nimport os; os.fork = full\n",
        "/bin/sh cannot be started in .*: Resource temporarily unavailable",
    ),
    "the supervisor cannot fork": (
        f"{FULL}\nimport mulligan.sandbox.supervisor as changed; changed.start = full\n",
        "/bin/sh cannot be started for now: Resource temporarily unavailable",
    ),
    "the supervisor fails": (
        f"{FULL}\nimport mulligan.sandbox.supervisor as changed; changed.watch = full\n",
        "The supervisor of /bin/sh failed: BlockingIOError.*full",
    ),
    "Python ends": ("raise SystemExit\n", "/bin/sh cannot be started: .*python.* ends or hangs"),
}


@pytest.mark.parametrize(("change", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_launcher_or_supervisor_is_told(
    change: str, message: str, tmp_path: Path
) -> None:
    changed = LAUNCHER_CODE.replace("launcher.main()", f"\n{change}\nlauncher.main()")
    command = (*ISOLATED_PYTHON, changed, LAUNCHER[-1])
    code = f"from mulligan.sandbox import process; process.LAUNCHER = {command!r}\n"
    argv = [sys.executable, "-c", code + MULLIGAN, "exit 3", str(tmp_path)]
    said = subprocess.run(argv, capture_output=True, check=False, text=True).stderr
    assert re.search(f"UnavailableError: {message}", said), said


# In this process


def test_descendants_are_found_below_their_parents() -> None:
    before = descendants().keys()  # What runs the journeys of this worker.
    with subprocess.Popen(["/bin/sh", "-c", "sleep 56 & sleep 57 & wait"]) as parent:
        wait_until(lambda: len(descendants().keys() - before) >= 3)
        found = descendants()
        assert found[parent.pid] == os.getpgid(0)
        for pid in found.keys() - before:
            os.kill(pid, signal.SIGKILL)


def test_files_in_memory_count_though_others_are_closed_meanwhile() -> None:
    held = os.memfd_create("held")
    try:
        os.write(held, bytes(5 * 4096))
        links = [f"/proc/self/fd/{number}" for number in (1000000, held)]
        assert memory_of_files(targets_of(links)) >= 5 * 4096
    finally:
        os.close(held)


MANY_PAGE_TABLES = """
import mmap
space = mmap.mmap(-1, 8 * 1024**3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
for at in range(0, len(space), 2 * 1024**2):
    space[at]
print("up", flush=True)
input()
"""


def test_page_tables_count_as_memory() -> None:
    """Reading one byte of each 2 MiB takes a page of them, and no other memory."""
    argv = (sys.executable, "-c", MANY_PAGE_TABLES)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        found = memory_of(process.pid), resident_memory(process.pid)
        process.communicate(b"\n")
    assert min(found) > 16 * 1024**2


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
        ("./a", "/x", ["./a"]),
        ("/a", None, ["/a"]),
        ("a", None, ["/bin/a", "/usr/bin/a"]),
        ("a", "/x:/y z", ["/x/a", "/y z/a"]),
        ("a", ":/x::", ["/x/a"]),
        ("a", "", []),
    ],
)
def test_programs_are_looked_for_where_they_may_be(
    program: str, path: str | None, expected: list[str]
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
