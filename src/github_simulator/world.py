"""The simulated GitHub's state, people's actions on it, its rate limits and its faults."""

import copy
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from github_simulator import issues, pulls
from github_simulator.records import (
    Actor,
    Apps,
    CheckRuns,
    Comment,
    Event,
    IdsAndTimes,
    Issue,
    IssueLike,
    IssueName,
    Permission,
    Pull,
    Repository,
    User,
)
from github_simulator.reply import ErrorReply, Exchange, Reply, Request

FIRST_ID = 1001

CORE, GRAPHQL = "core", "graphql"
"""The rate limits that are counted separately."""

WINDOW = timedelta(hours=1)

STALE = timedelta(seconds=10)
"""The most that a stale answer is out of date."""

ANONYMOUS_LIMIT = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for one request.

    `World.faults` is called for every request with its method and path; None means no fault. The
    path has no query, and is `/repos/OWNER/NAME/…` even if the request used the id.

    - `Fault(502)`: that status, without doing anything; the body is GitHub's `{"message": …}`.
    - `Fault(502, apply=True)`: the request is carried out first, then answered with that status.
    - `Fault(403, headers={"retry-after": "60"})`: these headers override the usual ones.
    - `Fault(429, body='{"message": "…"}')`: exactly this body.
    - `Fault(200, body="<html>…", content_type="text/html")`: a page where JSON is expected.
    - `Fault(200, body='[{"id": 1')`: truncated JSON.
    - `Fault(307, headers={"location": "…"})`: a redirect.
    - `Fault(delay=3.0)`: the true answer after this many seconds; combines with all of the above.
    - `Fault(cut=True)`: the connection ends in the middle of the answer; with `apply=True` after
      the request was carried out.
    - `Fault(is_stale=True)`: what the same GET was answered within the last STALE, as by a replica
      that lags behind; anything else is answered truly.
    """

    status: int | None = None
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = "application/json; charset=utf-8"
    apply: bool = False
    delay: float = 0.0
    cut: bool = False
    is_stale: bool = False

    @property
    def replaces(self) -> bool:
        """Return whether the fault replaces the true answer."""
        return self.cut or self.status is not None


Faults = Callable[[str, str], Fault | None]
"""Called with the method and the path of each request."""


@dataclass(slots=True)
class Window:
    """One user's requests since the rate limit was reset."""

    limit: int
    resets_at: datetime
    used: int = 0
    resource: str = CORE

    @property
    def remaining(self) -> int:
        """Return the number of requests left."""
        return max(0, self.limit - self.used)

    @property
    def numbers(self) -> dict[str, int]:
        """Return the numbers as GitHub reports them; `reset` is in Unix seconds."""
        return {
            "limit": self.limit,
            "used": self.used,
            "remaining": self.remaining,
            "reset": round(self.resets_at.timestamp()),
        }

    @property
    def headers(self) -> dict[str, str]:
        """Return the same as headers of an answer."""
        numbers = {f"x-ratelimit-{name}": str(value) for name, value in self.numbers.items()}
        return {**numbers, "x-ratelimit-resource": self.resource}


@dataclass(slots=True)
class Meter:
    """Counts requests by user; `limit` may be changed at any time."""

    clock: Callable[[], datetime]
    limit: int = 5000
    windows: dict[tuple[str, str], Window] = field(default_factory=dict[tuple[str, str], Window])

    def window(self, login: str, resource: str = CORE) -> Window:
        """Return the user's current window; an empty login is everybody without a token."""
        key, now = (login, resource), self.clock()
        window = self.windows.get(key)
        if window is None or window.resets_at <= now:
            window = self.windows[key] = Window(0, now + WINDOW, resource=resource)
        window.limit = self.limit if login else min(self.limit, ANONYMOUS_LIMIT)
        return window


def _now() -> datetime:
    return datetime.now(UTC)


class World:
    """The whole state, in memory; thread-safe.

    `requests` lists the answered HTTP requests, in order; if `exchanges` is a list, it receives
    each request and answer in full. `earlier` has the last answers, for stale ones.
    `faults` may be set (see Fault); `meter.limit` is the rate limit of each user. Without
    `graphql`, the server has no GraphQL. `viewer` is the person who reads and answers the pages in
    a browser; without one they are read-only. The read methods return copies.
    """

    def __init__(self, clock: Callable[[], datetime] = _now) -> None:
        self.lock = threading.RLock()
        self.stamps = IdsAndTimes(clock, itertools.count(FIRST_ID))
        self.meter = Meter(clock)
        self.requests: list[Request] = []
        self.exchanges: list[Exchange] | None = None
        self.faults: Faults | None = None
        self.earlier: dict[str, tuple[datetime, Reply]] = {}
        self.graphql = True
        self.viewer: User | None = None
        self.users: dict[str, User] = {}
        self.tokens: dict[str, User] = {}
        self.repositories: dict[str, Repository] = {}
        self.former_names: dict[str, Repository] = {}
        self.apps = Apps()
        self.runs = CheckRuns(self.stamps)

    # Accounts and repositories.

    def add_user(self, login: str, type: str = "User", token: str | None = None) -> User:  # noqa: A002
        """Add an account; a token authenticates requests as this user."""
        with self.lock:
            user = self.users.setdefault(login.lower(), User(self.stamps.id(), login, type))
            if token:
                self.tokens[token] = user
            return user

    def add_repository(
        self,
        full_name: str,
        bare_path: Path,
        default_branch: str = "main",
        collaborators: Mapping[str, str] | None = None,
        *,
        private: bool = False,
    ) -> Repository:
        """Add a bare repository under a name; `collaborators` maps logins to roles."""
        owner, _, name = full_name.partition("/")
        with self.lock:
            repository = Repository(
                self.stamps.id(),
                self.add_user(owner),
                name,
                bare_path,
                default_branch,
                self.stamps.now(),
                private,
            )
            for login, role in (collaborators or {}).items():
                self.add_user(login)
                repository.collaborators[login.lower()] = Permission(role)
            self.repositories[full_name.lower()] = repository
            return repository

    def delete_user(self, login: str) -> None:
        """Delete an account; its actions stay, without a name."""
        with self.lock:
            self.users.pop(login.lower()).is_gone = True

    def rename_user(self, login: str, new: str) -> None:
        """Rename an account; the old login becomes available."""
        with self.lock:
            user = self.users.pop(login.lower())
            user.login = new
            self.users[new.lower()] = user
            for repository in self.repositories.values():
                if role := repository.collaborators.pop(login.lower(), None):
                    repository.collaborators[new.lower()] = role

    def set_role(self, full_name: str, login: str, role: str, name: str | None = None) -> None:
        """Set a user's role; `none` removes it, and a name makes a custom role based on `role`."""
        with self.lock:
            repository = self.repository(full_name)
            repository.collaborators.pop(login.lower(), None)
            repository.role_names.pop(login.lower(), None)
            if Permission(role) is not Permission.NONE:
                repository.collaborators[login.lower()] = Permission(role)
            if name:
                repository.role_names[login.lower()] = name

    def archive(self, full_name: str) -> None:
        """Make a repository read-only."""
        with self.lock:
            self.repository(full_name).archived = True

    def rename_repository(self, full_name: str, name: str) -> None:
        """Rename a repository; requests for the old name are redirected."""
        with self.lock:
            repository = self.repositories.pop(full_name.lower())
            self.former_names[full_name.lower()] = repository
            repository.name = name
            self.repositories[repository.full_name.lower()] = repository

    # People's actions on issues and pull requests.

    def open_issue(
        self,
        full_name: str,
        title: str,
        body: str | None,
        author: str,
        labels: Sequence[str] = (),
    ) -> IssueName:
        """Open an issue. `labels` are added in the author's name, as an issue form does."""
        with self.lock:
            by = self.doer(full_name, author)
            issue = issues.open_issue(by, title, body)
            issues.add_labels(by, issue, labels)
            return IssueName(by.repository.full_name, issue.number)

    def label(self, ref: IssueLike, name: str, actor: str) -> None:
        with self.lock:
            issues.add_labels(self.doer(ref.repository, actor), self.issue(ref), [name])

    def unlabel(self, ref: IssueLike, name: str, actor: str) -> None:
        with self.lock:
            issues.remove_label(self.doer(ref.repository, actor), self.issue(ref), name)

    def comment(self, ref: IssueLike, body: str, author: str) -> int:
        """Add a comment; return its id."""
        with self.lock:
            by = self.doer(ref.repository, author)
            return issues.add_comment(by, self.issue(ref), body).id

    def edit(
        self, ref: IssueLike, actor: str, *, title: str | None = None, body: str | None = None
    ) -> None:
        """Change the title or the body."""
        with self.lock:
            issues.edit(self.doer(ref.repository, actor), self.issue(ref), title, body)

    def close(self, ref: IssueLike, actor: str) -> None:
        """Close an issue, or a pull request without merging it."""
        with self.lock:
            issues.set_state(self.doer(ref.repository, actor), self.issue(ref), "closed")

    def reopen(self, ref: IssueLike, actor: str) -> None:
        """Reopen an issue."""
        with self.lock:
            issues.set_state(self.doer(ref.repository, actor), self.issue(ref), "open")

    def set_lock(self, ref: IssueLike, actor: str, *, locked: bool) -> None:
        """Lock or unlock the conversation."""
        with self.lock:
            issues.set_lock(self.doer(ref.repository, actor), self.issue(ref), locked=locked)

    def delete(self, ref: IssueLike) -> None:
        """Delete an issue; reading it then returns 410."""
        with self.lock:
            self.issue(ref).deleted = True

    def transfer(self, ref: IssueLike, full_name: str, actor: str) -> IssueName:
        """Transfer an issue to another repository; reading it is redirected."""
        with self.lock:
            issue = self.issue(ref)
            moved = self.open_issue(full_name, issue.title, issue.body, issue.author.login)
            issue.moved_to = (full_name, moved.number)
            by = self.doer(full_name, actor)
            issues.record(by, self.issue(moved), issues.new_event(by, "transferred"))
            return moved

    def convert(self, ref: IssueLike, actor: str) -> None:
        """Convert an issue to a discussion; the issue itself is closed and locked."""
        with self.lock:
            by, issue = self.doer(ref.repository, actor), self.issue(ref)
            issues.record(by, issue, issues.new_event(by, "converted_to_discussion"))
            issues.set_state(by, issue, "closed")
            issues.set_lock(by, issue, locked=True)

    def delete_label(self, full_name: str, name: str) -> None:
        """Delete a label of a repository."""
        with self.lock:
            by = self.doer(full_name, full_name.partition("/")[0])
            if label := by.repository.label(name):
                issues.delete_label(by, label)

    def review(
        self,
        ref: IssueLike,
        author: str,
        event: str,
        body: str = "",
        notes: Sequence[pulls.LineComment] = (),
    ) -> int:
        """Submit a review: APPROVE, REQUEST_CHANGES or COMMENT; return its id."""
        with self.lock:
            by, pull = self.doer(ref.repository, author), self._pull(ref)
            self.follow_branches(by.repository)
            answer = (event, body)
            return pulls.submit_review(by, self.issue(ref), pull, answer, notes).id

    def merge(self, ref: IssueLike, actor: str) -> str:
        """Merge a pull request in the bare repository; return the merge commit."""
        with self.lock:
            by = self.doer(ref.repository, actor)
            self.follow_branches(by.repository)
            return pulls.merge(by, self.issue(ref), self._pull(ref))

    def mark_ready(self, ref: IssueLike, actor: str) -> None:
        """Mark a draft as ready for review."""
        with self.lock:
            pulls.mark_ready(self.doer(ref.repository, actor), self.issue(ref), self._pull(ref))

    # Reading.

    def labels_of(self, ref: IssueLike) -> list[str]:
        """List the names of the labels, in the order they were added."""
        with self.lock:
            return self.issue(ref).label_names

    def comments_of(self, ref: IssueLike) -> list[Comment]:
        """List the comments, oldest first."""
        with self.lock:
            return copy.deepcopy(self.issue(ref).comments)

    def events_of(self, ref: IssueLike) -> list[Event]:
        """List the events, oldest first."""
        with self.lock:
            return list(self.issue(ref).events)

    def issue_of(self, ref: IssueLike) -> Issue:
        """Return an issue or a pull request."""
        with self.lock:
            return copy.deepcopy(self.issue(ref))

    def pulls_of(self, full_name: str) -> list[Issue]:
        """List the pull requests, oldest first; `pull` has their own fields."""
        with self.lock:
            repository = self.repository(full_name)
            self.follow_branches(repository)
            return copy.deepcopy([issue for issue in repository.visible() if issue.pull])

    # For the routes too; call these with the lock held.

    def repository(self, full_name: str) -> Repository:
        """Return a repository by its name, in any case."""
        found = self.repositories.get(full_name.lower())
        if found is None:
            raise ErrorReply(404, f"There is no repository {full_name}.")
        return found

    def issue(self, ref: IssueLike) -> Issue:
        """Return an issue or a pull request."""
        found = self.repository(ref.repository).issues.get(ref.number)
        if found is None:
            raise ErrorReply(404, f"There is no issue {ref.repository}#{ref.number}.")
        return found

    def doer(self, full_name: str, login: str) -> Actor:
        """Return a user as an actor; create an unknown account."""
        return Actor(self.add_user(login), self.repository(full_name), self.stamps)

    def follow_branches(self, repository: Repository) -> None:
        """Apply pushes to the bare repository."""
        pulls.apply_pushes(Actor(repository.owner, repository, self.stamps))

    def _pull(self, ref: IssueLike) -> Pull:
        pull = self.issue(ref).pull
        if pull is None:
            raise ErrorReply(404, f"{ref.repository}#{ref.number} is not a pull request.")
        return pull
