"""How much a command may have, with all that it starts. Pure."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from mulligan.domain.errors import (
    DeniedError,
    MisconfiguredError,
    ShutdownError,
    WithdrawnError,
    WorldError,
)
from mulligan.domain.outcome import Outcome, ZeroKind
from mulligan.domain.result import (
    AgentFacts,
    CheckResult,
    FileChange,
    GuardViolation,
    VerifierOutcome,
)

SHUTDOWN = "shutdown"
"""The reason of an interruption that was asked for; it never costs an attempt (SPEC 6)."""


# What an agent is started with.

Meter = Callable[[AgentFacts], bool]
"""Is told what a run has used so far, whenever it uses more; tells whether it may go on."""


def unmetered(_usage: AgentFacts) -> bool:
    """Let a run use what it likes."""
    return True


@dataclass(frozen=True, slots=True)
class Task:
    """What a coding agent is started with; times are limits, paths are the agent's own to use.

    Besides `directory`, it needs what is `readable` and `writable` for git to work there.
    """

    issue: str
    attempt: int
    fix_round: int
    prompt: str
    directory: Path
    private: Path
    log: Path
    manifest_hash: str
    previous_diff: Path | None = None
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    meter: Meter = unmetered


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """The most that a sandbox may have: processes and bytes of memory in all, bytes in a file.

    It is not asked to end itself, but what it started is; all is killed where that has more.
    """

    processes: int
    memory: int
    file_size: int

    def __str__(self) -> str:
        """Write them as the keeper reads them."""
        return f"{self.processes}:{self.memory}:{self.file_size}"


# How an agent's run ended, and what it left.


@dataclass(frozen=True, slots=True)
class Fault:
    """What ended the attempt that was not the agent's doing; a `budget`, where it names one."""

    outcome: Outcome
    reason: str
    log: str = ""
    budget: str | None = None
    eats_budget: bool = False


NO_TEXT = Fault(Outcome.BLOCKED, "The issue has neither a title nor a text; write what is wanted.")


class TimeLimit(StrEnum):
    """Which limit stopped an agent."""

    TIMEOUT = "timeout"
    STALL_TIMEOUT = "stall_timeout"
    OWN_LIMIT = "own_limit"
    """Of the agent itself: turns, or cost."""
    BUDGET = "budget"


class ReportedStatus(StrEnum):
    """What an agent may say of itself in `$MULLIGAN_REPORT` (SPEC 13b)."""

    BLOCKED = "blocked"
    NOTHING_TO_DO = "nothing_to_do"


@dataclass(frozen=True, slots=True)
class AgentReport:
    """The content of `$MULLIGAN_REPORT`."""

    status: ReportedStatus
    reason: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """How the agent's process ended, and what it said; `question` is what it ended with, if any.

    `fault` is what ended it that was not its own doing: the model's service. `refusal` says which
    tools were refused, and how that is mended. `is_cut_off` tells that the record is missing with
    which this agent ends every run.
    """

    exit_code: int | None
    duration: timedelta
    facts: AgentFacts
    stopped_by: TimeLimit | None = None
    limit: timedelta | None = None
    report: AgentReport | None = None
    summary: str = ""
    question: str = ""
    fault: Fault | None = None
    refusal: str = ""
    is_cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What the agent left in the worktree, read from git and nothing else (SPEC A7, A8, A12a).

    `commits` counts the agent's own, plus one if it left anything uncommitted. `head_sha` is
    Mulligan's commit of the tree, or None where the tree equals the start tree, or on review
    `is_proposed` already. Only then are `ignored_files` looked for, what the agent wrote that git
    ignores.
    """

    start_sha: str
    head_sha: str | None
    commits: int
    files: tuple[FileChange, ...] = ()
    diff: bytes = b""
    ignored_files: tuple[str, ...] = ()
    is_proposed: bool = False

    @property
    def tree_changed(self) -> bool:
        """Tell whether there is anything to verify."""
        return self.head_sha is not None


@dataclass(frozen=True, slots=True)
class CommitText:
    """What Mulligan's commit says."""

    subject: str
    body: str
    co_author: str = ""


@dataclass(frozen=True, slots=True)
class ReviewerResult:
    """What the reviewer answered; `unreadable` is why it could not be read, and so counts as PASS.

    `vetoes` tells whether its HARD_FAIL is one of those that an epoch has room for (SPEC 10).
    """

    verdict: VerifierOutcome
    feedback: str = ""
    unreadable: str = ""
    vetoes: bool = False


# What is known of an attempt, and its outcome.


@dataclass(frozen=True, slots=True)
class AttemptState:
    """All that is known of an attempt so far; it only grows.

    `earlier` holds what was known at the end of each round before this one, when the agent runs
    again on its own change (SPEC A12). `probe` tells that the agent's key had been refused before.
    """

    earlier: tuple["AttemptState", ...] = ()
    fault: Fault | None = None
    base_sha: str = ""
    start_sha: str = ""
    manifest_hash: str | None = None
    run: AgentRun | None = None
    change: Change | None = None
    diff_artifact: str | None = None
    violations: tuple[GuardViolation, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    review: ReviewerResult | None = None
    probe: bool = False

    @property
    def rounds(self) -> tuple["AttemptState", ...]:
        """Give what was known at the end of every round, this one the last."""
        return (*self.earlier, self)

    @property
    def ending_fault(self) -> Fault | None:
        """Give what ended the attempt that was not the agent's doing; None for nothing.

        Refused tools count only where nothing was changed: agents try what they need not.
        """
        run, change = self.run, self.change
        if self.fault or run is None or change is None:
            return self.fault
        if run.fault is None and run.refusal and not change.tree_changed:
            return Fault(Outcome.MISCONFIGURED, run.refusal)
        return run.fault


def next_round(known: AttemptState) -> AttemptState:
    """Keep what a round came to, and start the next one with its change still there."""
    return replace(
        known, earlier=known.rounds, run=None, manifest_hash=None, checks=(), review=None
    )


def classify(known: AttemptState) -> Outcome:
    """Name the outcome: the first of SPEC 6 that matches. Never looks at error text."""
    if known.ending_fault:
        return known.ending_fault.outcome
    if known.run is None or known.change is None:
        return Outcome.INTERRUPTED
    return _of_the_agent(known.run, known.change) or _of_the_change(known)


def _of_the_agent(run: AgentRun, change: Change) -> Outcome | None:
    if run.stopped_by:
        return Outcome.AGENT_TIMED_OUT
    if run.report and run.report.status is ReportedStatus.BLOCKED:
        return Outcome.BLOCKED
    if change.tree_changed:
        return None
    if run.report:
        return Outcome.NOTHING_TO_DO
    if run.exit_code != 0 or run.is_cut_off:
        return Outcome.AGENT_CRASHED
    return Outcome.ZERO_DIFF if change.commits else Outcome.ZERO_COMMIT


def _of_the_change(known: AttemptState) -> Outcome:
    if known.violations:
        return Outcome.SCOPE_VIOLATION
    if any(check.fails for check in known.checks):
        return Outcome.CHECKS_FAILED
    if known.review and known.review.vetoes:
        return Outcome.REJECTED
    return Outcome.SUCCEEDED


def worth_verifying(known: AttemptState) -> bool:
    """Tell whether guards and checks can still change the outcome."""
    return classify(known) is Outcome.SUCCEEDED


def worth_fixing(known: AttemptState) -> bool:
    """Tell whether another round of the agent could help: checks failed, and nothing else did."""
    return classify(known) is Outcome.CHECKS_FAILED


def zero_kind(known: AttemptState) -> ZeroKind | None:
    """Name how the agent came to leave no change; None where it left one, or said why not."""
    run, change = known.run, known.change
    if known.fault or run is None or run.fault or change is None or change.tree_changed:
        return None
    if run.refusal:
        return ZeroKind.REFUSED
    if run.stopped_by:
        return ZeroKind.CUT_OFF
    if run.report:
        return None
    if run.is_cut_off or signal_of(run.exit_code):
        return ZeroKind.CUT_OFF
    if run.question and run.exit_code == 0:
        return ZeroKind.ASKED
    return _kind_of(change)


def _kind_of(change: Change) -> ZeroKind:
    undone = ZeroKind.PROPOSED if change.is_proposed else ZeroKind.UNDONE
    left = undone if change.commits else ZeroKind.NOTHING
    return ZeroKind.ONLY_IGNORED if change.ignored_files else left


SHELL_SIGNAL_OFFSET = 128
"""A shell adds the number of the signal that killed its command, and exits with that."""


def signal_of(exit_code: int | None) -> signal.Signals | None:
    """Give the signal that ended a program, or a shell's (128 and its number); None for none."""
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - SHELL_SIGNAL_OFFSET
    return signal.Signals(number) if number in set(signal.Signals) else None


def fault_of(error: WorldError | ShutdownError | WithdrawnError) -> Fault:
    """Turn what ended an attempt from outside into its fact (SPEC A13)."""
    match error:
        case ShutdownError():
            return Fault(Outcome.INTERRUPTED, SHUTDOWN)
        case WithdrawnError():
            return Fault(Outcome.CANCELLED, str(error))
        case DeniedError():
            return Fault(Outcome.DENIED, str(error))
        case MisconfiguredError():
            return Fault(Outcome.MISCONFIGURED, str(error))
        case _:
            return Fault(Outcome.INFRASTRUCTURE, str(error))
