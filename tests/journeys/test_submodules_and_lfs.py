"""Repositories whose tests need submodules or LFS files, from the label to the pull request."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import OnBase
from world.lfs import oid_of, place, pointer, store
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.repositories import commit_to, git, make_remote, read_branch
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


# Git LFS.

TABLE = b"2 3 5\n" * 300
LFS_FILES = {
    **FILES,
    ".gitattributes": "*.dat filter=lfs diff=lfs merge=lfs -text\n",
    "test_add.py": (
        "import unittest\nfrom add import add\n\n\nclass AddTest(unittest.TestCase):\n"
        "    def test_sum(self):\n        for line in open('sums.dat'):\n"
        "            a, b, c = map(int, line.split())\n"
        "            self.assertEqual(add(a, b), c)\n"
    ),
}
UNIT = {**TESTS, "run": f"{sys.executable} -m unittest -v test_add.py"}
LFS: dict[str, JsonValue] = {"lfs": True}


def with_lfs(tmp_path: Path) -> Path:
    remote = make_remote(tmp_path / "remote.git", LFS_FILES)
    commit_to(remote, {"sums.dat": store(remote, TABLE)})
    return remote


@pytest.mark.parametrize("way", ["local", "http"])
def test_tests_with_lfs_files_verify_a_change(way: str, tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, with_lfs(tmp_path), [UNIT], checkout=LFS) as here:
        if way == "http":
            over_http(here, checkout=LFS, checks=[UNIT])
        here.agent("assert pathlib.Path('sums.dat').read_text().startswith('2 3 5')\n" + MEND)
        ref = here.issue()
        done = here.run("once")
        assert (done.returncode, done.stderr) == (0, "")
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SUCCEEDED
        assert [check.passed for check in meta.checks] == [True]
        assert git(here.bare, "diff", "--name-only", "main", ref.branch) == "add.py"
        assert read_branch(here.bare, ref.branch, "sums.dat") == pointer(TABLE).rstrip("\n")


SPOIL_LFS = f"""
from hashlib import sha256
{MEND}
pathlib.Path('.lfsconfig').write_text('[lfs]\\n\\turl = https://evil.example/a/b\\n')
pathlib.Path('sums.dat').write_text('2 3 6')
"""


def test_an_agent_that_changes_lfs_files_is_refused(tmp_path: Path) -> None:
    with mulligan_installation(
        tmp_path, with_lfs(tmp_path), [UNIT], checkout=LFS, max_issue_attempts=1
    ) as here:
        here.agent(SPOIL_LFS)
        ref = here.issue()
        assert here.run("once").returncode == 3
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SCOPE_VIOLATION
        assert {each.path for each in meta.guard_violations} == {".lfsconfig", "sums.dat"}
        assert "use `git lfs` yourself" in here.comments(ref)[-1]


def test_an_lfs_server_with_wrong_content_costs_no_attempt(tmp_path: Path) -> None:
    remote = with_lfs(tmp_path)
    place(remote, oid_of(TABLE)).write_bytes(TABLE[::-1])
    with mulligan_installation(tmp_path, remote, [UNIT], checkout=LFS) as here:
        over_http(here, checkout=LFS, checks=[UNIT])
        here.agent(MEND)
        ref = here.issue()
        here.run("once")
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.INFRASTRUCTURE
        assert "sent other content for the Git LFS object" in meta.error
        assert here.world.labels_of(ref) == ["mulligan"]


# Over HTTP, with Mulligan's credential.


def over_http(
    here: MulliganInstallation, submodules: Sequence[str] = (), **policy: JsonValue
) -> None:
    """Have Mulligan clone from the simulated GitHub, where the repository is private."""
    here.world.repositories[NAME].private = True
    url = f"{here.url}/{NAME}.git"
    settings: dict[str, JsonValue] = {"name": NAME, "clone_url": url, "policy": policy}
    here.configure(repositories=[{**settings, "submodules": [*submodules]}])


@pytest.mark.parametrize("is_named", ["named", "not named"])
def test_a_private_submodule_needs_the_operators_word(is_named: str, tmp_path: Path) -> None:
    remote = make_remote(tmp_path / "remote.git", FILES)
    cases = library(tmp_path, "cases.git", CASES)
    link(remote, "cases", cases, "../Cases.git")
    on: dict[str, JsonValue] = {"submodules": True}
    with mulligan_installation(tmp_path, remote, [TESTS]) as here:
        roles = {"mulligan-bot": "read"}
        here.world.add_repository("acme/cases", cases, "main", roles, private=True)
        named = ["acme/cases"] if is_named == "named" else []
        over_http(here, named, checkout=on, checks=[TESTS])
        here.agent(MEND)
        ref = here.issue()
        here.run("once")
        meta = here.attempts(ref)[0]
        if is_named == "named":
            assert meta.outcome is Outcome.SUCCEEDED
            assert [check.passed for check in meta.checks] == [True]
            assert len(here.world.pulls_of(NAME)) == 1
        else:
            assert meta.outcome is Outcome.MISCONFIGURED
            assert "must add acme/Cases to `submodules` of acme/tools" in meta.error
