"""Every attack on Mulligan's machine works from a plain process, and none from the sandbox."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from attacks.tricks import SECRET, TRICKS_IN_ORDER, Target
from mulligan.config.operator import SandboxLimits
from mulligan.domain.image import Image
from mulligan.sandbox.control_group import ControlGroup
from mulligan.sandbox.process import Command, Finished
from mulligan.sandbox.sandbox import Bubblewrap, CommandAccess
from world.confined import sandbox
from world.images import PYTHON, assembled_image
from world.processes import wait_until

TESTS = Path(__file__).parents[1]
TRICK_FILE = str(Path(__file__).with_name("tricks.py"))
SMALL = SandboxLimits(processes=40, memory_mib=200, file_mib=8)
ASK = """
import os
# What belongs to one process, or is a link to that, is its own. Nothing is opened or written.
empty = os.stat("/dev/null").st_rdev
own = {name for name in os.listdir("/proc") if name.isdigit()} | {"self", "thread-self", "net"}
for top in ("/proc", "/sys"):
    for directory, below, files in os.walk(top):
        if directory == "/proc":
            below[:] = [name for name in below if name not in own]
        for path in (os.path.join(directory, name) for name in (*below, *files)):
            if not os.path.islink(path) and os.access(path, os.W_OK):
                # What is hidden is the empty device.
                if os.stat(path).st_rdev != empty:
                    print(path)
"""


@cache
def limits_memory() -> bool:
    """Return whether the kernel counts the memory of a command here."""
    group = ControlGroup({"pids": 1000, "memory": 1024**3})
    group.remove()
    return "memory" in group.controllers


@pytest.fixture
def target(tmp_path: Path) -> Generator[Target]:
    """Lay everything out as Mulligan has it, and start its stand-in."""
    for directory in ("state", "home", "tools", "work/issue-1", "work/issue-2"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "work/mirror.git/objects").mkdir(parents=True)
    (tmp_path / "work/issue-1.git").mkdir()
    (tmp_path / "work/issue-1/.git").write_text(f"gitdir: {tmp_path / 'work'}/issue-1.git\n")
    for file in ("state/token", "state/mulligan.db", "home/.netrc", "work/issue-2/secret.txt"):
        (tmp_path / file).write_bytes(SECRET)
    with _stand_in(tmp_path) as (pid, port, name), (tmp_path / "state/token").open("rb") as key:
        yield Target(pid, port, name, str(tmp_path), key.fileno())


@contextmanager
def _stand_in(place: Path) -> Generator[tuple[int, int, str]]:
    secret = SECRET.decode()
    with subprocess.Popen(
        [sys.executable, str(TESTS / "world" / "victim_process.py"), str(place), secret],
        env={**os.environ, "GITHUB_TOKEN": secret},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        port, name = process.stdout.readline().split()
        try:
            yield process.pid, int(port), name
        finally:
            process.kill()


def try_plainly(tricks: Sequence[str], target: Target) -> list[str]:
    """Try as a naive program would: with everything that the parent has. Give what worked."""
    os.set_inheritable(target.descriptor, True)  # noqa: FBT003 - it has no name
    done = subprocess.run(
        [sys.executable, TRICK_FILE, ",".join(tricks), json.dumps(asdict(replace(target, hold=0)))],
        cwd=target.root / "work" / "issue-1",
        env={**os.environ, "GITHUB_TOKEN": SECRET.decode()},
        capture_output=True,
        text=True,
        close_fds=False,
        check=False,
        timeout=240,
    )
    return done.stdout.splitlines()


@pytest.fixture(params=["the system", "an image"])
def image(request: pytest.FixtureRequest) -> Image | None:
    return assembled_image() if request.param == "an image" else None


def try_confined(
    tricks: Sequence[str], target: Target, walls: Bubblewrap, image: Image | None = None
) -> Finished:
    """Try as an agent without a network is run, with an environment of its own."""
    work = target.root / "work"
    os.set_inheritable(target.descriptor, True)  # noqa: FBT003 - it has no name
    command = Command(
        argv=(
            PYTHON if image else sys.executable,
            TRICK_FILE,
            ",".join(tricks),
            json.dumps(asdict(target)),
        ),
        directory=work / "issue-1",
        environment=image.environment if image else {"PATH": os.environ["PATH"]},
        timeout=timedelta(seconds=25),
    )
    reach = CommandAccess(
        read=(work / "issue-1/.git", work / "mirror.git/objects", target.root / "tools"),
        shown=(Path(TRICK_FILE),) if image else (),
        write=(work / "issue-1", work / "issue-1.git"),
        image=image,
    )
    return walls.run(command, reach)


def walls_of(target: Target) -> Bubblewrap:
    return sandbox((target.root / "state", target.root / "work"), SMALL)


def test_what_works_from_a_plain_process_is_stopped_inside(
    target: Target, image: Image | None
) -> None:
    tried = [trick for trick in TRICKS_IN_ORDER if trick not in TOO_MUCH]
    ended = try_confined(tried, target, walls_of(target), image)
    assert (ended.exit_code, ended.text) == (0, "")
    assert target.alive()
    assert (target.root / "state" / "mulligan.db").read_bytes() == SECRET
    assert try_plainly(TRICKS_IN_ORDER, target) == TRICKS_IN_ORDER, "some attacks do not work"


def ask_inside(target: Target, walls: Bubblewrap, image: Image | None) -> set[str]:
    """Ask the kernel what may be written of its own files, without writing any."""
    work = target.root / "work" / "issue-1"
    argv = (PYTHON if image else sys.executable, "-I", "-S", "-c", ASK)
    command = Command(argv, work, {"PATH": os.environ["PATH"]}, timedelta(seconds=25))
    ended = walls.run(command, CommandAccess(write=(work,), image=image))
    assert ended.exit_code == 0, ended.text
    return set(ended.text.splitlines())


def test_no_setting_of_the_kernel_can_be_changed_inside(
    target: Target, image: Image | None
) -> None:
    walls = walls_of(target)
    assert ask_inside(target, walls, image) == set()
    if os.getuid() == 0:
        # The walls hold by themselves as well, if it were root inside.
        assert ask_inside(target, replace(walls, user=None), image) == set()
        plainly = subprocess.run(
            [sys.executable, "-I", "-S", "-c", ASK], capture_output=True, text=True, check=True
        )
        assert "/proc/sys/kernel/core_pattern" in plainly.stdout.splitlines()


def test_what_is_left_running_ends_with_the_command(target: Target, image: Image | None) -> None:
    survived = target.root / "work" / "issue-1" / "survived"
    try_confined(["leave_a_process_behind"], target, walls_of(target), image)
    try_plainly(["leave_a_process_behind"], target)
    wait_until(survived.exists)
    survived.unlink()
    try_confined(["leave_a_process_behind"], target, walls_of(target), image)
    assert not survived.exists()


TOO_MUCH = {
    "fill_the_memory": "it used more than 200 MiB of memory",
    "fill_files_in_memory": "it used more than 200 MiB of memory",
    "share_much_memory": "it used more than 200 MiB of memory",
    "fill_detached_memory": "it used more than 200 MiB of memory",
    "send_files_in_memory": "it used more than 200 MiB of memory",
    "fill_the_temporary_directory": "it used more than 200 MiB of memory",
    "start_many_processes": "it exceeded 40 processes and threads",
    "start_many_threads": "it exceeded 40 processes and threads",
    "open_many_files": "it exceeded 100000 open files",
    "open_many_terminals": "it exceeded 1000 terminals",
}


UNSEEN = {"fill_detached_memory", "send_files_in_memory", "fill_the_temporary_directory"}
"""What only a control group counts."""


COUNTED = {"start_many_processes", "open_many_terminals", "share_much_memory"}
"""What the supervisor counts in another way each; the others are tried in an image by test-deep."""


@pytest.mark.parametrize(
    ("trick", "in_image"),
    [
        *((trick, False) for trick in TOO_MUCH),
        *(
            pytest.param(trick, True, marks=() if trick in COUNTED else pytest.mark.deep)
            for trick in TOO_MUCH
        ),
    ],
)
def test_who_wants_too_much_is_told_so(trick: str, target: Target, *, in_image: bool) -> None:
    image = assembled_image() if in_image else None
    if trick in UNSEEN and not limits_memory():
        pytest.skip("this machine does not let us make a control group for memory")
    ended = try_confined([trick], target, walls_of(target), image)
    assert ended.text == f"\nMulligan ended this command: {TOO_MUCH[trick]}.\n"
    assert ended.exit_code in {-9, 137}
