"""Mulligan works on a clone of its own repository, with ruff and some pure tests as checks."""

import subprocess
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from world.place import mulligan_installation
from world.repositories import read_branch

ROOT = Path(__file__).parents[2]
CHECKS = [
    {"name": "lint", "run": "ruff check --no-cache src/mulligan/text tests/text", "kind": "lint"},
    {"name": "format", "run": "ruff format --no-cache --check src/mulligan/text", "kind": "format"},
    {
        "name": "pure tests",
        "run": "PYTHONPATH=src python -m pytest -q -n 0 -p no:cacheprovider tests/text/test_[cf]*",
        "kind": "test",
    },
]
AGENT = '''
told = "test_plural" in prompt and "F401" in prompt
right = 'count == 1' if told else 'count == 2'
opening = '' if told else 'import json\\n\\n'
pathlib.Path("src/mulligan/text/counts.py").write_text(
    f"""\\"\\"\\"Counts with their nouns. Pure.\\"\\"\\"

{opening}
def plural(count: int, noun: str) -> str:
    \\"\\"\\"Write a count with its noun.\\"\\"\\"
    return f"{{count}} {{noun}}" if {right} else f"{{count}} {{noun}}s"
""")
pathlib.Path("tests/text/test_counts.py").write_text(
    """from mulligan.text.counts import plural


def test_plural() -> None:
    assert [plural(1, "word"), plural(2, "word")] == ["1 word", "2 words"]
""")
'''


@pytest.mark.deep
def test_a_red_try_on_its_own_code_is_mended_by_the_next(tmp_path: Path) -> None:
    bare = tmp_path / "mulligan.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(ROOT), str(bare)], check=True)
    with mulligan_installation(tmp_path, bare, CHECKS) as here:
        here.agent(AGENT)
        ref = here.issue("Say counts with their nouns", "We need `plural(count, noun)`.")
        told = here.run("once").stdout
        first, second = here.attempts(ref)
    assert (first.outcome, second.outcome) == (Outcome.CHECKS_FAILED, Outcome.SUCCEEDED), told
    assert {check.name for check in first.checks if not check.passed} == {"lint", "pure tests"}
    assert "count == 1" in read_branch(bare, ref.branch, "src/mulligan/text/counts.py")
