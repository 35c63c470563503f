"""The examples of the Python API, and of each extension, run as the pages show them."""

import doctest
from pathlib import Path

import pytest

from world.repositories import git

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["api.md", "extending.md"])
def test_the_examples_give_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    clone = tmp_path / "hello"
    git(tmp_path, "init", "--quiet", "--initial-branch", "main", str(clone))
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False)
    assert (failed, tried > 20) == (0, True)
