"""Implement the port Tracker on GitHub: read issues; write labels, comments, pull requests."""

from collections.abc import Callable, Sequence
from datetime import datetime
from urllib.parse import quote

import structlog

from mulligan.config.operator import Trust
from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.command import CommandBatch, PendingCommand
from mulligan.domain.errors import GoneError, UnavailableError, WorldError
from mulligan.domain.issue import (
    AuthorisingAct,
    Comment,
    Issue,
    IssueRef,
    Objection,
    RepositoryFacts,
    Stage,
)
from mulligan.domain.issue_context import IssueContext, PullRequest
from mulligan.domain.status import IssueStatus
from mulligan.github.answers import MovedError, NotFoundError
from mulligan.github.authorization import Authorization, TrustReader
from mulligan.github.client import Client
from mulligan.github.comments import CommandReader, Comments, StatusComments
from mulligan.github.credentials import Identity
from mulligan.github.escalation import escalation_comment, escalation_marker
from mulligan.github.labels import LabelChange, LabelStyle, label_change, priority_rank
from mulligan.github.messages import label_comment, label_marker, reply_comment, reply_marker
from mulligan.github.pulls import GitHubPulls, PullRequestWriter
from mulligan.github.shapes import ANYTHING, ISSUE, ISSUES, LABELS, REPOSITORY, IssueShape, leads_to
from mulligan.implement.ports import Clock

STATUS_COMMENT, LABEL_COMMENT, SINGLE_KEY = "status_comment", "label_comment", "issue"
"""The keys of comment ids in the ledger (see implement/effects.py)."""

MAX_PERMISSION_LOOKUPS = 50
"""The most people whose permission is asked for in one issue, the last to speak first."""

log = structlog.get_logger()


class GitHubTracker:
    """The port Tracker over GitHub's REST API."""

    def __init__(
        self,
        client: Client,
        trust: Trust,
        clock: Clock,
        login: Callable[[], str | None] | None = None,
    ) -> None:
        self._client = client
        self._trust = TrustReader(client, trust, clock)
        self._identity = Identity(client, login)
        self._authorization = Authorization(client, self._trust, self, self._there)
        self._comments = Comments(client, self.own_login)
        self._status = StatusComments(self._comments, clock)
        self._commands = CommandReader(client, self._trust, self._comments)
        self._pulls = PullRequestWriter(client)
        self.pulls = GitHubPulls(client, self._trust, self.own_login)

    def own_login(self) -> str:
        """Give the login that Mulligan's comments bear."""
        return self._identity.login()

    def repository(self, name: str) -> RepositoryFacts:
        """Read what has to be known to work on a repository."""
        try:
            found = self._client.read(REPOSITORY, f"/repos/{name}")
        except MovedError as error:
            if not error.renames:
                raise
            message = f"{name} was renamed or moved; write its new name in the configuration."
            raise GoneError(message) from error
        if found.full_name.casefold() != name.casefold():
            message = (
                f"{name} is called {found.full_name} now; write the new name in the configuration."
            )
            raise UnavailableError(message)
        return RepositoryFacts(
            name=name,
            clone_url=found.clone_url,
            default_branch=found.default_branch,
            archived=found.archived,
            has_issues=found.has_issues,
            may_push=found.permissions.push if found.permissions else None,
        )

    def label_names(self, repository: str) -> frozenset[str]:
        """List the labels that a repository has."""
        found = self._client.read_all(LABELS, f"/repos/{repository}/labels")
        return frozenset(label.name for label in found)

    def create_label(self, repository: str, look: LabelStyle) -> None:
        """Create a label that a repository does not have."""
        body = {"name": look.name, "color": look.color, "description": look.description}
        self._client.write(ANYTHING, "POST", f"/repos/{repository}/labels", body)

    def list_labelled(
        self, repository: str, label: str, priority: Sequence[str] = ()
    ) -> Sequence[IssueRef]:
        """List the open issues that carry a label, by priority, then oldest first."""
        query = {"labels": label, "state": "open", "sort": "created", "direction": "asc"}
        try:
            found = self._client.read_all(ISSUES, f"/repos/{repository}/issues", query)
        except MovedError:
            self.repository(repository)  # says what became of it
            raise
        wanted = [
            issue
            for issue in found
            if issue.pull_request is None and label.casefold() in _names(issue)
        ]
        wanted.sort(key=lambda issue: priority_rank(_names(issue), priority))
        return list(dict.fromkeys(_ref(issue, repository) for issue in wanted))

    def read(self, ref: IssueRef) -> Issue:
        """Read one issue afresh, with the comments of trusted people."""
        found = self._there(ref)
        return Issue(
            ref=ref,
            title=found.title,
            body=found.body or "",
            author=found.user.login if found.user else "",
            url=found.html_url,
            is_open=found.state == "open",
            is_pull_request=found.pull_request is not None,
            is_locked=found.locked,
            labels=frozenset(label.name for label in found.labels),
            comments=self._trusted_comments(ref) if found.comments else (),
        )

    def authorising_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        """Find who put the ready label on last, and whether that person may (SPEC T1)."""
        return self._authorization.labelling_act(ref, ready_label)

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Rule again on the command that opened the status's epoch, and on later edits (T1, T2)."""
        return self._authorization.reauthorise(ref, status)

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        """Read the commands of trusted people in comments newer than id `after`, and `since`."""
        return self._commands.read_commands(repository, after, since, places)

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Acknowledge a comment; best effort."""
        self._commands.react(repository, comment, reaction)

    def reply(self, case: IssueContext, order: PendingCommand, answer: str) -> str:
        """Write the one comment that answers a command; give its id."""
        ref, text = case.issue.ref, reply_comment(case, order, answer)
        return str(self._comments.upsert(ref, reply_marker(ref, order.key), text).id)

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say why the request of the status's epoch no longer stands (SPEC L5); None if it does."""
        reason = self._authorization.withdrawal(ref, status, labels)
        if reason or not (status.feedback and status.pull_number):
            return reason
        pull = self.pulls.state(ref, status.pull_number)
        return None if pull.is_open else "Its pull request was merged or closed."

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say by what another installation has settled the epoch's request; None if it has not."""
        return self._authorization.settled_elsewhere(ref, status, labels)

    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Name the open pull request of another installation that answers the epoch's request."""
        return self._pulls.opened_elsewhere(ref, status)

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Say why the status's epoch is not trusted any more, or its text is another (T1, T2)."""
        return self._authorization.objection(ref, status)

    def set_stage_labels(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Make the labels show a stage (SPEC L2, L3); no other label is touched."""
        change = self._missing(ref, stage, labels)
        while change != LabelChange():
            try:
                return self._apply(ref, change)
            except UnavailableError:
                # A failed answer does not mean that it did not happen (SPEC E7).
                left = self._missing(ref, stage, labels)
                if left == change:
                    raise
                change = left
        return None

    def update_status(self, case: IssueContext) -> str | None:
        """Write the one status comment of the issue (SPEC H5); None where that is put off."""
        known = case.status.effect(STATUS_COMMENT, SINGLE_KEY)
        return self._status.update(case, known)

    def ask_for_label(self, case: IssueContext, act: str, reason: str) -> str:
        """Write the one comment that asks for the label again (SPEC T2); give its id."""
        ref, known = case.issue.ref, case.status.effect(LABEL_COMMENT, act)
        text = label_comment(case, act, reason)
        return str(self._comments.upsert(ref, label_marker(ref, act), text, known).id)

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        """Write the escalation comment of the epoch (SPEC H1, H2); give its URL."""
        ref = case.issue.ref
        marker = escalation_marker(ref, case.status.epochs)
        comment = self._comments.upsert(ref, marker, escalation_comment(case, escalation))
        if escalation.assignees:
            self._assign(ref, escalation.assignees)
        return comment.html_url

    def open_pull_request(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Open the pull request of the issue's branch, or bring the open one up to date (P1)."""
        return self._pulls.open(case, base_branch, settings)

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        """Have the pull request show the last attempt's work, as a draft if it is new (SPEC H3)."""
        return self._pulls.open_draft(case, base_branch)

    def _there(self, ref: IssueRef) -> IssueShape:
        """Read an issue that may be gone."""
        try:
            return self._issue(ref)
        except (NotFoundError, MovedError) as error:
            self.repository(ref.repository)  # raises where the repository is gone, not the issue
            moved = isinstance(error, MovedError)
            how = "transferred to another repository" if moved else "deleted, or never was"
            message = f"{ref} is gone: it was {how}."
            raise GoneError(message) from error

    def _issue(self, ref: IssueRef) -> IssueShape:
        found = self._client.read(ISSUE, f"/repos/{ref.repository}/issues/{ref.number}")
        if found.number != ref.number:
            message = f"GitHub gave issue {found.number} for {ref}; try again later."
            raise UnavailableError(message)
        _ref(found, ref.repository)
        return found

    def _trusted_comments(self, ref: IssueRef) -> tuple[Comment, ...]:
        said = [
            (comment.user, comment)
            for comment in self._comments.list_on(ref)
            if comment.user and not self._comments.is_own(comment)
        ]
        people = {user.login: user for user, _ in reversed(said)}
        trusted = {
            login
            for login, user in list(people.items())[:MAX_PERMISSION_LOOKUPS]
            if self._trust.refusal(ref.repository, user) is None
        }
        return tuple(
            Comment(user.login, comment.body or "", comment.created_at, comment.id)
            for user, comment in said
            if user.login in trusted
        )

    def _missing(self, ref: IssueRef, stage: Stage, labels: Labels) -> LabelChange:
        current = [label.name for label in self._issue(ref).labels]
        return label_change(current, stage, labels)

    def _apply(self, ref: IssueRef, change: LabelChange) -> None:
        path = f"/repos/{ref.repository}/issues/{ref.number}/labels"
        if change.add:
            there = self._client.write(LABELS, "POST", path, {"labels": list(change.add)})
            carried = {label.name.casefold() for label in there}
            if not carried.issuperset(name.casefold() for name in change.add):
                message = f"GitHub did not put the labels on {ref} that it took; try again later."
                raise UnavailableError(message)
        for name in change.remove:
            try:
                self._client.remove(LABELS, f"{path}/{quote(name, safe='')}")
            except NotFoundError:
                continue

    def _assign(self, ref: IssueRef, assignees: Sequence[str]) -> None:
        path = f"/repos/{ref.repository}/issues/{ref.number}/assignees"
        try:
            self._client.write(ANYTHING, "POST", path, {"assignees": list(assignees)})
        except WorldError as error:
            log.warning("not_assigned", issue=str(ref), reason=str(error))


def _names(issue: IssueShape) -> set[str]:
    return {label.name.casefold() for label in issue.labels}


def _ref(issue: IssueShape, repository: str) -> IssueRef:
    """Name an issue; one of another repository is an error, whatever led to it."""
    if not leads_to(issue.url, f"/repos/{repository}/issues/{issue.number}"):
        message = (
            f"GitHub gave an issue of another repository for {repository} ({issue.url}); if it was "
            "renamed, write the new name in the configuration."
        )
        raise UnavailableError(message)
    return IssueRef(repository, issue.number)
