"""What an agent's code leaves behind makes no failure of its own look old (BASELINE-1).

Each attack breaks a function, and adds a test that makes the start tree fail in the same way.
"""

import sys
from collections.abc import Generator
from pathlib import Path
from textwrap import indent

import pytest
from pydantic import JsonValue

from mulligan.config.policy import Policy
from mulligan.domain.events import BaselineRecorded
from mulligan.domain.outcome import Outcome
from mulligan.implement.prompt.manifest import hash_of
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.confined import sandbox
from world.place import MulliganInstallation, mulligan_installation
from world.repositories import git

PYTHON = Path(sys.executable).resolve()
"""Not of a virtual environment, which would leave what is in HOME alone."""
FILES = {
    "shop.py": "def total(n):\n    return n * 3\n",
    "test_total.py": (
        "import unittest\nfrom shop import total\n\n\nclass TotalTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total(10), 30, 'the total of ten')\n"
    ),
    ".gitignore": "__pycache__/\nbuild/\n",
}
SET_UP: list[JsonValue] = ["mkdir -p build ~/cache", "touch build/made ~/cache/made"]
POISON = """\
import unittest
real = unittest.TestCase.assertEqual
def assert_equal(self, first, second, msg=None):
    real(self, 40 if first == 30 else first, second, msg)
unittest.TestCase.assertEqual = assert_equal
"""
"""Makes a sound tree fail with the words that the broken one fails with."""
PLANT = f"""
import os, pathlib, site, subprocess, sys, time
def plant(place):
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text({POISON!r})
in_home = pathlib.Path(site.getusersitepackages(), 'usercustomize.py')
in_build = pathlib.Path('build/sitecustomize.py').absolute()
"""
BREAK = """\
shop = pathlib.Path('shop.py')
shop.write_text(shop.read_text().replace('n * 3', 'n * 4'))
"""
LATER = f"exec({PLANT!r})\nfor _ in range(300):\n    plant(in_home)\n    time.sleep(0.1)\n"
ATTACKS = {
    "a file in HOME": "plant(in_home)",
    "an ignored file": "plant(in_build)",
    "by a second run": (
        "seen = pathlib.Path('build/seen')\n"
        "plant(in_home) if seen.exists() else None\n"
        "seen.parent.mkdir(exist_ok=True)\nseen.touch()"
    ),
    "by a process left behind": (
        f"subprocess.Popen([sys.executable, '-c', {LATER!r}], start_new_session=True)\n"
        "time.sleep(1)"
    ),
    "HOME closed for good": "plant(in_home)\nos.chmod(os.path.expanduser('~'), 0o500)",
}

ALL_AT_ONCE = "\n".join(ATTACKS.values())
"""Whoever lets one of them through lets it through here as well."""


def attacking(attack: str) -> str:
    """Write an agent that breaks the shop, and adds a test with an attack in it."""
    return f"{BREAK}pathlib.Path('test_more.py').write_text({PLANT + attack!r})\n"


@pytest.fixture(params=["off", pytest.param("required", marks=pytest.mark.deep)])
def here(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[MulliganInstallation]:
    mode: str = request.param
    if mode == "required":
        sandbox()
    tests = {
        "name": "tests",
        "run": f"PYTHONPATH=build {PYTHON} -B -m unittest -v",
        "kind": "test",
    }
    with mulligan_installation(
        tmp_path, FILES, [tests], setup=SET_UP, max_issue_attempts=1
    ) as made:
        made.configure(sandbox={"mode": mode, "network": "none", "read": [sys.base_prefix]})
        yield made


def outcome(here: MulliganInstallation, agent: str) -> Outcome:
    """Let an agent try at an issue of its own."""
    here.agent(agent)
    ref = here.issue()
    here.run("once")
    (meta,) = here.attempts(ref)
    return meta.outcome


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(ALL_AT_ONCE, id="all at once"),
        *(pytest.param(each, id=name, marks=pytest.mark.deep) for name, each in ATTACKS.items()),
    ],
)
def test_what_a_test_leaves_does_not_excuse_what_it_breaks(
    here: MulliganInstallation, attack: str
) -> None:
    # The answer is kept for other issues, so what breaks the same without an attack is next.
    found = [outcome(here, attacking(attack)), outcome(here, BREAK)]
    assert found == [Outcome.CHECKS_FAILED, Outcome.CHECKS_FAILED]


@pytest.mark.parametrize("here", ["off"], indirect=True)
def test_what_the_agent_itself_leaves_excuses_nothing(here: MulliganInstallation) -> None:
    plant = f"exec({PLANT!r})\nplant(in_build)\n"
    assert outcome(here, BREAK + plant) is Outcome.CHECKS_FAILED


@pytest.mark.parametrize("here", ["off"], indirect=True)
def test_what_an_earlier_version_recorded_of_a_start_tree_excuses_nothing(
    here: MulliganInstallation,
) -> None:
    here.agent(BREAK)
    ref = here.issue()
    here.run("once")
    (meta,) = here.attempts(ref)
    (check,) = Policy.model_validate(here.operator().repositories[0].policy).checks
    sha = git(here.bare, "rev-parse", "HEAD")
    old = {"start_sha": sha, "check": check.model_dump(mode="json"), "setup": SET_UP}
    with open_database(here.operator().state.url) as database:
        found = BaselineRecorded(
            key=hash_of(old), start_sha=sha, name=check.name, check=meta.checks[0]
        )
        SqlLedger(database, SystemClock()).append(ref, found)
    assert outcome(here, BREAK) is Outcome.CHECKS_FAILED


def test_ignored_files_that_are_kept_from_the_attempt_before_excuse_nothing(
    tmp_path: Path,
) -> None:
    run = f"PYTHONPATH=build {PYTHON} -B -m unittest -v"
    with mulligan_installation(
        tmp_path, FILES, [{"name": "tests", "run": run}], max_issue_attempts=2
    ) as here:
        here.configure(sandbox="off", workspace={"root": f"{tmp_path}/work", "keep_ignored": True})
        first = indent(f"exec({PLANT!r})\nplant(in_build)\n", "    ")
        here.agent(f"{BREAK}if 'Retry context' not in prompt:\n{first}")
        ref = here.issue()
        here.run("once")
        assert {meta.outcome for meta in here.attempts(ref)} == {Outcome.CHECKS_FAILED}
