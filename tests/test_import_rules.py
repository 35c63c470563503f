"""Every import rule of pyproject.toml is seen to bite, in several places each."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypedDict

import pytest

ROOT = Path(__file__).parents[1]
PLACES = (
    *("mulligan.agents.runner", "mulligan.checks.runner", "mulligan.config.load"),
    *("mulligan.daemon.worker", "mulligan.domain.issue", "mulligan.git.faults"),
    *("mulligan.github.labels", "mulligan.implement.effects", "mulligan.interfaces.cli.status"),
    *("mulligan.interfaces.notify", "mulligan.sandbox.egress_rules", "mulligan.storage.ledger"),
    *("mulligan.text.escape", "github_simulator.world"),
)
"""One module of each folder: a rule has to hold in all of them but its library's home."""


class Contract(TypedDict, total=False):
    """What this test reads of a contract of import-linter."""

    type: str
    containers: list[str]
    layers: list[str]
    source_modules: list[str]
    forbidden_modules: list[str]
    protected_modules: list[str]
    allowed_importers: list[str]
    ignore_imports: list[str]


Plant = tuple[str, str]
"""A module, and what it must not import."""


def contracts() -> list[Contract]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return settings["tool"]["importlinter"]["contracts"]


def plants() -> set[Plant]:
    """Give every forbidden import that the rules speak of, in each of the places."""
    found = set[Plant]()
    for contract in contracts():
        match contract.get("type"):
            case "layers":
                found.update(upward(contract))
            case "protected":
                found.update(reaching_around(contract))
            case _:
                found.update(away_from_home(contract))
    return found


def upward(contract: Contract) -> Iterator[Plant]:
    """Import each folder from every one below it, and from every sibling."""
    (container,) = contract.get("containers", [])
    rows = [[name.strip() for name in row.split("|")] for row in contract.get("layers", [])]
    for depth, row in enumerate(rows):
        for above in row:
            below = [name for lower in rows[depth + 1 :] for name in lower]
            for name in (*below, *(each for each in row if each != above)):
                yield f"{container}.{name}", f"{container}.{above}"


def reaching_around(contract: Contract) -> Iterator[Plant]:
    for module in contract.get("protected_modules", []):
        for place in ("mulligan.daemon.worker", "mulligan.interfaces.cli.status"):
            yield place, module


def away_from_home(contract: Contract) -> Iterator[Plant]:
    sources = tuple(contract.get("source_modules", []))
    places = [place for place in PLACES if f"{place}.".startswith(tuple(f"{s}." for s in sources))]
    homes = [each.split(" -> ") for each in contract.get("ignore_imports", [])]
    for place in (*places, *(source for source in sources if "." in source)):
        for module in contract.get("forbidden_modules", []):
            if not any(fnmatchcase(place, home) and module == lib for home, lib in homes):
                yield place, module


def file_of(module: str, root: Path) -> Path:
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> set[Plant]:
    """Plant every forbidden import in a copy of the code; give those that the linter names."""
    copy = tmp_path_factory.mktemp("planted")
    shutil.copy(ROOT / "pyproject.toml", copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for place, module in sorted(plants()):
        with file_of(place, copy / "src").open("a") as code:
            code.write(f"\nimport {module}\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=copy,
        env={"PYTHONPATH": str(copy / "src"), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stdout.split())
    return {(a, b) for a, b in re.findall(r"([\w.]+) -> ([\w.]+) \(l\.", said)}


def test_every_forbidden_import_is_refused(refused: set[Plant]) -> None:
    assert sorted(plants() - refused) == []
    assert len(plants()) > 300
