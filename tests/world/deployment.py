"""The files of `deploy/`, and the programs that check them."""

import os
import shlex
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from pydantic import JsonValue, TypeAdapter

from mulligan.config.load import load_operator
from mulligan.config.operator import Operator
from world.place import BIN

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MARGIN = timedelta(minutes=1)
"""The time that Mulligan may need after the grace period to stop, and to record that."""
MAPPING: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def read_yaml(path: Path) -> dict[str, JsonValue]:
    return MAPPING.validate_python(yaml.safe_load(path.read_text()))


def example(name: str) -> Operator:
    """Read an example configuration as Mulligan does; no variable is set."""
    return load_operator(DEPLOY / name, {})


def judge(name: str, *arguments: str | Path) -> str:
    """Run a checking program, which must exit with 0; return its output."""
    done = subprocess.run(
        [_found(name), *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def flags_exist(command: str) -> None:
    """See that `COMMAND --flag …` of Mulligan is one."""
    name, *rest = shlex.split(command)
    told = judge("mulligan", name, "--help")
    assert [word for word in rest if word.startswith("-") and word not in told] == []


def _found(name: str) -> str:
    found = shutil.which(name, path=f"{BIN}:{os.environ['PATH']}")
    if found is None:
        # A check that is skipped in CI would never be missed.
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say(f"{name} is not installed here; .ci/run installs it")
    return found
