"""Run tests again as a user who is not root."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

NOBODY = 65534


def run_as_another_user(files: Sequence[str], chosen: str) -> str:
    """Run the tests of files that are chosen (`-k`) as nobody; give what pytest said.

    Skips where nobody else can start a Python.
    """
    setpriv = shutil.which("setpriv")
    if not setpriv:
        pytest.skip("setpriv is not there to become another user")
    user = (setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    python = _python_of(user)
    if python is None:
        pytest.skip("no other user can start a Python here")
    home = Path("/tmp") / f"mulligan-{os.getpid()}"  # noqa: S108 - tmp_path is closed to others
    home.mkdir()
    try:
        os.chown(home, NOBODY, NOBODY)
        done = subprocess.run(
            [
                *user,
                *(python, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"),
                *(f"--basetemp={home}/tests", "-k", chosen, *files),
            ],
            cwd=Path(__file__).parents[2],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "PYTHONPATH": ":".join(sys.path),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _python_of(user: Sequence[str]) -> str | None:
    """Find a Python that another user can start, and start again."""
    again = (
        "import pydantic, subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        command = [*user, python, "-c", again]
        tried = subprocess.run(command, cwd="/", env=environment, capture_output=True, check=False)
        if not tried.returncode:
            return python
    return None
