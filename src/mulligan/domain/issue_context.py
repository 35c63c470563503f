"""One issue with its status and attempts, as the steps and the texts need it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mulligan.domain.issue import Issue
from mulligan.domain.learning import Learning
from mulligan.domain.outcome import Decision, Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus


@dataclass(frozen=True, slots=True)
class IssueContext:
    """An issue, where it stands, and its completed attempts of all epochs, oldest first.

    `verifies` tells whether the repository has any check; `counted` is how many attempts of the
    epoch cost one, out of `max_attempts`. `ready_label` is what a person puts on to ask for work.
    `no_draft` says why the last attempt's work could not be shown as a draft, where it should.
    `learnings` are the facts that other issues of the repository taught; None if the policy lets
    no issue teach another.
    """

    issue: Issue
    status: IssueStatus
    history: tuple[WorkerResultMeta, ...]
    max_attempts: int
    counted: int = 0
    verifies: bool = True
    observed: tuple[str, ...] = ()
    ready_label: str = "mulligan"
    no_draft: str = ""
    learnings: tuple[Learning, ...] | None = None

    @property
    def epoch_history(self) -> tuple[WorkerResultMeta, ...]:
        """Give the attempts of the current epoch, oldest first.

        One that publishes what was kept makes none; it lives on those of the epoch before.
        """
        made = self.status.attempt > 0 or not self.history
        epoch = self.status.epoch if made else self.history[-1].epoch
        return tuple(meta for meta in self.history if meta.epoch == epoch)

    @property
    def last(self) -> WorkerResultMeta | None:
        """Give the attempt that was completed last."""
        return self.history[-1] if self.history else None


def own_commits(status: IssueStatus, history: Iterable[WorkerResultMeta]) -> frozenset[str]:
    """Name the commits of a pull request that are Mulligan's own: of attempts, and merges."""
    return status.merge_commits | {meta.head_sha for meta in history if meta.head_sha}


def bases_of(status: IssueStatus, history: Iterable[WorkerResultMeta]) -> frozenset[str]:
    """Name the commits of the base branch that those were made on, or were merged in."""
    return status.merged_bases | {meta.base_sha for meta in history if meta.base_sha}


def is_on_others(history: Sequence[WorkerResultMeta]) -> bool:
    """Tell whether the work that succeeded last goes on top of commits of other people."""
    good = (meta for meta in reversed(history) if meta.outcome is Outcome.SUCCEEDED)
    last = next(good, None)
    return last is not None and last.start_sha != last.base_sha


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request that is open; `left_draft` says why it is a draft that should be none.

    One of another installation, which answers the same request, is `elsewhere`.
    """

    number: int
    url: str
    left_draft: str = ""
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """The issue was not worked on, and this is why."""

    reason: str


Result = Decision | Skipped
"""What a visit to an issue came to."""
