"""Worktrees for a dry run: everything on this machine is real, and nothing is pushed."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from mulligan.config.policy import CommitSettings
from mulligan.domain.issue import IssueRef
from mulligan.git.worktrees.publish import attempt_ref
from mulligan.implement.ports import PullRequestBase, Worktree, Worktrees


@dataclass(frozen=True, slots=True)
class DryRunWorktrees:
    """The port `Worktrees` over another one; `say` hears what would be pushed."""

    inner: Worktrees
    say: Callable[[str], None]

    def fetch_base(self, repository: str) -> None:
        """Fetch the base branch."""
        self.inner.fetch_base(repository)

    def open(
        self, ref: IssueRef, standing: PullRequestBase | None = None
    ) -> AbstractContextManager[Worktree]:
        """Fetch, and give a clean worktree; UnavailableError otherwise."""
        return self.inner.open(ref, standing)

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        """Read a file of the base branch as fetched last, or of a commit; None if not there."""
        return self.inner.base_file(repository, path, sha)

    def base_branch(self, repository: str) -> str:
        """Name the branch that work starts from and goes to."""
        return self.inner.base_branch(repository)

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        """Store a commit in a file, a git bundle."""
        self.inner.store_commit(ref, head_sha, place)

    def ensure_commit(self, ref: IssueRef, head_sha: str, bundle: Path) -> bool:
        """See that a commit could be pushed, from its file if need be."""
        return self.inner.ensure_commit(ref, head_sha, bundle)

    def base_sha(self, repository: str) -> str | None:
        """Give the base branch's commit as fetched last."""
        return self.inner.base_sha(repository)

    def conflicts(self, ref: IssueRef, base_sha: str, head_sha: str) -> tuple[str, ...]:
        """Name the files in which a head does not merge."""
        return self.inner.conflicts(ref, base_sha, head_sha)

    def is_behind(self, ref: IssueRef, base_sha: str, head_sha: str) -> bool:
        """Tell whether a head lacks commits of the base."""
        return self.inner.is_behind(ref, base_sha, head_sha)

    def is_in_base(self, ref: IssueRef, start_sha: str, base_sha: str) -> bool:
        """Tell whether the base branch still has what work stands on."""
        return self.inner.is_in_base(ref, start_sha, base_sha)

    def merge(
        self, ref: IssueRef, base_sha: str, head_sha: str, settings: CommitSettings
    ) -> str | None:
        """Make the commit that merges the base into a head; it stays on this machine."""
        return self.inner.merge(ref, base_sha, head_sha, settings)

    def remote_head(self, ref: IssueRef) -> str | None:
        """Ask which commit the issue's branch on the remote is."""
        return self.inner.remote_head(ref)

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        """Say which branch would be deleted."""
        del own
        self.say(f"Would delete {ref.branch} of {ref.repository}.")
        return True

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        """Say what would be pushed."""
        del expected
        self.say(f"Would push {head_sha[:10]} to {ref.branch} of {ref.repository}.")

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        """Say what would be pushed."""
        name = attempt_ref(ref, number)
        self.say(f"Would push {head_sha[:10]} to {name} of {ref.repository}.")
        return name

    def exists(self, ref: IssueRef) -> bool:
        """Tell whether anything of an issue's worktree lies on this machine."""
        return self.inner.exists(ref)

    def discard(self, ref: IssueRef) -> None:
        """Remove an issue's worktree."""
        self.inner.discard(ref)
