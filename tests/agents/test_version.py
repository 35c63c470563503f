"""Which agent it is, and its version, is known before it runs."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter
from mulligan.config.operator import AgentSettings
from mulligan.domain.host import AgentIdentity, RunLimits

PATH = {"PATH": os.environ["PATH"]}


def agent(directory: Path, script: str, *version_arguments: str) -> CommandAgent:
    program = directory / "agent"
    program.write_text(f"#!/bin/sh\necho run >> {directory}/runs\n{script}\n")
    program.chmod(0o755)
    adapter = Adapter(program=str(program), version_arguments=version_arguments)
    return CommandAgent(AgentSettings(kind="mine"), PATH, own=OperatorAgents({"mine": adapter}, {}))


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ('echo "mine v2.1.197-beta.1 (build 7) $1"', "2.1.197-beta.1"),
        ("echo 'Loading ...' >&2; echo 0.46.0", "0.46.0"),
        ("echo none; exit 3", None),
        ("touch $HOME/ours && echo $HOME | grep -q mulligan-version && echo 1.0", "1.0"),
    ],
)
def test_its_version_is_what_its_program_says(
    tmp_path: Path, script: str, version: str | None
) -> None:
    found = agent(tmp_path, script, "--version")
    assert found.identity == AgentIdentity("mine", version, "off")
    assert found.limits == RunLimits(timedelta(hours=1), timedelta(minutes=15))
    assert found.identity.version == version
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_program_that_is_missing_has_no_version(tmp_path: Path) -> None:
    found = agent(tmp_path, "", "--version")
    (tmp_path / "agent").unlink()
    assert found.identity.version is None


def test_a_program_is_not_asked_where_nobody_said_how(tmp_path: Path) -> None:
    assert agent(tmp_path, "").identity == AgentIdentity("mine", None, "off")
    assert not (tmp_path / "runs").exists()
