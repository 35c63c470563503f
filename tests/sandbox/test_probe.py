"""Whether commands can be confined is tried, on machines as they are found."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.config.operator import SandboxLimits, SandboxSettings
from mulligan.sandbox.probe import FULL_DISK, NONE_ALLOWED, NOT_INSTALLED, TOO_OLD, probe_sandbox
from world.confined import sandbox

TRY = """
import os
from mulligan.config.operator import SandboxSettings
from mulligan.sandbox.probe import probe_sandbox
print(probe_sandbox(SandboxSettings(), os.environ).problem)
"""


def test_a_sandbox_that_works_is_given() -> None:
    sandbox()
    tried = probe_sandbox(SandboxSettings(limits=SandboxLimits(processes=99)), os.environ)
    assert tried.sandbox
    assert tried.problem is None
    assert tried.filters is (os.uname().machine in {"x86_64", "aarch64"})
    assert tried.sandbox.limits.processes == 99


def test_without_bubblewrap_there_is_none(tmp_path: Path) -> None:
    tried = probe_sandbox(SandboxSettings(), {"PATH": str(tmp_path)})
    assert (tried.sandbox, tried.problem, tried.filters) == (None, NOT_INSTALLED, False)


def pretending(here: Path, script: str) -> dict[str, str]:
    """Put a bubblewrap on the PATH that says what others say elsewhere."""
    program = here / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": str(here)}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'bwrap: Unknown option --disable-userns' >&2; exit 1", TOO_OLD.message),
        ("echo 'bwrap: Odd things happen' >&2; exit 1", "does not work here: Odd things happen."),
        ("exit 0", "does not work here: it says nothing."),
    ],
)
def test_one_that_does_not_work_is_none(script: str, words: str, tmp_path: Path) -> None:
    tried = probe_sandbox(SandboxSettings(), pretending(tmp_path, script))
    assert tried.sandbox is None
    assert words in str(tried.problem)


def test_inside_another_sandbox_it_says_that_no_namespaces_may_be_made(tmp_path: Path) -> None:
    sandbox()
    bwrap = shutil.which("bwrap")
    assert bwrap
    walls = ("--unshare-user", "--disable-userns", "--bind", "/", "/", "--dev", "/dev")
    done = subprocess.run(
        [bwrap, *walls, "--proc", "/proc", "--unshare-pid", sys.executable, "-c", TRY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(NONE_ALLOWED), done.stderr


@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is not there")
def test_a_limit_of_none_is_told(tmp_path: Path) -> None:
    sandbox()
    line = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", line, "sh", sys.executable, "-c", TRY],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(NONE_ALLOWED), done.stderr


def tried_after(line: str, place: Path) -> str:
    """Try in mounts of its own, that a line of the shell has changed; `$0` is a directory."""
    sandbox()
    # Python would find itself another place where this one is full.
    program = f"import tempfile; tempfile.tempdir = {str(place)!r}\n{TRY}"
    argv = (sys.executable, "-c", program)
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-ec", f'{line}; exec "$@"', str(place), *argv],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is not there")
@pytest.mark.parametrize(
    "line",
    [
        'mount -t tmpfs -o nr_inodes=1 none "$0"',
        'mount -t tmpfs -o size=4k none "$0"; head -c 8k /dev/zero > "$0/full" || true',
    ],
    ids=["no inodes", "no bytes"],
)
def test_a_full_disk_is_told(line: str, tmp_path: Path) -> None:
    assert tried_after(line, tmp_path) == str(FULL_DISK)


@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is not there")
def test_control_groups_that_cannot_be_written_do_not_matter(tmp_path: Path) -> None:
    line = "mount --rbind /sys/fs/cgroup /sys/fs/cgroup; mount -o remount,bind,ro /sys/fs/cgroup"
    assert tried_after(line, tmp_path) == "None"
