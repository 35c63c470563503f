"""Verify a change: guards, checks, proof and reviewer, on the committed tree (GUARD-1, CHECK-2).

A check that passes runs once. A check that fails runs again, as it may be flaky. It counts only if
it passes on the start tree (baselines.py). If tests of a check don't run that ran there, it fails.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from mulligan.config.policy import Baseline, Check, Reviewer
from mulligan.domain.attempt import AttemptState, Change, ReviewerResult, worth_verifying
from mulligan.domain.attempt_times import MILLISECOND, NO_TIME, Part
from mulligan.domain.check_paths import concerns_all, concerns_check
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.events import CheckFinished, CheckSkipped, ProofFinished, ReviewFinished
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import (
    NOT_FOUND,
    CheckKind,
    CheckResult,
    OnBase,
    SkippedCheck,
    VerifierOutcome,
)
from mulligan.implement.baselines import baseline_of, run_baseline, run_baseline_again
from mulligan.implement.kept_tests import keep_tests, read_tests
from mulligan.implement.ports import AttemptContext, ReviewQuestion, Worktree
from mulligan.implement.prove import VerifiedCheck, find_proof
from mulligan.implement.run_check import run_check
from mulligan.implement.set_up import set_up_change


def verify(known: AttemptState, change: Change, at: AttemptContext) -> Iterator[AttemptState]:
    """Run the guards, then every check, then the reviewer; yield the state after each.

    A failed check does not skip the others: the next prompt names every failure.
    """
    context, ref = at.context, at.case.issue.ref
    with at.stopwatch.measure(Part.CHECKS):
        violations = context.verifier.violations(change, at.policy.scope)
    yield (known := replace(known, violations=violations))
    if known.violations or change.head_sha is None:
        return
    rounds = f"fix-{len(known.earlier)}-" if known.earlier else ""
    tree = at.worktree
    began = context.clock.now()
    with at.stopwatch.measure(Part.CHECKS):
        ready = set_up_change(change, f"{rounds}setup-again.log", at)
    if ready:
        result, tree = _timed(ready[0], 1, began, at), ready[1]
        result = _recorded(_with_progress(result, at))
        context.ledger.append(ref, CheckFinished(check=result))
        yield (known := replace(known, checks=(result,)))
        if result.fails:
            return
    skipped = _skipped(change.head_sha, at)
    verified = list[VerifiedCheck]()
    for position, check in enumerate(at.policy.checks, start=1):
        if check in skipped:
            yield (known := _skip(check, known, at))
            continue
        each = _verify(check, f"{rounds}check-{position}", change, tree, at)
        verified.append(each)
        yield (known := replace(known, checks=(*known.checks, _recorded(each.result))))
    if at.policy.proof and worth_verifying(known):
        yield (known := _with_proof(known, change, verified, at))
    if at.policy.reviewer and worth_verifying(known):
        with at.stopwatch.measure(Part.REVIEWER):
            review = _review(at.policy.reviewer, known, change, f"{rounds}review.log", at)
        yield replace(known, review=review)


def _skipped(head_sha: str, at: AttemptContext) -> Collection[Check]:
    """Return the checks that the whole change against the base branch does not concern (CHECK-8).

    If the issue needs a proof, the required checks of kind `test` run if all would be skipped.
    """
    checks, setup = at.policy.checks, at.policy.setup
    if not any(check.paths for check in checks):
        return ()
    base, head = (at.worktree.blobs(sha).items() for sha in (at.worktree.fork_sha, head_sha))
    changed = {path for path, _ in base ^ head}
    if concerns_all(changed, setup.run, setup.inputs):
        return ()
    skipped = [check for check in checks if not concerns_check(changed, check.paths, check.run)]
    proving = [check for check in checks if check.required and check.kind is CheckKind.TEST]
    if at.policy.needs_proof(at.case.issue) and all(check in skipped for check in proving):
        return [check for check in skipped if check not in proving]
    return skipped


def _skip(check: Check, known: AttemptState, at: AttemptContext) -> AttemptState:
    """Record that a check did not run."""
    skipped = SkippedCheck(
        name=check.name,
        kind=check.kind,
        command=check.run,
        required=check.required,
        paths=check.paths,
    )
    at.context.ledger.append(at.case.issue.ref, CheckSkipped(check=skipped))
    return replace(known, skipped_checks=(*known.skipped_checks, skipped))


def _verify(
    check: Check, name: str, change: Change, tree: Worktree, at: AttemptContext
) -> VerifiedCheck:
    """Run a check on the change, and record its result; return it with its tests."""
    began, runs = at.context.clock.now(), list[str]()
    with at.stopwatch.measure(Part.CHECKS):
        result = _run_with_baseline(check, change.head_sha or "", name, tree, at, runs)
        result = _with_lost_tests(check, result, change, name, replace(at, worktree=tree), runs)
    artifact = keep_tests(result.tests, name, at)
    result = _with_progress(result.model_copy(update={"tests_artifact": artifact}), at)
    result = _timed(result, len(runs), began, at)
    at.context.ledger.append(at.case.issue.ref, CheckFinished(check=_recorded(result)))
    return VerifiedCheck(check, result, name)


def _with_proof(
    known: AttemptState, change: Change, verified: Sequence[VerifiedCheck], at: AttemptContext
) -> AttemptState:
    """Add whether a test proves the change; a proof that is wanted and missing fails it."""
    context, ref = at.context, at.case.issue.ref
    with at.stopwatch.measure(Part.CHECKS):
        proof = find_proof(change, verified, at)
    if proof is None:
        return known
    context.ledger.append(ref, ProofFinished(proof=proof))
    known = replace(known, proof=proof)
    missing = context.verifier.unproved(proof)
    if missing is None or not at.policy.needs_proof(at.case.issue):
        return known
    context.ledger.append(ref, CheckFinished(check=missing))
    return replace(known, checks=(*known.checks, missing))


MAX_RECORDED_FINDINGS = 50
"""How many findings of each kind are recorded for a check."""


def _recorded(result: CheckResult) -> CheckResult:
    parts = {"findings": result.findings, "known": result.known, "unsteady": result.unsteady}
    kept = {name: findings[:MAX_RECORDED_FINDINGS] for name, findings in parts.items()}
    return result.model_copy(update={**kept, "tests": None})


def _with_progress(result: CheckResult, at: AttemptContext) -> CheckResult:
    """Compare a result with the same check in the last attempt in which checks named failures."""
    compare, artifacts = at.context.verifier.with_progress, at.context.artifacts
    ended = (meta for meta in reversed(at.case.history) if meta.outcome not in FREE)
    meta = next((meta for meta in ended if any(map(_names_failures, meta.checks))), None)
    earlier = meta.checks if meta else ()
    before = next((check for check in earlier if check.name == result.name), None)
    if meta is None or before is None:
        return compare(result, None, 0)
    tests = read_tests(before.tests_artifact, artifacts) if before.tests_artifact else None
    return compare(result, before.model_copy(update={"tests": tests}), meta.number)


def _names_failures(check: CheckResult) -> bool:
    return check.fails and bool(check.findings)


def _timed(result: CheckResult, runs: int, began: datetime, at: AttemptContext) -> CheckResult:
    """Add how often a check ran, and how long all of that took since `began`."""
    took = max(at.context.clock.now() - began, NO_TIME)
    return result.model_copy(update={"runs": runs, "wall_ms": took // MILLISECOND})


def _run_with_baseline(
    check: Check,
    head_sha: str,
    name: str,
    tree: Worktree,
    at: AttemptContext,
    runs: list[str],
) -> CheckResult:
    """Run a check; if it fails, run it again (tests only), then on the start tree.

    Add the name of each run to `runs`.
    """
    changed = replace(at, worktree=tree)
    try:
        result = run_check(check, head_sha, name, changed, runs)
    except MisconfiguredError as error:
        return _without_program(check, name, error, at, runs)
    reruns = at.policy.flaky_reruns if check.kind is CheckKind.TEST else 0
    for again in range(1, reruns + 1):
        if not result.fails:
            break
        result = at.context.verifier.merge_reruns(
            result, run_check(check, head_sha, f"{name}-again-{again}", changed, runs)
        )
    if not (result.fails and at.policy.has_baseline):
        return result
    before = run_baseline(check, f"{name}-before", at, runs)
    files = tree.blobs(at.worktree.start_sha).keys() | tree.blobs(head_sha).keys()
    return at.context.verifier.subtract_baseline(result, before, files)


def _with_lost_tests(
    check: Check,
    result: CheckResult,
    change: Change,
    name: str,
    at: AttemptContext,
    runs: list[str],
) -> CheckResult:
    """Fail a check that would pass, if tests that ran on the start tree don't run (CHECK-7).

    Before that, it runs once more on both trees: a service may be away, or a name may vary.
    """
    before = _tests_before(check, result, name, at, runs)
    if before is None or before.tests is None:
        return result
    judge, scope = at.context.verifier.judge_tests, at.policy.scope
    if judge((result,), before, change.diff, scope) is result:
        return result
    again = run_check(check, change.head_sha or "", f"{name}-tests-again", at, runs)
    twice = run_baseline_again(check, f"{name}-before-again", at, runs)
    return judge((result, again), twice or before, change.diff, scope)


def _tests_before(
    check: Check, result: CheckResult, name: str, at: AttemptContext, runs: list[str]
) -> CheckResult | None:
    """Return a check's result on the start tree, if its tests are to be compared with it."""
    if result.fails or result.is_broken or not (check.ran and check.required):
        return None
    is_of_tests = check.kind is CheckKind.TEST or result.tests is not None
    runs_nothing = result.tests is not None and not result.tests.ran
    if (at.policy.baseline is Baseline.ON and is_of_tests) or (
        at.policy.has_baseline and runs_nothing
    ):
        return run_baseline(check, f"{name}-before", at, runs, needs_tests=True)
    return baseline_of(check, at)


def _without_program(
    check: Check, name: str, error: MisconfiguredError, at: AttemptContext, runs: list[str]
) -> CheckResult:
    """Return the result of a check whose program is not found; the change may have removed it."""
    if not at.policy.has_baseline:
        raise error
    before = run_baseline(check, f"{name}-before", at, runs)
    on_base = OnBase.PASSES if before and before.passed else OnBase.FAILS
    return CheckResult(
        name=check.name,
        kind=check.kind,
        command=check.run,
        required=check.required,
        passed=False,
        exit_code=NOT_FOUND,
        digest=str(error),
        on_base=on_base if before else OnBase.CANNOT_RUN,
    )


def _review(
    reviewer: Reviewer, known: AttemptState, change: Change, name: str, at: AttemptContext
) -> ReviewerResult:
    """Run the reviewer in the base branch's tree, so that the change cannot judge itself."""
    ref, context = at.case.issue.ref, at.context
    log = context.artifacts.path(ref, at.case.status.number, name)
    asked = _question(known, change, at)
    with at.worktree.base_checkout(change.head_sha or at.worktree.start_sha) as (tree, files):
        question = ReviewQuestion(asked, files, at.agent.model)
        review = context.verifier.review(reviewer, question, tree, log)
    rejected = sum(meta.outcome is Outcome.REJECTED for meta in at.case.epoch_history)
    objects = review.verdict is VerifierOutcome.HARD_FAIL
    review = replace(review, vetoes=objects and rejected < reviewer.vetoes)
    finished = ReviewFinished(
        verdict=review.verdict,
        feedback=review.feedback,
        unreadable=review.unreadable,
        vetoes=review.vetoes,
    )
    context.ledger.append(ref, finished)
    return review


def _question(known: AttemptState, change: Change, at: AttemptContext) -> bytes:
    """Write the JSON that the reviewer reads on its standard input."""
    issue = at.case.issue
    asked = {
        "issue": str(issue.ref),
        "title": issue.title,
        "body": issue.body,
        "attempt": at.case.status.attempt,
        "diff": change.diff.decode(errors="replace"),
        "checks": [{"name": check.name, "passed": check.passed} for check in known.checks],
        "skipped_checks": [check.name for check in known.skipped_checks],
    }
    return at.context.redactor.text(json.dumps(asked)).encode()
