"""The wheel holds both packages, with every file that they read, and needs nothing undeclared."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
RUNTIME = ROOT / "requirements/runtime.txt"
READ_AT_RUN_TIME = {
    "github_simulator/pages/templates/style.css",
    "github_simulator/scripted_agent.py",
    "mulligan/git/askpass.sh",
    "mulligan/interfaces/action/caller.yml",
    "mulligan/interfaces/cli/stats.html",
    "mulligan/interfaces/dashboard/static/style.css",
    "mulligan/interfaces/dashboard/templates/home.html",
    "mulligan/sandbox/entry_point.py",
    "mulligan/storage/migrations/env.py",
}
"""Some of the files that no import names; the code finds them by their path."""


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ZipInfo]:
    """Build the wheel; give what is in it, by path."""
    place = tmp_path_factory.mktemp("wheel")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(place), versions=["standard"])
    with ZipFile(wheel) as archive:
        return {each.filename: each for each in archive.infolist()}


def test_a_wheel_holds_every_file_of_both_packages_and_no_other(held: dict[str, ZipInfo]) -> None:
    files = {
        str(file.relative_to(SOURCE))
        for package in ("github_simulator", "mulligan")
        for file in (SOURCE / package).rglob("*.*")
        if "__pycache__" not in file.parts
    }
    assert files >= READ_AT_RUN_TIME
    assert {path for path in held if ".dist-info/" not in path} == files


def test_what_git_starts_can_be_started_from_a_wheel(held: dict[str, ZipInfo]) -> None:
    assert held["mulligan/git/askpass.sh"].external_attr >> 16 & 0o111


IMPORT_ALL = """
import importlib.metadata, pathlib, pkgutil, re, sys
declared = set(sys.argv[2:])
FLEET = {"mulligan.storage.jobs", "mulligan.storage.postgres"}
for name, distributions in importlib.metadata.packages_distributions().items():
    if declared.isdisjoint(re.sub("[-_.]+", "-", each).lower() for each in distributions):
        sys.modules[name] = None
for package in ("mulligan", "github_simulator"):
    for module in pkgutil.walk_packages([f"{sys.argv[1]}/{package}"], f"{package}."):
        if module.name not in FLEET and module.name != "mulligan.storage.migrations.env":
            importlib.import_module(module.name)
"""


def test_every_module_imports_with_the_declared_dependencies_alone() -> None:
    """Only a fleet needs psycopg and Procrastinate, which are an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.split(r"[\[<>=]", each)[0] for each in project["dependencies"]]
    pinned = re.findall(r"^([\w.-]+)(?:\[|==)", RUNTIME.read_text(), re.MULTILINE)
    assert {each.lower() for each in names} <= {each.lower() for each in pinned}
    argv = [sys.executable, "-W", "ignore", "-c", IMPORT_ALL, str(SOURCE), "mulligan", *pinned]
    subprocess.run(argv, check=True)


def test_every_extra_that_a_package_requires_is_pinned_with_it() -> None:
    """pip before 23.3 takes the newest `coverage[toml]`, whatever the pin of `coverage`.

    With hashes that is an error, from the day on which the package has a newer release.
    """
    lines = (ROOT / "requirements/dev.txt").read_text().splitlines()
    pins = [Requirement(line.rstrip("\\")) for line in lines if re.match(r"\w", line)]
    extras = {canonicalize_name(pin.name): pin.extras for pin in pins}
    missing: dict[str, set[str]] = {}
    for pin in pins:
        if pin.marker and not pin.marker.evaluate():
            continue
        for text in importlib.metadata.requires(pin.name) or ():
            wanted = Requirement(text)
            chosen = [{"extra": extra} for extra in ("", *pin.extras)]
            if wanted.marker and not any(map(wanted.marker.evaluate, chosen)):
                continue
            if lacking := wanted.extras - extras[canonicalize_name(wanted.name)]:
                missing.setdefault(wanted.name, set()).update(lacking)
    assert not missing
