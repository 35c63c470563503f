"""Look for a test that fails without the change, on the start tree with its test files (PROOF-1).

A failing build or import there is no proof.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mulligan.config.policy import Check
from mulligan.domain.attempt import Change
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.result import CheckKind, CheckResult, Proof, ProofState, RanTests
from mulligan.implement.baselines import baseline_of
from mulligan.implement.ports import AttemptContext
from mulligan.implement.run_check import run_check


@dataclass(frozen=True, slots=True)
class VerifiedCheck:
    """A check of the policy, its result on the change with its tests, and the name of its log."""

    check: Check
    result: CheckResult
    name: str


ORDER = (ProofState.PROVED, ProofState.NOT_TRIED, ProofState.NOT_PROVED, ProofState.NO_TEST)
"""Of several checks, the one with the first of these counts: new tests may be in one check only."""


def find_proof(
    change: Change, verified: Sequence[VerifiedCheck], at: AttemptContext
) -> Proof | None:
    """Return what the required tests say; None if there are none.

    They run one after the other until one of them proves the change.
    """
    found = list[Proof]()
    for proof in _proofs(change, [each for each in verified if _is_of_tests(each.check)], at):
        found.append(proof)
        if proof.state is ProofState.PROVED:
            break
    return min(found, key=lambda proof: ORDER.index(proof.state), default=None)


def _is_of_tests(check: Check) -> bool:
    return check.required and check.kind is CheckKind.TEST


def _proofs(
    change: Change, verified: Sequence[VerifiedCheck], at: AttemptContext
) -> Iterator[Proof]:
    verifier, head_sha = at.context.verifier, change.head_sha
    paths = verifier.files_of_tests(change, at.policy.test_files)
    for each in verified:
        before = _tests_before(each.check, at)
        if not paths or head_sha is None:
            yield verifier.proof_without_files(change.diff, each.result, before)
        else:
            sha = at.worktree.start_with(head_sha, paths)
            runs = _runs_without(each, change.diff, sha, at)
            yield verifier.proof_of(each.result, runs, before)


def _runs_without(
    verified: VerifiedCheck, diff: bytes, sha: str, at: AttemptContext
) -> list[CheckResult]:
    """Run a check on a commit without the change; a second time if one run is not enough.

    Returns no run if the check's program is part of the change.
    """
    check, name, verifier = verified.check, f"{verified.name}-proof", at.context.verifier
    try:
        with at.worktree.pristine_checkout(sha):
            runs = [run_check(check, sha, name, at, [])]
            if verifier.needs_second_run(diff, verified.result, runs[0]):
                runs.append(run_check(check, sha, f"{name}-again", at, []))
    except MisconfiguredError:
        return []
    return runs


def _tests_before(check: Check, at: AttemptContext) -> RanTests | None:
    found = baseline_of(check, at)
    return found.tests if found else None
