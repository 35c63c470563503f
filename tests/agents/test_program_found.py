"""Whether the agent's program, its files and its variables are there."""

from pathlib import Path

import pytest

from mulligan.agents.runner import find_program
from mulligan.config.operator import AgentSettings
from mulligan.daemon.doctor import agent_faults


def program(place: Path, mode: int = 0o755) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(mode)
    return place


def test_the_program_is_looked_for_as_it_is_started(tmp_path: Path) -> None:
    program(tmp_path / "first" / "agent", mode=0o644)
    there = program(tmp_path / "second" / "agent")
    (tmp_path / "third" / "agent").mkdir(parents=True)
    path = ":".join(str(tmp_path / name) for name in ("third", "first", "second"))
    assert find_program(AgentSettings(command=("agent",)), {"PATH": path}).program == str(there)
    assert find_program(AgentSettings(command=(str(there),)), {"PATH": ""}).program == str(there)


@pytest.mark.parametrize("name", ["agent-nobody-has", "/nowhere/agent", "./agent"])
def test_a_program_that_is_not_there_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "agent")
    monkeypatch.chdir(tmp_path)  # worktrees are elsewhere
    assert find_program(AgentSettings(command=(name,)), {"PATH": str(tmp_path)}).program is None


def test_a_file_that_nobody_may_execute_is_named(tmp_path: Path) -> None:
    there = program(tmp_path / "first" / "agent", mode=0o644)
    for name, path in (("agent", f"{tmp_path}:{there.parent}"), (str(there), "")):
        found = find_program(AgentSettings(command=(name,)), {"PATH": path})
        assert (found.program, found.not_executable) == (None, str(there))
        (reason,) = agent_faults("", found)
        assert reason.message == f"The agent's program {there} is not executable."
        assert reason.fix == f"Run `chmod +x {there}` as its owner."
    there.chmod(0o755)
    assert find_program(AgentSettings(command=(str(there),)), {}).not_executable == ""


def test_without_a_path_the_systems_own_is_searched() -> None:
    assert find_program(AgentSettings(command=("sh",)), {}).program in {"/bin/sh", "/usr/bin/sh"}


def test_files_and_variables_that_are_missing_are_named(tmp_path: Path) -> None:
    there = program(tmp_path / "agent.py", mode=0o644)
    settings = AgentSettings(
        command=("sh", str(there), "/nowhere/agent.py", "relative.py"), env=("HAVE", "LACK")
    )
    found = find_program(settings, {"PATH": "/bin", "HAVE": "1"})
    assert found.missing_files == ("/nowhere/agent.py",)
    assert found.missing_variables == ("LACK",)
