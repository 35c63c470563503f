"""The code keeps the shape that the style sheet promises (CONTRIBUTING)."""

import ast
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = sorted(SOURCE.rglob("*.py"))
BANNED_NAMES = {"manager", "helper", "helpers", "util", "utils", "handler", "handlers"}
BROAD_HANDLERS = {
    "mulligan/daemon/worker.py": 1,
    "mulligan/daemon/poll.py": 1,
    "mulligan/checks/digest/__init__.py": 1,
}
"""The three places that may catch Exception (DESIGN 3)."""


def test_every_module_opens_with_its_job() -> None:
    assert [str(file) for file in FILES if not ast.get_docstring(ast.parse(file.read_text()))] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(file) for file in FILES if set(file.stem.split("_")) & BANNED_NAMES] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_only_three_places_catch_everything(file: Path) -> None:
    broad = [
        node.lineno
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
        )
        and not isinstance(node.body[-1], ast.Raise)
    ]
    assert len(broad) <= BROAD_HANDLERS.get(str(file.relative_to(SOURCE)), 0), broad


def test_no_blanket_ignores() -> None:
    words = (
        "# type: " + "ignore",
        "# noqa" + "\n",
        "# pyright: " + "ignore\n",
        "# pyright: " + "basic",
    )
    files = [*FILES, *sorted((ROOT / "tests").rglob("*.py"))]
    assert [str(file) for file in files for word in words if word in file.read_text()] == []


def comments(file: Path) -> Iterator[str]:
    with file.open("rb") as lines:
        for token in tokenize.tokenize(lines.readline):
            if token.type == tokenize.COMMENT:
                yield token.string


def test_work_that_is_left_is_in_issues_not_in_comments() -> None:
    words = ("TO" + "DO", "FIX" + "ME", "X" * 3)
    said = {str(file): " ".join(comments(file)) for file in FILES}
    assert [file for file, text in said.items() if any(word in text for word in words)] == []
