"""Clones of sample repositories, and `mulligan` run in them as a person does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from world.place import BIN
from world.repositories import git

SAMPLES = Path(__file__).parents[1] / "fixtures" / "repositories"


def mulligan(
    directory: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mulligan", *arguments],
        cwd=directory,
        env={"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(directory.parent), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def clone(directory: Path, sample: str, url: str = "") -> Path:
    made = directory / "clone"
    shutil.copytree(SAMPLES / sample, made)
    git(made, "init", "--quiet", "--initial-branch", "main")
    if url:
        git(made, "remote", "add", "origin", url)
    return made
