"""docs/architecture.md names files and functions that exist, and draws the folders as they are."""

import ast
import re
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from world.sources import tree_of

ROOT = Path(__file__).parents[2]
SOURCE = Path("src") / "mulligan"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"
PAGES = (
    ARCHITECTURE,
    CONTRIBUTING,
    *(ROOT / "docs" / f"{name}.md" for name in ("extending", "internals", "security")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
)
QUOTED = re.compile(r"`([^`\s]+\.py|[\w./-]+/)(?:: ([\w.]+))?`")
"""A file or a folder, and perhaps the name that is defined in it."""
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
DRAWN = re.compile(r"^```$.*?^```$", re.MULTILINE | re.DOTALL)


def wrong_in(page: str, place: Path, root: Path = ROOT) -> list[str]:
    """List the paths of a page that do not exist, and the names that their file does not define."""
    wrong = [link for link in LINK.findall(page) if not (place / link).exists()]
    for path, name in QUOTED.findall(DRAWN.sub("", page)):
        found = next((each for each in places(path, root) if each.exists()), None)
        if found is None:
            wrong.append(path)
        elif name and name not in set(names_in(tree_of(found))):
            wrong.append(f"{path}: {name}")
    return wrong


def places(path: str, root: Path) -> tuple[Path, ...]:
    return (root / SOURCE / path, root / path)


def names_in(tree: ast.Module | ast.ClassDef, before: str = "") -> Iterator[str]:
    """List what a module defines, and as `Class.name` what its classes define."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield before + name
            case ast.ClassDef(name=name):
                yield before + name
                yield from names_in(node, f"{before}{name}.")
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from (before + each.id for each in named(target))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield before + name
            case _:
                continue


def named(target: ast.expr) -> Iterator[ast.Name]:
    return (each for each in ast.walk(target) if isinstance(each, ast.Name))


@pytest.fixture(scope="module")
def drawn() -> Callable[[Path], str]:
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))["drawn"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Give the parts of the repository that are drawn, to change them."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_and_name_on_the_page_exists(page: Path) -> None:
    assert wrong_in(page.read_text(), page.parent) == []


def test_the_table_names_many_places() -> None:
    table = ARCHITECTURE.read_text().partition("## To change X, open Y")[2]
    rows = [row for row in table.splitlines() if row.startswith("| ") and "| open |" not in row]
    assert len(rows) > 40
    assert [row for row in rows if not QUOTED.search(row)] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("see `engine/watch.py`", "engine/watch.py"),
        ("see `engine/`", "engine/"),
        ("| a row | `implement/decide.py: rule` |", "implement/decide.py: rule"),
        ("`config/operator.py: Limits.leash`", "config/operator.py: Limits.leash"),
        ("a [page](gone.md#part)", "gone.md"),
    ],
)
def test_a_wrong_path_or_name_is_found(text: str, wrong: str) -> None:
    right = "`implement/decide.py: decide`, `config/operator.py: Limits.lease`, [a](glossary.md)"
    assert wrong_in(f"{right} {text}", ROOT / "docs") == [wrong]


def test_another_layer_is_another_drawing(drawn: Callable[[Path], str], copy: Path) -> None:
    contracts = (copy / "pyproject.toml").read_text()
    moved = contracts.replace('    "daemon",\n', "", 1).replace(
        '    "git",\n', '    "git | daemon",\n', 1
    )
    assert moved != contracts
    (copy / "pyproject.toml").write_text(moved)
    assert drawn(copy) not in ARCHITECTURE.read_text()


def test_another_job_is_another_drawing(drawn: Callable[[Path], str], copy: Path) -> None:
    (copy / SOURCE / "daemon" / "__init__.py").write_text('"""Sleeps."""\n')
    assert "daemon/        Sleeps.\n" in drawn(copy)
    assert drawn(copy) not in ARCHITECTURE.read_text()
