"""Every outcome, exit code, error type and command has its entry, and every entry is of"
" the code."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

import mulligan
from mulligan.domain.command import Verb
from mulligan.domain.errors import MulliganError
from mulligan.domain.outcome import Outcome
from mulligan.implement.prompt.outcome_text import TITLES
from mulligan.interfaces.cli.app import app, debug_app
from mulligan.interfaces.cli.exit_codes import Exit
from world.sources import tree_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/troubleshooting.md").read_text()
COMMANDS = (ROOT / "docs/commands.md").read_text()
PEOPLE = (ROOT / "docs/people.md").read_text()
NOT_RAISED = {"WorldError"}
"""Classes that only group others."""


def section(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `?([^`|\n]+?)`? \|", text, re.MULTILINE)


def error_types(of: type[MulliganError] = MulliganError) -> Iterator[str]:
    for kind in of.__subclasses__():
        if kind.__module__.startswith("mulligan."):
            yield kind.__name__
            yield from error_types(kind)


def texts(node: ast.AST) -> Iterator[str]:
    """Give every string of a module; `…` stands for what is filled in."""
    for each in ast.walk(node):
        if isinstance(each, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in each.values
            )
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def test_every_outcome_has_an_entry() -> None:
    found = re.findall(r"^### (.*) \(`(\w+)`\)$", section(PAGE, "Outcomes"), re.MULTILINE)
    assert {Outcome(name): title for title, name in found} == TITLES
    for entry in section(PAGE, "Outcomes").split("\n### ")[1:]:
        assert re.findall(r"^- \*\*(What happened|Why|What to do)", entry, re.MULTILINE) == [
            "What happened",
            "Why",
            "What to do",
        ], entry


def test_every_exit_code_has_an_entry() -> None:
    codes = [str(int(code)) for code in Exit]
    cells = first_cells(section(COMMANDS, "Exit codes"))
    assert [cell for cell in cells if cell.isdigit()] == codes


def test_every_error_type_has_an_entry() -> None:
    for module in pkgutil.walk_packages(mulligan.__path__, "mulligan."):
        if not module.name.endswith("__main__") and ".migrations" not in module.name:
            importlib.import_module(module.name)
    found = [cell for cell in first_cells(section(PAGE, "Error types")) if cell.endswith("Error")]
    assert found == sorted(set(error_types()) - NOT_RAISED)


@pytest.mark.parametrize(
    "message", [cell for cell in first_cells(section(PAGE, "Messages")) if " " in cell]
)
def test_every_message_is_of_the_code(message: str) -> None:
    start = message.rstrip("… ").rstrip(":")
    assert any(start in text for text in all_texts())


@cache
def all_texts() -> list[str]:
    files = (ROOT / "src/mulligan").rglob("*.py")
    return [text for file in files for text in texts(tree_of(file))]


def commands_of(of: typer.Typer) -> set[str]:
    group = typer.main.get_command(of)
    return set(getattr(group, "commands"))  # noqa: B009 - the type of a group is Click's


def test_every_command_has_a_section() -> None:
    sections = set(re.findall(r"^### `mulligan ((?:debug )?\w+)`$", COMMANDS, re.MULTILINE))
    others = commands_of(debug_app)
    assert sections == (commands_of(app) - others - {"debug"}) | {
        f"debug {each}" for each in others
    }
    for text in COMMANDS.split("\n### `mulligan ")[1:]:
        assert "```console\n$ mulligan " in text, text[:20]


def test_every_comment_command_is_listed() -> None:
    listed = set(re.findall(r"`/mulligan (\w+)", section(PEOPLE, "Commands")))
    assert listed == {verb.value for verb in Verb} - {"mistyped"}
