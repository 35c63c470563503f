"""Any verifier gives a verdict with a reason, and tells whose fault it is (port Verifier)."""

import os
from pathlib import Path

import pytest

from mulligan.checks.runner import NO_CHECK_OUT, CommandVerifier
from mulligan.config.policy import Check, Reviewer, Scope, SetUp
from mulligan.domain.attempt import Change, ReviewerResult
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.result import CheckKind, FileChange, VerifierOutcome
from mulligan.implement.ports import ReviewQuestion, Verifier
from world.confined import sandbox
from world.images import assemble
from world.scripted_verifier import ScriptedVerifier
from world.trees import PlainWorktree, plain_worktree

REASON = "src/cart.py:3:5: error: the total is wrong"
LOOK = f"test -e mended || {{ echo '{REASON}'; exit 1; }}"
MAKE = "echo made > made"
REVIEW = 'test -e mended || echo \'{"verdict": "HARD_FAIL", "feedback": "No."}\''
BREAK = "echo 'error: no such package'; exit 1"


def make(tree: Path) -> None:
    (tree / "made").write_text("made\n")


SCRIPTED = ScriptedVerifier(
    {
        LOOK: lambda tree: None if (tree / "mended").exists() else REASON,
        MAKE: make,
        REVIEW: lambda tree: (
            None if (tree / "mended").exists() else '{"verdict": "HARD_FAIL", "feedback": "No."}'
        ),
        BREAK: lambda _tree: "error: no such package",
    }
)


IN_IMAGE = "command in an image"


@pytest.fixture(params=["command", IN_IMAGE, "scripted"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def verifier(kind: str) -> Verifier:
    environment = {"PATH": os.environ["PATH"]}
    if kind == IN_IMAGE:
        return CommandVerifier(environment, sandbox())
    return CommandVerifier(environment) if kind == "command" else SCRIPTED


@pytest.fixture
def tree(kind: str, tmp_path: Path) -> PlainWorktree:
    made = plain_worktree(tmp_path / "work")
    return made.with_image(assemble(tmp_path / "image")) if kind == IN_IMAGE else made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "check.log"


def test_a_check_passes_on_a_tree_that_is_as_it_should_be(
    verifier: Verifier, tree: PlainWorktree, log: Path
) -> None:
    (tree.path / "mended").touch()
    result = verifier.check(
        Check(name="tests", run=LOOK, kind=CheckKind.TEST), tree, log, NO_CHECK_OUT
    )
    assert result.passed
    assert (result.exit_code, result.findings, result.timed_out) == (0, (), False)
    assert (result.name, result.kind, result.command) == ("tests", CheckKind.TEST, LOOK)
    assert result.digest == "Passed."
    assert log.exists()


def test_a_check_that_fails_says_why(verifier: Verifier, tree: PlainWorktree, log: Path) -> None:
    result = verifier.check(Check(name="tests", run=LOOK, required=False), tree, log, NO_CHECK_OUT)
    assert not result.passed
    assert (result.exit_code, result.required) == (1, False)
    assert REASON in result.digest
    assert "the total is wrong" in result.findings[0].summary
    assert result.fingerprint
    assert log.read_text().strip() == REASON


def test_the_same_failure_has_the_same_fingerprint(
    verifier: Verifier, tree: PlainWorktree, log: Path
) -> None:
    check = Check(name="tests", run=LOOK)
    first, second = (
        verifier.check(check, tree, log, NO_CHECK_OUT),
        verifier.check(check, tree, log, NO_CHECK_OUT),
    )
    assert first.fingerprint == second.fingerprint


def test_a_program_that_is_not_there_is_the_operators_to_mend(
    verifier: Verifier, tree: PlainWorktree, log: Path
) -> None:
    check = Check(name="lint", run="no-such-program --all .")
    with pytest.raises(MisconfiguredError) as caught:
        verifier.check(check, tree, log, NO_CHECK_OUT)
    where = f" in the image {tree.image.reference}" if tree.image else ""
    assert str(caught.value) == (
        f"'no-such-program' not found{where}. It is the program of the check 'lint'; "
        "install it in a setup command, or change the check's command."
    )


def test_the_set_up_is_done_in_order(verifier: Verifier, tree: PlainWorktree, log: Path) -> None:
    assert verifier.set_up((MAKE,), tree, log).passed
    assert (tree.path / "made").read_text() == "made\n"
    assert f"$ {MAKE}" in log.read_text()
    assert verifier.set_up((), tree, log).passed


def test_a_set_up_that_fails_is_named_with_its_output(
    verifier: Verifier, tree: PlainWorktree, log: Path
) -> None:
    result = verifier.set_up((BREAK, MAKE), tree, log)
    assert (result.passed, result.is_set_up, result.command) == (False, True, BREAK)
    assert "no such package" in result.digest
    assert not (tree.path / "made").exists()
    assert "error: no such package" in log.read_text()


def test_a_set_up_that_fails_on_a_change_is_a_failed_check(
    verifier: Verifier, tree: PlainWorktree, log: Path
) -> None:
    good = verifier.set_up_again(SetUp(run=(MAKE,)), tree, log, "Why.")
    assert (good.name, good.passed, good.required) == ("setup", True, True)
    bad = verifier.set_up_again(SetUp(run=(BREAK, MAKE)), tree, log, "Why.")
    assert (bad.passed, bad.exit_code) == (False, 1)
    assert bad.digest.startswith(f"Why. The setup command '{BREAK}' failed with exit code 1.")
    assert "no such package" in bad.digest
    assert "no such package" in log.read_text()
    if isinstance(verifier, CommandVerifier):
        assert good.duration_ms > 0


def test_the_scope_is_kept(verifier: Verifier) -> None:
    change = Change("a" * 40, "b" * 40, 1, (FileChange(path="ci.yml", status="M"),))
    assert verifier.violations(change, Scope()) == ()
    told = verifier.violations(change, Scope(allow=("src/",)))
    assert tuple(broken.message for broken in told) == (
        "ci.yml is outside the allowed scope (src/).",
    )


def test_only_what_a_change_added_and_what_fails_again_counts(
    verifier: Verifier, tree: PlainWorktree, log: Path
) -> None:
    check = Check(name="tests", run=LOOK)
    failed = verifier.check(check, tree, log, NO_CHECK_OUT)
    assert verifier.subtract_baseline(failed, failed, ()).preexisting
    assert verifier.subtract_baseline(failed, None, ()).fails
    assert verifier.merge_reruns(failed, failed).fails
    (tree.path / "mended").touch()
    passed = verifier.check(check, tree, log, NO_CHECK_OUT)
    assert verifier.subtract_baseline(failed, passed, ()).fails
    assert verifier.merge_reruns(failed, passed).flaky


def test_a_reviewer_gives_a_verdict_or_none(
    verifier: Verifier, tree: PlainWorktree, log: Path
) -> None:
    question = ReviewQuestion(b"{}", tree.path)
    said = verifier.review(Reviewer(run=REVIEW), question, tree, log)
    assert (said.verdict, said.feedback) == (VerifierOutcome.HARD_FAIL, "No.")
    (tree.path / "mended").touch()
    said = verifier.review(Reviewer(run=REVIEW), question, tree, log)
    assert said == ReviewerResult(None, unreadable="The reviewer command printed nothing.")


def test_what_failed_elsewhere_is_condensed(verifier: Verifier) -> None:
    failed = verifier.condense("tests", f"{REASON}\n".encode())
    assert (failed.name, REASON in failed.digest) == ("tests", True)
