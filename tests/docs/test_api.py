"""The examples of the Python API run as the page shows them."""

import doctest
from pathlib import Path

import pytest

from world.repositories import git

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def test_the_examples_give_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "hello"
    git(tmp_path, "init", "--quiet", "--initial-branch", "main", str(clone))
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried > 20) == (0, True)
