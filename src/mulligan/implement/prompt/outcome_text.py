"""All texts about the outcome of an attempt, for people and agents. Pure."""

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from mulligan.config.settings import format_duration
from mulligan.domain.attempt import (
    SHUTDOWN,
    AgentReport,
    AgentRun,
    AttemptState,
    Change,
    ReportedStatus,
    TimeLimit,
    signal_of,
    zero_kind,
)
from mulligan.domain.attempt_times import total_times
from mulligan.domain.outcome import Outcome, ZeroKind
from mulligan.domain.result import (
    CheckResult,
    Finding,
    Proof,
    ProofState,
    SetUpFiles,
    WorkerResultMeta,
)
from mulligan.domain.spending import spending_text, spent_in
from mulligan.domain.status import IssueStatus
from mulligan.domain.verification import Verification, is_unverified
from mulligan.text.escape import one_line, visible

# An outcome in one line.

TITLES: Mapping[Outcome, str] = {
    Outcome.CANCELLED: "Withdrawn",
    Outcome.INTERRUPTED: "Interrupted",
    Outcome.DENIED: "Access refused",
    Outcome.MISCONFIGURED: "Setup incomplete",
    Outcome.INFRASTRUCTURE: "Environment failed",
    Outcome.OVER_BUDGET: "Budget used up",
    Outcome.AGENT_TIMED_OUT: "Agent timed out",
    Outcome.BLOCKED: "Agent blocked",
    Outcome.NOTHING_TO_DO: "Nothing to do",
    Outcome.AGENT_CRASHED: "Agent crashed",
    Outcome.ZERO_COMMIT: "Zero commits",
    Outcome.ZERO_DIFF: "Zero diff",
    Outcome.SCOPE_VIOLATION: "Out of scope",
    Outcome.CHECKS_FAILED: "Checks failed",
    Outcome.REJECTED: "Rejected by the reviewer",
    Outcome.SUCCEEDED: "Succeeded",
}
"""The names of outcomes for people."""

ERROR_CHARS = 200

WORDS_CHARS = 1000

NAMED_CHECKS = 5

NAMED_FILES = 3

FILE_CHARS = 60

COMMAND_CHARS = 80


def error_line(outcome: Outcome, known: AttemptState) -> str:
    """Return in one line of at most 200 characters why an attempt did not succeed."""
    if outcome is Outcome.SUCCEEDED:
        return ""
    return one_line(explain(outcome, _headline(outcome, known)), ERROR_CHARS)


def failure_reason(outcome: Outcome, known: AttemptState) -> str:
    """Return why an attempt did not succeed; for INTERRUPTED exactly the reason of the fault."""
    headline, run = _headline(outcome, known), known.run
    if run and outcome in {Outcome.AGENT_TIMED_OUT, Outcome.AGENT_CRASHED}:
        return f"{headline} {last_activity(run.facts.last_activity)}"
    return headline


DIED = "Mulligan crashed during the attempt."

GONE = "The attempt's commit is no longer on this machine or in the file that kept it."

OVERTAKEN = (
    "Someone pushed to the pull request during the attempt. The next one starts from that push."
)

BASE_DROPPED = (
    "A force-push removed {}, the base of the attempt, from the base branch. Mulligan did not "
    "publish the work."
)

SHUT_DOWN = "Mulligan was shut down during the attempt."


def explain(outcome: Outcome, reason: str) -> str:
    """Return a recorded reason as a sentence; without one, describe the outcome."""
    if outcome is Outcome.INTERRUPTED and reason == SHUTDOWN:
        return SHUT_DOWN
    return reason or f"{TITLES[outcome]}."


def last_activity(activity: str | None) -> str:
    """Return the agent's last activity, in its own words (CONTEXT-10)."""
    return f"Last observed activity: {one_line(activity or 'none', ERROR_CHARS)}"


def _headline(outcome: Outcome, known: AttemptState) -> str:
    if known.fault:
        return visible(known.fault.reason)
    headline = (
        visible(known.ending_fault.reason) if known.ending_fault else _by_outcome(outcome, known)
    )
    return (
        f"{headline}{'' if known.ending_fault else _instead_of_a_change(known)}{_unreached(known)}"
    )


def _unreached(known: AttemptState) -> str:
    """Return the hosts that the sandbox refused, if the agent changed nothing."""
    hosts = known.run.facts.refused_hosts if known.run else ()
    if not hosts or (known.change and known.change.tree_changed):
        return ""
    named = ", ".join(one_line(host, FILE_CHARS) for host in hosts[:NAMED_FILES])
    more = " and more" if len(hosts) > NAMED_FILES else ""
    them = "it" if len(hosts) == 1 else "them"
    add = f"If the agent needs {them}, add {them} to sandbox.hosts"
    return f" The sandbox blocked the agent's access to {named}{more}. {add}."


def _instead_of_a_change(known: AttemptState) -> str:
    """Return the agent's question or the files that do not count, if it changed nothing."""
    kind, run, change = zero_kind(known), known.run, known.change
    if run and kind is ZeroKind.ASKED:
        return f" It asked: {one_line(run.question, ERROR_CHARS)}"
    if change and kind is ZeroKind.NESTED:
        return f" It worked in a git repository of its own: {names_of(change.nested)}."
    if change and kind is ZeroKind.NOT_CHECKED_OUT:
        return f" Its work is not checked out: {names_of(change.not_checked_out)}."
    if change and kind is ZeroKind.ONLY_IGNORED:
        names = names_of(change.ignored_files)
        return f" It wrote only files that git ignores or tools leave: {names}."
    return ""


def names_of(paths: Sequence[str]) -> str:
    """Return the first paths on one line, without escaping."""
    listed = ", ".join(one_line(path, FILE_CHARS) for path in paths[:NAMED_FILES])
    return f"{listed} and more" if len(paths) > NAMED_FILES else listed


def _by_outcome(outcome: Outcome, known: AttemptState) -> str:
    match outcome:
        case Outcome.MISCONFIGURED if known.review:
            return one_line(known.review.unreadable, WORDS_CHARS)
        case Outcome.CHECKS_FAILED | Outcome.MISCONFIGURED:
            return _checks_failed(known.checks)
        case Outcome.SCOPE_VIOLATION:
            reasons = "; ".join(broken.message.rstrip(".") for broken in known.violations)
            return f"Scope violation detected: {one_line(reasons, WORDS_CHARS)}."
        case Outcome.ZERO_COMMIT:
            return "The agent changed nothing (zero commits)."
        case Outcome.ZERO_DIFF:
            return _left_as_it_was(known.change) if known.change else ""
        case Outcome.REJECTED:
            return "The reviewer rejected the change."
        case (
            Outcome.AGENT_TIMED_OUT
            | Outcome.AGENT_CRASHED
            | Outcome.BLOCKED
            | Outcome.NOTHING_TO_DO
        ):
            return _last_words_of(outcome, known.run, known.change) if known.run else ""
        case (
            Outcome.CANCELLED
            | Outcome.INTERRUPTED
            | Outcome.DENIED
            | Outcome.INFRASTRUCTURE
            | Outcome.OVER_BUDGET
            | Outcome.SUCCEEDED
        ):
            return ""
        case _:
            assert_never(outcome)


def _left_as_it_was(change: Change) -> str:
    commits = pluralize(change.commits, "commit")
    if change.is_proposed:
        return f"The agent made {commits}, but the pull request's files are unchanged (zero diff)."
    return f"The agent made {commits}, but the files equal the base branch (zero diff)."


def _last_words_of(outcome: Outcome, run: AgentRun, change: Change | None) -> str:
    if run.stopped_by:
        return _timed_out(run)
    if run.report and outcome is not Outcome.AGENT_CRASHED:
        return _reported(run.report)
    has_changed = change is not None and change.tree_changed
    left = "did not finish its change" if has_changed else "changed nothing"
    if run.reported_error:
        error = one_line(run.reported_error, ERROR_CHARS).rstrip(".")
        return f"The agent reported an error ({error}), and it {left}."
    if run.is_cut_off and run.exit_code == 0:
        return f"The agent was cut off: its final record is missing, and it {left}."
    named = signal_of(run.exit_code) if (run.exit_code or 0) > 0 else None
    killed = f" (killed by {named.name})" if named else ""
    return f"The agent {_failed(run.exit_code, verb='ended')}{killed} and {left}."


def _timed_out(run: AgentRun) -> str:
    if run.stopped_by is TimeLimit.BUDGET:
        spent = spending_text(spent_in(run.facts), " and ")
        return f"Mulligan stopped the agent because it exceeded its budget: {spent}."
    if run.stopped_by is TimeLimit.DISK:
        return "Mulligan stopped the agent because it filled the disk with its own files."
    if run.stopped_by is TimeLimit.OWN_LIMIT:
        reason = one_line(run.facts.stop_reason or "", FILE_CHARS)
        return f"The agent reached its own limit{f' ({reason})' if reason else ''}."
    seconds = (run.limit or run.duration).total_seconds()
    after = f"{seconds:g} second" if seconds == 1 else f"{seconds:g} seconds"
    if run.stopped_by is TimeLimit.STALL_TIMEOUT:
        return f"Attempt was stopped after {after} without output."
    return f"Attempt timed out after {after}."


def _reported(report: AgentReport) -> str:
    opening = {
        ReportedStatus.BLOCKED: "The agent is blocked",
        ReportedStatus.NOTHING_TO_DO: "The agent reports that there is nothing to do",
    }[report.status]
    reason = one_line(report.reason, WORDS_CHARS) or "it gave no reason."
    evidence = one_line(report.evidence, WORDS_CHARS)
    return f"{opening}: {reason}" + (f" Evidence: {evidence}" if evidence else "")


def _checks_failed(checks: Sequence[CheckResult]) -> str:
    """Name the checks that failed an attempt, first those that cannot run."""
    stuck, failed = broken(checks), failing(checks)
    if not failed:
        return " ".join(map(_broken_with_output, stuck))
    named = (*stuck, *failed)
    more = len(named) - NAMED_CHECKS
    verdicts = [verdict(check) for check in named[:NAMED_CHECKS]]
    return " ".join([*verdicts, f"(+ {more} more)"] if more > 0 else verdicts)


# Checks.


def failing(checks: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
    """Return the checks that fail an attempt."""
    return tuple(check for check in checks if check.fails)


def broken(checks: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
    """Return the required checks that cannot run, with or without the change (BASELINE-2)."""
    return tuple(check for check in checks if check.is_broken)


def _broken_with_output(check: CheckResult) -> str:
    """Say why a broken check cannot start; its output is untrusted."""
    said = check.findings[0].summary if check.findings else check.digest.partition("\n")[0]
    why = "" if check.timed_out or not said.strip() else f" {one_line(said, WORDS_CHARS)}"
    return f"{verdict(check)}{why}"


def check_title(check: CheckResult) -> str:
    """Return the name by which texts speak of a check."""
    return f"Check '{one_line(check.name, 100)}'"


def verdict(check: CheckResult) -> str:
    """Return a check's result in one sentence."""
    name = check_title(check)
    if check.passed:
        return f"{name} passed."
    if check.is_broken:
        name = f"The check {quote(check.name)}"
    if check.is_proof:
        return check.digest.partition("\n")[0]
    if check.is_set_up:
        name = f"The setup command '{one_line(check.command, COMMAND_CHARS)}'"
    if check.timed_out:
        after = f"{duration_text(check.duration_ms)}."
        if check.is_broken:
            return f"{name} does not finish on the base branch either: it timed out after {after}"
        return f"{name} timed out after {after}"
    if check.is_broken:
        return f"{name} cannot start on the base branch either (exit code {check.exit_code})."
    if check.exit_code == 0:
        return f"{name} failed, although its command ended with exit code 0."
    return f"{name} {_failed(check.exit_code)}."


def _failed(exit_code: int | None, verb: str = "failed") -> str:
    if exit_code is None:
        return f"{verb} without an exit code"
    if exit_code >= 0:
        return f"{verb} with exit code {exit_code}"
    named = {number.value: number.name for number in signal.Signals}
    return f"was killed by {named.get(-exit_code, f'signal {-exit_code}')}"


NO_CHECK = "No check is configured: nothing was verified."

NOTHING_PASSED = "Nothing was verified: no check passed."

NOT_VERIFIED = "Not verified"
"""Stands for `Succeeded` if no check passed."""

NO_PROOF_TRIED = (
    "Not proved by a test: the tests of the change do not build or start without the rest of it."
)

NO_TEST_PASSED = "No test verified the change."

NEITHER_PASSED = "Nothing was verified: no check passed, and no test verified the change."

NO_TEST_RAN = (
    "No test verified the change: it touches none of the paths of the checks of kind test."
)

NOTHING_RAN = "Nothing was verified: the change touches none of the paths of the checks."

NEITHER_RAN = (
    "Nothing was verified, and no test verified the change: it touches none of the paths of the "
    "checks."
)

NOT_RUN = "not run: the change touches none of its paths"
"""The result of a skipped check in a list or table (CHECK-8)."""

NO_RECORD = "The results of the checks are not on record: the ledger was lost."

SET_UP_FAILED = "The setup commands failed on this change, so no check ran."


SKIPPED = "{was} not run: the change touches none of {its} paths"


def quote(name: str) -> str:
    """Return a check's name for plain text."""
    return f"'{one_line(name, 100)}'"


def verification_text(found: Verification, name_of: Callable[[str], str] = quote) -> str:
    """Say which checks passed on a change and which say nothing about it, doubts first.

    This is the only text about the verification of a change. `name_of` formats a check's name.
    """
    rows = (
        (found.failed, "failed"),
        (found.passed, "passed"),
        (found.flaky, "failed first, and passed when run again"),
        (found.preexisting, "{fail} without this change too"),
        (found.optional, "failed, but {is} not required"),
        (found.skipped, SKIPPED),
    )
    said = [_said(names, how, name_of) for names, how in rows if names]
    said += [proof_text(found.proof, name_of)] if found.proof and found.any_ran else []
    said += [_deciding(found, name_of)] if found.deciding and found.any_ran else []
    return " ".join([verification_doubt(found), *said]).strip()


def title_of(meta: WorkerResultMeta) -> str:
    """Return the name of an attempt's outcome for people."""
    return NOT_VERIFIED if is_unverified(meta) else TITLES[meta.outcome]


def status_title(status: IssueStatus) -> str:
    """Return the name of an issue's last outcome for people; empty if it has none."""
    if status.is_unverified:
        return NOT_VERIFIED
    return TITLES[status.outcome] if status.outcome else ""


def unverified(found: Verification) -> tuple[str, ...]:
    """Say in sentences which checks do not verify a change, and why; empty if none is in doubt."""
    rows = (
        (found.preexisting, "{fail} without this change too"),
        (found.optional, "failed, but {is} not required"),
        (found.skipped, SKIPPED),
    )
    said = [_said(names, how, quote) for names, how in rows if names]
    return tuple(filter(None, [verification_doubt(found), *said, _unproved(found)]))


def _unproved(found: Verification) -> str:
    """Say that no test proves a change; empty if one does, or the change has none."""
    if found.proof is None or found.proof.state is ProofState.PROVED or not found.any_ran:
        return ""
    return proof_text(found.proof)


def proof_text(proof: Proof, name_of: Callable[[str], str] = quote) -> str:
    """Say what the tests of a change show without it; empty if the change has none (PROOF-1)."""
    match proof.state:
        case ProofState.PROVED:
            which = "it fails" if proof.count == 1 else "they fail"
            return f"Proved by {_tests(proof, name_of)}: {which} without the change."
        case ProofState.NOT_PROVED:
            new = f" ({_tests(proof, name_of)} passed)" if proof.tests else ""
            return f"No test of the change fails without it{new}."
        case ProofState.NOT_TRIED:
            return NO_PROOF_TRIED
        case ProofState.NO_TEST:
            return ""
        case _:
            assert_never(proof.state)


def _tests(proof: Proof, name_of: Callable[[str], str]) -> str:
    return _listed(proof.tests, name_of, proof.count)


def _deciding(found: Verification, name_of: Callable[[str], str]) -> str:
    """Name the changed files that decide how the checks run, for people to look at."""
    shown = _listed(found.deciding, name_of)
    verb = "decides" if len(found.deciding) == 1 else "decide"
    return f"The change touches {shown}, which {verb} how the checks run."


def verification_doubt(found: Verification) -> str:
    """Say that no test, or nothing, verified a change; empty if a test did, or none was needed."""
    if not found.is_recorded:
        return NO_RECORD
    if found.set_up_failed:
        return SET_UP_FAILED
    if not found.any_ran:
        return _none_ran(found)
    if found.no_test_ran:
        return NO_TEST_RAN if found.any_passed else f"{NOTHING_PASSED} {NO_TEST_RAN}"
    if found.no_test_passed:
        return NO_TEST_PASSED if found.any_passed else NEITHER_PASSED
    return "" if found.any_passed else NOTHING_PASSED


def _none_ran(found: Verification) -> str:
    if not found.skipped:
        return NO_CHECK
    return NEITHER_RAN if found.no_test_ran else NOTHING_RAN


def _said(names: Sequence[str], how: str, name_of: Callable[[str], str]) -> str:
    is_one, listed = len(names) == 1, _listed(names, name_of)
    forms = {"fail": ("fails", "fail"), "is": ("is", "are"), "was": ("was", "were")}
    forms["its"] = ("its", "their")
    verbs = {word: one if is_one else several for word, (one, several) in forms.items()}
    return f"The {'check' if is_one else 'checks'} {listed} {how.format(**verbs)}."


def _listed(names: Sequence[str], name_of: Callable[[str], str], count: int = 0) -> str:
    """List the first names; `count` is the number of all, if `names` are only some of them."""
    named = [*map(name_of, names[:NAMED_CHECKS])]
    more = max(count, len(names)) - len(named)
    shown = [*named, *([f"{more} more"] if more > 0 else [])]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


# A failed attempt where attempts are listed.

MESSAGE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Failure:
    """The first failure of a failing check: the test or place, its message, and `more` others."""

    check: str
    name: str
    message: str
    more: int


def named_failures(meta: WorkerResultMeta) -> tuple[Failure, ...]:
    """Return the first failure of each check that failed an attempt, as far as they are known."""
    red = failing(meta.checks) if meta.outcome is Outcome.CHECKS_FAILED else ()
    return tuple(
        Failure(check.name, *_named(check.findings[0]), max(0, check.count - 1))
        for check in red
        if check.findings
    )


def _named(found: Finding) -> tuple[str, str]:
    """Return the name or place of a finding, and the first line of its message."""
    line = f":{found.line}" if found.line else ""
    name = found.name if found.test_id else f"{found.file}{line}" if found.file else ""
    message = visible(found.message).strip().partition("\n")[0] or found.summary
    return name, one_line(message.removeprefix(f"{name}:").strip(), MESSAGE_CHARS)


def attempt_error(meta: WorkerResultMeta) -> str:
    """Return in one line why an attempt did not succeed: the failing tests, or else its error."""
    return "; ".join(map(_failure_text, named_failures(meta))) or meta.error


def _failure_text(failure: Failure) -> str:
    parts = dict.fromkeys((failure.check, failure.name, failure.message))
    more = f" (and {failure.more} more)" if failure.more else ""
    return f"{': '.join(one_line(part, ERROR_CHARS) for part in parts if part)}{more}"


# Empty changes: instructions for the next agent.

EXPECTED = "Expected: changed files in the worktree when you end."

ZERO_FINDINGS: Mapping[ZeroKind, str] = {
    ZeroKind.REFUSED: "a tool that was refused, and every file as it was",
    ZeroKind.CUT_OFF: "your program ended early, before it had changed a file",
    ZeroKind.KILLED: "your program was killed before it had changed a file",
    ZeroKind.ASKED: "a question at your end, and every file as it was",
    ZeroKind.NESTED: (
        "work in a clone, a `git worktree` or another git repository below the given directory; "
        "that is never part of a change"
    ),
    ZeroKind.NOT_CHECKED_OUT: (
        "work on another branch, in a stash or in a commit that is not checked out, and every file "
        "of the given directory as it was"
    ),
    ZeroKind.ONLY_IGNORED: (
        "only files that git ignores or that tools leave behind, such as `__pycache__/`; they are "
        "never part of a change"
    ),
    ZeroKind.PROPOSED: "the change that the pull request has already, and nothing more",
    ZeroKind.UNDONE: (
        "commits, but files that equal the base branch: the commits were empty or undid each other"
    ),
    ZeroKind.NOTHING: "no commit, and every file as it was",
}
"""The result of an agent that made no change, for the next prompt."""

WORK_IN_PLACE = (
    "Change the files of the given directory itself, not those of a copy. If the files belong to "
    "the change, delete the `.git` beside them."
)

ZERO_ADVICE: Mapping[ZeroKind, str] = {
    ZeroKind.REFUSED: "Work with the tools that are allowed.",
    ZeroKind.CUT_OFF: "Change the files first, and end in the usual way.",
    ZeroKind.KILLED: (
        "It may have taken too much memory. Change the files first, and run what is heavy in "
        "parts, or leave it to the checks."
    ),
    ZeroKind.ASKED: (
        "Nobody answers while you work, and nothing waits for a yes. Decide it yourself in the "
        "simplest way that fits, and make the change."
    ),
    ZeroKind.NESTED: WORK_IN_PLACE,
    ZeroKind.NOT_CHECKED_OUT: (
        "Leave the change in the files of the given directory. Nothing else counts, and no commit "
        "is needed."
    ),
    ZeroKind.ONLY_IGNORED: (
        "Change files that git tracks, or add new ones. One that is ignored and yet belongs into "
        "the repository you have to commit, with `git add --force`."
    ),
    ZeroKind.PROPOSED: (
        "Start from that change, make what is asked for on top of it, and leave both in the files."
    ),
    ZeroKind.UNDONE: "Make the change in the files, and leave it there.",
    ZeroKind.NOTHING: "Make the change in the files; describing it is not enough.",
}
"""The instruction to the next agent."""

OTHERWISE = (
    "If it cannot be made, or is made already, answer BLOCKED or NOTHING_TO_DO with your reason "
    "instead (see *Instructions*)."
)


def zero_advice(kind: ZeroKind) -> str:
    """Return the expectation, the finding, and the instruction for the next agent (CONTEXT-9)."""
    return f"{EXPECTED} Found: {ZERO_FINDINGS[kind]}. {ZERO_ADVICE[kind]} {OTHERWISE}"


# Parts of the agent's tree that are not part of its change.


def left_out(meta: WorkerResultMeta) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return why parts of the tree were left out of the change, with the paths of each part."""
    found = (
        ("has its own git repository", meta.nested),
        ("left behind by tools", meta.leftovers),
    )
    return tuple((f"Not part of the change ({why})", paths) for why, paths in found if paths)


# Counts, times and amounts.


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun: `1 attempt`, `3 attempts`."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration_text(milliseconds: int) -> str:
    """Format a duration as the configuration does; whole seconds from one second on."""
    seconds = round(milliseconds / 1000)
    return format_duration(
        timedelta(seconds=seconds) if seconds else timedelta(milliseconds=milliseconds)
    )


SECOND_MS = 1000

MINUTE_MS = 60 * SECOND_MS

MAIN_SHARE = 0.05
"""A smaller share of a time is not worth a reader's attention."""


def seconds_text(milliseconds: int) -> str:
    """Format a duration for a terminal: `0.3 s`, from a minute on as `1m1s`."""
    if milliseconds < MINUTE_MS:
        return f"{milliseconds / SECOND_MS:.1f} s"
    return duration_text(milliseconds)


def took_text(check: CheckResult) -> str:
    """Return the time that a check took, with the number of its runs: `3 runs, 34s`."""
    took = duration_text(check.took_ms)
    return f"{pluralize(check.runs, 'run')}, {took}" if check.runs > 1 else took


def run_text(check: CheckResult) -> str:
    """Return the time of a check for a terminal: `3 runs, 34.0 s`, or `0.3 s`.

    For a single run it is that of the command. If its checkout and copies took a second or more,
    their time follows.
    """
    if check.runs > 1:
        return f"{pluralize(check.runs, 'run')}, {seconds_text(check.took_ms)}"
    command, prepared = seconds_text(check.duration_ms), check.took_ms - check.duration_ms
    if prepared < SECOND_MS:
        return command
    return f"{command}, and {seconds_text(prepared)} to prepare its files"


def times_text(history: Sequence[WorkerResultMeta]) -> str:
    """Return the time from the request on, and its main parts.

    For example `Total time 41m: 20m waiting to start, 21m in the agent`. Empty for less than a
    minute, or if a single part took nearly all of it.
    """
    sums = total_times(history)
    parts = {
        "waiting to start": sums.waited_ms,
        "preparing the files": sums.worktree_ms,
        "in setup commands": sums.set_up_ms,
        "in the agent": sums.agent_ms,
        "in checks": sums.checks_ms,
        "in the reviewer command": sums.reviewer_ms,
        "for everything else": sums.other_ms,
    }
    whole = sum(parts.values())
    main = [f"{duration_text(ms)} {what}" for what, ms in parts.items() if ms >= whole * MAIN_SHARE]
    if whole < MINUTE_MS or len(main) == 1:
        return ""
    return f"Total time {duration_text(whole)}: {', '.join(main)}"


def set_up_files_text(files: SetUpFiles) -> str:
    """Say how commands got what setup commands left, and what copies cost."""
    if not files.copied_because:
        return "setup files: as layers"
    took = seconds_text(files.copied_ms)
    return f"setup files: copied for each command ({took} in total): {files.copied_because}"
