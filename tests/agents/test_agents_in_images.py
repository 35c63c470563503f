"""An agent whose program is in the image of a repository runs there (IMAGE-1)."""

import os
from pathlib import Path

import pytest

from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import Task
from mulligan.domain.host import Network
from mulligan.domain.image import Image
from mulligan.sandbox.image_root import has_program
from world.confined import sandbox
from world.images import PATH, assemble

OWN = OperatorAgents({"tinker": Adapter(program="tinker", arguments=("{prompt}",))}, {})
SCRIPT = '#!/bin/sh\ncat /etc/os-release > seen; echo "$1" >> seen; echo "$PATH" >> seen\n'


@pytest.fixture
def image(tmp_path: Path) -> Image:
    made = assemble(tmp_path / "image")
    program = made.root / PATH[1:] / "tinker"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    return made


def agent(kind: str, *command: str) -> CommandAgent:
    settings = AgentSettings(kind=kind, command=command)
    environment = {"PATH": os.environ["PATH"]}
    walls = sandbox()
    return CommandAgent(settings, environment, sandbox=walls, network=Network.NONE, own=OWN)


def test_an_agent_runs_in_the_image_that_has_its_program(image: Image, tmp_path: Path) -> None:
    assert agent("tinker").runs_in(image)
    (tree := tmp_path / "tree").mkdir()
    task = Task(
        *("o/r#1", 1, 0, "Fix it.", tree, tmp_path / "private", tmp_path / "agent.log", ""),
        image=image,
    )
    assert agent("tinker").run(task).exit_code == 0
    assert (tree / "seen").read_text() == f"ID=assembled\nFix it.\n{PATH}\n"


def test_other_agents_run_beside_it(image: Image) -> None:
    (image.root / PATH[1:] / "tinker").unlink()
    assert not agent("tinker").runs_in(image)
    # Most images have a shell, and the operator's script is not in there.
    assert not agent("command", "sh", "/srv/agent.sh").runs_in(image)


def test_a_program_of_the_image_is_found_through_its_links_only(tmp_path: Path) -> None:
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "real").write_text("")
    (tmp_path / "usr" / "bin" / "real").chmod(0o755)
    (tmp_path / "bin").symlink_to("usr/bin")
    for name, target in {
        "absolute": "/usr/bin/real",
        "relative": "real",
        "above": "../../../../usr/bin/real",
        "outside": "/bin/sh",
        "loop": "loop",
        "directory": "/usr/bin",
    }.items():
        (tmp_path / "bin" / name).symlink_to(target)
    found = [
        name
        for name in ("real", "absolute", "relative", "above", "outside", "loop", "directory")
        if has_program(tmp_path, name, "relative:/bin")
    ]
    assert found == ["real", "absolute", "relative", "above"]
    assert has_program(tmp_path, "/bin/real", "")
    assert not has_program(tmp_path, "bin/real", "/")
