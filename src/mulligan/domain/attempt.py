"""One attempt: the agent's task, how its run ended, its change, and the outcome. Pure."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from mulligan.domain.agent_rest import rest_after
from mulligan.domain.errors import (
    DeniedError,
    MisconfiguredError,
    RefusedError,
    ReviewsWithdrawnError,
    ShutdownError,
    WithdrawnError,
    WorldError,
)
from mulligan.domain.image import Image
from mulligan.domain.layer import Layer
from mulligan.domain.outcome import Outcome, ZeroKind
from mulligan.domain.result import (
    AgentFacts,
    CheckResult,
    FileChange,
    GuardViolation,
    Proof,
    Rest,
    RestKind,
    SkippedCheck,
    VerifierOutcome,
)
from mulligan.domain.set_up import SetUpError
from mulligan.domain.spending import UNLIMITED, Allowance

SHUTDOWN = "shutdown"
"""The reason of an interruption by a shutdown, which never costs an attempt (OUTCOME-4)."""


CHANGES_WITHDRAWN = (
    "The changes that a review requested are no longer requested: the reviewer approved later, or "
    "the review was dismissed."
)
"""The reason of a cancelled attempt at reviews of which none is left (PR-2)."""


# The input of an agent's run.

Meter = Callable[[AgentFacts], bool]
"""Called with a run's usage so far whenever it grows; returns whether the run may continue."""


def unmetered(_usage: AgentFacts) -> bool:
    """Allow any usage."""
    return True


@dataclass(frozen=True, slots=True)
class Task:
    """The input of one run of a coding agent.

    It runs in `directory`, or at the target of the `layer` above it; git needs the `readable` and
    `writable` paths there. `private` is for the run's own files, `log` for its output. `meter`
    receives its usage, and `allowance` is what is left of the attempt's budget. `attachments` is a
    directory with those of the issue, if there are any. It runs in the `image`, if there is one.
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
    attachments: Path | None = None
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    layer: Layer | None = None
    image: Image | None = None
    meter: Meter = unmetered
    allowance: Allowance = UNLIMITED


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """The limits of a sandbox: processes and bytes of memory in total, and bytes of one file.

    If the total is exceeded, every process of the sandbox is killed.
    """

    processes: int
    memory: int
    file_size: int


# The result of an agent's run.


@dataclass(frozen=True, slots=True)
class Fault:
    """A cause outside the agent that ended the attempt.

    `budget` names the one used up, and `set_up` is the setup command that failed, if any. `rest` is
    set if the cause concerns every run of the agent, on any issue. `keeps_pull` leaves the pull
    request as it is.
    """

    outcome: Outcome
    reason: str
    set_up: CheckResult | None = None
    budget: str | None = None
    eats_budget: bool = False
    rest: RestKind | None = None
    keeps_pull: bool = False


NO_TEXT = Fault(Outcome.BLOCKED, "The issue has no title and no text; write what should change.")


class TimeLimit(StrEnum):
    """Which limit stopped an agent."""

    TIMEOUT = "timeout"
    STALL_TIMEOUT = "stall_timeout"
    OWN_LIMIT = "own_limit"
    """A limit of the agent itself: turns, or cost."""
    BUDGET = "budget"
    DISK = "disk"
    """It filled the disk itself."""


class ReportedStatus(StrEnum):
    """The statuses an agent can report in `$MULLIGAN_REPORT` (AGENT-3)."""

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
    """The result of an agent's process, and its report; `question` is its last one, if any.

    `fault` is a failure of the model's service. `refusal` names the refused tools and the fix.
    `is_cut_off` is set if the agent's output lacks the record that ends every complete run.
    `reported_error` is an error that the agent itself reported as the end of its run.
    `retry_after` is how long the model's service wants no request, if it refused the last one.
    `learned` are facts about the repository that the agent noted for later attempts, and `title` is
    what it proposed to call the change.
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
    reported_error: str = ""
    retry_after: timedelta | None = None
    learned: tuple[str, ...] = ()
    title: str = ""

    def ended_at(self, now: datetime, before: Rest | None, account: str) -> "AgentRun":
        """Add why and until when the agent rests; `before` is the rest before this run."""
        kind, words = None, ""
        if self.fault and self.fault.rest:
            kind, words = self.fault.rest, self.fault.reason
        elif self.retry_after is not None:
            kind = RestKind.ASKED
        if kind is None:
            return self
        found = Rest(kind=kind, since=now, at=now, until=now, words=words, account=account)
        rest = rest_after(found, before, self.retry_after)
        known = {"rest": rest, "denied": kind is RestKind.REFUSED}
        return replace(self, facts=self.facts.model_copy(update=known))


@dataclass(frozen=True, slots=True)
class Change:
    """The agent's change in the worktree, read from git only (COMMIT-1, ATTEMPT-2, AGENT-2).

    `commits` counts the agent's commits, plus one for uncommitted changes. `head_sha` is Mulligan's
    commit of the tree; None if the tree equals the start tree, or the open pull request's change
    (`is_proposed`). Only then does `ignored_files` list the new files that git ignores, and
    `not_checked_out` the branches, stashes and commits with other work.
    `nested` are directories with a git repository of their own, and `leftovers` what tools left
    behind beside a change; they are not part of it. `submodule_files` were changed in submodules,
    where git keeps nothing of them, and `submodule_links` in the agent's commits.
    `raw_lfs_files` are raw where a Git LFS pointer belongs. `too_large` are files and their sizes:
    they are not in the commit, since no change with them passes. If none of the change was read,
    `unread` says why. `set_up_paths` belong to what setup commands left. `links` are the symbolic
    links of the start tree, each with its target.
    """

    start_sha: str
    head_sha: str | None
    commits: int
    files: tuple[FileChange, ...] = ()
    diff: bytes = b""
    ignored_files: tuple[str, ...] = ()
    not_checked_out: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    submodule_files: tuple[str, ...] = ()
    submodule_links: tuple[str, ...] = ()
    raw_lfs_files: tuple[str, ...] = ()
    too_large: tuple[tuple[str, int], ...] = ()
    unread: str = ""
    set_up_paths: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    is_proposed: bool = False

    @property
    def tree_changed(self) -> bool:
        """Return whether there is a change to verify, or to refuse."""
        refused = self.submodule_files or self.submodule_links or self.too_large or self.unread
        return self.head_sha is not None or bool(refused)


@dataclass(frozen=True, slots=True)
class ReviewerResult:
    """The reviewer's answer; without a verdict, `unreadable` is the reason.

    `vetoes` is set if a HARD_FAIL rejects the change; an epoch has a limit of those (REVIEWER-1).
    """

    verdict: VerifierOutcome | None
    feedback: str = ""
    unreadable: str = ""
    vetoes: bool = False


# The state of an attempt, and its outcome.


@dataclass(frozen=True, slots=True)
class AttemptState:
    """The state of an attempt so far; each step adds to it.

    `earlier` holds the state at the end of each round before this one (fix rounds, ATTEMPT-3).
    """

    earlier: tuple["AttemptState", ...] = ()
    fault: Fault | None = None
    base_sha: str = ""
    start_sha: str = ""
    image: str = ""
    """The image in which the checks run, with its digest; empty if it is the machine's system."""
    manifest_hash: str | None = None
    run: AgentRun | None = None
    change: Change | None = None
    diff_artifact: str | None = None
    violations: tuple[GuardViolation, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    skipped_checks: tuple[SkippedCheck, ...] = ()
    proof: Proof | None = None
    review: ReviewerResult | None = None
    title: str = ""

    @property
    def proposed_title(self) -> str:
        """Return the newest title that the agent proposed in any round."""
        titles = (each.run.title for each in reversed(self.rounds) if each.run)
        return next(filter(None, titles), "")

    @property
    def rounds(self) -> tuple["AttemptState", ...]:
        """Return the state at the end of every round, with this one last."""
        return (*self.earlier, self)

    @property
    def ending_fault(self) -> Fault | None:
        """Return the cause outside the agent that ended the attempt; None if there is none.

        Refused tools count only without a change: agents also try tools they do not need.
        """
        run, change = self.run, self.change
        if self.fault or run is None or change is None:
            return self.fault
        if run.fault is None and run.refusal and not change.tree_changed:
            return Fault(Outcome.MISCONFIGURED, run.refusal)
        return run.fault


def next_round(known: AttemptState) -> AttemptState:
    """Start the next round: keep the state and the change of the one that ended."""
    return replace(
        known,
        earlier=known.rounds,
        run=None,
        manifest_hash=None,
        checks=(),
        skipped_checks=(),
        proof=None,
        review=None,
    )


def classify(known: AttemptState) -> Outcome:
    """Return the first outcome that matches (OUTCOME-1)."""
    if known.ending_fault:
        return known.ending_fault.outcome
    if known.run is None or known.change is None:
        return Outcome.INTERRUPTED
    return _outcome_of_run(known.run, known.change) or _outcome_of_change(known)


def _outcome_of_run(run: AgentRun, change: Change) -> Outcome | None:
    if run.stopped_by:
        return Outcome.AGENT_TIMED_OUT
    if run.report and run.report.status is ReportedStatus.BLOCKED:
        return Outcome.BLOCKED
    if change.tree_changed:
        return Outcome.AGENT_CRASHED if run.is_cut_off else None
    if run.report:
        return Outcome.NOTHING_TO_DO
    if run.exit_code != 0 or run.is_cut_off:
        return Outcome.AGENT_CRASHED
    return Outcome.ZERO_DIFF if change.commits else Outcome.ZERO_COMMIT


def _outcome_of_change(known: AttemptState) -> Outcome:
    if known.violations:
        return Outcome.SCOPE_VIOLATION
    if any(check.fails for check in known.checks):
        return Outcome.CHECKS_FAILED
    if any(check.is_broken for check in known.checks):
        return Outcome.MISCONFIGURED
    if known.review and known.review.verdict is None:
        return Outcome.MISCONFIGURED
    if known.review and known.review.vetoes:
        return Outcome.REJECTED
    return Outcome.SUCCEEDED


def worth_verifying(known: AttemptState) -> bool:
    """Return whether guards and checks can still change the outcome."""
    return classify(known) is Outcome.SUCCEEDED


def worth_fixing(known: AttemptState) -> bool:
    """Return whether another round of the agent could help: only the checks failed."""
    return classify(known) is Outcome.CHECKS_FAILED


def zero_kind(known: AttemptState) -> ZeroKind | None:
    """Return why the agent left no change; None if it left one, or reported a reason."""
    run, change = known.run, known.change
    if known.fault or run is None or run.fault or change is None or change.tree_changed:
        return None
    if run.refusal:
        return ZeroKind.REFUSED
    if run.stopped_by:
        return ZeroKind.CUT_OFF
    if run.report:
        return None
    if signal_of(run.exit_code):
        return ZeroKind.KILLED
    if run.is_cut_off:
        return ZeroKind.CUT_OFF
    if run.question and run.exit_code == 0:
        return ZeroKind.ASKED
    return _zero_kind_of_change(change)


def _zero_kind_of_change(change: Change) -> ZeroKind:
    if change.nested:
        return ZeroKind.NESTED
    if change.not_checked_out:
        return ZeroKind.NOT_CHECKED_OUT
    undone = ZeroKind.PROPOSED if change.is_proposed else ZeroKind.UNDONE
    left = undone if change.commits else ZeroKind.NOTHING
    return ZeroKind.ONLY_IGNORED if change.ignored_files else left


SHELL_SIGNAL_OFFSET = 128
"""A shell whose command was killed by signal n exits with this plus n."""

HARMLESS_SIGNALS = frozenset(
    {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGSTOP}
    | {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
)
"""Signals that end no program (signal(7)); an exit code of 128 plus one means something else."""


def signal_of(exit_code: int | None) -> signal.Signals | None:
    """Return the signal that killed a program, also from a shell's 128 + n; None if none did."""
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - SHELL_SIGNAL_OFFSET
    return signal.Signals(number) if number in {*signal.Signals} - HARMLESS_SIGNALS else None


def fault_of(error: WorldError | ShutdownError | WithdrawnError) -> Fault:
    """Return the fault of an error that ended an attempt (OUTCOME-2)."""
    match error:
        case ShutdownError():
            return Fault(Outcome.INTERRUPTED, SHUTDOWN)
        case ReviewsWithdrawnError():
            return Fault(Outcome.CANCELLED, CHANGES_WITHDRAWN, keeps_pull=True)
        case WithdrawnError():
            return Fault(Outcome.CANCELLED, str(error))
        case DeniedError() if not isinstance(error, RefusedError):
            return Fault(Outcome.DENIED, str(error))
        case MisconfiguredError():
            return Fault(Outcome.MISCONFIGURED, str(error))
        case SetUpError():
            return Fault(Outcome.INFRASTRUCTURE, str(error), error.failed)
        case _:
            return Fault(Outcome.INFRASTRUCTURE, str(error))
