"""Which program a shell line starts with, whether the shell finds it, and which one it is."""

import os
from pathlib import Path

import pytest

from mulligan.checks.runner import program_exists, program_of, toolchain_of


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("python -m pytest -q", "python"),
        ("CI=1 NO_COLOR=1 make test", "make"),
        ("./run.sh --all", "./run.sh"),
        ("cd sub && ruff check .", "cd"),
        ("pytest;true", "pytest"),
        ("$PYTHON -m pytest", ""),
        ("'unfinished", ""),
        ("(cd sub; make)", ""),
        ("", ""),
    ],
)
def test_the_first_word_that_is_run_is_the_program(line: str, program: str) -> None:
    assert program_of(line) == program


def test_the_shell_says_what_it_finds(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\n")
    (tmp_path / "mine").chmod(0o755)
    environment = {"PATH": str(tmp_path)}
    assert program_exists("mine", environment)
    assert program_exists("cd", environment)
    assert program_exists(str(tmp_path / "mine"), {})
    assert not program_exists("git", environment)
    assert not program_exists("mine", {})


def test_a_toolchain_is_another_one_once_a_program_changes(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    tool = programs / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    times = (programs.stat().st_atime_ns, programs.stat().st_mtime_ns)

    def known(line: str = "tool --all && missing", path: str = str(programs)) -> str:
        os.utime(programs, ns=times)
        return toolchain_of([line], path)

    first = known()
    assert known() == first
    assert known(path=f"{programs}:/nowhere") != first
    tool.write_text("#!/bin/sh\nexit 1\n")
    replaced = known()
    assert replaced != first
    (programs / "newer").symlink_to(tool)
    os.utime(programs, ns=(times[0], times[1] + 1))
    assert toolchain_of(["tool --all && missing"], str(programs)) != replaced


def test_programs_that_no_line_names_count_by_their_directory_only(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("#!/bin/sh\n")
    (tmp_path / "other").chmod(0o755)
    first = toolchain_of(["tool"], str(tmp_path))
    (tmp_path / "other").write_text("#!/bin/sh\nexit 1\n")
    assert toolchain_of(["tool"], str(tmp_path)) == first
    assert toolchain_of(["sh -c other"], str(tmp_path)) != first
