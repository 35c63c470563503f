"""The port to pull requests that are open: what people say there, and what became of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from mulligan.config.policy import CommitSettings
from mulligan.domain.ci import CheckRun
from mulligan.domain.feedback import OpenPull, PullState, Review
from mulligan.domain.issue import IssueRef


@dataclass(frozen=True, slots=True)
class Standing:
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


class PullRequests(Protocol):
    """See github/reviews.py; every write may be repeated and shows once."""

    def listed(self, repository: str) -> Sequence[OpenPull]:
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

    def tip(self, ref: IssueRef) -> str | None:
        """Ask which commit the issue's branch on the remote is; None where there is none."""
        ...

    def drop(self, ref: IssueRef, own: Collection[str]) -> bool:
        """Delete the issue's branch on the remote, unless it has commits that are not `own`."""
        ...

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        """Make the issue's branch on the remote be `head_sha`.

        `expected` is what Mulligan pushed there last, None for nothing. DeniedError where the
        branch holds anything else (SPEC P2) or the server refuses; doing it twice does no harm.
        """
        ...
