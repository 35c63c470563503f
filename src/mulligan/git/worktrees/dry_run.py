"""The git writer of a dry run: store commits on this machine, and push nothing."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from mulligan.domain.issue import IssueRef
from mulligan.git.worktrees.publish import attempt_ref
from mulligan.implement.ports import GitWriter


@dataclass(frozen=True, slots=True)
class DryRunGit:
    """The port GitWriter over another one; `say` receives the report of each push."""

    inner: GitWriter
    say: Callable[[str], None]

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        """Report the push, without doing it."""
        del expected
        self.say(f"Would push {head_sha[:10]} to {ref.branch} of {ref.repository}.")

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        """Report the push, without doing it; return the ref."""
        name = attempt_ref(ref, number)
        self.say(f"Would push {head_sha[:10]} to {name} of {ref.repository}.")
        return name

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        """Report the deletion, without doing it."""
        del own
        self.say(f"Would delete {ref.branch} of {ref.repository}.")
        return True

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        self.inner.store_commit(ref, head_sha, place)

    def discard(self, ref: IssueRef) -> None:
        self.inner.discard(ref)
