"""The simulated GitHub's state, people's actions on it, its rate limits and its faults."""

import copy
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import JsonValue

from github_simulator import issues, pulls
from github_simulator.records import (
    Actor,
    Apps,
    CheckRuns,
    Comment,
    IdsAndTimes,
    Issue,
    IssueLike,
    IssueName,
    Permission,
    Repository,
    Rule,
    User,
)
from github_simulator.reply import ErrorReply, Exchange, Reply, Request
from github_simulator.rules import enforce

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
    a browser; without one they are read-only. `uploads` has what people attached: a picture by its
    id, and a file by `NUMBER/NAME`. The read methods return copies.
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
        self.uploads: dict[str, bytes] = {}

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

    # Rules of branches.

    def add_rule(
        self,
        full_name: str,
        type: str,  # noqa: A002
        branches: Sequence[str],
        parameters: Mapping[str, JsonValue] | None = None,
        bypassed_by: Sequence[str] = (),
    ) -> None:
        """Add a rule for branches that match patterns; later pushes that break it are refused."""
        with self.lock:
            number = self.stamps.id()
            rule = Rule(number, type, tuple(branches), parameters or {}, tuple(bypassed_by))
            self.repository(full_name).rules.append(rule)
            self._enforce()

    def protect(self, full_name: str, branch: str, *settings: str) -> None:
        """Set the classic protection of a branch, such as required_signatures."""
        with self.lock:
            self.repository(full_name).protected[branch] = frozenset(settings)
            self._enforce()

    def add_signing_key(self, login: str, key: str) -> None:
        """Add a public SSH key to an account; it verifies the signatures of commits."""
        with self.lock:
            self.add_user(login).signing_keys.append(key)
            self._enforce()

    def _enforce(self) -> None:
        for repository in self.repositories.values():
            if repository.rules or repository.protected:
                enforce(repository, self.users.values())

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

    def block(self, ref: IssueLike, by: IssueLike) -> None:
        """Add an issue to those that block another one of the same repository."""
        with self.lock:
            self.issue(ref).blocked_by.append(self.issue(by))

    def unlabel(self, ref: IssueLike, name: str, actor: str) -> None:
        with self.lock:
            issues.remove_label(self.doer(ref.repository, actor), self.issue(ref), name)

    # Reading.

    def labels_of(self, ref: IssueLike) -> list[str]:
        """List the names of the labels, in the order they were added."""
        with self.lock:
            return self.issue(ref).label_names

    def comments_of(self, ref: IssueLike) -> list[Comment]:
        """List the comments, oldest first."""
        with self.lock:
            return copy.deepcopy(self.issue(ref).comments)

    def issue_of(self, ref: IssueLike) -> Issue:
        """Return an issue or a pull request."""
        with self.lock:
            return copy.deepcopy(self.issue(ref))

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
