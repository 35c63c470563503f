"""Real tools, run on small projects of their own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PASSING = "".join(
    f"  [ok] step {number} of the build took {number % 9}s and went well\n"
    for number in range(6000)
)
"""Thousands of lines that nobody needs."""


@dataclass(frozen=True)
class ToolRun:
    """The output of a tool, and its exit code."""

    output: bytes
    exit_code: int


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    """Write a project; give its directory."""
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def run_tool(directory: Path, *argv: str) -> ToolRun:
    """Run a program as a check would be run, its errors with its output."""
    done = subprocess.run(
        argv,
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "LANG": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=120,
    )
    return ToolRun(done.stdout, done.returncode)


def run_pytest(directory: Path, *options: str) -> ToolRun:
    """Run pytest on a project, without what leaves files behind, shuffles, or is slow to load."""
    plugins = ("cacheprovider", "randomly", "anyio", "hypothesispytest", "schemathesis")
    without = [f"-pno:{plugin}" for plugin in plugins]
    return run_tool(directory, sys.executable, "-B", "-m", "pytest", *without, *options)
