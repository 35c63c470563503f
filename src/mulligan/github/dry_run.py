"""A tracker that reads the real one and writes nowhere: it says what it would do, once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.case import Case, PullRequest
from mulligan.domain.ci import CheckRun
from mulligan.domain.command import Heard, Order
from mulligan.domain.feedback import OpenPull, PullState, Review
from mulligan.domain.issue import AuthorisingAct, Issue, IssueRef, Objection, Stage
from mulligan.domain.repository import RepositoryFacts
from mulligan.domain.status import IssueStatus
from mulligan.github.drafts import draft_body, draft_title
from mulligan.github.escalation import escalation_comment
from mulligan.github.labels import LabelChange, label_change
from mulligan.github.messages import (
    label_comment,
    pull_request_body,
    pull_request_title,
    status_comment,
)
from mulligan.github.replies import reply_comment
from mulligan.ports import Tracker
from mulligan.pulls import PullRequests


@dataclass(frozen=True, slots=True)
class DryRunPulls:
    """The port PullRequests for a rehearsal."""

    inner: PullRequests
    say: Callable[[str], None]

    def listed(self, repository: str) -> Sequence[OpenPull]:
        """List the open pull requests of Mulligan's branches."""
        return self.inner.listed(repository)

    def state(self, ref: IssueRef, number: int) -> PullState:
        """Read a pull request itself."""
        return self.inner.state(ref, number)

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        """Read the submitted reviews of trusted people."""
        return self.inner.reviews(ref, number)

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        """Read what runs, or ran, on a commit."""
        return self.inner.checks(ref, head_sha)

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        """Fetch what a failed check printed."""
        return self.inner.log(ref, run)

    def answer(self, ref: IssueRef, number: int, thread: int, text: str) -> str:
        """Say what would be answered."""
        self.say(f"Would answer comment {thread} on #{number} of {ref.repository}:\n\n{text}")
        return "dry-run"

    def answer_review(self, ref: IssueRef, number: int, review: int, text: str) -> str:
        """Say what would be answered."""
        self.say(f"Would answer review {review} on #{number} of {ref.repository}:\n\n{text}")
        return "dry-run"

    def close_issue(self, ref: IssueRef) -> None:
        """Say which issue would be closed."""
        self.say(f"Would close {ref}.")


class DryRunTracker:
    """The port Tracker for a rehearsal; what was "written" is remembered and read back."""

    def __init__(self, inner: Tracker, say: Callable[[str], None]) -> None:
        self._inner = inner
        self._say = say
        self._labels: dict[IssueRef, tuple[frozenset[str], frozenset[str]]] = {}
        self._texts: dict[str, str] = {}

    @property
    def pulls(self) -> PullRequests:
        """Give the pull requests, on which nothing is written either."""
        return DryRunPulls(self._inner.pulls, self._say)

    def repository(self, name: str) -> RepositoryFacts:
        """Read what has to be known to work on a repository."""
        return self._inner.repository(name)

    def labelled(
        self, repository: str, label: str, priority: Sequence[str] = ()
    ) -> Sequence[IssueRef]:
        """List the open issues that carry a label, but for those that "lost" it here."""
        found = self._inner.labelled(repository, label, priority)
        gained = [
            ref
            for ref, (added, _) in self._labels.items()
            if label in added and ref.repository == repository and ref not in found
        ]
        kept = [ref for ref in found if label not in self._changes(ref)[1]]
        return sorted([*kept, *gained]) if gained else kept

    def read(self, ref: IssueRef) -> Issue:
        """Read one issue afresh, with the labels that it would have."""
        issue = self._inner.read(ref)
        added, removed = self._changes(ref)
        return replace(issue, labels=issue.labels - removed | added)

    def authorising_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        """Find who put the ready label on last, and whether that person may."""
        return self._inner.authorising_act(ref, ready_label)

    def standing(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Rule again on the command that opened the status's epoch."""
        return self._inner.standing(ref, status)

    def hear(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> Heard:
        """Read the commands of trusted people in newer comments."""
        return self._inner.hear(repository, after, since, places)

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Say which comment would be acknowledged."""
        self._say(f"Would react to comment {comment} of {repository}: {reaction}")

    def reply(self, case: Case, order: Order, answer: str) -> str:
        """Say what the answer to a command would say."""
        ref, text = case.issue.ref, reply_comment(case, order, answer)
        self._tell(f"reply {order.key}", f"a comment on {ref} that answers a command", text, ref)
        return "dry-run"

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say why the request of the status's epoch no longer stands."""
        return self._inner.withdrawal(ref, status, labels)

    def handed_over(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say by what another installation has settled the epoch's request."""
        return self._inner.handed_over(ref, status, labels)

    def proposed_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Name the open pull request of another installation."""
        return self._inner.proposed_elsewhere(ref, status)

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Say why the status's epoch is not trusted any more, or its text is another."""
        return self._inner.objection(ref, status)

    def show_stage(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Say which labels would be put on and taken off."""
        change = label_change(self.read(ref).labels, stage, labels)
        if change == LabelChange():
            return
        added, removed = self._changes(ref)
        plus, minus = frozenset(change.add), frozenset(change.remove)
        self._labels[ref] = (added - minus | plus, removed - plus | minus)
        signs = [f"+{name}" for name in change.add] + [f"-{name}" for name in change.remove]
        self._say(f"Would change the labels of {ref}: {' '.join(signs)}")

    def update_status(self, case: Case) -> str:
        """Say what the status comment would say."""
        ref = case.issue.ref
        self._tell("status comment", f"the status comment of {ref}", status_comment(case), ref)
        return case.status.effect("status_comment", "issue") or "dry-run"

    def ask_for_label(self, case: Case, act: str, reason: str) -> str:
        """Say what the comment that asks for the label again would say."""
        ref, text = case.issue.ref, label_comment(case, act, reason)
        self._tell(f"label {act}", f"a comment on {ref} that asks for the label", text, ref)
        return "dry-run"

    def ask_for_help(self, case: Case, escalation: Escalation) -> str:
        """Say what the escalation comment would say."""
        ref, epoch = case.issue.ref, case.status.epoch
        text = escalation_comment(case, escalation)
        self._tell(f"help {epoch}", f"a comment on {ref} that asks for help", text, ref)
        return f"dry-run:{ref}:epoch-{epoch}"

    def open_pull_request(
        self, case: Case, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Say what the pull request would say; it has no number."""
        ref = case.issue.ref
        kind = "a draft pull request" if settings.draft else "a pull request"
        what = f"{kind} of {ref.branch} into {base_branch} of {ref.repository}"
        text = f"{pull_request_title(case)}\n\n{pull_request_body(case)}"
        self._tell("pull request", what, text, ref)
        return PullRequest(0, f"dry-run:{ref}:pull-request")

    def open_draft(self, case: Case, base_branch: str) -> PullRequest:
        """Say what the draft would say; it has no number."""
        ref = case.issue.ref
        what = f"a draft pull request of {ref.branch} into {base_branch} of {ref.repository}"
        self._tell("pull request", what, f"{draft_title(case)}\n\n{draft_body(case)}", ref)
        return PullRequest(0, f"dry-run:{ref}:pull-request")

    def _changes(self, ref: IssueRef) -> tuple[frozenset[str], frozenset[str]]:
        return self._labels.get(ref, (frozenset(), frozenset()))

    def _tell(self, kind: str, what: str, text: str, ref: IssueRef) -> None:
        key = f"{kind} {ref}"
        if self._texts.get(key) != text:
            verb = "change" if key in self._texts else "write"
            self._texts[key] = text
            self._say(f"Would {verb} {what}:\n\n{text}")
