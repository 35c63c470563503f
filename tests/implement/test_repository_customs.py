"""The template is read from the base branch, from where GitHub looks for it (PR-10)."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from mulligan.config.policy import Policy, PullRequestSettings
from mulligan.implement.repository_customs import read_template

NAME = "octo/calc"


@dataclass(frozen=True)
class Files:
    """The files of a base branch, as far as a template is looked for in them."""

    files: Mapping[str, bytes]

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        assert (repository, sha) == (NAME, None)
        return self.files.get(path)

    def base_names(self, repository: str, directory: str) -> tuple[str, ...]:
        assert repository == NAME
        below = "" if directory == "." else f"{directory}/"
        inside = (path.removeprefix(below) for path in self.files if path.startswith(below))
        return tuple(dict.fromkeys(f"{below}{name.partition('/')[0]}" for name in inside))


def read(files: Mapping[str, bytes], *, wanted: bool = True) -> str:
    policy = Policy(pull_request=PullRequestSettings(template=wanted))
    return read_template(NAME, policy, Files(files))


@pytest.mark.parametrize(
    "path",
    [
        "PULL_REQUEST_TEMPLATE",
        "docs/Pull_Request_Template.txt",
        ".github/pull_request_template.md",
        ".github/PULL_REQUEST_TEMPLATE/only.md",
    ],
)
def test_the_template_is_read(path: str) -> None:
    files = {path: b"## Summary\n", "README.md": b"x"}
    assert read(files) == "## Summary\n"
    assert read(files, wanted=False) == ""


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"src/pull_request_template.md": b"## Summary"},
        {".github/PULL_REQUEST_TEMPLATE/a.md": b"A", ".github/PULL_REQUEST_TEMPLATE/b.md": b"B"},
        {"pull_request_template.md": b"<!-- nothing to see -->"},
        {"pull_request_template.md": b""},
    ],
)
def test_without_one_template_to_use_there_is_none(files: Mapping[str, bytes]) -> None:
    assert read(files) == ""


def test_a_template_that_is_not_utf8_is_still_read() -> None:
    assert read({"pull_request_template.md": b"## \xff"}) == "## \ufffd"
