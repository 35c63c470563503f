"""What the route needs from the world, as small protocols. Adapters satisfy them; wiring.py picks.

Each has two implementations and a contract test in tests/contracts/; adapters raise WorldErrors.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from mulligan.config.policy import CommitSettings, Escalation, Labels, Policy, PullRequestSettings
from mulligan.conversation import Conversation
from mulligan.domain.attempt import AgentRun, Change, CommitText, Task
from mulligan.domain.case import Case, PullRequest
from mulligan.domain.events import BaselineRecorded, Event, Recorded
from mulligan.domain.issue import AuthorisingAct, Issue, IssueRef, Objection, Stage
from mulligan.domain.lease import Lease
from mulligan.domain.machine import AgentIdentity
from mulligan.domain.repository import RepositoryFacts
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.pulls import Branches, PullRequests, Standing
from mulligan.verifier import Workplace


class Tracker(Conversation, Protocol):
    """Where issues come from and results go. See github/tracker.py and github/dry_run.py.

    Every write may be repeated and shows once: it is looked up by its natural key first.
    """

    @property
    def pulls(self) -> PullRequests: ...

    def repository(self, name: str) -> RepositoryFacts:
        """Read what has to be known to work on a repository; GoneError where it was renamed."""
        ...

    def labelled(
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

    def standing(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Rule again on the command that opened the status's epoch, and on later edits (T1, T2)."""
        ...

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say why the request of the status's epoch no longer stands (SPEC L5); None if it does."""
        ...

    def handed_over(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say by what another installation has settled the epoch's request; None if it has not."""
        ...

    def proposed_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Name the open pull request of another installation that answers the epoch's request."""
        ...

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Say why the status's epoch is not trusted any more, or its text is another (T1, T2)."""
        ...

    def show_stage(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Make the labels show a stage (SPEC L2, L3); no other label is touched."""
        ...

    def update_status(self, case: Case) -> str | None:
        """Write the one status comment of the issue (SPEC H5); None where that is put off."""
        ...

    def ask_for_label(self, case: Case, act: str, reason: str) -> str:
        """Write the one comment of an act that asks for the label again (SPEC T2); give its id."""
        ...

    def ask_for_help(self, case: Case, escalation: Escalation) -> str:
        """Write the escalation comment of the epoch (SPEC H1, H2); give its URL."""
        ...

    def open_pull_request(
        self, case: Case, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Open the pull request of the issue's branch, or bring the open one up to date (P1).

        A draft that shows unverified work becomes ready for review.
        """
        ...

    def open_draft(self, case: Case, base_branch: str) -> PullRequest:
        """Have the pull request show the last attempt's work, as a draft if it is new (SPEC H3)."""
        ...


class Worktree(Workplace, Protocol):
    """A private checkout for one attempt, equal to `start_sha` when it was opened (SPEC A2)."""

    @property
    def base_sha(self) -> str: ...
    @property
    def start_sha(self) -> str: ...
    @property
    def recreated(self) -> bool: ...
    @property
    def proposed(self) -> bytes: ...

    def capture(self, text: CommitText, settings: CommitSettings) -> Change:
        """Read what the agent left and commit it (SPEC A7, A8)."""
        ...

    def show_commit(self, head_sha: str) -> None:
        """Reset the tree to a commit, so that a check sees that and nothing else (SPEC A10)."""
        ...

    def untouched(self) -> AbstractContextManager[None]:
        """Have a new checkout of `start_sha` in place of this one, for a while (SPEC A4).

        It has nothing that an agent or a check wrote, nor what set-up wrote.
        """
        ...


class Worktrees(Branches, Protocol):
    """See worktree/worktrees.py."""

    def refresh(self, repository: str) -> None:
        """Fetch the base branch."""
        ...

    def open(
        self, ref: IssueRef, standing: Standing | None = None
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

    def keep(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        """Store a commit that `capture` made in a file, a git bundle; one that is there stays."""
        ...

    def restore(self, ref: IssueRef, head_sha: str, bundle: Path) -> bool:
        """See that a commit can be pushed, from its file if need be; False where it is gone."""
        ...

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        """Push an attempt's work to a ref of its own, and name that; DeniedError if it is gone."""
        ...

    def has(self, ref: IssueRef) -> bool:
        """Tell whether anything of an issue's worktree lies on this machine."""
        ...

    def discard(self, ref: IssueRef) -> None:
        """Remove an issue's worktree, but no commit; UnavailableError while it is in use."""
        ...


class CodingAgent(Protocol):
    """See agent/runner.py."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> AgentIdentity:
        """Say which agent it is; its version is asked for once."""
        ...

    def run(self, task: Task) -> AgentRun:
        """Let the agent work until it ends or is stopped; nothing it started is left."""
        ...


class Ledger(Protocol):
    """What happened to each issue, append-only. See state/ledger.py and state/memory.py."""

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        """Record an event durably; give where the issue stands now."""
        ...

    def under(self, lease: Lease) -> "Ledger":
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
    ) -> Sequence[Recorded]:
        """Give the events of one issue, or of all, with `seq` above `after`; the `most` first."""
        ...

    def newest(self) -> int:
        """Give the highest `seq` there is; 0 for none."""
        ...

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        """Give what was recorded last under a key, for whichever issue of the repository."""
        ...


class Leases(Protocol):
    """Who works on which issue: at most one worker on each (SPEC E4). See state/leases.py."""

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

    def forget(self) -> None:
        """End every lease, when it is known that no worker is alive."""
        ...

    def attend(self, worker: str) -> Sequence[str]:
        """Be heard as a worker; name all that share the leases and were heard of lately."""
        ...


class Policies(Protocol):
    """See worktree/policies.py."""

    def current(self, repository: str) -> Policy:
        """Give the policy in force: of the base branch's file, as fetched last, what is valid."""
        ...

    def at(self, repository: str, sha: str) -> Policy:
        """Read the policy of one commit; MisconfiguredError where the file is invalid."""
        ...

    def fault(self, repository: str) -> str | None:
        """Say what is wrong with the base branch's file as fetched last; None where it holds."""
        ...


class Dispatcher(Protocol):
    """Sees to it that issues are visited. See engine/dispatch.py."""

    def wake(self, refs: Iterable[IssueRef]) -> None:
        """Have each issue visited; waking one that waits or is being visited does no harm."""
        ...

    def drain(self) -> None:
        """Wait until every visit has ended."""
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
