"""What `make release-check` built in dist/, installed by pip, pipx and uv, with nothing else."""

import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

pytestmark = pytest.mark.release
ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(scope="module")
def wheel() -> Path:
    """Give the only wheel."""
    (found,) = DIST.glob("*.whl")
    return found


def program(name: str) -> str:
    """Find a program along the PATH; `make release-check` installs pipx and uv."""
    found = shutil.which(name)
    assert found, f"{name} is missing: run `make release-check`"
    return found


WAYS: dict[str, Sequence[Sequence[str]]] = {
    "pip": (("python3", "-m", "venv", "{home}/.local"), ("{home}/.local/bin/pip", "install")),
    "pipx": (("pipx", "install"),),
    "uv": (("uv", "tool", "install", "--python", "python3"),),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_else_is_needed(way: str, wheel: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    bare = {**kept, "HOME": str(tmp_path), "PATH": SYSTEM}
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "VIRTUAL_ENV"):
        bare.pop(name, None)
    *before, (first, *rest) = [[part.format(home=tmp_path) for part in one] for one in WAYS[way]]
    began = time.monotonic()
    for command in (*before, [first, *rest, str(wheel)]):
        subprocess.run([program(command[0]), *command[1:]], env=bare, check=True)
    installed = time.monotonic()
    mulligan = str(tmp_path / ".local/bin/mulligan")
    version = subprocess.run([mulligan, "--version"], env=bare, capture_output=True, check=True)
    started = time.monotonic()
    subprocess.run([mulligan, "--help"], env=bare, capture_output=True, check=True)
    helped = time.monotonic()
    assert version.stdout.decode().split() == ["mulligan", wheel.name.split("-")[1]]
    demo = subprocess.run([mulligan, "demo"], env=bare, capture_output=True, check=True, text=True)
    assert "pull request http" in demo.stdout
    assert "human review" in demo.stdout
    size = sum(each.stat().st_size for each in tmp_path.rglob("*.*") if each.is_file())
    took = f"{installed - began:.0f} s to install, {time.monotonic() - helped:.0f} s of demo"
    took += f", {helped - started:.2f} s for --help, {size / 1024**2:.0f} MiB in HOME"
    print(f"\n{wheel.stat().st_size / 1024:.0f} KiB by {way}: {took}")  # noqa: T201 - the report


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    (source,) = DIST.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    (again,) = WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    assert Path(again).read_bytes() == wheel.read_bytes()
