"""Repositories whose tests need submodules or LFS files, from the label to the pull request."""

import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import OnBase
from world.place import NAME, mulligan_installation
from world.repositories import git, make_remote, read_branch
from world.submodules import FILE, library, link, put

FILES = {"add.py": "def add(a, b):\n    return a - b\n", ".gitignore": "__pycache__/\n*.o\n"}
CASES = {
    "test_add.py": (
        "import sys, unittest\nsys.path.insert(0, '.')\nfrom add import add\n\n\n"
        "class AddTest(unittest.TestCase):\n    def test_sum(self):\n"
        "        self.assertEqual(add(2, 3), 5)\n"
    ),
    ".gitignore": "__pycache__/\n*.o\n",
}
TESTS: dict[str, JsonValue] = {
    "name": "tests",
    "run": f"{sys.executable} -m unittest -v cases/test_add.py",
    "kind": "test",
    "timeout": "1m",
}
MEND = "pathlib.Path('add.py').write_text('def add(a, b):\\n    return a + b\\n')\n"


def with_submodule(tmp_path: Path) -> Path:
    remote = make_remote(tmp_path / "remote.git", FILES)
    link(remote, "cases", library(tmp_path, "cases.git", CASES))
    return remote


def test_tests_in_a_submodule_verify_a_change(tmp_path: Path) -> None:
    remote = with_submodule(tmp_path)
    on: dict[str, JsonValue] = {"submodules": True}
    setup: list[JsonValue] = ["cp cases/test_add.py cases/made.o"]
    with mulligan_installation(tmp_path, remote, [TESTS], checkout=on, setup=setup) as here:
        here.agent("assert pathlib.Path('cases/made.o').exists()\n" + MEND)
        ref = here.issue()
        done = here.run("once")
        assert (done.returncode, done.stderr) == (0, "")
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SUCCEEDED
        assert [check.passed for check in meta.checks] == [True]
        assert len(here.world.pulls_of(NAME)) == 1
        assert "return a + b" in read_branch(here.bare, ref.branch, "add.py")
        assert git(here.bare, "diff", "--name-only", "main", ref.branch) == "add.py"


def test_without_the_key_the_tests_are_missing(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, with_submodule(tmp_path), [TESTS]) as here:
        here.agent(MEND)
        ref = here.issue()
        here.run("once")
        (check,) = here.attempts(ref)[0].checks
        assert (check.passed, check.on_base) == (False, OnBase.FAILS)


REPOINT = """
import os
modules = pathlib.Path('.gitmodules')
modules.write_text(modules.read_text().replace('cases.git', 'other.git'))
pathlib.Path('cases/test_add.py').write_text('')
"""


def test_an_agent_that_repoints_a_submodule_is_refused(tmp_path: Path) -> None:
    remote = with_submodule(tmp_path)
    library(tmp_path, "other.git", {"test_add.py": "print('Ran 1 test')\n"})
    on: dict[str, JsonValue] = {"submodules": True}
    with mulligan_installation(
        tmp_path, remote, [TESTS], checkout=on, max_issue_attempts=1
    ) as here:
        here.agent(REPOINT)
        ref = here.issue()
        assert here.run("once").returncode == 3
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SCOPE_VIOLATION
        assert {each.path for each in meta.guard_violations} == {
            ".gitmodules",
            "cases/test_add.py",
        }


@pytest.mark.parametrize("fault", ["gone", "elsewhere"])
def test_a_submodule_that_cannot_be_fetched_costs_no_attempt(fault: str, tmp_path: Path) -> None:
    remote = with_submodule(tmp_path)
    if fault == "gone":
        (tmp_path / "cases.git").rename(tmp_path / "away.git")
    else:
        text = '[submodule "x"]\n\tpath = cases\n\turl = https://evil.example/a/b\n'
        put(remote, {".gitmodules": (FILE, text)})
    on: dict[str, JsonValue] = {"submodules": True}
    with mulligan_installation(tmp_path, remote, [TESTS], checkout=on) as here:
        here.agent(MEND)
        ref = here.issue()
        here.run("once")
        meta = here.attempts(ref)[0]
        expected = {"gone": Outcome.INFRASTRUCTURE, "elsewhere": Outcome.MISCONFIGURED}
        assert meta.outcome is expected[fault]
        assert "the submodule cases" in meta.error.lower()
        said = here.comments(ref)[0]
        if fault == "gone":
            assert here.world.labels_of(ref) == ["mulligan"]
        else:
            assert "checkout.submodules" in said
