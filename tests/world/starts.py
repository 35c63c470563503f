"""Clones of sample repositories, and `mulligan` run in them as a person does."""

import os
import shutil
import subprocess
from pathlib import Path

from world.fork_server import run_forked
from world.place import BIN
from world.repositories import git

SAMPLES = Path(__file__).parents[1] / "fixtures" / "repositories"


def run_mulligan(
    directory: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}:{os.environ['PATH']}"
    return run_forked(
        arguments, directory, {"PATH": path, "HOME": str(directory.parent)} | environment
    )


def clone(directory: Path, sample: str, url: str = "") -> Path:
    made = directory / "clone"
    shutil.copytree(SAMPLES / sample, made)
    git(made, "init", "--quiet", "--initial-branch", "main")
    if url:
        git(made, "remote", "add", "origin", url)
    return made
