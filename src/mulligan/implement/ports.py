"""Everything the route needs of the world, as small protocols that adapters satisfy."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Protocol

from mulligan.config.operator import Limits, Retention
from mulligan.config.policy import (
    Check,
    CommitSettings,
    Escalation,
    Labels,
    Policy,
    PullRequestSettings,
    Reviewer,
    Scope,
)
from mulligan.config.settings import Budget
from mulligan.domain.attempt import AgentRun, Change, CommitText, ReviewerResult, Task
from mulligan.domain.command import CommandBatch, PendingCommand
from mulligan.domain.events import BaselineRecorded, Event, RecordedEvent
from mulligan.domain.feedback import CheckRun, OpenPull, PullState, Review
from mulligan.domain.host import AgentIdentity
from mulligan.domain.issue import (
    AuthorisingAct,
    Issue,
    IssueRef,
    Lease,
    Objection,
    RepositoryFacts,
    Stage,
)
from mulligan.domain.issue_context import IssueContext, PullRequest
from mulligan.domain.result import AgentFacts, CheckResult, GuardViolation, WorkerResultMeta
from mulligan.domain.retention import AttemptFiles
from mulligan.domain.spending import Run, Spent
from mulligan.domain.status import IssueStatus
from mulligan.text.redact import Redactor

# GitHub.


class CommandSource(Protocol):
    """See github/comments.py and github/messages.py."""

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        """Read the commands of trusted people in comments newer than id `after`, and `since`.

        A server that has no list of all comments is asked for those in `places`, which are issues
        and pull requests.
        """
        ...

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Acknowledge a comment; best effort."""
        ...

    def reply(self, case: IssueContext, order: PendingCommand, answer: str) -> str:
        """Write the one comment that answers a command; give its id."""
        ...


class PullRequests(Protocol):
    """See github/pulls.py; every write may be repeated and shows once."""

    def list_open(self, repository: str) -> Sequence[OpenPull]:
        """List the open pull requests of Mulligan's branches; free while nothing changed."""
        ...

    def state(self, ref: IssueRef, number: int) -> PullState:
        """Read a pull request itself; one that is gone counts as closed."""
        ...

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        """Read the submitted reviews of trusted people, with their remarks, oldest first."""
        ...

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        """Read what runs, or ran, on a commit; free of charge while nothing changed."""
        ...

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        """Fetch the end of what a failed check printed, or else what it says of itself."""
        ...

    def answer(self, ref: IssueRef, number: int, thread: int, text: str) -> str:
        """Answer a comment on a line, once for each text; give the id of the answer."""
        ...

    def answer_review(self, ref: IssueRef, number: int, review: int, text: str) -> str:
        """Answer a review in one comment on the pull request; give the comment's id."""
        ...

    def close_issue(self, ref: IssueRef) -> None:
        """Close an issue whose pull request went to a branch that does not close it."""
        ...


class Tracker(CommandSource, Protocol):
    """Where issues come from and results go. See github/tracker.py and github/dry_run.py.

    Every write may be repeated and shows once: it is looked up by its natural key first.
    """

    @property
    def pulls(self) -> PullRequests: ...

    def repository(self, name: str) -> RepositoryFacts:
        """Read what has to be known to work on a repository; GoneError where it was renamed."""
        ...

    def list_labelled(
        self, repository: str, label: str, priority: Sequence[str] = ()
    ) -> Sequence[IssueRef]:
        """List a label's open issues, by `priority`, then age; GoneError if it was renamed."""
        ...

    def read(self, ref: IssueRef) -> Issue:
        """Read one issue afresh, with trusted comments; GoneError where it is gone, or renamed."""
        ...

    def authorising_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        """Find who put the ready label on last, whether that one may, and later edits (T1, T2)."""
        ...

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Rule again on the command that opened the status's epoch, and on later edits (T1, T2)."""
        ...

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say why the request of the status's epoch no longer stands (SPEC L5); None if it does."""
        ...

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say by what another installation has settled the epoch's request; None if it has not."""
        ...

    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Name the open pull request of another installation that answers the epoch's request."""
        ...

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Say why the status's epoch is not trusted any more, or its text is another (T1, T2)."""
        ...

    def set_stage_labels(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Make the labels show a stage (SPEC L2, L3); no other label is touched."""
        ...

    def update_status(self, case: IssueContext) -> str | None:
        """Write the one status comment of the issue (SPEC H5); None where that is put off."""
        ...

    def ask_for_label(self, case: IssueContext, act: str, reason: str) -> str:
        """Write the one comment of an act that asks for the label again (SPEC T2); give its id."""
        ...

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        """Write the escalation comment of the epoch (SPEC H1, H2); give its URL."""
        ...

    def open_pull_request(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Open the pull request of the issue's branch, or bring the open one up to date (P1).

        A draft that shows unverified work becomes ready for review.
        """
        ...

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        """Have the pull request show the last attempt's work, as a draft if it is new (SPEC H3)."""
        ...


# git.


class RunDirectory(Protocol):
    """A directory that commands run in, and beside it `private`, for the run's own files.

    For git in it to work, the commands need what is `readable` and `writable` as well.
    """

    @property
    def path(self) -> Path: ...
    @property
    def private(self) -> Path: ...
    @property
    def readable(self) -> tuple[Path, ...]: ...
    @property
    def writable(self) -> tuple[Path, ...]: ...


class Worktree(RunDirectory, Protocol):
    """A private checkout for one attempt, equal to `start_sha` when it was opened (SPEC A2)."""

    @property
    def base_sha(self) -> str: ...
    @property
    def start_sha(self) -> str: ...
    @property
    def recreated(self) -> bool: ...
    @property
    def pull_request_diff(self) -> bytes: ...

    def capture(self, text: CommitText, settings: CommitSettings) -> Change:
        """Read what the agent left and commit it (SPEC A7, A8)."""
        ...

    def check_out(self, head_sha: str) -> None:
        """Reset the tree to a commit, so that a check sees that and nothing else (SPEC A10)."""
        ...

    def pristine_checkout(self) -> AbstractContextManager[None]:
        """Have a new checkout of `start_sha` in place of this one, for a while (SPEC A4).

        It has nothing that an agent or a check wrote, nor what set-up wrote.
        """
        ...


@dataclass(frozen=True, slots=True)
class PullRequestBase:
    """A pull request that is open; `own` are the commits in it that Mulligan made.

    `bases` are the commits of the base branch that those were made on, which a force-push may have
    taken off it since: nobody committed them to the pull request.
    Where it `is_answered`, a change that leaves its tree as it is counts as none (SPEC 6); where
    people reviewed it, so does the same change on a base that has moved.
    """

    own: frozenset[str]
    bases: frozenset[str] = frozenset()
    is_answered: bool = False
    is_reviewed: bool = False


class Branches(Protocol):
    """The issue's branch on the remote, from which its pull request comes."""

    def base_sha(self, repository: str) -> str | None:
        """Give the base branch's commit as fetched last; None before the first fetch."""
        ...

    def conflicts(self, ref: IssueRef, base_sha: str, head_sha: str) -> tuple[str, ...]:
        """Name the files in which a head does not merge; none where it does, or is not here."""
        ...

    def is_behind(self, ref: IssueRef, base_sha: str, head_sha: str) -> bool:
        """Tell whether a head lacks commits of the base; False where either is not to be had."""
        ...

    def is_in_base(self, ref: IssueRef, start_sha: str, base_sha: str) -> bool:
        """Fetch, and tell whether the base branch still has what work from `start_sha` stands on.

        `base_sha` is the base branch as the work knew it; it is gone after a force-push. Work on
        the head of a pull request stands on the commit at which that left the base branch.
        """
        ...

    def merge(
        self, ref: IssueRef, base_sha: str, head_sha: str, settings: CommitSettings
    ) -> str | None:
        """Make the commit that merges the base into a head; None where they conflict.

        Equal arguments give the same commit, on every machine.
        """
        ...

    def remote_head(self, ref: IssueRef) -> str | None:
        """Ask which commit the issue's branch on the remote is; None where there is none."""
        ...

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        """Delete the issue's branch on the remote, unless it has commits that are not `own`."""
        ...

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        """Make the issue's branch on the remote be `head_sha`.

        `expected` is what Mulligan pushed there last, None for nothing. DeniedError where the
        branch holds anything else (SPEC P2) or the server refuses; doing it twice does no harm.
        """
        ...


class Worktrees(Branches, Protocol):
    """See git/worktrees/worktrees.py."""

    def fetch_base(self, repository: str) -> None:
        """Fetch the base branch."""
        ...

    def open(
        self, ref: IssueRef, standing: PullRequestBase | None = None
    ) -> AbstractContextManager[Worktree]:
        """Fetch, and give a clean worktree; UnavailableError otherwise (SPEC A2).

        It equals the base branch, or the pull request where others have commits in that.
        """
        ...

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        """Read a file of the base branch as fetched last, or of a commit; None if not there."""
        ...

    def base_branch(self, repository: str) -> str:
        """Name the branch that work starts from and goes to."""
        ...

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        """Store a commit that `capture` made in a file, a git bundle; one that is there stays."""
        ...

    def ensure_commit(self, ref: IssueRef, head_sha: str, bundle: Path) -> bool:
        """See that a commit can be pushed, from its file if need be; False where it is gone."""
        ...

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        """Push an attempt's work to a ref of its own, and name that; DeniedError if it is gone."""
        ...

    def exists(self, ref: IssueRef) -> bool:
        """Tell whether anything of an issue's worktree lies on this machine."""
        ...

    def discard(self, ref: IssueRef) -> None:
        """Remove an issue's worktree, but no commit; UnavailableError while it is in use."""
        ...


# Agents and checks.


class CodingAgent(Protocol):
    """See agents/runner.py."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> AgentIdentity:
        """Say which agent it is; its version is asked for once."""
        ...

    def run(self, task: Task) -> AgentRun:
        """Let the agent work until it ends or is stopped; nothing it started is left."""
        ...


@dataclass(frozen=True, slots=True)
class AgentRegistry:
    """The agents that have names, and which of them follow which; "" is the one without a name."""

    named: Mapping[str, CodingAgent] = field(default_factory=dict[str, CodingAgent])
    fallback: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


class Verifier(Protocol):
    """See checks/runner.py."""

    def violations(self, change: Change, scope: Scope) -> tuple[GuardViolation, ...]:
        """List every rule of the scope that the change breaks (SPEC A9)."""
        ...

    def set_up(self, lines: Sequence[str], worktree: RunDirectory, log: Path) -> None:
        """Run the set-up lines; UnavailableError with the digest where one fails (SPEC A3)."""
        ...

    def check(self, check: Check, worktree: RunDirectory, log: Path) -> CheckResult:
        """Run one check on the committed tree (SPEC A10); `log` takes its output.

        MisconfiguredError where the program that it starts with is not there.
        """
        ...

    def merge_reruns(self, first: CheckResult, again: CheckResult) -> CheckResult:
        """Put two runs on one tree together: what failed once only is flaky (SPEC A11)."""
        ...

    def merge_baseline_runs(self, first: CheckResult, again: CheckResult) -> CheckResult:
        """Put two runs on a start tree together: only what failed in both counts (SPEC A4)."""
        ...

    def subtract_baseline(self, failed: CheckResult, before: CheckResult | None) -> CheckResult:
        """Tell what a failing check found on the start tree already from what is new (SPEC A4).

        `before` is None where the check could not run there; what cannot be told apart is new.
        """
        ...

    def condense(self, output: bytes) -> str:
        """Condense what a check printed that failed elsewhere, without secrets."""
        ...

    def review(
        self, reviewer: Reviewer, question: bytes, worktree: RunDirectory, log: Path
    ) -> ReviewerResult:
        """Ask the reviewer command about a change; it always answers (SPEC 10)."""
        ...


# Storage.

Listener = Callable[[IssueStatus, Event], None]


class Ledger(Protocol):
    """What happened to each issue, append-only. See storage/ledger.py and storage/memory.py."""

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        """Record an event durably; give where the issue stands now."""
        ...

    def with_lease(self, lease: Lease) -> "Ledger":
        """Give the same ledger, whose `append` raises LeaseLostError once the lease is lost."""
        ...

    def status(self, ref: IssueRef) -> IssueStatus:
        """Say where an issue stands; one never seen stands at epoch 0."""
        ...

    def statuses(self) -> Sequence[IssueStatus]:
        """Say where every known issue stands, by repository and number."""
        ...

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        """Give the completed attempts of all epochs, oldest first."""
        ...

    def events(
        self, ref: IssueRef | None = None, after: int = 0, most: int | None = None
    ) -> Sequence[RecordedEvent]:
        """Give the events of one issue, or of all, with `seq` above `after`; the `most` first."""
        ...

    def last_seq(self) -> int:
        """Give the highest `seq` there is; 0 for none."""
        ...

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        """Give what was recorded last under a key, for whichever issue of the repository."""
        ...


class Leases(Protocol):
    """Who works on which issue: at most one worker on each (SPEC E4). See storage/leases.py."""

    def claim(self, ref: IssueRef, worker: str, most: int | None = None) -> Lease | None:
        """Take an issue for a while; None where it is held, or `most` issues are already."""
        ...

    def renew(self, lease: Lease) -> bool:
        """Hold it for as long again; False where it was lost."""
        ...

    def holds(self, lease: Lease) -> bool:
        """Tell whether the lease is still good."""
        ...

    def release(self, lease: Lease) -> None:
        """Give it back; one that was lost is left alone."""
        ...

    def holder(self, ref: IssueRef) -> str | None:
        """Name the worker that is on an issue, if one is; takes nothing."""
        ...

    def release_all(self) -> None:
        """End every lease, when it is known that no worker is alive."""
        ...

    def heartbeat(self, worker: str) -> Sequence[str]:
        """Be heard as a worker; name all that share the leases and were heard of lately."""
        ...


class UsageStore(Protocol):
    """What agents have used, as they report it, for all workers. See storage/usage.py."""

    def record(self, run: Run, usage: AgentFacts) -> None:
        """Note durably what a run has used so far, in place of what was noted of it before."""
        ...

    def used_on(self, day: date) -> Mapping[str, Spent]:
        """Add up what the runs that began on a day in UTC have used, by repository."""
        ...

    def usage_of_attempt(self, ref: IssueRef, number: int) -> Mapping[int, AgentFacts]:
        """Give what the runs of an attempt have used, by fix round; 0 is the first run."""
        ...

    def key_refused_at(self, agent: str) -> datetime | None:
        """Say when the last run of an agent began, if the model's service refused its key then."""
        ...


class Artifacts(Protocol):
    """The files of an attempt: prompt, logs, diff. See storage/artifacts.py."""

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        """Give the place of a file that somebody else will write; its directory exists."""
        ...

    def find(self, ref: IssueRef, number: int, name: str) -> str | None:
        """Give the artifact name of a file; None where it is not there. Makes nothing."""
        ...

    def write(self, ref: IssueRef, number: int, name: str, content: bytes) -> str:
        """Keep a file whole or not at all; give its artifact name."""
        ...

    def share(self, path: Path) -> None:
        """Have a file that somebody else has written found by every worker (SPEC A15)."""
        ...

    def name(self, path: Path) -> str:
        """Give the artifact name of a file at a `path` that was given out."""
        ...

    def read(self, artifact: str, last: int | None = None) -> bytes:
        """Read an artifact, or its `last` bytes; UnavailableError where retention took it."""
        ...

    def attempts(self) -> Sequence[AttemptFiles]:
        """List the attempts that have files here, in no order."""
        ...

    def remove(self, ref: IssueRef, number: int) -> None:
        """Remove the files of an attempt, if there are any."""
        ...


class RetentionStore(Protocol):
    """Lets go of old issues, for all workers. See storage/retention.py."""

    def outdated(self, before: datetime) -> Sequence[IssueRef]:
        """Name the resolved issues to which nothing has happened since, and that are still kept."""
        ...

    def forget(self, ref: IssueRef, before: datetime) -> bool:
        """Remove all but the remnant of an issue at once; False where something happened since."""
        ...


class NoRetention:
    """The port Attic where nothing is ever let go of: in memory, and where a ref is the ledger."""

    def outdated(self, before: datetime) -> Sequence[IssueRef]:  # noqa: ARG002 - nothing is
        """Name no issue."""
        return ()

    def forget(self, ref: IssueRef, before: datetime) -> bool:  # noqa: ARG002 - it is kept
        """Remove nothing."""
        return False


# Policy, credentials and time.


class Policies(Protocol):
    """See git/worktrees/base_policy.py."""

    def in_force(self, repository: str) -> Policy:
        """Give the policy in force: of the base branch's file, as fetched last, what is valid."""
        ...

    def at(self, repository: str, sha: str) -> Policy:
        """Read the policy of one commit; MisconfiguredError where the file is invalid."""
        ...

    def fault(self, repository: str) -> str | None:
        """Say what is wrong with the base branch's file as fetched last; None where it holds."""
        ...


class Credentials(Protocol):
    """Tokens, by what they are for. See github/credentials.py and github/app.py."""

    def git_token(self, repository: str) -> str | None:
        """Give the token that fetches from and pushes to a repository; None for none."""
        ...


class Clock(Protocol):
    """The time, so that tests can set it."""

    def now(self) -> datetime:
        """Give the time, in UTC."""
        ...

    def backoff(self, step: int) -> timedelta:
        """Give the wait of the k-th backoff step, with jitter (SPEC O3)."""
        ...


# What the steps are given.


def _no_shortage() -> None:
    return None


@dataclass(frozen=True, slots=True)
class BotContext:
    """Everything the route needs, built by interfaces/bootstrap/container.py."""

    tracker: Tracker
    worktrees: Worktrees
    policies: Policies
    agent: CodingAgent
    verifier: Verifier
    ledger: Ledger
    leases: Leases
    usage: UsageStore
    artifacts: Artifacts
    clock: Clock
    worker: str
    limits: Limits
    budget: Budget = field(default_factory=Budget)
    retention: Retention = field(default_factory=Retention)
    redactor: Redactor = field(default_factory=Redactor)
    agents: AgentRegistry = field(default_factory=AgentRegistry)
    retention_store: RetentionStore = field(default_factory=NoRetention)
    disk_shortage: Callable[[], str | None] = _no_shortage
    """Says what there is too little room for to begin anything; None where there is enough."""


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """One attempt under way: the issue, the rules it is judged by, its worktree, and the tools."""

    case: IssueContext
    policy: Policy
    worktree: Worktree
    context: BotContext
