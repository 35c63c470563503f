"""What is read out of unittest, from runs of the real one and from other versions' outputs."""

import sys
from pathlib import Path

import pytest

from mulligan.checks.digest import Digest, digest
from mulligan.checks.digest.families.unittest import dotted
from world.tools import run_tool, write_files

PROJECT = {
    "shop/__init__.py": "",
    "shop/cart.py": "def share(total, people):\n    return total / people\n",
    "test_cart.py": '''\
import unittest
from shop.cart import share

class TestCart(unittest.TestCase):
    def test_passes(self):
        pass

    def test_lists(self):
        """Lists are equal."""
        self.assertEqual([1, 2], [1, 3])

    def test_share(self):
        share(1, 0)

    def test_parts(self):
        for number in range(3):
            with self.subTest("part", number=number):
                self.assertNotEqual(number, 1)

    @unittest.expectedFailure
    def test_too_good(self):
        pass

    def test_chain(self):
        try:
            share(1, 0)
        except ZeroDivisionError as error:
            raise RuntimeError("no people") from error

class TestShop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise OSError("closed")

    def test_never(self):
        pass
''',
    "test_broken.py": "import nothere\n",
}
FAILING = {
    "test_broken": ("ModuleNotFoundError: No module named 'nothere'", "test_broken.py", 1),
    "test_cart.TestCart.test_chain": ("RuntimeError: no people", "test_cart.py", 28),
    "test_cart.TestCart.test_share": ("ZeroDivisionError: division by zero", "shop/cart.py", 2),
    "test_cart.TestShop.setUpClass": ("OSError: closed", "test_cart.py", 33),
    "test_cart.TestCart.test_lists": ("AssertionError: Lists differ", "test_cart.py", 10),
    "test_cart.TestCart.test_parts [part] (number=1)": (
        "AssertionError: 1 == 1",
        "test_cart.py",
        18,
    ),
    "test_cart.TestCart.test_too_good": ("", None, None),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path, PROJECT)


def told(project: Path, *options: str) -> Digest:
    ran = run_tool(project, sys.executable, "-B", "-m", "unittest", *options)
    return digest(ran.output, command="python -m unittest", exit_code=ran.exit_code)


@pytest.mark.parametrize("options", [(), ("-v",), ("-b",)])
def test_every_failure_is_told_with_message_and_place(
    project: Path, options: tuple[str, ...]
) -> None:
    found = told(project, *options)
    by_id = {finding.test_id: finding for finding in found.findings}
    assert set(by_id) == set(FAILING)
    for test_id, (message, file, line) in FAILING.items():
        finding = by_id[test_id]
        assert finding.message.startswith(message)
        assert (finding.file or "").endswith(file or "")
        assert finding.line == line
    assert found.count == 7
    assert "FAILED (failures=2, errors=4, unexpected successes=1)" in found.text
    assert "test_cart.TestCart.test_lists" in found.text


def test_what_led_to_an_exception_is_told(project: Path) -> None:
    assert "after ZeroDivisionError: division by zero" in told(project).text


def test_a_module_that_is_not_there_is_told(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, "test_nope").findings
    assert finding.test_id == "test_nope"
    assert finding.hint == "missing module"


def test_passing_runs_are_one_line(tmp_path: Path) -> None:
    files = {"test_a.py": "import unittest\nclass A(unittest.TestCase):\n def test_a(self): pass\n"}
    found = told(write_files(tmp_path, files), "-v")
    assert found.passed
    assert found.text.startswith("Passed")
    assert "\n" not in found.text


RULE, LINE = "=" * 70, "-" * 70
OLD = f"""\
F
{RULE}
FAIL: test_x (pkg.test_a.TestA)
{LINE}
Traceback (most recent call last):
  File "/home/ada/pkg/test_a.py", line 5, in test_x
    self.assertTrue(False)
AssertionError: False is not true

{LINE}
Ran 1 test in 0.001s

FAILED (failures=1)
"""


def test_ids_are_the_same_in_all_versions_of_python() -> None:
    new = OLD.replace("(pkg.test_a.TestA)", "(pkg.test_a.TestA.test_x)")
    first, second = digest(OLD, exit_code=1), digest(new, exit_code=1)
    assert first.findings[0].test_id == second.findings[0].test_id == "pkg.test_a.TestA.test_x"
    assert first.fingerprint == second.fingerprint


def test_progress_is_enough_where_the_blocks_are_missing() -> None:
    output = "test_x (a.TestA.test_x) ... FAIL\ntest_y (a.TestA.test_y) ... ok\nRan 2 tests in 1s\n"
    (finding,) = digest(output, exit_code=1).findings
    assert finding.test_id == "a.TestA.test_x"


def test_a_failure_without_a_traceback_has_its_words() -> None:
    output = f"{RULE}\nERROR: test_x\n{LINE}\nsomething odd\n{RULE}\nFAIL: not a header, either\n"
    first, *_ = digest(output, exit_code=1).findings
    assert first.test_id == "test_x"
    assert first.message == "something odd"


@pytest.mark.parametrize(
    ("name", "owner", "expected"),
    [
        ("test_x", "m.A", "m.A.test_x"),
        ("test_x", "m.A.test_x", "m.A.test_x"),
        ("test_x", None, "test_x"),
        ("m", "unittest.loader._FailedTest", "m"),
        ("m", "unittest.loader._FailedTest.m", "m"),
    ],
)
def test_names_become_dotted(name: str, owner: str | None, expected: str) -> None:
    assert dotted(name, owner) == expected
