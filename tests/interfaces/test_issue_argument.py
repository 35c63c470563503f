"""An issue is named as `gh` takes it: in full, by its address, or by its number in a clone."""

from pathlib import Path

import pytest

from mulligan.config.load import read_operator
from mulligan.config.operator import Operator
from mulligan.domain.errors import UsageError
from mulligan.interfaces.cli.issue_argument import issue_of
from world.repositories import git


def configured(*names: str) -> Operator:
    listed = ", ".join(f"{{name: {name}}}" for name in names)
    text = f"repositories: [{listed}]\nagent: {{command: [sh]}}\n"
    return read_operator(text.encode(), {"GITHUB_TOKEN": "x"}, "mulligan.yml", {})


ONE, TWO = configured("acme/Tools"), configured("acme/Tools", "acme/site")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a directory of a clone whose repository a test names."""
    git(tmp_path, "init", "-q")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "acme/Tools#7",
        "ACME/tools#7",
        "https://github.com/acme/tools/issues/7",
        "https://github.com/acme/tools/issues/7#issuecomment-12",
        "https://github.com/acme/tools/issues/7/?a=b",
        "http://127.0.0.1:4901/acme/tools/pull/7",
        "7",
        "#7",
    ],
)
def test_it_is_the_issue_of_the_only_repository(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(issue_of(text, ONE)) == "acme/Tools#7"


@pytest.mark.parametrize("address", ["git@github.com:acme/site.git", "https://x.example/acme/Site"])
def test_a_number_belongs_to_the_clone(clone: Path, address: str) -> None:
    git(clone, "remote", "add", "origin", address)
    assert str(issue_of("7", TWO)) == "acme/site#7"


def test_a_number_in_the_clone_of_another_repository_is_no_issue_of_the_only_one(
    clone: Path,
) -> None:
    git(clone, "remote", "add", "origin", "https://github.com/acme/other")
    with pytest.raises(UsageError, match="acme/other is not in the configuration"):
        issue_of("7", ONE)


def test_a_number_that_may_be_of_several_repositories_is_asked_for_in_full(clone: Path) -> None:
    del clone
    with pytest.raises(UsageError) as refused:
        issue_of("#7", TWO)
    assert str(refused.value) == "7 may be of 2 repositories; write OWNER/NAME#7."


@pytest.mark.parametrize("text", ["", "x", "0", "acme/tools", "acme/tools#x", "https://x/a/b"])
def test_anything_else_is_explained(text: str) -> None:
    with pytest.raises(UsageError, match="does not name an issue; write OWNER/NAME#NUMBER"):
        issue_of(text, ONE)
