"""docs/configuration.md is what the settings say of themselves."""

import re
from pathlib import Path

import yaml

from mulligan.config.load import load_operator, load_policy
from mulligan.config.schema import reference

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference(), "run: make docs"


def test_every_key_has_its_meaning() -> None:
    rows = [line.split("|") for line in reference().splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert [row[1] for row in rows if not row[3].strip() or "None" in row[3]] == []


def test_the_examples_on_the_page_are_valid(tmp_path: Path) -> None:
    operator, policy = BLOCK.findall(reference())
    path = tmp_path / "mulligan.yml"
    path.write_text(operator)
    assert load_operator(path, {"GITHUB_TOKEN": "x"}).repositories
    assert load_policy(policy.encode(), {}, "page").checks
    assert yaml.safe_load(policy)["max_issue_attempts"] == 3
