"""Setup commands and checks start what pipx and version managers installed in Mulligan's HOME."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check
from mulligan.sandbox.sandbox import Sandbox, Unconfined
from world.confined import sandbox
from world.trees import PlainWorktree, plain_worktree


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.local/bin").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def tree(tmp_path: Path) -> PlainWorktree:
    return plain_worktree(tmp_path / "work")


def walls(*, is_confined: bool) -> Sandbox:
    return sandbox() if is_confined else Unconfined()


def verifier(home: Path, *path: str, is_confined: bool = True) -> CommandVerifier:
    places = ":".join([*(str(home / each) for each in path), os.defpath])
    return CommandVerifier({"PATH": places, "HOME": str(home)}, walls(is_confined=is_confined))


def test_a_program_of_pipx_is_found(home: Path, tree: PlainWorktree) -> None:
    venv = home / ".local/share/pipx/venvs/uv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    tool = venv / "bin" / "uv"
    tool.write_text(f"#!{venv}/bin/python\nimport sys\nprint(sys.prefix)\n")
    tool.chmod(0o755)
    (home / ".local/bin/uv").symlink_to(tool)
    checks, log = verifier(home, ".local/bin"), tree.private / "it.log"
    assert checks.set_up(["uv sync"], tree, log).passed
    assert checks.check(Check(name="it", run="uv run pytest"), tree, log).passed
    assert log.read_text().strip() == str(venv)


@pytest.mark.parametrize("is_confined", [True, False])
def test_a_version_manager_finds_its_files(
    home: Path, tree: PlainWorktree, *, is_confined: bool
) -> None:
    """HOME is another one for commands, with a sandbox and without."""
    toolchain = home / ".rustup/toolchains/stable/bin/cargo"
    toolchain.parent.mkdir(parents=True)
    toolchain.write_text("#!/bin/sh\necho it works\n")
    rustup = home / ".cargo/bin/rustup"
    rustup.parent.mkdir(parents=True)
    rustup.write_text('#!/bin/sh\nexec "${RUSTUP_HOME:-$HOME/.rustup}/toolchains/stable/bin/cargo"')
    (rustup.parent / "cargo").symlink_to("rustup")
    for each in (toolchain, rustup):
        each.chmod(0o755)
    checks = verifier(home, ".cargo/bin", is_confined=is_confined)
    assert checks.set_up(["cargo test"], tree, tree.private / "it.log").passed
