"""A tracker of one issue that was read from a file: no GitHub at all, for rehearsals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.case import Case, PullRequest
from mulligan.domain.ci import CheckRun
from mulligan.domain.command import Heard, Order
from mulligan.domain.feedback import OpenPull, PullState, Review
from mulligan.domain.issue import AuthorisingAct, Issue, IssueRef, Objection, Stage
from mulligan.domain.repository import RepositoryFacts
from mulligan.domain.status import IssueStatus
from mulligan.errors import GoneError
from mulligan.github.escalation import escalation_comment
from mulligan.github.labels import label_change

LONG_AGO = datetime.min.replace(tzinfo=UTC)
NOT_OPENED = "(not opened, since this is a rehearsal)"


@dataclass(frozen=True, slots=True)
class NoPulls:
    """The port PullRequests where none is open, so that nothing is said there."""

    def listed(self, repository: str) -> Sequence[OpenPull]:
        """List none."""
        del repository
        return ()

    def state(self, ref: IssueRef, number: int) -> PullState:
        """Say that it is not open."""
        del ref, number
        return PullState(is_open=False)

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        """Give none."""
        del ref, number
        return ()

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        """Give none."""
        del ref, head_sha
        return ()

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        """Give nothing."""
        del ref, run
        return b""

    def answer(self, ref: IssueRef, number: int, thread: int, text: str) -> str:
        """Answer nobody."""
        del ref, number, text
        return str(thread)

    def answer_review(self, ref: IssueRef, number: int, review: int, text: str) -> str:
        """Answer nobody."""
        del ref, number, text
        return str(review)

    def close_issue(self, ref: IssueRef) -> None:
        """Leave the file that holds the issue alone."""


@dataclass
class LocalTracker:
    """The port Tracker; `ask` hears the comment that would ask a person for help."""

    issue: Issue
    facts: RepositoryFacts
    ask: Callable[[str], None]

    @property
    def pulls(self) -> NoPulls:
        """Give the pull requests, of which there are none."""
        return NoPulls()

    def repository(self, name: str) -> RepositoryFacts:
        """Give what was known from the start."""
        if name != self.facts.name:
            message = f"A rehearsal is of {self.facts.name} only, not of {name}."
            raise GoneError(message)
        return self.facts

    def labelled(
        self, repository: str, label: str, priority: Sequence[str] = ()
    ) -> Sequence[IssueRef]:
        """List the issue where it carries a label."""
        del priority
        ref = self.issue.ref
        carries = label.casefold() in {name.casefold() for name in self.issue.labels}
        return [ref] if carries and ref.repository == repository else []

    def read(self, ref: IssueRef) -> Issue:
        """Give the issue."""
        if ref != self.issue.ref:
            message = f"A rehearsal is of {self.issue.ref} only, not of {ref}."
            raise GoneError(message)
        return self.issue

    def authorising_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        """Give none: whoever rehearses asks by the command."""
        del ref, ready_label

    def standing(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Give what the ledger has of it; nobody's right changes meanwhile."""
        del ref
        at = status.act_at or LONG_AGO
        return AuthorisingAct(status.act, status.actor, at, trusted=True, guidance=status.guidance)

    def hear(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> Heard:
        """Hear nothing: a file has no comments."""
        del repository, since, places
        return Heard(read_to=after)

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Do nothing."""
        del repository, comment, reaction

    def reply(self, case: Case, order: Order, answer: str) -> str:
        """Write nothing; nobody asked in a comment."""
        del order, answer
        return f"rehearsal:{case.issue.ref}"

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Give none: a rehearsal is withdrawn by a signal."""
        del ref, status, labels

    def handed_over(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say that nobody else is there."""
        del ref, status, labels

    def proposed_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Say that nobody else is there."""
        del ref, status

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Give none: the file was read once."""
        del ref, status

    def show_stage(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Keep the labels that the issue would have."""
        change = label_change(self.read(ref).labels, stage, labels)
        left = self.issue.labels - frozenset(change.remove)
        self.issue = replace(self.issue, labels=left | frozenset(change.add))

    def update_status(self, case: Case) -> str:
        """Write nothing; the terminal tells the story."""
        return f"rehearsal:{case.issue.ref}"

    def ask_for_label(self, case: Case, act: str, reason: str) -> str:
        """Write nothing; it is never needed, since nobody changes the text."""
        del act, reason
        return f"rehearsal:{case.issue.ref}"

    def ask_for_help(self, case: Case, escalation: Escalation) -> str:
        """Hand over the escalation comment."""
        self.ask(escalation_comment(case, escalation))
        return "the comment for a person is below"

    def open_pull_request(
        self, case: Case, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Open nothing; the commit stays where it is."""
        del case, base_branch, settings
        return PullRequest(0, NOT_OPENED)

    def open_draft(self, case: Case, base_branch: str) -> PullRequest:
        """Open nothing; the commit stays where it is."""
        del case, base_branch
        return PullRequest(0, NOT_OPENED)
