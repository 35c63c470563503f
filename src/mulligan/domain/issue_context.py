"""One issue with its status and attempts, for the steps and the messages. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mulligan.domain.issue import Issue
from mulligan.domain.learning import Learning
from mulligan.domain.outcome import Decision, Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus


class PatternKind(StrEnum):
    """The subject of a pattern of attempts; the last two contain names that others chose."""

    SAME_FAILURE = "same failure"
    SAME_CHANGE = "same change"
    SAME_OUTCOME = "same outcome"
    PROGRESS = "progress"
    NAMES = "names"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A common property of attempts, as a sentence."""

    kind: PatternKind
    text: str

    @property
    def is_advice(self) -> bool:
        """Return whether the next agent must take a different approach."""
        return self.kind in {PatternKind.SAME_FAILURE, PatternKind.SAME_CHANGE}


@dataclass(frozen=True, slots=True)
class IssueContext:
    """An issue, its status, and its completed attempts of all epochs, oldest first.

    `verifies` is whether the repository has any check. `counted` is how many attempts of the epoch,
    or for its review, cost one, out of `max_attempts`. `ready_label` is the label that requests
    work. `no_draft` is why the last attempt's work could not be shown as a draft, if it should have
    been. `learnings` are facts learned from other issues of the repository; None if the policy does
    not share them.
    `template` is the repository's pull-request template, "" if there is none to use.
    `title_request` says what title an agent may propose, for its prompt.
    `state_mark` confirms the events of a ledger on the state ref.
    """

    issue: Issue
    status: IssueStatus
    history: tuple[WorkerResultMeta, ...]
    max_attempts: int
    counted: int = 0
    verifies: bool = True
    observed: tuple[Pattern, ...] = ()
    ready_label: str = "mulligan"
    no_draft: str = ""
    learnings: tuple[Learning, ...] | None = None
    state_mark: str = ""
    template: str = ""
    title_request: str = ""

    @property
    def epoch_history(self) -> tuple[WorkerResultMeta, ...]:
        """Return the attempts of the current epoch, oldest first.

        If this epoch only publishes a verified commit, it has none: return those of the epoch
        before.
        """
        made = self.status.attempt > 0 or not self.history
        epoch = self.status.epoch if made else self.history[-1].epoch
        return tuple(meta for meta in self.history if meta.epoch == epoch)

    @property
    def round_history(self) -> tuple[WorkerResultMeta, ...]:
        """Return the attempts that count together: those for the review, else of the epoch."""
        start = self.status.review_start or 0
        return tuple(meta for meta in self.epoch_history if meta.attempt > start)

    @property
    def last(self) -> WorkerResultMeta | None:
        """Return the attempt that completed last."""
        return self.history[-1] if self.history else None


def own_commits(status: IssueStatus, history: Iterable[WorkerResultMeta]) -> frozenset[str]:
    """Return Mulligan's own commits in a pull request: those of attempts, and merges."""
    return status.merge_commits | {meta.head_sha for meta in history if meta.head_sha}


def commits_on_branch(status: IssueStatus, history: Iterable[WorkerResultMeta]) -> frozenset[str]:
    """Return the commits at which Mulligan may have left the issue's branch."""
    return own_commits(status, history) | frozenset(filter(None, [status.effects.pushed]))


def bases_of(status: IssueStatus, history: Iterable[WorkerResultMeta]) -> frozenset[str]:
    """Return the base branch's commits on which those were made, or which were merged."""
    return status.merged_bases | {meta.base_sha for meta in history if meta.base_sha}


def is_on_others(history: Sequence[WorkerResultMeta]) -> bool:
    """Return whether the last successful work is based on other people's commits."""
    good = (meta for meta in reversed(history) if meta.outcome is Outcome.SUCCEEDED)
    last = next(good, None)
    return last is not None and last.start_sha != last.base_sha


@dataclass(frozen=True, slots=True)
class PullRequest:
    """An open pull request; `left_draft` is why it is still a draft although it should not be.

    `elsewhere` is set if another installation opened it for the same request, and `is_text_kept` if
    a person's text is in place of Mulligan's.
    """

    number: int
    url: str
    left_draft: str = ""
    elsewhere: bool = False
    is_text_kept: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """The issue was not worked on, for this reason."""

    reason: str


Result = Decision | Skipped
"""The result of a visit to an issue."""
