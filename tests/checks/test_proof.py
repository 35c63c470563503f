"""A test that fails without the change proves it (PROOF-1).

The files in tests/fixtures/proofs have fixes and their tests, in small repositories of eight
runners, with what real tools said of each before this code was there.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import NotRequired, TypedDict

import pytest
import yaml

from mulligan.checks.proof import (
    MAX_NAMED,
    files_of_tests,
    needs_second_run,
    proof_of,
    proof_without_files,
    source_files,
    unproved,
)
from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check
from mulligan.domain.result import (
    CheckKind,
    CheckResult,
    FileChange,
    Finding,
    Proof,
    ProofState,
    RanTests,
)
from world.trees import plain_worktree

# Real tools

PROOFS = Path(__file__).parents[1] / "fixtures" / "proofs"
PATH = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

Files = Mapping[str, str | None]
"""None for a file that is deleted."""


class _Case(TypedDict):
    name: str
    start: NotRequired[Files]
    change: Files
    test_files: list[str]
    proved: list[str]
    passes_without: list[str]
    not_tried: bool


class _Repository(TypedDict):
    command: str
    report: str | None
    programs: list[str]
    files: Files
    cases: list[_Case]


def read() -> dict[str, tuple[_Repository, _Case]]:
    found = dict[str, tuple[_Repository, _Case]]()
    for file in sorted(PROOFS.glob("*.yml")):
        repository: _Repository = yaml.safe_load(file.read_text())
        for case in repository["cases"]:
            found[f"{file.stem}: {case['name']}"] = repository, case
    return found


CASES = read()
QUICK = ("pytest: ", "unittest: ")
ALWAYS = (": proved", ": cannot be built", ": a test inside the source file")
"""The other cases, of slower tools, are left to `make test-deep`."""
EXAMPLES = [
    name
    if name.startswith(QUICK) or name.endswith(ALWAYS)
    else pytest.param(name, marks=pytest.mark.deep)
    for name in CASES
]


def run(root: Path, repository: _Repository, files: Files) -> CheckResult:
    tree = plain_worktree(root)
    for name, content in files.items():
        if content is not None:
            (tree.path / name).parent.mkdir(parents=True, exist_ok=True)
            (tree.path / name).write_text(content)
    check = Check(
        name="tests",
        run=repository["command"],
        kind=CheckKind.TEST,
        report=repository["report"],
        timeout=timedelta(minutes=1),
    )
    return CommandVerifier(PATH).check(check, tree, tree.private / "check.log")


@pytest.mark.parametrize("name", EXAMPLES)
def test_real_tools_tell_which_tests_prove_a_change(name: str, tmp_path: Path) -> None:
    repository, case = CASES[name]
    if missing := [each for each in repository["programs"] if not works(each)]:
        pytest.skip(f"needs {', '.join(missing)}")
    start, change = {**repository["files"], **case.get("start", {})}, case["change"]
    files = [
        FileChange(path=path, status="D" if text is None else "M") for path, text in change.items()
    ]
    tests = files_of_tests(files, ())
    assert tests == {*case["test_files"]}
    laid = {**start, **{path: change[path] for path in tests}}
    before = run(tmp_path / "before", repository, start)
    after = run(tmp_path / "after", repository, {**start, **change})
    if not after.passed:
        after = after.model_copy(update={"known": after.findings, "findings": ()})
    if tests:
        proof = proof_of(after, [run(tmp_path / "without", repository, laid)], before.tests)
    else:
        diff = "".join(added(path, text or "") for path, text in change.items())
        proof = proof_without_files(diff.encode(), after, before.tests)
    assert proof.state is state_of(case)
    if proof.tests:
        named = case["proved"] or case["passes_without"]
        assert {end_of(test, named) for test in proof.tests} == {*named}


@cache
def works(program: str) -> bool:
    """Return whether a program runs: that of a version manager may have nothing to run.

    Of a path, return whether the file is there.
    """
    if program.startswith("/"):
        return Path(program).exists()
    asked = (program, "version" if program == "go" else "--version")
    try:
        ended = subprocess.run(asked, env={**os.environ, **PATH}, capture_output=True, check=False)
    except OSError:
        return False
    return ended.returncode == 0


def state_of(case: _Case) -> ProofState:
    if case["proved"]:
        return ProofState.PROVED
    return ProofState.NOT_TRIED if case["not_tried"] else ProofState.NOT_PROVED


def end_of(test: str, ends: Sequence[str]) -> str:
    """Shorten a name to what the file of the case has; unittest's class is in parentheses."""
    return next((end for end in ends if test.endswith(end) or f"{end})" in test), test)


def added(path: str, text: str) -> str:
    lines = text.splitlines()
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)


# The rules alone

OLD, NEW = "test_cart.py::test_old", "test_cart.py::test_new"
BEFORE = RanTests(ran=(OLD,))


def result(
    *failed: str, tests: RanTests | None = None, exit_code: int | None = None
) -> CheckResult:
    code = int(bool(failed)) if exit_code is None else exit_code
    return CheckResult(
        name="tests",
        kind=CheckKind.TEST,
        command="pytest",
        passed=code == 0,
        exit_code=code,
        findings=tuple(Finding(summary=name, test_id=name) for name in failed),
        tests=tests,
    )


def ran(*names: str, failed: Iterable[str] = (), stopped: tuple[str, ...] = ()) -> RanTests:
    return RanTests(ran=names, failed=tuple(failed), stopped=stopped)


CHANGE = result(tests=ran(OLD, NEW))


@pytest.mark.pure
@pytest.mark.parametrize(
    ("change", "without", "state", "tests"),
    [
        (CHANGE, result(NEW, tests=ran(OLD, NEW, failed=[NEW])), ProofState.PROVED, (NEW,)),
        (CHANGE, result(OLD, tests=ran(OLD, NEW, failed=[OLD])), ProofState.PROVED, (OLD,)),
        (CHANGE, result(tests=ran(OLD, NEW)), ProofState.NOT_PROVED, (NEW,)),
        (CHANGE, result(NEW, tests=ran(OLD, stopped=(NEW,))), ProofState.NOT_TRIED, ()),
        (CHANGE, result(tests=ran(OLD)), ProofState.NOT_TRIED, ()),
        (CHANGE, result(NEW), ProofState.NOT_TRIED, ()),
        (CHANGE, result(tests=ran(OLD, NEW), exit_code=124), ProofState.NOT_TRIED, ()),
        (
            result(tests=ran(OLD, NEW, failed=[NEW])),
            result(NEW, tests=ran(OLD, NEW, failed=[NEW])),
            ProofState.NOT_PROVED,
            (NEW,),
        ),
        (result(), result(NEW), ProofState.PROVED, (NEW,)),
        (result(), result(), ProofState.NOT_PROVED, ()),
        (result(), result(exit_code=2), ProofState.NOT_TRIED, ()),
        (result(NEW), result(NEW), ProofState.NOT_PROVED, ()),
        (
            result(),
            result("shop (package)", "test_cart (unittest.loader._FailedTest.test_cart)"),
            ProofState.NOT_TRIED,
            (),
        ),
    ],
)
def test_only_a_test_that_fails_itself_and_passes_with_the_change_proves_it(
    change: CheckResult, without: CheckResult, state: ProofState, tests: tuple[str, ...]
) -> None:
    assert proof_of(change, [without], BEFORE) == Proof(
        state=state, tests=tests, count=len(tests), check="tests"
    )


@pytest.mark.pure
def test_a_test_that_the_diff_does_not_show_fails_twice() -> None:
    once = result(OLD, NEW, tests=ran(OLD, NEW, failed=[OLD, NEW]))
    again = result(NEW, tests=ran(OLD, NEW, failed=[NEW]))
    diff = added("test_cart.py", "def test_new():\n    assert 0").encode()
    assert needs_second_run(diff, CHANGE, once)
    assert needs_second_run(b"", CHANGE, again)
    assert not needs_second_run(diff, CHANGE, again)
    assert not needs_second_run(b"", CHANGE, result(tests=ran(OLD, NEW)))
    assert proof_of(CHANGE, [], BEFORE).state is ProofState.NOT_TRIED
    assert proof_of(CHANGE, [once, again], BEFORE).tests == (NEW,)
    assert proof_of(CHANGE, [once, again], None).tests == (NEW,)


@pytest.mark.pure
def test_at_most_twenty_tests_are_named() -> None:
    names = [f"test_cart.py::test_{number:02}" for number in range(30)]
    change = result(tests=ran(*names))
    proof = proof_of(change, [result(tests=ran(*names, failed=names))], BEFORE)
    assert (proof.tests, proof.count) == (tuple(names[:MAX_NAMED]), 30)


@pytest.mark.pure
def test_a_change_without_a_test_file_has_none_or_one_beside_its_code() -> None:
    rust = added("src/lib.rs", "#[test]\nfn adds() {}").encode()
    other = added("src/lib.rs", "fn adds() {}").encode()
    assert proof_without_files(rust, result(), None).state is ProofState.NOT_TRIED
    assert proof_without_files(other, result(), None) == Proof(state=ProofState.NO_TEST)
    assert proof_without_files(b"", CHANGE, BEFORE).state is ProofState.NOT_TRIED
    assert proof_without_files(b"", CHANGE, None).state is ProofState.NO_TEST


@pytest.mark.pure
@pytest.mark.parametrize(
    ("path", "is_of_tests"),
    [
        ("tests/helpers/money.py", True),
        ("packages/a/__tests__/data.json", True),
        ("src/test/java/shop/Cart.java", True),
        ("shop/cart_test.go", True),
        ("shop/testdata/cart.golden", True),
        ("app/cart.spec.tsx", True),
        ("app/cart.spec.mts", True),
        ("spec/cart_spec.rb", True),
        ("Shop.Tests/Cart.cs", True),
        ("conftest.py", True),
        ("src/cart.py", False),
        ("src/testing.py", False),
        ("docs/latest/tests.md", False),
        ("contest/main.c", False),
    ],
)
def test_the_conventions_of_tools_tell_which_files_are_of_tests(
    path: str, *, is_of_tests: bool
) -> None:
    moved = FileChange(path="elsewhere.txt", status="R", old_path=path)
    for file in (FileChange(path=path, status="M"), moved):
        assert files_of_tests([file], ()) == ({path} if is_of_tests else frozenset())


@pytest.mark.pure
def test_a_repository_names_its_own_test_files() -> None:
    files = [FileChange(path=path, status="M") for path in ("checks/a.py", "tests/b.py")]
    assert files_of_tests(files, ("checks/",)) == {"checks/a.py"}


@pytest.mark.pure
def test_a_missing_proof_is_a_failed_check_that_says_what_is_wanted() -> None:
    proof = Proof(state=ProofState.NOT_PROVED, tests=(NEW,), count=1, check="tests")
    missing = unproved(proof)
    assert missing is not None
    assert missing.fails
    assert missing.digest == (
        "No test of the change fails without it, and this issue needs one that does.\n"
        "Add or alter a test that shows what the change repairs: it fails on the code of the base "
        "branch, and passes with the change.\n"
        f"- {NEW} passes without the change too"
    )
    none = unproved(Proof(state=ProofState.NO_TEST))
    assert none is not None
    assert none.digest.startswith("The change adds and alters no test, and this issue needs one")
    assert none.fingerprint != missing.fingerprint
    for state in (ProofState.PROVED, ProofState.NOT_TRIED):
        assert unproved(Proof(state=state)) is None


@pytest.mark.pure
def test_source_files_are_the_code_of_the_program() -> None:
    code = {"src/app.py", "lib/cart.js", "cmd/main.go"}
    others = {"README.md", "docs/conf.py", "setup.py", "scripts/release.py", ".ci/run.py"}
    tests = {"tests/test_app.py", "cart.test.js", "cmd/main_test.go"}
    assert source_files({*code, *others, *tests}, ()) == code
    # The patterns of a repository take the place of those that are usual.
    assert source_files({*code, "cart.test.js"}, ("cmd/",)) == {
        *("src/app.py", "lib/cart.js", "cart.test.js")
    }
