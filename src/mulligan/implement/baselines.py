"""Run checks on the start tree, beside the agent or after it; share the results (BASELINE-1)."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import Event

import structlog

from mulligan.config.policy import Baseline, Check
from mulligan.domain.errors import (
    LeaseLostError,
    MisconfiguredError,
    ShutdownError,
    WithdrawnError,
    WorldError,
)
from mulligan.domain.events import BaselineRecorded
from mulligan.domain.result import NOT_FOUND, TIMEOUT_EXIT_CODE, CheckKind, CheckResult
from mulligan.implement.kept_tests import keep_tests, read_tests
from mulligan.implement.ports import AttemptContext
from mulligan.implement.prompt.manifest import hash_of
from mulligan.implement.run_check import run_check
from mulligan.implement.running_baselines import BaselineKey
from mulligan.sandbox.cancellation import in_background
from mulligan.sandbox.process import at_idle_priority

logger = structlog.get_logger()

BASELINE_VERSION = 7
"""Increase to run every baseline again; since version 7, the tests that ran are kept."""

MOST_RUNS = 2
"""How often a check runs on a start tree at most, for all issues."""


# Beside the agent


@contextmanager
def baselines_beside(at: AttemptContext) -> Generator[None]:
    """Run the required tests on the start tree once while the block lasts, with idle priority.

    Each result is recorded when it is there. The end of the block stops what still runs. Nothing
    runs if all results are known, or another attempt makes them.
    """
    wanted = _wanted_beside(at)
    claims = at.context.baselines.claim(wanted)
    if not claims:
        yield
        return
    with in_background(lambda: _run_beside(wanted, claims, at)):
        yield


def _wanted_beside(at: AttemptContext) -> Mapping[BaselineKey, tuple[Check, str]]:
    """Return the checks to run beside the agent, each with the name of its log, by key.

    A check with `paths` may be skipped, so it runs on the start tree after it ran on the change.
    """
    verifier, tree = at.context.verifier, at.worktree
    # Without a sandbox, the agent reaches the other checkout, whose paths are different besides.
    if at.policy.baseline is not Baseline.ON or verifier.place(tree) == str(tree.path):
        return {}
    checks = {
        _key(check, at): (check, f"check-{position}-before")
        for position, check in enumerate(at.policy.checks, start=1)
        if check.required and check.kind is CheckKind.TEST and not check.paths
    }
    return {key: named for key, named in checks.items() if _known(key, at) is None}


def _run_beside(
    wanted: Mapping[BaselineKey, tuple[Check, str]],
    claims: Mapping[BaselineKey, Event],
    at: AttemptContext,
) -> None:
    """Run the checks of the claims one after the other; end each claim, whatever happens."""
    try:
        with at_idle_priority(), at.worktree.beside() as tree:
            for key, claim in claims.items():
                check, name = wanted[key]
                _run_once(key, check, name, replace(at, worktree=tree))
                at.context.baselines.release({key: claim})
    except (WithdrawnError, ShutdownError, LeaseLostError):
        # The attempt has ended, or is about to end for the same reason.
        return
    except WorldError as error:
        # If a check fails on the change, it runs on the start tree after it.
        logger.warning("baseline_failed", issue=str(at.case.issue.ref), error=str(error))
    finally:
        at.context.baselines.release(claims)


def _run_once(key: BaselineKey, check: Check, name: str, at: AttemptContext) -> None:
    """Run a check on the start tree, and record the result unless something stopped the check."""
    try:
        found = run_check(check, at.worktree.start_sha, name, at, [])
    except MisconfiguredError:
        # The check's program may be part of the change.
        found = None
    if found is None or _has_ended_by_itself(found):
        _record(key, found, 1, name, check, at)


def _has_ended_by_itself(result: CheckResult) -> bool:
    """Return whether nothing killed a check, or stopped it after a time: that may be the load."""
    code = -1 if result.exit_code is None else result.exit_code
    return not result.timed_out and 0 <= code <= NOT_FOUND and code != TIMEOUT_EXIT_CODE


# After the agent


def baseline_of(check: Check, at: AttemptContext) -> CheckResult | None:
    """Return a check's result on the start tree, as far as it is known; wait if it runs now.

    It has run once there, or twice. None if it is not known, or could not run.
    """
    if not at.policy.has_baseline:
        return None
    key = _key(check, at)
    with at.context.baselines.turn(key, check.timeout):
        known = _known(key, at)
    return known.check if known else None


def run_baseline(
    check: Check, name: str, at: AttemptContext, runs: list[str], *, needs_tests: bool = False
) -> CheckResult | None:
    """Return a check's result on the start tree; run it there unless that is known.

    A failing check runs twice: a failure counts as preexisting only if both runs show it. Returns
    None if the check's program is not found. Adds the name of each run to `runs`. With
    `needs_tests`, a result whose list of tests is lost is not known.
    """
    key = _key(check, at)
    with at.context.baselines.turn(key, check.timeout):
        known = _known(key, at, needs_tests=needs_tests)
        if known is None or (known.runs == 1 and known.check and not known.check.passed):
            known = _run_more(key, check, known, name, at, runs)
    return known.check


def run_baseline_again(
    check: Check, name: str, at: AttemptContext, runs: list[str]
) -> CheckResult | None:
    """Return both runs of a check on the start tree, merged; run it once more if it ran once.

    None if the result of the first run is not known, or it could not run.
    """
    key = _key(check, at)
    with at.context.baselines.turn(key, check.timeout):
        known = _known(key, at)
        if known and known.check and known.runs == 1:
            known = _run_more(key, check, known, name, at, runs)
    return known.check if known else None


def _run_more(
    key: BaselineKey,
    check: Check,
    known: BaselineRecorded | None,
    name: str,
    at: AttemptContext,
    runs: list[str],
) -> BaselineRecorded:
    """Run a check on a new checkout of the start tree, in which no agent has run; record it.

    If nothing is known, the check runs once, and once more if it fails.
    """
    start_sha, count = at.worktree.start_sha, 1
    with at.worktree.pristine_checkout(start_sha):
        try:
            found = known.check if known else None
            first = found or run_check(check, start_sha, name, at, runs)
            result = first
            if found or not first.passed:
                again = run_check(check, start_sha, f"{name}-again", at, runs)
                result, count = at.context.verifier.merge_baseline_runs(first, again), MOST_RUNS
        except MisconfiguredError:
            # The check's program may be part of the change.
            result = None
    return _record(key, result, count, name, check, at)


# What is known


def _key(check: Check, at: AttemptContext) -> BaselineKey:
    """Return the key of a check's result on the start tree.

    It counts today only, for the same setup commands and the same programs on the machine.
    """
    image = at.worktree.image
    hashed = hash_of(
        {
            **({"image": image.digest} if image else {}),
            "baselines": BASELINE_VERSION,
            "day": at.context.clock.now().date().isoformat(),
            "start_sha": at.worktree.start_sha,
            "check": check.model_dump(mode="json"),
            "setup": [*at.policy.setup.run],
            "toolchain": at.context.verifier.toolchain([check.run, *at.policy.setup.run]),
        }
    )
    return at.case.issue.ref.repository, hashed


def _known(
    key: BaselineKey, at: AttemptContext, *, needs_tests: bool = True
) -> BaselineRecorded | None:
    """Return what the ledger has under a key, of any issue, with the tests that ran.

    None if there is nothing. If the file with the tests is lost, None or a result without them.
    """
    known = at.context.ledger.baseline(*key)
    if known is None or known.check is None or not known.tests:
        return known
    tests = read_tests(known.tests, at.context.artifacts)
    if tests is None:
        return None if needs_tests else known
    return known.model_copy(update={"check": known.check.model_copy(update={"tests": tests})})


def _record(
    key: BaselineKey,
    found: CheckResult | None,
    count: int,
    name: str,
    check: Check,
    at: AttemptContext,
) -> BaselineRecorded:
    """Record a result after `count` runs, its tests as a file; return it with the tests."""
    ref = at.case.issue.ref
    found = found and found.model_copy(update={"source": ()})
    tests = keep_tests(found.tests, name, at) if found else ""
    lean = found and found.model_copy(update={"tests": None})
    recorded = BaselineRecorded(
        key=key[1],
        start_sha=at.worktree.start_sha,
        name=check.name,
        check=lean,
        runs=count,
        tests=tests,
    )
    at.context.ledger.append(ref, recorded)
    return recorded.model_copy(update={"check": found})
