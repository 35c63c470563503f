"""The code keeps the shape that the style sheet promises (CONTRIBUTING)."""

import ast
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from world.sources import tree_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = sorted(SOURCE.rglob("*.py"))
BANNED_NAMES = {"manager", "helper", "helpers", "util", "utils", "handler", "handlers"}
BROAD_HANDLERS = {
    "mulligan/checks/digest/__init__.py": 1,
    "mulligan/daemon/daemon.py": 1,
    "mulligan/daemon/poll.py": 1,
    "mulligan/daemon/worker.py": 1,
}
"""The four places that may catch Exception (RECOVERY-4)."""


def test_every_module_opens_with_its_job() -> None:
    assert [str(file) for file in FILES if not ast.get_docstring(tree_of(file))] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(file) for file in FILES if set(file.stem.split("_")) & BANNED_NAMES] == []


def is_broad(node: ast.AST) -> bool:
    """Tell a handler that catches everything and keeps it."""
    if not isinstance(node, ast.ExceptHandler) or isinstance(node.body[-1], ast.Raise):
        return False
    everything = {"Exception", "BaseException"}
    return node.type is None or (isinstance(node.type, ast.Name) and node.type.id in everything)


def test_only_four_places_catch_everything() -> None:
    counts = {
        str(file.relative_to(SOURCE)): sum(map(is_broad, ast.walk(tree_of(file)))) for file in FILES
    }
    assert {file: count for file, count in counts.items() if count} == BROAD_HANDLERS


OWN_TABLES = {
    *("mulligan/checks/digest/heads.py", "mulligan/checks/digest/identity.py"),
    *("mulligan/git/faults.py", "mulligan/github/answers.py", "mulligan/github/comments.py"),
    *("mulligan/github/found_work.py", "mulligan/github/retries.py"),
    *("mulligan/interfaces/onboarding/ecosystems.py", "mulligan/text/certificates.py"),
    *("mulligan/interfaces/onboarding/tree.py", "mulligan/text/markdown.py"),
    # A rule of the simulated GitHub is the tester's own.
    "github_simulator/pre_receive.py",
}
"""Files that give `re` a pattern in a variable: it comes from a table or a call of Mulligan."""


def has_variable_pattern(node: ast.AST) -> bool:
    """Tell a call of `re` with a pattern that is neither written there nor a constant."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name), args=[first, *_]):
            is_variable = isinstance(first, ast.Name) and not first.id.isupper()
            return name != "escape" and (is_variable or isinstance(first, ast.Attribute))
        case _:
            return False


def test_patterns_of_others_are_matched_by_re2_only() -> None:
    """What others write goes to `domain/patterns.py` or `domain/globs.py` (CONFIG-4)."""
    found = {file for file in FILES if any(map(has_variable_pattern, ast.walk(tree_of(file))))}
    assert {str(file.relative_to(SOURCE)) for file in found} <= OWN_TABLES


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
    suspects = [file for file in FILES if any(word in file.read_text() for word in words)]
    said = {str(file): " ".join(comments(file)) for file in suspects}
    assert [file for file, text in said.items() if any(word in text for word in words)] == []


def imported_by(node: ast.AST) -> list[str]:
    """Name the modules that a statement, or a call of `import_module`, imports."""
    match node:
        case ast.Import(names=names):
            return [each.name for each in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
        case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(module))]):
            return [module]
        case _:
            return []


def test_every_imported_library_is_declared() -> None:
    """Otherwise an update of another library may remove it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["fleet"]]
    declared = {canonicalize_name(Requirement(each).name) for each in needed}
    nodes = (node for file in FILES for node in ast.walk(tree_of(file)))
    packages = {name.partition(".")[0] for node in nodes for name in imported_by(node)}
    packages -= {*sys.stdlib_module_names, *(path.name for path in SOURCE.iterdir())}
    homes = packages_distributions()
    undeclared = {
        package
        for package in packages
        if declared.isdisjoint(map(canonicalize_name, homes.get(package, [])))
    }
    assert undeclared == set()


def test_the_top_of_the_house_stays_small() -> None:
    top = [path for path in (SOURCE / "mulligan").iterdir() if path.name != "__pycache__"]
    assert len([path for path in top if path.is_dir()]) <= 14
    assert len([path for path in top if path.is_file()]) <= 4


def test_every_mutant_made_by_hand_still_fits_the_code() -> None:
    """Otherwise `make mutants`, which runs for half an hour, fails at the end."""
    found = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text())["mutant"]
    stale = [m["fault"] for m in found if (SOURCE / m["file"]).read_text().count(m["old"]) != 1]
    tests = {test.partition("::")[0] for m in found for test in m["tests"]}
    assert (stale, [test for test in tests if not (ROOT / test).exists()]) == ([], [])
