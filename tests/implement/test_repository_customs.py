"""Template and form of titles are read from the base branch, and nothing runs (PR-10, PR-11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from mulligan.config.policy import Policy, PullRequestSettings, TitleSource
from mulligan.implement.change_title import PLAIN, Form, TitleStyle
from mulligan.implement.repository_customs import read_template, read_title_style, wanted_title
from world.plain_worktrees import names_in

NAME = "octo/calc"


@dataclass(frozen=True)
class Files:
    """The files of a base branch, as far as a template is looked for in them."""

    files: Mapping[str, bytes]
    subjects: Sequence[str] = ()

    def base_subjects(self, repository: str, sha: str, most: int) -> Sequence[str]:
        assert (repository, sha, most) == (NAME, SHA, 50)
        return self.subjects

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        assert repository == NAME
        return self.files.get(path)

    def base_names(self, repository: str, *directories: str) -> tuple[str, ...]:
        assert repository == NAME
        return names_in(self.files, directories)


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


SHA = "a" * 40


def style(
    files: Mapping[str, bytes], *subjects: str, title: TitleSource = TitleSource.CHANGE
) -> TitleStyle:
    wanted = Policy(pull_request=PullRequestSettings(title=title))
    return read_title_style(NAME, wanted, Files(files, subjects), SHA)


YAML = b"extends: ['@commitlint/config-conventional']\nrules:\n  type-enum: [2, always, [new]]\n"
JSON = b'{\n\t"rules": {"type-enum": [2, "always", ["new"]]}}'
IN_PACKAGE = b'{"name": "x", "commitlint": {"rules": {"type-enum": [2, "always", ["new"]]}}}'


@pytest.mark.parametrize(
    "files",
    [
        {".commitlintrc": YAML},
        {".commitlintrc": JSON},
        {".commitlintrc.yml": YAML},
        {".commitlintrc.yaml": YAML},
        {".commitlintrc.json": JSON},
        {"package.json": IN_PACKAGE},
        {".commitlintrc.json": b"[1", ".commitlintrc.yml": YAML},
    ],
)
def test_commitlint_is_read_where_it_is_no_program(files: Mapping[str, bytes]) -> None:
    assert style(files, *["Add it"] * 9).types == ("new",)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"commitlint.config.js": b"process.exit(1)", ".commitlintrc.cjs": b"throw 1"},
        {"package.json": b'{"name": "x"}'},
        {"package.json": b'{"commitlint": "x"}'},
        {"package.json": b"not JSON: ["},
        {".commitlintrc": b"- a list\n"},
        {".commitlintrc": b"a: &a [*a]\n? {b: c}\n: d\n"},
        {".commitlintrc.json": b'{"a":' * 5000},
        {"docs/.commitlintrc.json": JSON},
    ],
)
def test_without_such_a_file_the_history_decides(files: Mapping[str, bytes]) -> None:
    assert style(files, *["fix: it"] * 9) == TitleStyle(Form.CONVENTIONAL)
    assert style(files) == PLAIN


def test_a_policy_may_keep_the_issues_title() -> None:
    assert style({".commitlintrc": YAML}, *["fix: it"] * 9, title=TitleSource.ISSUE) == PLAIN
    kept = Policy(pull_request=PullRequestSettings(title=TitleSource.ISSUE))
    assert (wanted_title(kept, PLAIN), wanted_title(Policy(), PLAIN) != "") == ("", True)
    assert read_title_style(NAME, Policy(), Files({".commitlintrc": YAML}), "") == PLAIN
