"""Which program a shell line starts with, and whether the shell finds it."""

from pathlib import Path

import pytest

from mulligan.checks.runner import program_exists, program_of


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
