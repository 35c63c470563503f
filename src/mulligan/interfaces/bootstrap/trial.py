"""Run proposed checks once, as an attempt would: what passes, what fails, what tests nothing."""

import re
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from mulligan.config.policy import Check
from mulligan.domain.errors import MisconfiguredError, MulliganError
from mulligan.domain.result import CheckKind, CheckResult
from mulligan.domain.set_up import SetUpError
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.interfaces.bootstrap.container import Environment
from mulligan.interfaces.bootstrap.local_checks import (
    AttemptChecks,
    open_attempt_checks,
    read_local_commit,
)
from mulligan.interfaces.onboarding.proposal import Proposal, ProposedCheck, policy_text

SET_UP = "setup commands"
"""The name of their step."""

TRIAL_LIMIT = timedelta(minutes=15)
"""The time in which a check may begin; one that runs then may take its own time limit."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The tried proposal; `set_up_failed` is why the setup commands failed, else empty."""

    proposal: Proposal
    set_up_failed: str = ""


Shown = Callable[[str, Path], AbstractContextManager[None]]
"""Shows a step while it runs: its name, and the directory of its log."""


def try_proposal(  # noqa: PLR0917 - what to try, where, and how to show it
    proposal: Proposal,
    clone: Path,
    config: Path | None,
    environment: Environment,
    ends: float,
    shown: Shown,
    report: Callable[[ProposedCheck], None],
) -> Trial:
    """Run the setup commands and each check on the last commit; MulliganError if nothing can run.

    Each check gets what was found, and is then reported. `ends` is a time of `time.monotonic`; a
    check after it is not tried.
    """
    with _opened(proposal, clone, config, environment) as place:
        try:
            ready = _set_up(place, shown)
        except (SetUpError, MisconfiguredError) as error:
            failed = _without(proposal, error)
            is_for_all = failed.set_up == proposal.set_up
            if is_for_all:
                return Trial(failed, str(error))
        else:
            return Trial(_all_tried(proposal, ready, ends, shown, report))
    for before, check in zip(proposal.checks, failed.checks, strict=True):
        if check.fails and not before.fails:
            report(check)
    return try_proposal(failed, clone, config, environment, ends, shown, report)


def _set_up(place: AttemptChecks, shown: Shown) -> AttemptChecks:
    if not (lines := place.commit.policy.setup.run):
        return place
    with shown(SET_UP, place.logs):
        return place.set_up(lines)[0]


def _without(proposal: Proposal, error: MulliganError) -> Proposal:
    """Return the proposal without the checks that need a failed command: all, or those it is of."""
    line = error.failed.command if isinstance(error, SetUpError) else ""
    why = f"the setup commands failed: {_why(error)}"
    is_for_all = line in proposal.setup or not any(line in each.setup for each in proposal.checks)
    failed = tuple(
        replace(each, fails=why) if each.is_kept and (is_for_all or line in each.setup) else each
        for each in proposal.checks
    )
    return replace(proposal, checks=failed)


def _all_tried(
    proposal: Proposal,
    place: AttemptChecks,
    ends: float,
    shown: Shown,
    report: Callable[[ProposedCheck], None],
) -> Proposal:
    settings = {check.name: check for check in place.commit.policy.checks}
    tried = list[ProposedCheck]()
    for check in proposal.checks:
        if check.reason:
            tried.append(check)
        elif time.monotonic() > ends:
            tried.append(replace(check, found=NO_TIME))
            report(tried[-1])
        else:
            with shown(check.name, place.logs):
                tried.append(_tried(check, settings[check.name], place))
            report(tried[-1])
    return replace(proposal, checks=tuple(tried))


def _why(error: MulliganError) -> str:
    """Return the last line of the output that speaks of an error; else the last of all."""
    said = error.failed.digest if isinstance(error, SetUpError) else str(error)
    telling = [line for line in said.splitlines() if TELLING.search(line)]
    return _first_line(telling[-1] if telling else _last_line(said))


TELLING = re.compile(
    r"\b(?:error|fatal|cannot|could not|unable to|not found|no such)\b", re.IGNORECASE
)

NO_TIME = "it was not tried: the time was up"


@contextmanager
def _opened(
    proposal: Proposal, clone: Path, config: Path | None, environment: Environment
) -> Generator[AttemptChecks]:
    with tempfile.TemporaryDirectory(prefix="mulligan-init-") as directory:
        policy = Path(directory) / "mulligan.yml"
        policy.write_text(policy_text(proposal), encoding="utf-8")
        commit = read_local_commit(clone, config, policy, environment)
        with open_attempt_checks(commit, environment) as place:
            yield place


def _tried(proposed: ProposedCheck, check: Check, place: AttemptChecks) -> ProposedCheck:
    """Run a check, again with the network if it fails without; say what that means."""
    try:
        result, changed = place.run_and_compare(check)
        if not (result.passed or result.timed_out or check.network):
            with_network = check.model_copy(update={"network": True})
            again, changed_again = place.run_and_compare(with_network)
            if again.passed or again.count < result.count:
                proposed = replace(proposed, network=True)
                check, result, changed = with_network, again, changed_again
        if result.timed_out:
            return replace(proposed, fails="it does not end within its time limit")
        if not result.passed and not _verifies_others(place, check, result):
            return replace(proposed, fails=f"it fails here: {_first_failure(result)}")
        if changed and check.kind is not CheckKind.TEST:
            files = pluralize(len(changed), "tracked file")
            return replace(proposed, fails=f"it changes {files}, such as {changed[0]}")
        is_test = result.passed and check.kind is CheckKind.TEST
        if is_test and not place.notices_broken_code(check, result):
            return replace(proposed, fails=TESTS_NOTHING)
    except MisconfiguredError as error:
        return replace(proposed, fails=_first_line(str(error)).rstrip("."))
    return replace(proposed, found=_said(result, network=proposed.network))


def _verifies_others(place: AttemptChecks, check: Check, failed: CheckResult) -> bool:
    """Return whether a check that fails without any change still notices other failures.

    Tests that cannot be built have no name, and hide what they would find.
    """
    is_named = any(finding.test_id for finding in failed.findings)
    if check.kind is CheckKind.TEST and not is_named:
        return False
    return place.repeated(failed).preexisting and place.notices_broken_code(check, failed)


TESTS_NOTHING = "it tests nothing: it passes with all source files broken"


def _said(result: CheckResult, *, network: bool) -> str:
    """Say what a check that is kept did; known failures count for no attempt (BASELINE-1)."""
    passes = "it passes here"
    if not result.passed:
        count = pluralize(result.count, "failure") if result.count else "failures"
        passes = f"it has {count} here without any change, which attempts ignore"
    ran = len(result.tests.ran) if result.tests else 0
    counted = f" ({pluralize(ran, 'test')})" if ran else ""
    return f"{passes}{counted}{', with the network' if network else ''}"


def _first_failure(result: CheckResult) -> str:
    first = next(iter(result.findings), None)
    if first and (first.test_id or first.file) and not BY_MAKE.match(first.summary):
        return _first_line(first.summary)
    # Such a finding may be the heading or the end of what a program says about its error.
    stated = (found[1] for line in result.digest.splitlines() if (found := STATED.match(line)))
    fallback = first.summary if first else _last_line(result.digest)
    return _first_line(next(stated, fallback))


BY_MAKE = re.compile(r"g?make(?:\[\d+\])?: \*\*\* |\S*[Mm]akefile:\d+: ")
"""It names the place of a command in a Makefile, but not why the command failed."""

STATED = re.compile(
    r"\s*(?:- )?(\W*(?:\w+\.)*\w*(?:error|exception|fatal)\]?: +\S.*)", re.IGNORECASE
)
"""A line of a digest that gives an error: `TypeError: …`, `fatal: …`."""


def _first_line(text: str) -> str:
    lines = (line.strip(" |") for line in text.splitlines())
    line = next((line for line in lines if line), "no output")
    return line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 1]}…"


MAX_REASON = 120


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")
