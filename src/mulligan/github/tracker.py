"""Implement the port Tracker on GitHub: read issues, requests and commands."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog

from mulligan.config.operator import Trust
from mulligan.config.policy import Labels
from mulligan.domain.command import CommandBatch
from mulligan.domain.errors import GoneError, UnavailableError, WorldError
from mulligan.domain.in_hand import Closers
from mulligan.domain.issue import (
    AuthorisingAct,
    Comment,
    Edit,
    Issue,
    IssueRef,
    Objection,
    RepositoryFacts,
)
from mulligan.domain.order import most_urgent_first
from mulligan.domain.restoration import FoundWork
from mulligan.domain.status import IssueStatus
from mulligan.github.answers import DeletedError, MovedError, NotFoundError, not_found
from mulligan.github.authorization import Authorization, TrustReader
from mulligan.github.branch_rules import RuleReader
from mulligan.github.client import FULL, Client
from mulligan.github.comments import CommandReader, Comments
from mulligan.github.credentials import Identity
from mulligan.github.found_work import WorkReader
from mulligan.github.pulls import GitHubPulls, closers, opened_elsewhere
from mulligan.github.shapes import (
    COMMENTS,
    ISSUE,
    ISSUES,
    LABELS,
    REPOSITORY,
    IssueShape,
    leads_to,
)
from mulligan.implement.ports import Clock

FACTS_TTL = timedelta(seconds=10)
"""How long the facts about a repository are cached: each push and each issue changes their ETag."""

RENDERED_COMMENTS = 30
"""How many comments of an issue are read as GitHub renders them; older ones are rendered here."""

MAX_PERMISSION_LOOKUPS = 50
"""Limit of permissions to read for one issue; the most recent commenters come first."""

log = structlog.get_logger()


class GitHubTracker:
    """Implements the port Tracker with GitHub's REST API."""

    def __init__(
        self,
        client: Client,
        trust: Trust,
        clock: Clock,
        login: Callable[[], str | None] | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._facts: dict[str, tuple[datetime, RepositoryFacts]] = {}
        self._trust = TrustReader(client, trust, clock)
        self._identity = Identity(client, login)
        self._authorization = Authorization(client, self._trust, self, self._there)
        self._comments = Comments(client, self.own_login)
        self._work = WorkReader(
            client, self._comments, self.own_login, self._there, self._authorization.events
        )
        self._commands = CommandReader(client, self._trust, self._comments)
        self.pulls = GitHubPulls(client, self._trust, self.own_login)
        self.rules = RuleReader(client)

    def cached_reads(self) -> AbstractContextManager[None]:
        return self._client.cached_reads()

    def own_login(self) -> str:
        """Return the login of Mulligan's comments."""
        return self._identity.login()

    def recent_repository(self, name: str) -> RepositoryFacts:
        known = self._facts.get(name.casefold())
        if known and known[0] <= self._clock.now() < known[0] + FACTS_TTL:
            return known[1]
        return self.repository(name)

    def repository(self, name: str) -> RepositoryFacts:
        now = self._clock.now()
        try:
            found = self._client.read(REPOSITORY, f"/repos/{name}")
        except NotFoundError as error:
            raise not_found(f"the repository {name}") from error
        except MovedError as error:
            if not error.renames:
                raise
            message = f"{name} was renamed or transferred; write its new name in the configuration."
            raise GoneError(message) from error
        if found.full_name.casefold() != name.casefold():
            message = (
                f"{name} is now named {found.full_name}; write the new name in the configuration."
            )
            raise UnavailableError(message)
        facts = RepositoryFacts(
            name=name,
            clone_url=found.clone_url,
            default_branch=found.default_branch,
            archived=found.archived,
            has_issues=found.has_issues,
            may_push=found.permissions.push if found.permissions else None,
            is_private=found.private,
        )
        self._facts[name.casefold()] = (now, facts)
        return facts

    def label_names(self, repository: str) -> frozenset[str]:
        """List the labels of a repository."""
        found = self._client.read_all(LABELS, f"/repos/{repository}/labels")
        return frozenset(label.name for label in found)

    def list_labelled(
        self,
        repository: str,
        label: str,
        priority: Sequence[str] = (),
        *,
        with_closed: bool = False,
    ) -> Sequence[IssueRef]:
        state = "all" if with_closed else "open"
        query = {"labels": label, "state": state, "sort": "created", "direction": "asc"}
        try:
            found = self._client.read_all(ISSUES, f"/repos/{repository}/issues", query)
        except MovedError:
            self.repository(repository)  # raises the reason, if the repository is not found
            raise
        wanted = [
            (_ref(issue, repository), _names(issue))
            for issue in found
            if issue.pull_request is None and label.casefold() in _names(issue)
        ]
        return most_urgent_first(wanted, priority)

    def list_updated(self, repository: str, since: datetime) -> frozenset[int]:
        """List the numbers of the issues and pull requests that changed since a time."""
        query = {"state": "all", "since": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}
        found = self._client.read_all(ISSUES, f"/repos/{repository}/issues", query)
        return frozenset(issue.number for issue in found)

    def read(self, ref: IssueRef, *, with_comments: bool = False) -> Issue:
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
            comments=self._trusted_comments(ref) if with_comments and found.comments else (),
            comment_count=found.comments,
            blockers=blocked.blocked_by if (blocked := found.issue_dependencies_summary) else 0,
        )

    def with_renderings(self, issue: Issue) -> Issue:
        """Without a rendering of the same text, Mulligan renders the text itself."""
        path = f"/repos/{issue.ref.repository}/issues/{issue.ref.number}"
        try:
            found = self._client.read(ISSUE, path, accept=FULL)
            comments = self._rendered_comments(issue, f"{path}/comments")
        except WorldError as error:
            log.warning("renderings_missing", issue=str(issue.ref), error=str(error))
            return issue
        html = found.body_html or "" if (found.body or "") == issue.body else ""
        return replace(issue, html=html, comments=comments)

    def _rendered_comments(self, issue: Issue, path: str) -> tuple[Comment, ...]:
        """Add the renderings of the newest comments; a prompt has room for no more."""
        newest = issue.comments[-RENDERED_COMMENTS:]
        if not newest:
            return ()
        since = {"since": newest[0].created_at.astimezone(UTC).isoformat()}
        shown = self._client.read_all(COMMENTS, path, since, accept=FULL)
        html = {(comment.id, comment.body or ""): comment.body_html or "" for comment in shown}
        return tuple(
            replace(comment, html=html.get((comment.id, comment.body), ""))
            for comment in issue.comments
        )

    def is_upload(self, address: str) -> bool:
        return self._client.is_upload(address)

    def fetch_upload(self, address: str, most: int) -> bytes:
        """Send no token (TRUST-6)."""
        return self._client.fetch_upload(address, most)

    def blockers(self, ref: IssueRef) -> Sequence[IssueRef]:
        """Include issues of other repositories."""
        path = f"/repos/{ref.repository}/issues/{ref.number}/dependencies/blocked_by"
        found = self._client.read_all(ISSUES, path)
        places = (ISSUE_PATH.search(issue.url) for issue in found if issue.state == "open")
        return [IssueRef(place[1], int(place[2])) for place in places if place]

    def authorising_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        return self._authorization.labelling_act(ref, ready_label)

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        return self._authorization.reauthorise(ref, status)

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        return self._commands.read_commands(repository, after, since, places)

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str:
        reason = self._authorization.withdrawal(ref, status, labels)
        if reason or not (status.feedback and status.pull.number):
            return reason
        pull = self.pulls.state(ref, status.pull.number)
        return "" if pull.is_open else "Its pull request was merged or closed."

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str:
        return self._authorization.settled_elsewhere(ref, status, labels)

    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str:
        return opened_elsewhere(self._client, ref, status)

    def closers(self, repository: str, numbers: Sequence[int]) -> Mapping[int, Closers]:
        return closers(self._client, repository, numbers)

    def find_work(self, ref: IssueRef, labels: Labels) -> FoundWork:
        return self._work.find(ref, labels)

    def state_mark(self, ref: IssueRef, comment: str) -> str:
        return self._work.state_mark(ref, comment)

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        return self._authorization.objection(ref, status)

    def edits(self, ref: IssueRef, status: IssueStatus) -> Sequence[Edit]:
        return self._authorization.edits(ref, status)

    def _there(self, ref: IssueRef) -> IssueShape:
        """Read an issue; GoneError if GitHub says that it was deleted or transferred."""
        try:
            return read_issue(self._client, ref)
        except NotFoundError as error:
            self.repository(ref.repository)  # raises the reason, if the repository is not found
            raise not_found(f"the issue {ref}") from error
        except DeletedError as error:
            raise GoneError(f"{ref} was deleted.") from error
        except MovedError as error:
            self.repository(ref.repository)  # raises the reason, if the repository was renamed
            raise GoneError(f"{ref} was transferred to another repository.") from error

    def _trusted_comments(self, ref: IssueRef) -> tuple[Comment, ...]:
        comments = [
            (comment.user, comment)
            for comment in self._comments.list_on(ref)
            if comment.user and not self._comments.is_own(comment)
        ]
        people = {user.login: user for user, _ in reversed(comments)}
        trusted = {
            login
            for login, user in list(people.items())[:MAX_PERMISSION_LOOKUPS]
            if not self._trust.refusal(ref.repository, user)
        }
        return tuple(
            Comment(user.login, comment.body or "", comment.created_at, comment.id)
            for user, comment in comments
            if user.login in trusted
        )


def read_issue(client: Client, ref: IssueRef) -> IssueShape:
    """Read an issue; UnavailableError if GitHub returns another one."""
    found = client.read(ISSUE, f"/repos/{ref.repository}/issues/{ref.number}")
    if found.number != ref.number:
        message = f"GitHub gave issue {found.number} for {ref}; try again later."
        raise UnavailableError(message)
    _ref(found, ref.repository)
    return found


def _names(issue: IssueShape) -> set[str]:
    return {label.name.casefold() for label in issue.labels}


ISSUE_PATH = re.compile(r"/repos/([^/]+/[^/]+)/issues/(\d+)$")


def _ref(issue: IssueShape, repository: str) -> IssueRef:
    """Return the reference of an issue; UnavailableError if it is in another repository."""
    if not leads_to(issue.url, f"/repos/{repository}/issues/{issue.number}"):
        message = (
            f"GitHub gave an issue of another repository for {repository} ({issue.url}); if it was "
            "renamed, write the new name in the configuration."
        )
        raise UnavailableError(message)
    return IssueRef(repository, issue.number)
