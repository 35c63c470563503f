"""Everything the route needs from GitHub, git, agents and storage, as protocols (ports)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Protocol

from mulligan.config.operator import Limits
from mulligan.config.policy import (
    Check,
    CheckoutSettings,
    CommitSettings,
    Escalation,
    Labels,
    Policy,
    PullRequestSettings,
    Reviewer,
    Scope,
    SetUp,
)
from mulligan.config.settings import Budget
from mulligan.domain.attempt import AgentRun, Change, ReviewerResult, Task
from mulligan.domain.attempt_times import Copies
from mulligan.domain.command import CommandBatch, PendingCommand
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.events import BaselineRecorded, Event, FailedCheck, RecordedEvent
from mulligan.domain.feedback import CheckRun, OpenPull, PullState, Review
from mulligan.domain.hold import Hold, Pause
from mulligan.domain.host import AgentIdentity, RunLimits
from mulligan.domain.image import BuildFiles, Image, ImageBuild
from mulligan.domain.in_hand import Closers
from mulligan.domain.issue import (
    Act,
    AuthorisingAct,
    Edit,
    Issue,
    IssueRef,
    Lease,
    Objection,
    PollerLease,
    RepositoryFacts,
    Stage,
)
from mulligan.domain.issue_context import IssueContext, PullRequest
from mulligan.domain.layer import Layer
from mulligan.domain.lfs import LfsObject
from mulligan.domain.ownership import StandBack
from mulligan.domain.restoration import FoundWork
from mulligan.domain.result import (
    AgentFacts,
    CheckResult,
    GuardViolation,
    Proof,
    RanTests,
    Rest,
    WorkerResultMeta,
)
from mulligan.domain.retention import AttemptFiles
from mulligan.domain.spending import Run, Spent
from mulligan.domain.status import IssueStatus
from mulligan.implement.change_title import PLAIN, TitleStyle
from mulligan.implement.commit_message import CommitText
from mulligan.implement.running_baselines import RunningBaselines
from mulligan.implement.stopwatch import Stopwatch
from mulligan.sandbox.egress_rules import NO_MODEL, ModelAccess
from mulligan.text.redact import Redactor

# GitHub.


Guard = Callable[[], None]
"""Raises LeaseLostError if the worker's lease is lost."""


class PullRequests(Protocol):
    """Reads pull requests. See github/pulls.py."""

    def list_open(self, repository: str) -> Sequence[OpenPull]:
        """List the open pull requests of Mulligan's branches; costs no quota if unchanged."""
        ...

    def state(self, ref: IssueRef, number: int) -> PullState:
        """Read the state of a pull request; one that GitHub deleted counts as closed."""
        ...

    def of_branch(self, ref: IssueRef) -> Sequence[int]:
        """List the open pull requests, of anybody, whose head or base is the issue's branch."""
        ...

    def of_people(self, ref: IssueRef) -> Sequence[int]:
        """List the open pull requests from the issue's branch that no Mulligan opened."""
        ...

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        """Read the submitted reviews of trusted people, with their remarks, oldest first."""
        ...

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        """Read the check runs and statuses of a commit; costs no quota if unchanged."""
        ...

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        """Fetch the end of a failed check's log, or else its own summary."""
        ...


class Tracker(Protocol):
    """Reads issues, requests and commands; writes nothing. See github/tracker.py."""

    @property
    def pulls(self) -> PullRequests: ...

    def cached_reads(self) -> AbstractContextManager[None]:
        """Read each fact once while the block lasts, in this thread, and again after a write.

        For reads that belong to one decision. Start a new block where the facts must be new.
        """
        ...

    def repository(self, name: str) -> RepositoryFacts:
        """Read a repository's facts; GoneError if it was renamed."""
        ...

    def recent_repository(self, name: str) -> RepositoryFacts:
        """Return a repository's facts, which may have been read a few seconds ago."""
        ...

    def with_renderings(self, issue: Issue) -> Issue:
        """Add GitHub's own renderings of an issue's texts, as far as they are known (TRUST-4)."""
        ...

    def is_upload(self, address: str) -> bool:
        """Return whether an address is of a file that somebody attached to an issue (TRUST-6)."""
        ...

    def fetch_upload(self, address: str, most: int) -> bytes:
        """Download the first `most` bytes of an upload; DeniedError if GitHub does not give it."""
        ...

    def list_labelled(
        self,
        repository: str,
        label: str,
        priority: Sequence[str] = (),
        *,
        with_closed: bool = False,
    ) -> Sequence[IssueRef]:
        """List a label's open issues, by `priority`, then age; GoneError if it was renamed."""
        ...

    def read(self, ref: IssueRef, *, with_comments: bool = False) -> Issue:
        """Read one issue now, and trusted comments if asked; GoneError if it is not found."""
        ...

    def blockers(self, ref: IssueRef) -> Sequence[IssueRef]:
        """List the open issues that GitHub lists as blocking an issue."""
        ...

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        """Read the commands of trusted people in comments newer than id `after`, and `since`.

        If the server cannot list all comments of a repository, read those of the issues and pull
        requests in `places`.
        """
        ...

    def authorising_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        """Find who last put the ready label on, if they may, and edits since (TRUST-1, TRUST-2).

        WorldError if one of these cannot be read; so does `reauthorise`.
        """
        ...

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Check again the command that opened the epoch, and edits since (TRUST-1, TRUST-2)."""
        ...

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str:
        """Return why the epoch's request is not valid any more (LABEL-5); "" if it is."""
        ...

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str:
        """Return how another installation settled the epoch's request; "" if it has not."""
        ...

    def closers(self, repository: str, numbers: Sequence[int]) -> Mapping[int, Closers]:
        """Read others' open pull requests that close these issues; empty without GraphQL."""
        ...

    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str:
        """Name another installation's open pull request for the epoch's request; "" for none."""
        ...

    def find_work(self, ref: IssueRef, labels: Labels) -> FoundWork:
        """Find what Mulligan did on an issue that the ledger does not know (RESTORE-1)."""
        ...

    def state_mark(self, ref: IssueRef, comment: str) -> str:
        """Return the mark in a status comment (see Mirror); empty if others wrote in it."""
        ...

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Return why the request is untrusted (TRUST-1) or its text changed (TRUST-2), if so."""
        ...

    def edits(self, ref: IssueRef, status: IssueStatus) -> Sequence[Edit]:
        """Return the known edits of title and text since the epoch's request, oldest first.

        WorldError if they cannot be read.
        """
        ...


class TrackerWriter(Protocol):
    """Writes on issues and pull requests; each write may be repeated and shows once.

    See github/writer.py, also for the writer of a dry run. A write is looked up by its natural key
    first.
    """

    def guarded(self, guard: Guard) -> "TrackerWriter":
        """Return the same writer, which calls `guard` before each write."""
        ...

    def set_stage_labels(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Set the labels to show a stage (LABEL-2, LABEL-3); change no other label."""
        ...

    def update_status(self, case: IssueContext) -> str | None:
        """Write the issue's status comment (STATUS-1), give its id; None if that is delayed."""
        ...

    def show_stage(self, case: IssueContext, stage: Stage, labels: Labels) -> str | None:
        """Set the labels and write the status comment, with fewer requests than by the two above.

        Return what `update_status` returns.
        """
        ...

    def ask_for_label(self, case: IssueContext, act: Act, reason: str) -> str:
        """Ask for the label again, in one comment for each act (TRUST-2); give its id."""
        ...

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        """Write the escalation comment of the epoch (ESCALATION-1, ESCALATION-2); give its URL."""
        ...

    def answer_escalation(self, case: IssueContext) -> None:
        """Have the last escalation comment say who answered it (ESCALATION-4).

        Change nothing if it was deleted, or says so already.
        """
        ...

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Acknowledge a comment; best effort."""
        ...

    def reply(self, case: IssueContext, order: PendingCommand, answer: str) -> str:
        """Write the one comment that answers a command; give its id."""
        ...

    def open_pull_request(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Open the pull request of the issue's branch, or update the open one (PR-1).

        A draft with unverified work becomes ready for review.
        """
        ...

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        """Show the last attempt's work in the pull request; open it as a draft (ESCALATION-3)."""
        ...

    def answer_thread(self, ref: IssueRef, number: int, thread: int, text: str) -> str:
        """Answer a comment on a line, once for each text; give the answer's id."""
        ...

    def answer_review(self, ref: IssueRef, number: int, review: int, text: str) -> str:
        """Answer a review in one comment on the pull request; give the comment's id."""
        ...

    def close_issue(self, ref: IssueRef) -> None:
        """Close an issue whose pull request was merged into a branch that closes no issues."""
        ...


# git.


class RunDirectory(Protocol):
    """A directory in which commands run; `private` beside it takes the run's own files.

    For git to work in it, the commands also need the `readable` and `writable` paths. Each command
    gets the HOME of `set_up_files`, which the setup commands left (see sandbox/home.py). It runs at
    the target of the `layer`, if there is one, and in the file system of the `image`, if there is
    one. The time of copying is added to `copies`.
    """

    @property
    def path(self) -> Path: ...
    @property
    def private(self) -> Path: ...
    @property
    def readable(self) -> tuple[Path, ...]: ...
    @property
    def writable(self) -> tuple[Path, ...]: ...
    @property
    def set_up_files(self) -> Path | None: ...
    @property
    def layer(self) -> Layer | None: ...
    @property
    def image(self) -> Image | None: ...
    @property
    def copies(self) -> Copies: ...


class Worktree(RunDirectory, Protocol):
    """A private checkout for one attempt, equal to `start_sha` when it was opened (WORKTREE-1).

    `fork_sha` is the base branch's commit below `start_sha`: it has no work that only agents saw.
    """

    @property
    def base_sha(self) -> str: ...
    @property
    def start_sha(self) -> str: ...
    @property
    def fork_sha(self) -> str: ...
    @property
    def recreated(self) -> bool: ...
    @property
    def pull_request_diff(self) -> bytes: ...

    def capture(self, text: CommitText, settings: CommitSettings, scope: Scope = ...) -> Change:
        """Read the agent's changes and commit them (COMMIT-1, ATTEMPT-2).

        Files that are too large for the `scope` are named, and not read.
        """
        ...

    def blobs(self, sha: str) -> Mapping[str, str]:
        """Name the content of each file of a commit."""
        ...

    def with_set_up(self, key: str) -> "Worktree | None":
        """Return this worktree with what setup commands left under a key; None if it is gone."""
        ...

    @property
    def agent_layer(self) -> Layer | None:
        """The layer for the agent, whose writes go to the worktree; None if it has copies."""
        ...

    def with_checkout(self, settings: CheckoutSettings) -> "Worktree":
        """Return this worktree with the further files that a policy names (WORKTREE-5).

        Call it before everything else. UnavailableError if they cannot be fetched now,
        MisconfiguredError if they never can.
        """
        ...

    def with_image(self, image: Image) -> "Worktree":
        """Return this worktree, in which setup commands and checks run in an image."""
        ...

    def with_copies(self) -> "Worktree":
        """Return this worktree, whose next `check_out` copies what setup commands left.

        Setup commands that run again need that, since `keep_set_up` takes the files away.
        """
        ...

    def keep_set_up(self, key: str = "") -> "Worktree":
        """Take what setup commands left in tree and HOME, and give this worktree with it (SETUP-2).

        With a key it is kept for all issues. The tree is gone until the next `check_out`.
        """
        ...

    def check_out(self, head_sha: str, *, for_agent: bool = False) -> None:
        """Make the tree exactly a commit, over a copy of what setup commands left (CHECK-2).

        Only an agent may find ignored files of agents again.
        """
        ...

    def start_with(self, head_sha: str, paths: Collection[str]) -> str:
        """Return a commit of the start tree with these paths as another commit has them (PROOF-1).

        A path that the other commit lacks is deleted.
        """
        ...

    def changed_files(self, head_sha: str) -> Sequence[str]:
        """List the files of a commit that are different, or missing, in the tree now."""
        ...

    def pristine_checkout(self, sha: str) -> AbstractContextManager[None]:
        """Replace this checkout by a new one of a commit inside the context (BASELINE-1).

        It has no files written by the agent or the checks.
        """
        ...

    def beside(self) -> "AbstractContextManager[Worktree]":
        """Give a second worktree for `start_sha`, while the first one is in use (BASELINE-1).

        It shares no file with the first that either may change. Call its `check_out` first.
        """
        ...

    def base_checkout(self, change_sha: str) -> AbstractContextManager[tuple["Worktree", Path]]:
        """Give a new checkout of `fork_sha` with what setup commands left there (REVIEWER-1).

        Beside it is a directory with the files of a change.
        """
        ...


@dataclass(frozen=True, slots=True)
class PullRequestBase:
    """An open pull request; `own` are Mulligan's commits in it.

    `bases` are the base branch's commits below those. A force-push may have removed them from the
    base branch since, but they are not other people's commits to the pull request.
    If the attempt answers feedback (`is_answered`), a tree equal to the pull request's counts as
    zero diff (OUTCOME-1); after a review (`is_reviewed`), so does the same change on a newer base.
    """

    own: frozenset[str]
    bases: frozenset[str] = frozenset()
    is_answered: bool = False
    is_reviewed: bool = False


class Branches(Protocol):
    """The issue's branch on the remote, from which its pull request comes."""

    def base_sha(self, repository: str) -> str | None:
        """Return the base branch's commit at the last fetch; None before the first fetch."""
        ...

    def conflicts(self, ref: IssueRef, base_sha: str, head_sha: str) -> tuple[str, ...]:
        """List the files in which a head conflicts; none if it merges, or is not fetched."""
        ...

    def is_behind(self, ref: IssueRef, base_sha: str, head_sha: str) -> bool:
        """Return whether a head lacks commits of the base; False if either cannot be fetched."""
        ...

    def is_in_base(self, ref: IssueRef, start_sha: str, base_sha: str) -> bool:
        """Fetch, and tell whether the base branch still contains the base of some work.

        The work began at `start_sha`, when the base branch was at `base_sha`. If it began at the
        head of a pull request, its base is where that pull request left the base branch. False
        after a force-push that removed the base.
        """
        ...

    def merge(
        self, ref: IssueRef, base_sha: str, head_sha: str, settings: CommitSettings
    ) -> str | None:
        """Create the commit that merges the base into a head; None if they conflict.

        Equal arguments give the same commit on every machine.
        """
        ...

    def remote_head(self, ref: IssueRef) -> str | None:
        """Read the commit of the issue's branch from the remote; None if it has no branch."""
        ...


class Worktrees(Branches, Protocol):
    """Fetches, and gives worktrees to work in. See git/worktrees/worktrees.py."""

    def fetch_base(self, repository: str) -> None:
        """Fetch the base branch."""
        ...

    def check_branch_names(
        self, repository: str, issue: IssueRef | None = None, own: Collection[str] = ()
    ) -> None:
        """Raise MisconfiguredError if a remote branch prevents Mulligan's, or the issue's.

        The issue's branch may be at one of Mulligan's `own` commits.
        """
        ...

    def open(
        self, ref: IssueRef, standing: PullRequestBase | None = None
    ) -> AbstractContextManager[Worktree]:
        """Fetch, and give a clean worktree; UnavailableError if that fails (WORKTREE-1).

        It equals the base branch, or the pull request's head if others have commits in it.
        """
        ...

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        """Read a file of the base branch at the last fetch, or of a commit; None if absent."""
        ...

    def base_subjects(self, repository: str, sha: str, most: int) -> Sequence[str]:
        """List the subjects of a commit of the base branch and those below it, without merges."""
        ...

    def base_names(self, repository: str, *directories: str) -> tuple[str, ...]:
        """List the paths directly in directories of the base branch, "." for its root."""
        ...

    def base_tree(self, repository: str, path: str, sha: str) -> str | None:
        """Return the id of a directory of a commit, "." for its root; None if it is absent."""
        ...

    def write_tree(self, repository: str, tree: str, place: Path) -> None:
        """Write the files of a directory, by its id, into an empty directory."""
        ...

    def base_branch(self, repository: str) -> str:
        """Name the branch that work starts from and pull requests target."""
        ...

    def ensure_commit(self, ref: IssueRef, head_sha: str, bundle: Path) -> bool:
        """Load a commit from its bundle if it is not here; False if both are lost."""
        ...

    def exists(self, ref: IssueRef) -> bool:
        """Return whether this machine has any file of an issue's worktree."""
        ...


class GitWriter(Protocol):
    """Changes the remote, the stored commits and the worktrees. See git/worktrees/worktrees.py."""

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        """Set the issue's branch on the remote to `head_sha`; safe to repeat.

        `expected` is the commit that the branch must have now, None for no branch. Raises
        DeniedError if the branch has another commit (PUBLISH-3), or the server refuses.
        """
        ...

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        """Push an attempt's commit to its own ref, and give that; DeniedError if it is lost."""
        ...

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        """Delete the issue's branch on the remote, unless its commit is not in `own`."""
        ...

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        """Store a commit of `capture` as a git bundle at `place`, unless there is one."""
        ...

    def discard(self, ref: IssueRef) -> None:
        """Delete an issue's worktree, but no commit; UnavailableError while it is in use."""
        ...


# Agents and checks.


class CodingAgent(Protocol):
    """See agents/runner.py."""

    @property
    def name(self) -> str: ...

    @property
    def account(self) -> str:
        """Return a short text that changes with the agent's configuration, key or program."""
        ...

    @property
    def identity(self) -> AgentIdentity:
        """Identify the agent; its version is read once."""
        ...

    @property
    def limits(self) -> RunLimits | None:
        """Return the limits of a run, and its network; None if unknown."""
        ...

    @property
    def model(self) -> ModelAccess:
        """Return how another command can call the agent's model; MisconfiguredError if unknown."""
        ...

    def runs_in(self, image: Image) -> bool:
        """Return whether the agent runs in an image, as setup commands and checks do."""
        ...

    def run(self, task: Task) -> AgentRun:
        """Run the agent until it ends or is stopped; end every process it started."""
        ...


@dataclass(frozen=True, slots=True)
class AgentRegistry:
    """The agents: the default one without a name, and others by name; with fallbacks by name."""

    default: CodingAgent
    named: Mapping[str, CodingAgent] = field(default_factory=dict[str, CodingAgent])
    fallback: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


@dataclass(frozen=True, slots=True)
class ReviewQuestion:
    """What the reviewer command gets: JSON, a directory with the change's files, and a model."""

    asked: bytes
    change: Path
    model: ModelAccess = NO_MODEL


class Images(Protocol):
    """See sandbox/image_store.py."""

    def open(self, repository: str, reference: str, uses: ExitStack) -> Image:
        """Return an image that stays until `uses` is closed; pull and unpack it if needed.

        MisconfiguredError if the image is not allowed, does not exist or cannot be used here;
        UnavailableError if its registry is away.
        """
        ...

    def build(
        self, repository: str, build: ImageBuild, files: BuildFiles, log: Path, uses: ExitStack
    ) -> Image:
        """Return an image from a Dockerfile that stays until `uses` is closed; build it if needed.

        MisconfiguredError if that is not allowed, SetUpError if it fails.
        """
        ...

    def prune(self, before: datetime) -> None:
        """Delete the images that nobody used since a time."""
        ...


class NoImages:
    """Implements Images without any."""

    def open(self, repository: str, reference: str, uses: ExitStack) -> Image:
        """Refuse every image."""
        del repository, uses
        raise MisconfiguredError(f"The image {reference} cannot be used here.")

    def build(
        self, repository: str, build: ImageBuild, files: BuildFiles, log: Path, uses: ExitStack
    ) -> Image:
        """Refuse every build."""
        del files, log
        return self.open(repository, build.file, uses)

    def prune(self, before: datetime) -> None:
        """Delete nothing."""


class Verifier(Protocol):
    """See checks/runner.py."""

    def violations(self, change: Change, scope: Scope) -> tuple[GuardViolation, ...]:
        """List every guard rule that the change breaks (GUARD-1)."""
        ...

    def set_up(self, lines: Sequence[str], worktree: RunDirectory, log: Path) -> CheckResult:
        """Run the setup commands until one fails; its digest is the end of its output (SETUP-1)."""
        ...

    def set_up_again(
        self, settings: SetUp, worktree: RunDirectory, log: Path, note: str
    ) -> CheckResult:
        """Run the setup commands on a change, with the network of `hosts` only (SETUP-3).

        A digest of their failure begins with `note`.
        """
        ...

    def check(
        self, check: Check, worktree: RunDirectory, log: Path, check_out: Callable[[], object]
    ) -> CheckResult:
        """Run one check on the tree that `check_out` makes (CHECK-2); `log` takes its output.

        Raises MisconfiguredError if the check's program is not found.
        """
        ...

    def merge_reruns(self, first: CheckResult, again: CheckResult) -> CheckResult:
        """Merge two runs on one tree: a failure in only one of them is flaky (CHECK-3)."""
        ...

    def merge_baseline_runs(self, first: CheckResult, again: CheckResult) -> CheckResult:
        """Merge two runs on a start tree: only a failure in both of them counts (BASELINE-1)."""
        ...

    def subtract_baseline(
        self, failed: CheckResult, before: CheckResult | None, files: Collection[str]
    ) -> CheckResult:
        """Separate the failures found on the start tree already from new ones (BASELINE-1).

        `before` is None if the check could not run there, and `files` are the paths in the
        repository. A failure that cannot be compared is new.
        """
        ...

    def judge_tests(
        self, runs: Sequence[CheckResult], before: CheckResult, diff: bytes, scope: Scope
    ) -> CheckResult:
        """Fail the first of the runs if a test that ran before runs in none of them (CHECK-7).

        Return it as it is if none is missing. The `diff` and the `scope` tell which may be.
        """
        ...

    def files_of_tests(self, change: Change, patterns: Sequence[str]) -> frozenset[str]:
        """Return the paths of a change that are of tests (PROOF-1)."""
        ...

    def needs_second_run(self, diff: bytes, change: CheckResult, run: CheckResult) -> bool:
        """Return whether a test that fails without the change may only be flaky (PROOF-1)."""
        ...

    def proof_of(
        self, change: CheckResult, runs: Sequence[CheckResult], before: RanTests | None
    ) -> Proof:
        """Judge a check by its runs without the change (PROOF-1)."""
        ...

    def proof_without_files(
        self, diff: bytes, change: CheckResult, before: RanTests | None
    ) -> Proof:
        """Judge a change of no test file (PROOF-1)."""
        ...

    def unproved(self, proof: Proof) -> CheckResult | None:
        """Return the failed check of a change without a proof; None if it needs none (PROOF-2)."""
        ...

    def with_progress(
        self, result: CheckResult, before: CheckResult | None, number: int
    ) -> CheckResult:
        """Add what is fixed and new since the attempt with this `number` (CONTEXT-8).

        `before` is the check in that attempt, with its tests as far as they are known.
        """
        ...

    def place(self, worktree: RunDirectory) -> str:
        """Return the path at which commands see a worktree; installed programs contain it."""
        ...

    def toolchain(self, lines: Sequence[str]) -> str:
        """Name the programs on this machine that the shell lines can run, as a hash in hex."""
        ...

    def condense(self, name: str, output: bytes) -> FailedCheck:
        """Shorten the output of a check that failed on GitHub, and redact secrets."""
        ...

    def review(
        self, reviewer: Reviewer, question: ReviewQuestion, worktree: RunDirectory, log: Path
    ) -> ReviewerResult:
        """Run the reviewer command in the base branch's tree (REVIEWER-1).

        It runs once more if its first answer cannot be read.
        """
        ...


# Storage.

Listener = Callable[[IssueStatus, Event], None]


def ignore_event(_status: IssueStatus, _event: Event) -> None:
    """Do nothing: the listener of a ledger that has no other."""


class LedgerReader(Protocol):
    """Reads the append-only record of events."""

    def status(self, ref: IssueRef) -> IssueStatus:
        """Return the status of an issue; an unknown issue has epoch 0."""
        ...

    def statuses(self) -> Sequence[IssueStatus]:
        """Return the status of every known issue, ordered by repository and number."""
        ...

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        """Return the completed attempts of all epochs, oldest first."""
        ...

    def events(
        self, ref: IssueRef | None = None, after: int = 0, most: int | None = None
    ) -> Sequence[RecordedEvent]:
        """Return the events of one issue, or of all, with `seq` above `after`; the `most` first."""
        ...

    def last_seq(self) -> int:
        """Return the highest `seq` there is; 0 for none."""
        ...

    def comments_read_to(self, repository: str) -> int:
        """Return the id up to which a repository's comments were read; 0 for none."""
        ...

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        """Return the last baseline recorded under a key for any issue of a repository."""
        ...

    def learnings(self, repository: str) -> Sequence[RecordedEvent]:
        """Return the events that accept and drop facts about a repository, in order."""
        ...


class Ledger(LedgerReader, Protocol):
    """The append-only record of events. See storage/ledger.py and storage/memory.py."""

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        """Record an event durably; give the issue's new status."""
        ...

    def restore(self, ref: IssueRef, events: Sequence[Event]) -> bool:
        """Record all the events in one transaction; False if the ledger knows the issue."""
        ...

    def with_lease(self, lease: Lease) -> "Ledger":
        """Return the same ledger, whose `append` raises LeaseLostError once the lease is lost."""
        ...


class Leases(Protocol):
    """Assign each issue to at most one worker (RECOVERY-2). See storage/leases.py."""

    def claim(self, ref: IssueRef, worker: str, most: int | None = None) -> Lease | None:
        """Claim an issue; None if it is claimed, or `most` issues are claimed already."""
        ...

    def renew(self, lease: Lease) -> bool:
        """Extend a lease to its full time from now; False if it was lost."""
        ...

    def holds(self, lease: Lease) -> bool:
        """Return whether a lease is still valid."""
        ...

    def release(self, lease: Lease) -> None:
        """End a lease; does nothing if it was lost."""
        ...

    def holder(self, ref: IssueRef) -> str | None:
        """Name the worker that holds an issue's lease, if any; claims nothing."""
        ...

    def release_all(self) -> None:
        """End every lease; call this only when no worker is alive."""
        ...

    def heartbeat(self, worker: str) -> Sequence[str]:
        """Record that a worker is alive; name all workers with a recent heartbeat."""
        ...


class VisitQueue(Protocol):
    """The due issues of a fleet, and its one polling worker. See storage/jobs.py."""

    def lead(self, worker: str) -> PollerLease | None:
        """Claim or renew the right to poll; None if another worker has it."""
        ...

    def step_down(self, lease: PollerLease) -> None:
        """End the right to poll; does nothing if it was lost."""
        ...

    def defer(self, lease: PollerLease, due: Sequence[IssueRef]) -> None:
        """Have issues visited, as far as the limits allow; LeaseLostError if another one polls."""
        ...

    def fill(self, done: int | None = None) -> None:
        """Start the next visits that wait, after the visit of the job `done` has ended."""
        ...

    def tidy(self, lease: PollerLease) -> None:
        """Have issues visited that a dead worker left; LeaseLostError if another one polls."""
        ...

    def hint(self, repository: str) -> None:
        """Notify the polling worker that a repository may have changed."""
        ...


class UsageStore(Protocol):
    """Tokens and dollars used, as agents report them, for all workers. See storage/usage.py."""

    def record(self, run: Run, usage: AgentFacts) -> None:
        """Store the usage of a run so far; replace an earlier value."""
        ...

    def used_on(self, day: date) -> Mapping[str, Spent]:
        """Add up the usage of the runs that began on a day (UTC), by repository."""
        ...

    def usage_of_attempt(self, ref: IssueRef, number: int) -> Mapping[int, AgentFacts]:
        """Return the usage of the runs of an attempt, by fix round; 0 is the first run."""
        ...

    def rest(self, agent: str) -> Rest | None:
        """Return the rest that the agent's last run ended with, even if it is over."""
        ...


class Artifacts(Protocol):
    """The files of an attempt: prompt, logs, diff. See storage/artifacts.py."""

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        """Return the path for a file that the caller writes; its directory exists."""
        ...

    def find(self, ref: IssueRef, number: int, name: str) -> str | None:
        """Return the artifact name of a file; None if there is no such file. Creates nothing."""
        ...

    def write(self, ref: IssueRef, number: int, name: str, content: bytes) -> str:
        """Write a file atomically; give its artifact name."""
        ...

    def share(self, path: Path) -> None:
        """Make a file that was written to a given `path` available to every worker (COMMIT-2)."""
        ...

    def name(self, path: Path) -> str:
        """Return the artifact name of a file at a path from `path`."""
        ...

    def read(self, artifact: str, last: int | None = None) -> bytes:
        """Read an artifact, or its `last` bytes; UnavailableError if retention deleted it."""
        ...

    def attempts(self) -> Sequence[AttemptFiles]:
        """List the attempts that have files here, in no order."""
        ...

    def remove(self, ref: IssueRef, number: int) -> None:
        """Remove the files of an attempt, if there are any."""
        ...


class RetentionStore(Protocol):
    """Deletes the history of old issues, for all workers. See storage/retention.py."""

    def outdated(self, before: datetime) -> Sequence[IssueRef]:
        """List the resolved issues without an event since `before` whose history is stored."""
        ...

    def forget(self, ref: IssueRef, before: datetime) -> bool:
        """Delete all but the remnant of an issue; False if it has an event since `before`."""
        ...


class NoRetention:
    """A RetentionStore that deletes nothing: for a ledger in memory or in a git ref."""

    def outdated(self, before: datetime) -> Sequence[IssueRef]:  # noqa: ARG002 - keeps all
        """List no issue."""
        return ()

    def forget(self, ref: IssueRef, before: datetime) -> bool:  # noqa: ARG002 - keeps all
        """Delete nothing."""
        return False


class Holds(Protocol):
    """Knows what holds new work. See interfaces/bootstrap/machine.py."""

    def on(self, repository: str, agents: Collection[str]) -> Hold | None:
        """Return why no agent may begin an attempt; None if one may (OUTCOME-5, DAEMON-7)."""
        ...

    def is_missing(self, agent: str) -> bool:
        """Return whether an agent of the configuration cannot start here; "" is the default one."""
        ...

    def pauses(self) -> Sequence[Pause]:
        """List the pauses by an operator."""
        ...


class NoHolds:
    """Holds that let all work begin: for the GitHub Action, dry runs and tests."""

    def on(self, repository: str, agents: Collection[str]) -> Hold | None:  # noqa: ARG002 - none is held
        """Hold nothing."""
        return None

    def is_missing(self, agent: str) -> bool:  # noqa: ARG002 - the attempt reports it
        """Find every agent."""
        return False

    def pauses(self) -> Sequence[Pause]:
        """List no pause."""
        return ()


class Owners(Protocol):
    """Keeps one installation at work in a repository (OWNER-1). See storage/owner_ref.py."""

    def require(self, repository: str, *, fresh: bool = True) -> None:
        """Own the repository's ready label, or raise StandsBackError.

        Reads the remote; with `fresh` False, only if the last renewal is too old to trust.
        """
        ...

    def is_contested(self, repository: str) -> bool:
        """Return whether `require` is due even without work; read no remote."""
        ...

    def standing_back(self) -> Sequence[StandBack]:
        """List where this installation stands back."""
        ...


@dataclass(frozen=True, slots=True)
class NoOwners:
    """Owners that claim nothing: for dry runs, for commands that only read, and for tests.

    `others` are the installations that a worker of this installation stands back for.
    """

    others: Sequence[StandBack] = ()

    def require(self, repository: str, *, fresh: bool = True) -> None:
        """Hold no work."""

    def is_contested(self, repository: str) -> bool:  # noqa: ARG002 - none is
        """Contest nothing."""
        return False

    def standing_back(self) -> Sequence[StandBack]:
        """List the others."""
        return self.others


class Mirror(Protocol):
    """Reads a copy of the ledger that outlives its disk. See storage/state_mirror.py."""

    def attempts(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...] | None:
        """Return the records of an issue's attempts; None if they cannot be read.

        Anybody with push access can write them.
        """
        ...

    def mark(self, ref: IssueRef) -> str:
        """Return the mark by which the status comment confirms a ledger on the ref; else ""."""
        ...

    def confirm(self, ref: IssueRef, read_mark: Callable[[IssueRef, str], str]) -> bool:
        """Drop the events of a ledger on the ref that no status comment confirms.

        Returns False if no event is left. `read_mark` reads the mark of a comment, by its id.
        """
        ...

    def is_anothers(self, ref: IssueRef) -> bool:
        """Return whether another run writes an issue's events to such a ledger now."""
        ...


class OwnLedger:
    """What a mirror does for a ledger that nobody else can write."""

    def mark(self, ref: IssueRef) -> str:  # noqa: ARG002 - nothing needs to be confirmed
        """Return no mark."""
        return ""

    def confirm(self, ref: IssueRef, read_mark: Callable[[IssueRef, str], str]) -> bool:
        """Believe everything."""
        del ref, read_mark
        return True

    def is_anothers(self, ref: IssueRef) -> bool:  # noqa: ARG002 - it has no other runs
        """Return False."""
        return False


class NoMirror(OwnLedger):
    """A mirror that is off."""

    def attempts(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:  # noqa: ARG002 - none is kept
        """Return no attempt."""
        return ()


# Policy, credentials and time.


class Policies(Protocol):
    """See git/worktrees/base_policy.py."""

    def in_force(self, repository: str) -> Policy:
        """Return the policy in force: the valid part of the base branch's file."""
        ...

    def at(self, repository: str, sha: str) -> Policy:
        """Read the policy of one commit; MisconfiguredError if the file is invalid."""
        ...

    def fault(self, repository: str) -> str:
        """Return what is wrong with the base branch's file; "" if it is valid."""
        ...


class LfsServer(Protocol):
    """Downloads from a Git LFS server. See github/lfs.py."""

    def download(
        self,
        endpoint: str,
        token: str | None,
        wanted: Sequence[LfsObject],
        directory: Path,
        until: float,
    ) -> Iterator[tuple[LfsObject, Path]]:
        """Yield each object with its file, which the next one may replace.

        `until` is a time of time.monotonic(). A file is never larger than its object's size.
        UnavailableError or DeniedError if an object cannot be read.
        """
        ...


class Credentials(Protocol):
    """Tokens, by their purpose. See github/credentials.py and github/app.py."""

    def git_token(self, repository: str) -> str | None:
        """Return the token to fetch from and push to a repository; None without one."""
        ...


class Clock(Protocol):
    """The current time and waits; tests set them."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        ...

    def backoff(self, step: int) -> timedelta:
        """Return the wait of a backoff step, with jitter (DECISION-4)."""
        ...


# What the steps are given.


class ReadContext(Protocol):
    """The dependencies of a read; nothing in them writes on GitHub, in git or in the ledger."""

    @property
    def tracker(self) -> Tracker: ...
    @property
    def worktrees(self) -> Worktrees: ...
    @property
    def policies(self) -> Policies: ...
    @property
    def ledger(self) -> LedgerReader: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def usage(self) -> UsageStore: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def artifacts(self) -> Artifacts: ...
    @property
    def agents(self) -> AgentRegistry: ...
    @property
    def disk_shortage(self) -> Callable[[], str]: ...
    @property
    def holds(self) -> Holds: ...


class WriteContext(ReadContext, Protocol):
    """The dependencies of an attempt and of an effect."""

    @property
    def ledger(self) -> Ledger: ...
    @property
    def writer(self) -> TrackerWriter: ...
    @property
    def git(self) -> GitWriter: ...
    @property
    def owners(self) -> Owners: ...
    @property
    def mirror(self) -> Mirror: ...
    @property
    def redactor(self) -> Redactor: ...
    @property
    def verifier(self) -> Verifier: ...
    @property
    def images(self) -> Images: ...
    @property
    def baselines(self) -> RunningBaselines: ...
    @property
    def worker(self) -> str: ...


def _no_shortage() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class BotContext:
    """Everything a worker needs, built by interfaces/bootstrap/container.py."""

    tracker: Tracker
    writer: TrackerWriter
    worktrees: Worktrees
    git: GitWriter
    policies: Policies
    agents: AgentRegistry
    verifier: Verifier
    ledger: Ledger
    leases: Leases
    usage: UsageStore
    artifacts: Artifacts
    clock: Clock
    worker: str
    limits: Limits
    budget: Budget = field(default_factory=Budget)
    redactor: Redactor = field(default_factory=Redactor)
    disk_shortage: Callable[[], str] = _no_shortage
    """Says which disk is short of space for an attempt; "" if there is enough."""
    holds: Holds = field(default_factory=NoHolds)
    owners: Owners = field(default_factory=NoOwners)
    mirror: Mirror = field(default_factory=NoMirror)
    baselines: RunningBaselines = field(default_factory=RunningBaselines)
    images: Images = field(default_factory=NoImages)


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """A running attempt: the issue, its repository's policy, its worktree and agent."""

    case: IssueContext
    policy: Policy
    worktree: Worktree
    agent: CodingAgent
    context: WriteContext
    stopwatch: Stopwatch
    title_style: TitleStyle = PLAIN
