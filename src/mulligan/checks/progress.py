"""Compare the failures of a check in two attempts: what is fixed, new or the same. Pure."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from mulligan.checks.digest.identity import (
    FINGERPRINT_DIGITS,
    identity,
    name_of,
    stable_name,
    without_positions,
)
from mulligan.checks.digest.reports import is_same_test
from mulligan.checks.ran import title_of
from mulligan.domain.result import CheckResult, Finding, Progress, RanTests

MAX_NAMES = 50
"""How many failures of each kind are recorded."""


def with_progress(result: CheckResult, before: CheckResult | None, number: int) -> CheckResult:
    """Add to a result a hash of its failures, and their progress since an earlier attempt.

    `before` is the check in the attempt with this `number`, with its tests if they are known.
    """
    progress = _progress(result, before, number) if before else None
    return result.model_copy(update={"failure_hash": failure_hash(result), "progress": progress})


def _progress(now: CheckResult, before: CheckResult, number: int) -> Progress:
    fixed = _passed_in(now, before) if before.fails else ()
    new = _passed_in(before, now) if now.fails else ()
    return Progress(since=number, fixed=fixed[:MAX_NAMES], new=new[:MAX_NAMES])


def _passed_in(run: CheckResult, other: CheckResult) -> tuple[str, ...]:
    """Name the failures of another run that did not occur in this one, although it ran them."""
    if not run.names_all:
        return ()
    left = {_key(found) for found in (*run.findings, *run.known, *run.unsteady)}
    gone = [found for found in other.findings if _key(found) not in left]
    goes_as_far = _goes_as_far(run, other)
    if run.tests is not None:
        has_run = _is_among(run.tests)
        ran = [found for found in gone if (has_run(found) if found.test_id else goes_as_far)]
    elif run.has_report or other.has_report:
        # The tests of one run are known, and those of the other are not.
        ran = []
    else:
        ran = gone if goes_as_far else []
    return tuple(found.name for found in ran)


def _key(found: Finding) -> str:
    """Identify a failing test by its name alone: it failed, whatever its message is."""
    return name_of(found) if found.test_id else identity(found)


def _goes_as_far(run: CheckResult, other: CheckResult) -> bool:
    """Return whether a run without a report ran what another one ran.

    It had no failures, or only some of those of the other, or only those of tests. A failure of
    another kind, such as a compiler's error, may have kept tests from running.
    """
    told = [*run.findings, *run.known]
    failed = {_key(found) for found in (*other.findings, *other.known)}
    return all(_is_of_a_test(found) for found in told) or all(
        _key(found) in failed for found in told
    )


WITHOUT_A_TEST = re.compile(r"^pytest::|Test suite failed to run|\b_FailedTest\b")
"""What pytest, jest and unittest name where a file cannot be loaded."""


def _is_of_a_test(found: Finding) -> bool:
    """Return whether a failure is that of one test, not of a file whose tests could not run."""
    name, file = found.test_id or "", (found.file or "").removeprefix("./")
    return bool(name) and name != file and not WITHOUT_A_TEST.search(name)


def _is_among(tests: RanTests) -> Callable[[Finding], bool]:
    """Return what tells whether a report names a test as one that ran to its end.

    The output may name it in another way than the report; then exactly one must fit.
    """
    names = {*map(stable_name, tests.ran)} - {*map(stable_name, tests.stopped)}
    by_title = defaultdict[str, list[str]](list)
    for name in names:
        by_title[title_of(name)].append(name)

    def has_run(found: Finding) -> bool:
        name = stable_name(found.test_id or "")
        alike = (other for other in by_title[title_of(name)] if is_same_test(name, other))
        return name in names or len([*alike]) == 1

    return has_run


# Whether two failures are the same

OF_THE_MACHINE = re.compile(
    r"No space left on device|\bENOSPC\b|Disk quota exceeded|\bEDQUOT\b|Cannot allocate memory"
    r"|\bENOMEM\b|\boom-kill|\b(?:Error|exit (?:code|status):?) 1(?:26|27|37)\b|exit status 137"
)
"""A full disk, missing memory, and a program below another that cannot start or was killed.

These words withhold advice; they never decide the outcome of an attempt.
"""


def failure_hash(result: CheckResult) -> str:
    """Hash the names, messages and lines of a check's failures, without positions; in hex.

    Without findings, the digest and the fingerprint count. Empty if the failures are not known in
    full, or may be those of the machine.
    """
    texts = [result.digest, result.long_digest, *(found.message for found in result.findings)]
    is_of_the_machine = any(map(OF_THE_MACHINE.search, texts))
    if not result.fails or not result.is_complete or result.unnamed or is_of_the_machine:
        return ""
    if result.findings:
        return _hash([*map(_text_of, result.findings), result.evidence])
    printed = [result.fingerprint, result.evidence, without_positions(result.digest)]
    return _hash(printed) if any(printed) else ""


def _text_of(found: Finding) -> str:
    return f"{name_of(found)}|{without_positions(found.message)}"


def _hash(parts: Iterable[str]) -> str:
    joined = "\n".join(sorted(parts))
    return hashlib.sha256(joined.encode(errors="replace")).hexdigest()[:FINGERPRINT_DIGITS]
