"""What a program needs to start is found where it lies, and no more than that is shown."""

import os
import sys
from pathlib import Path

import pytest

from mulligan.sandbox.programs import paths_of_environment, paths_of_program


def program(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    return place


def found(argv: tuple[str, ...], *path: Path) -> set[Path]:
    environment = {"PATH": ":".join(map(str, path))}
    return {*paths_of_program(argv, environment), *paths_of_environment(environment)}


def test_what_belongs_to_the_system_is_there_anyway() -> None:
    assert found(("sh", "-c", "true"), *map(Path, ("/usr/bin", "/bin", "/usr/local/bin"))) == set()


def test_nothing_brings_the_whole_machine() -> None:
    """/bin is a directory of programs like others, and what holds it is /."""
    path = [*os.environ["PATH"].split(":"), "/bin", "/sbin", "/"]
    shown = found(("/bin/sh", "/", "//"), *map(Path, path))
    home = Path("~").expanduser()
    assert [path for path in shown if home.is_relative_to(path)] == []


def test_files_that_are_named_are_read(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.touch()
    assert found(("sh", str(agent), str(tmp_path / "none"), "relative")) == {agent}


def test_a_link_brings_what_it_leads_to(tmp_path: Path) -> None:
    real = program(tmp_path / "versions" / "agent-1.2")
    (tmp_path / "tools").mkdir()
    link = tmp_path / "tools" / "agent"
    link.symlink_to(real)
    assert found(("agent",), link.parent) == {link.parent, link, real}


def test_a_package_of_node_brings_its_modules(tmp_path: Path) -> None:
    modules = tmp_path / "lib" / "node_modules"
    real = program(modules / "agent" / "node_modules" / "core" / "cli.js")
    node = program(tmp_path / "bin" / "node")
    (tmp_path / "bin" / "agent").symlink_to(real)
    assert {tmp_path, modules} < found(("agent",), node.parent)


def test_the_directories_of_the_path_bring_their_installation(tmp_path: Path) -> None:
    python, shims, plain = (tmp_path / name for name in ("python", "env/shims", "home/bin"))
    (python / "lib" / "python3.12").mkdir(parents=True)
    (python / "lib" / "python3.12" / "os.py").touch()
    for directory in (python / "bin", shims, shims.parent / "versions", plain):
        directory.mkdir(parents=True)
    assert found(("sh",), python / "bin", shims, plain, tmp_path / "none") == {
        *(python, python / "bin", shims.parent, shims, plain),
    }


def test_an_environment_of_python_brings_the_python_it_is_of(tmp_path: Path) -> None:
    real = Path(os.path.realpath(sys.executable))
    environment = tmp_path / "venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(real)
    (environment / "pyvenv.cfg").touch()
    shown = found(("python",), environment / "bin")
    assert environment in shown
    assert real in shown or real.is_relative_to("/usr")


def test_a_home_is_not_shown_for_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    tools = program(tmp_path / "bin" / "node").parent
    assert found(("node",), tools) == {tools, tools / "node"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can hide a directory and name it")
def test_what_cannot_be_looked_into_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "closed" / "bin").mkdir(parents=True)
    (tmp_path / "closed").chmod(0)
    assert found(("sh",), tmp_path / "closed" / "bin" / "none") == set()
