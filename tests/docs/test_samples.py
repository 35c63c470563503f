"""Every sample configuration of docs/samples.md is valid, and its own check does what it shows."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from mulligan.config.load import load_operator, load_policy
from world.fork_server import run_forked

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


def test_the_check_of_its_own_reports_what_the_page_shows(tmp_path: Path) -> None:
    section = PAGE.partition("## A check of your own")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\w+\n(?:# (\S+)\n)?(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    for name, text in blocks[:2]:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    make, check, *shown = blocks[2][1].splitlines()
    subprocess.run(["/bin/sh", "-c", make[2:]], cwd=tmp_path, check=True)
    done = run_forked(check.split()[2:], tmp_path, {"PATH": os.environ["PATH"]})
    said = re.sub(r"\d\.\d s$", "0.0 s", done.stdout, flags=re.MULTILINE)
    assert said.splitlines() == shown, done.stderr
