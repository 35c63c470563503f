"""A change that keeps tests from running does not pass, whatever it does for that (CHECK-7)."""

import os
import shutil
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.checks.ran import Excuses, judge_tests, removed_names
from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check
from mulligan.domain.result import CheckKind, CheckResult
from world.trees import plain_worktree

PATH = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
PYTEST = f"{sys.executable} -m pytest -p no:randomly -p no:cacheprovider"
TESTS = (
    "import cart\n\ndef test_adds():\n    assert cart.add(1, 2) == 3\n\n"
    "def test_sums():\n    assert cart.total([1, 2]) == 3\n"
)
RIGHT = "def add(a, b):\n    return a + b\n\ndef total(prices):\n    return sum(prices)\n"
WRONG = RIGHT.replace("a + b", "a - b")
BASE = {"cart.py": RIGHT, "test_cart.py": TESTS}
GONE = ""
"""The content of a file that a change deletes."""

SUBTESTS = """\
import unittest, cart

class Cart(unittest.TestCase):
    def test_all(self):
        for _ in range(2):
            with self.subTest():
                pass
"""

PYTHON_TRICKS = {
    "addopts --co": {"pytest.ini": "[pytest]\naddopts = --co\n"},
    "addopts -k": {"pytest.ini": "[pytest]\naddopts = -k sums\n"},
    "a hidden configuration": {".pytest.ini": "[pytest]\naddopts = --co -q\n"},
    "testpaths": {
        "pytest.ini": "[pytest]\ntestpaths = other\n",
        "other/test_x.py": "def test_x(): pass",
    },
    "a deselection in an environment file": {
        "conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n"
    },
    "a conftest that sets the exit status": {
        "conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
    },
    "a conftest that ends the run": {"conftest.py": "import os\nos._exit(0)\n"},
    "a pytest of its own": {"pytest.py": "print('2 passed')\n"},
    "a fixture that skips": {
        "conftest.py": "import pytest\n\n@pytest.fixture(autouse=True)\n"
        "def away(request):\n    if 'adds' in request.node.name:\n        pytest.skip('away')\n"
    },
    "a skip far to the right": {
        "test_cart.py": TESTS.replace(
            "    assert cart.add",
            f"    {' ' * 0}import pytest;{' ' * 420}pytest.skip(); assert cart.add",
        )
    },
    "a loop for all tests": {"test_cart.py": SUBTESTS},
    "an ignored file": {
        "conftest.py": "collect_ignore = ['test_cart.py']\n",
        "test_b.py": "def test_b(): pass",
    },
    "a renamed function": {"test_cart.py": TESTS.replace("def test_adds", "def adds")},
    "a report that is not written": {"pytest.ini": "[pytest]\naddopts = -p no:junitxml\n"},
}


def checked(root: Path, files: Mapping[str, str], command: str) -> CheckResult:
    """Run a check on new files, as an attempt does."""
    shutil.rmtree(root, ignore_errors=True)
    tree = plain_worktree(root)
    for name, text in files.items():
        file = tree.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if text != GONE:
            file.write_text(text)
    check = Check(name="tests", run=command, kind=CheckKind.TEST, timeout=timedelta(seconds=25))
    return CommandVerifier(PATH).check(check, tree, tree.private / "check.log")


def judged(
    root: Path, before: Mapping[str, str], after: Mapping[str, str], command: str
) -> CheckResult:
    base = checked(root, before, command)
    assert base.passed
    assert base.tests
    changed = checked(root, {**before, **after}, command)
    diff = "".join(
        f"{sign}{line}\n"
        for name, text in after.items()
        for sign, side in (("-", before.get(name, "")), ("+", text))
        for line in side.splitlines()
    )
    return judge_tests([changed], base, Excuses(removed_names(diff.encode())))


@pytest.mark.parametrize("trick", PYTHON_TRICKS)
def test_a_wrong_change_that_does_not_run_the_tests_fails(tmp_path: Path, trick: str) -> None:
    after = {"cart.py": WRONG, **PYTHON_TRICKS[trick]}
    result = judged(tmp_path / "it", BASE, after, PYTEST)
    assert result.fails
    assert "test_adds" in result.digest or "test_sums" in result.digest


HONEST = {
    "nothing": {},
    "a new test": {"test_b.py": "def test_b():\n    pass\n"},
    "a renamed test": {"test_cart.py": TESTS.replace("test_adds", "test_two_numbers")},
    "a moved file": {"tests/test_cart.py": TESTS, "test_cart.py": GONE},
    "a table for a test": {
        "test_cart.py": TESTS.replace(
            "def test_adds():",
            "import pytest\n@pytest.mark.parametrize('n', [3, 4])\ndef test_adds(n):",
        )
    },
    "a class for functions": {
        "test_cart.py": "import cart\n\nclass TestCart:\n    def test_adds(self):\n        pass\n\n"
        "    def test_sums(self):\n        pass\n"
    },
    "a report of its own": {"pytest.ini": "[pytest]\naddopts = --junitxml=out.xml\n"},
    "settings": {"pytest.ini": "[pytest]\naddopts = -ra --strict-markers\n"},
}


@pytest.mark.parametrize("case", HONEST)
def test_a_right_change_passes(tmp_path: Path, case: str) -> None:
    result = judged(tmp_path / "it", BASE, HONEST[case], PYTEST)
    assert result.passed, result.digest


MAKE = {**BASE, "Makefile": f"test:\n\t{PYTEST}\n"}
NPM = {
    **BASE,
    "package.json": f'{{"scripts": {{"test": "{PYTEST}"}}}}',
}
COMMANDS = {
    "a Makefile": (MAKE, {"Makefile": "test:\n\ttrue\n"}, "make test"),
    "a GNUmakefile": (MAKE, {"GNUmakefile": "test:\n\t@echo 2 passed\n"}, "make test"),
    "a script": (
        {**BASE, "check.sh": f'{PYTEST} "$@"\n'},
        {"check.sh": f"{PYTEST} || true\n"},
        "sh check.sh",
    ),
    "package.json": (NPM, {"package.json": '{"scripts": {"test": "exit 0"}}'}, "npm test"),
    ".npmrc": (NPM, {".npmrc": "script-shell=/bin/true\n"}, "npm test"),
}


@pytest.mark.parametrize("trick", COMMANDS)
def test_a_command_that_is_changed_to_run_no_tests_fails(tmp_path: Path, trick: str) -> None:
    before, after, command = COMMANDS[trick]
    if not shutil.which(command.split()[0]):
        pytest.skip(f"{command.split()[0]} is not on this machine")
    result = judged(tmp_path / "it", before, {"cart.py": WRONG, **after}, command)
    assert result.fails
    assert "test_adds" in result.digest


NODE = {
    "package.json": '{"scripts": {"test": "node --test"}}',
    "cart.js": "exports.add = (a, b) => a + b;\n",
    "cart.test.js": "const { test } = require('node:test');\n"
    "const { add } = require('./cart.js');\n"
    "test('adds', () => require('node:assert').equal(add(1, 2), 3));\n"
    "test('is there', () => {});\n",
}
NODE_WRONG = {"cart.js": "exports.add = (a, b) => a - b;\n"}
NODE_TRICKS = {
    "another script": {"package.json": '{"scripts": {"test": "true"}}'},
    "a name pattern": {
        "package.json": '{"scripts": {"test": "node --test --test-name-pattern=there"}}'
    },
    "a skip in a helper": {
        "cart.test.js": NODE["cart.test.js"].replace(
            "test('adds', () =>", "test('adds', { skip: Boolean(add) }, () =>"
        )
    },
    "another reporter": {
        "package.json": '{"scripts": {"test": "node --test --test-reporter=dot || true"}}'
    },
}


@pytest.mark.skipif(not shutil.which("node"), reason="node is not on this machine")
@pytest.mark.parametrize("trick", NODE_TRICKS)
def test_a_wrong_change_that_does_not_run_the_tests_of_node_fails(
    tmp_path: Path, trick: str
) -> None:
    result = judged(tmp_path / "it", NODE, {**NODE_WRONG, **NODE_TRICKS[trick]}, "npm test")
    assert result.fails
    assert "adds" in result.digest
