"""Every sample configuration of docs/samples.md is valid."""

import re
from pathlib import Path

import pytest

from mulligan.config.load import load_operator, load_policy

PAGE = (Path(__file__).parents[2] / "docs" / "samples.md").read_text()
SAMPLE = re.compile(r"^```yaml\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPERATORS = [text for name, text in SAMPLE.findall(PAGE) if name == "mulligan.yml"]
POLICIES = [text for name, text in SAMPLE.findall(PAGE) if name == ".github/mulligan.yml"]
LANGUAGES = ("Python", "Node", "Go", "Rust", "Java", "Ruby", "A monorepo")


@pytest.mark.parametrize("text", POLICIES)
def test_each_policy_is_valid_and_has_a_check(text: str) -> None:
    policy = load_policy(text.encode(), {}, "sample")
    assert any(check.required for check in policy.checks)


@pytest.mark.parametrize("text", OPERATORS)
def test_each_operator_file_is_valid(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mulligan.yml"
    path.write_text(text)
    assert load_operator(path, {"GITHUB_TOKEN": "x"}).repositories


def test_every_block_is_loaded_and_every_language_has_one() -> None:
    assert len(OPERATORS) + len(POLICIES) == PAGE.count("```yaml") > len(LANGUAGES)
    sections = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}
    assert [name for name in LANGUAGES if "# .github/mulligan.yml" not in sections[name]] == []
