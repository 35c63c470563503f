"""Trackers that write nowhere: one that reads the real GitHub, and one of an issue from a file."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.command import CommandBatch, PendingCommand
from mulligan.domain.errors import GoneError
from mulligan.domain.feedback import CheckRun, OpenPull, PullState, Review
from mulligan.domain.issue import AuthorisingAct, Issue, IssueRef, Objection, RepositoryFacts, Stage
from mulligan.domain.issue_context import IssueContext, PullRequest
from mulligan.domain.status import IssueStatus
from mulligan.github.authorization import LONG_AGO
from mulligan.github.escalation import escalation_comment
from mulligan.github.labels import LabelChange, label_change
from mulligan.github.messages import (
    draft_body,
    draft_title,
    label_comment,
    pull_request_body,
    pull_request_title,
    reply_comment,
    status_comment,
)
from mulligan.implement.ports import PullRequests, Tracker

HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*")

FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")


NOT_OPENED = "(not opened, since this is a rehearsal)"


@dataclass(frozen=True, slots=True)
class DryRunPulls:
    """The port PullRequests for a rehearsal."""

    inner: PullRequests
    say: Callable[[str], None]

    def list_open(self, repository: str) -> Sequence[OpenPull]:
        """List the open pull requests of Mulligan's branches."""
        return self.inner.list_open(repository)

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

    def list_labelled(
        self, repository: str, label: str, priority: Sequence[str] = ()
    ) -> Sequence[IssueRef]:
        """List the open issues that carry a label, but for those that "lost" it here."""
        found = self._inner.list_labelled(repository, label, priority)
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

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Rule again on the command that opened the status's epoch."""
        return self._inner.reauthorise(ref, status)

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        """Read the commands of trusted people in newer comments."""
        return self._inner.read_commands(repository, after, since, places)

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Say which comment would be acknowledged."""
        self._say(f"Would react to comment {comment} of {repository}: {reaction}")

    def reply(self, case: IssueContext, order: PendingCommand, answer: str) -> str:
        """Say what the answer to a command would say."""
        ref, text = case.issue.ref, reply_comment(case, order, answer)
        self._print(f"reply {order.key}", f"a comment on {ref} that answers a command", text, ref)
        return "dry-run"

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say why the request of the status's epoch no longer stands."""
        return self._inner.withdrawal(ref, status, labels)

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say by what another installation has settled the epoch's request."""
        return self._inner.settled_elsewhere(ref, status, labels)

    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Name the open pull request of another installation."""
        return self._inner.pull_request_elsewhere(ref, status)

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Say why the status's epoch is not trusted any more, or its text is another."""
        return self._inner.objection(ref, status)

    def set_stage_labels(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Say which labels would be put on and taken off."""
        change = label_change(self.read(ref).labels, stage, labels)
        if change == LabelChange():
            return
        added, removed = self._changes(ref)
        plus, minus = frozenset(change.add), frozenset(change.remove)
        self._labels[ref] = (added - minus | plus, removed - plus | minus)
        signs = [f"+{name}" for name in change.add] + [f"-{name}" for name in change.remove]
        self._say(f"Would change the labels of {ref}: {' '.join(signs)}")

    def update_status(self, case: IssueContext) -> str:
        """Say what the status comment would say."""
        ref = case.issue.ref
        self._print("status comment", f"the status comment of {ref}", status_comment(case), ref)
        return case.status.effect("status_comment", "issue") or "dry-run"

    def ask_for_label(self, case: IssueContext, act: str, reason: str) -> str:
        """Say what the comment that asks for the label again would say."""
        ref, text = case.issue.ref, label_comment(case, act, reason)
        self._print(f"label {act}", f"a comment on {ref} that asks for the label", text, ref)
        return "dry-run"

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        """Say what the escalation comment would say."""
        ref, epoch = case.issue.ref, case.status.epoch
        text = escalation_comment(case, escalation)
        self._print(f"help {epoch}", f"a comment on {ref} that asks for help", text, ref)
        return f"dry-run:{ref}:epoch-{epoch}"

    def open_pull_request(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Say what the pull request would say; it has no number."""
        ref = case.issue.ref
        kind = "a draft pull request" if settings.draft else "a pull request"
        what = f"{kind} of {ref.branch} into {base_branch} of {ref.repository}"
        text = f"{pull_request_title(case)}\n\n{pull_request_body(case)}"
        self._print("pull request", what, text, ref)
        return PullRequest(0, f"dry-run:{ref}:pull-request")

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        """Say what the draft would say; it has no number."""
        ref = case.issue.ref
        what = f"a draft pull request of {ref.branch} into {base_branch} of {ref.repository}"
        self._print("pull request", what, f"{draft_title(case)}\n\n{draft_body(case)}", ref)
        return PullRequest(0, f"dry-run:{ref}:pull-request")

    def _changes(self, ref: IssueRef) -> tuple[frozenset[str], frozenset[str]]:
        return self._labels.get(ref, (frozenset(), frozenset()))

    def _print(self, kind: str, what: str, text: str, ref: IssueRef) -> None:
        key = f"{kind} {ref}"
        if self._texts.get(key) != text:
            verb = "change" if key in self._texts else "write"
            self._texts[key] = text
            self._say(f"Would {verb} {what}:\n\n{text}")


def split_issue(text: str) -> tuple[str, str] | None:
    """Give title and body; None where no heading stands outside of code blocks."""
    lines, fence = text.splitlines(), ""
    for at, line in enumerate(lines):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := HEADING.fullmatch(line)):
            return heading[1], "\n".join([*lines[:at], *lines[at + 1 :]]).strip()
    return None


@dataclass(frozen=True, slots=True)
class NoPulls:
    """The port PullRequests where none is open, so that nothing is said there."""

    def list_open(self, repository: str) -> Sequence[OpenPull]:
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

    def list_labelled(
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

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Give what the ledger has of it; nobody's right changes meanwhile."""
        del ref
        at = status.act_at or LONG_AGO
        return AuthorisingAct(status.act, status.actor, at, trusted=True, guidance=status.guidance)

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        """Hear nothing: a file has no comments."""
        del repository, since, places
        return CommandBatch(read_to=after)

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Do nothing."""
        del repository, comment, reaction

    def reply(self, case: IssueContext, order: PendingCommand, answer: str) -> str:
        """Write nothing; nobody asked in a comment."""
        del order, answer
        return f"rehearsal:{case.issue.ref}"

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Give none: a rehearsal is withdrawn by a signal."""
        del ref, status, labels

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say that nobody else is there."""
        del ref, status, labels

    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Say that nobody else is there."""
        del ref, status

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Give none: the file was read once."""
        del ref, status

    def set_stage_labels(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Keep the labels that the issue would have."""
        change = label_change(self.read(ref).labels, stage, labels)
        left = self.issue.labels - frozenset(change.remove)
        self.issue = replace(self.issue, labels=left | frozenset(change.add))

    def update_status(self, case: IssueContext) -> str:
        """Write nothing; the terminal tells the story."""
        return f"rehearsal:{case.issue.ref}"

    def ask_for_label(self, case: IssueContext, act: str, reason: str) -> str:
        """Write nothing; it is never needed, since nobody changes the text."""
        del act, reason
        return f"rehearsal:{case.issue.ref}"

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        """Hand over the escalation comment."""
        self.ask(escalation_comment(case, escalation))
        return "the comment for a person is below"

    def open_pull_request(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Open nothing; the commit stays where it is."""
        del case, base_branch, settings
        return PullRequest(0, NOT_OPENED)

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        """Open nothing; the commit stays where it is."""
        del case, base_branch
        return PullRequest(0, NOT_OPENED)
