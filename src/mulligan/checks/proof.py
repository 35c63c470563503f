"""Tell whether a test of a change fails without the change's other files (PROOF-1). Pure.

The start tree gets the change's test files only. A test that fails there in itself, and passes with
the whole change, proves it. A build, an import or a fixture that fails proves nothing.
"""

import re
from collections.abc import Iterable, Sequence

from mulligan.checks.digest.identity import fingerprint, stable_name
from mulligan.checks.digest.qualified_names import OF_PACKAGE
from mulligan.checks.guards.lost_tests import MAX_LINE_CHARS, sides_of
from mulligan.checks.ran import without_parameters
from mulligan.domain.globs import globs
from mulligan.domain.result import (
    CheckKind,
    CheckResult,
    FileChange,
    Proof,
    ProofState,
    RanTests,
)
from mulligan.text.diff import Patch, patches_of

# Which files of a change are tests

TEST_FILES = (
    *("test/", "tests/", "__tests__/", "__snapshots__/", "spec/", "specs/", "testdata/"),
    *("*[._]Tests/", "src/*Test/", "t/*.t"),
    *("test_*.py", "*_test.py", "tests.py", "conftest.py", "*_test.go", "*_test.rs"),
    *("*[._-]test.[cm][jt]s", "*[._-]test.[jt]s", "*[._-]test.[jt]sx"),
    *("*[._-]spec.[cm][jt]s", "*[._-]spec.[jt]s", "*[._-]spec.[jt]sx", "*.snap"),
    *("*_spec.rb", "*_test.rb", "test_*.rb", "*_test.exs", "*_test.dart", "*_test.c*"),
    *("*Test.java", "*Tests.java", "*IT.java", "*Test.kt", "*Tests.kt", "*Spec.groovy"),
    *("*Test.php", "*Tests.cs", "*Test.cs", "*Tests.swift", "*_unittest.*", "test_*.c*"),
)
"""Test files by the conventions of their tools, as in .gitignore, and directories of tests."""


def files_of_tests(files: Iterable[FileChange], patterns: Sequence[str]) -> frozenset[str]:
    """Return the paths of a change that are of tests, old names of moved files included.

    `patterns` are the repository's own; without any, TEST_FILES count.
    """
    paths = {path for file in files for path in (file.path, file.old_path) if path}
    return globs(tuple(patterns) or TEST_FILES).select(paths)


SOURCE_SUFFIXES = (
    *("*.py", "*.js", "*.mjs", "*.cjs", "*.jsx", "*.ts", "*.mts", "*.cts", "*.tsx", "*.go", "*.rs"),
    *("*.c", "*.cc", "*.cpp", "*.cxx", "*.h", "*.hh", "*.hpp", "*.java", "*.kt", "*.scala"),
    *("*.rb", "*.php", "*.cs", "*.swift", "*.ex", "*.erl", "*.hs", "*.lua", "*.pl", "*.pm"),
)

NO_SOURCES = (
    *("doc/", "docs/", "example/", "examples/", "bench*/", "scripts/", "tools/", "tasks/", ".*/"),
    *("setup.py", "noxfile.py", "*.config.*", ".*", "gulpfile.*", "Gruntfile.*", "fabfile.py"),
)
"""Files that build, describe or check a program, as in .gitignore."""


def source_files(paths: Iterable[str], patterns: Sequence[str]) -> frozenset[str]:
    """Return the files that are code of the program: not of its tests, build or documentation.

    `patterns` are the repository's own for tests; without any, TEST_FILES count.
    """
    code = globs(SOURCE_SUFFIXES).select(paths)
    return code - globs((*NO_SOURCES, *(patterns or TEST_FILES))).select(code)


# What they prove

NO_TEST = re.compile(
    rf"unittest\.loader\._FailedTest|^setUp(?:Class|Module) |{re.escape(OF_PACKAGE)}$"
)
"""What a tool prints like a test, though a module, a class or a package failed."""


def failing_tests(result: CheckResult) -> frozenset[str]:
    """Return the tests that failed in themselves: by the report, else by the output."""
    if result.tests is not None:
        return frozenset(map(stable_name, result.tests.failed))
    named = (found.test_id for found in result.findings if found.test_id)
    return frozenset(stable_name(name) for name in named if not NO_TEST.search(name))


def proving_tests(change: CheckResult, without: CheckResult) -> frozenset[str]:
    """Return the tests that fail without the change, and pass with it."""
    if change.tests is None:
        known = (*change.findings, *change.known, *change.unsteady)
        excluded = {stable_name(found.test_id) for found in known if found.test_id}
        return failing_tests(without) - excluded
    if without.tests is None:
        return frozenset()
    passed = {*map(stable_name, change.tests.ran)} - failing_tests(change)
    return failing_tests(without) & passed


MAX_NAMED = 20


def needs_second_run(diff: bytes, change: CheckResult, run: CheckResult) -> bool:
    """Return whether a proving test may only be flaky: the change's diff does not show it."""
    hunks = [hunk for patch in patches_of(diff) for hunk in patch.hunks(MAX_LINE_CHARS)]
    shown = "\n".join(
        text for hunk in hunks for text in (hunk.heading, *(line.text for line in hunk.new))
    )
    titles = (without_parameters(name).partition(" (")[0] for name in proving_tests(change, run))
    return any(title not in shown for title in titles)


def proof_of(change: CheckResult, runs: Sequence[CheckResult], before: RanTests | None) -> Proof:
    """Judge a check by its run with the change, and by one or two runs without it.

    `before` are the tests of the start tree, if they are known. Without a run, nothing was tried.
    """
    if not runs:
        return _proof(ProofState.NOT_TRIED, (), change)
    proving = frozenset[str].intersection(*(proving_tests(change, run) for run in runs))
    new = _new_tests(change.tests, before)
    if proving:
        return _proof(ProofState.PROVED, proving, change)
    if not all(_has_run(run, new, change) for run in runs):
        return _proof(ProofState.NOT_TRIED, (), change)
    return _proof(ProofState.NOT_PROVED, new, change)


def proof_without_files(diff: bytes, change: CheckResult, before: RanTests | None) -> Proof:
    """Judge a change of no test file: it has no test, or one beside the code that it tests."""
    if _new_tests(change.tests, before) or any(map(_adds_tests, patches_of(diff))):
        return _proof(ProofState.NOT_TRIED, (), change)
    return Proof(state=ProofState.NO_TEST)


def _adds_tests(patch: Patch) -> bool:
    before, after = sides_of(patch)
    return bool(after.cases - before.cases)


def _new_tests(now: RanTests | None, before: RanTests | None) -> frozenset[str]:
    if now is None or before is None:
        return frozenset()
    known = (*before.ran, *before.skipped, *before.stopped)
    return frozenset(map(stable_name, now.ran)) - {*map(stable_name, known)}


def _has_run(run: CheckResult, new: frozenset[str], change: CheckResult) -> bool:
    """Return whether a run without the change ran the new tests, as far as is known."""
    if not run.is_complete:
        return False
    if change.tests is None:
        return run.passed or bool(failing_tests(run))
    return run.tests is not None and new <= {*map(stable_name, run.tests.ran)}


def _proof(state: ProofState, tests: Iterable[str], change: CheckResult) -> Proof:
    names = sorted(tests)
    return Proof(state=state, tests=tuple(names[:MAX_NAMED]), count=len(names), check=change.name)


# A proof that is missing

UNPROVED = {
    ProofState.NO_TEST: (
        "The change adds and alters no test, and this issue needs one that fails without it."
    ),
    ProofState.NOT_PROVED: (
        "No test of the change fails without it, and this issue needs one that does."
    ),
}
WANTED = (
    "Add or alter a test that shows what the change repairs: it fails on the code of the base "
    "branch, and passes with the change."
)


def unproved(proof: Proof) -> CheckResult | None:
    """Return the failed check of a change that has no proof, None if it needs none (PROOF-2).

    What could not be tried fails nothing.
    """
    said = UNPROVED.get(proof.state)
    if said is None:
        return None
    passing = [f"- {name} passes without the change too" for name in proof.tests]
    text = "\n".join([said, WANTED, *passing])
    return CheckResult(
        name=PROOF_CHECK,
        kind=CheckKind.TEST,
        command="",
        passed=False,
        is_proof=True,
        digest=text,
        fingerprint=fingerprint((), [said]),
    )


PROOF_CHECK = "proof"
"""The name of the missing proof among the checks of an attempt."""
