"""The simulated GitHub's data: plain records, changed under the world's lock. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from github_simulator.reply import ErrorReply

ACTIONS = "github-actions"

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


# Accounts, issues and repositories.


class Permission(StrEnum):
    """The roles of a person on a repository, weakest first: GitHub's `role_name`."""

    NONE = "none"
    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    MAINTAIN = "maintain"
    ADMIN = "admin"

    def reaches(self, needed: "Permission") -> bool:
        """Return whether this permission is at least `needed`."""
        order = list(Permission)
        return order.index(self) >= order.index(needed)


@dataclass(slots=True)
class User:
    """An account; `type` is `User`, `Bot` or `Organization`. A new `login` keeps the id."""

    id: int
    login: str
    type: str = "User"
    is_gone: bool = False
    signing_keys: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Label:
    """A label of a repository; GitHub ignores the case of names."""

    id: int
    name: str
    color: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Reaction:
    """One person's reaction to an issue or a comment."""

    id: int
    user: User
    content: str
    created_at: datetime


@dataclass(slots=True)
class Comment:
    """A comment on an issue or a pull request."""

    id: int
    number: int
    author: User
    body: str
    created_at: datetime
    updated_at: datetime
    reactions: list[Reaction] = field(default_factory=list[Reaction])
    edits: list["TextEdit"] = field(default_factory=list["TextEdit"])


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an issue; `label` is (name, colour) at the time."""

    id: int
    kind: str
    actor: User
    created_at: datetime
    label: tuple[str, str] | None = None
    rename: tuple[str, str] | None = None
    assignee: User | None = None
    reviewer: User | None = None
    commit_id: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A submitted review; `state` is APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED."""

    id: int
    author: User
    state: str
    body: str
    commit_id: str
    submitted_at: datetime


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """A comment on a line, in a review; `hunk` is the code around the line."""

    id: int
    review: int
    author: User
    body: str
    path: str
    line: int
    side: str
    hunk: str
    commit_id: str
    created_at: datetime
    in_reply_to: int | None = None


@dataclass(slots=True)
class Pull:
    """The pull request part of an issue; `looked_at` is the input of the last `mergeable`."""

    id: int
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool = False
    can_modify: bool = False
    merged_at: datetime | None = None
    merged_by: User | None = None
    merge_sha: str | None = None
    mergeable: bool | None = None
    looked_at: tuple[str, str] | None = None
    reviewers: list[User] = field(default_factory=list[User])
    reviews: list[Review] = field(default_factory=list[Review])
    notes: list[ReviewComment] = field(default_factory=list[ReviewComment])


@dataclass(frozen=True, slots=True)
class TextEdit:
    """An edit of the text of an issue or a comment."""

    editor: User
    at: datetime


@dataclass(slots=True)
class Issue:
    """An issue, or a pull request if `pull` is set: both share one series of numbers."""

    id: int
    number: int
    title: str
    body: str | None
    author: User
    created_at: datetime
    updated_at: datetime
    state: str = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: User | None = None
    locked: bool = False
    deleted: bool = False
    moved_to: tuple[str, int] | None = None
    pull: Pull | None = None
    labels: list[Label] = field(default_factory=list[Label])
    assignees: list[User] = field(default_factory=list[User])
    comments: list[Comment] = field(default_factory=list[Comment])
    events: list[Event] = field(default_factory=list[Event])
    edits: list[TextEdit] = field(default_factory=list[TextEdit])
    blocked_by: list["Issue"] = field(default_factory=list["Issue"])

    @property
    def label_names(self) -> list[str]:
        """Return the names of its labels."""
        return [label.name for label in self.labels]


class IssueLike(Protocol):
    """Any reference to an issue or a pull request: `repository` is `owner/name`."""

    @property
    def repository(self) -> str: ...

    @property
    def number(self) -> int: ...


@dataclass(frozen=True, slots=True)
class IssueName:
    """The name of an issue or a pull request, written `owner/name#12`."""

    repository: str
    number: int

    def __str__(self) -> str:
        return f"{self.repository}#{self.number}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a ruleset of its own; `branches` are patterns such as `release/*`.

    `parameters` are as in GitHub's API. `bypassed_by` are the logins of who may always bypass it.
    """

    id: int
    type: str
    branches: tuple[str, ...]
    parameters: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    bypassed_by: tuple[str, ...] = ()

    def applies_to(self, branch: str) -> bool:
        """Return whether the rule is for a branch, which need not exist."""
        return any(fnmatchcase(branch, each) for each in self.branches)


@dataclass(slots=True)
class Repository:
    """A repository: its issues here, its commits in the bare repository on disk.

    `role_names` are an organisation's custom roles, by login; their base role is in
    `collaborators`. `drafts` is whether its plan has draft pull requests, and `strict` whether its
    branches must be up to date before a merge.
    """

    id: int
    owner: User
    name: str
    bare: Path
    default_branch: str
    created_at: datetime
    private: bool = False
    archived: bool = False
    drafts: bool = True
    strict: bool = False
    collaborators: dict[str, Permission] = field(default_factory=dict[str, Permission])
    role_names: dict[str, str] = field(default_factory=dict[str, str])
    labels: list[Label] = field(default_factory=list[Label])
    issues: dict[int, Issue] = field(default_factory=dict[int, Issue])
    rules: list[Rule] = field(default_factory=list[Rule])
    protected: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The classic protection of a branch: the settings that are on, such as required_signatures."""

    @property
    def full_name(self) -> str:
        """Return `owner/name`."""
        return f"{self.owner.login}/{self.name}"

    def role_of(self, user: User | None) -> Permission:
        """Return a user's role; anybody may read a public repository."""
        if user and user.login.lower() == self.owner.login.lower():
            return Permission.ADMIN
        public = Permission.NONE if self.private else Permission.READ
        return self.collaborators.get(user.login.lower(), public) if user else public

    def is_visible_to(self, user: User | None) -> bool:
        """Return whether a user may read the repository."""
        return self.role_of(user) is not Permission.NONE

    def is_collaborator(self, user: User) -> bool:
        """Return whether a user has a role, even if only to read."""
        return user.login.lower() in {self.owner.login.lower(), *self.collaborators}

    def label(self, name: str) -> Label | None:
        """Return a label by its name, in any case."""
        return next((one for one in self.labels if one.name.lower() == name.lower()), None)

    def visible(self) -> list[Issue]:
        """Return the issues and pull requests that are not deleted."""
        issues = self.issues.values()
        return [issue for issue in issues if not issue.deleted and not issue.moved_to]


@dataclass(frozen=True, slots=True)
class IdsAndTimes:
    """The source of ids and times; GitHub's times are whole seconds."""

    clock: Callable[[], datetime]
    ids: Iterator[int]

    def id(self) -> int:
        """Return a new id, higher than all others."""
        return next(self.ids)

    def now(self) -> datetime:
        """Return the current time."""
        return self.clock().replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Actor:
    """A user who acts in a repository."""

    user: User
    repository: Repository
    stamps: IdsAndTimes

    def may(self, needed: Permission) -> bool:
        """Return whether the user's role is at least `needed`."""
        return self.repository.role_of(self.user).reaches(needed)


# Apps and their tokens.


@dataclass(frozen=True, slots=True)
class App:
    """An app, its bot account, and where it is installed, in lower case.

    `public_key` is in PEM form; GitHub hands out the private key only once.
    """

    id: int
    user: User
    public_key: str
    installation: int
    repositories: frozenset[str]

    @property
    def slug(self) -> str:
        """Return the app's slug."""
        return self.user.login.removesuffix("[bot]")


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The repositories and the lifetime of one token."""

    until: datetime
    repositories: frozenset[str]

    def check(self, path: str, now: datetime) -> None:
        """Refuse an expired token, or a request for another repository."""
        if self.until <= now:
            raise ErrorReply(401, "Bad credentials")
        root, _, rest = path.lstrip("/").partition("/")
        named = "/".join(rest.lower().split("/")[:2])
        if root == "repos" and named not in self.repositories:
            raise ErrorReply(403, "Resource not accessible by integration")


@dataclass(slots=True)
class Apps:
    """All apps by id, all their tokens, and manifests by code."""

    known: dict[str, App] = field(default_factory=dict[str, App])
    grants: dict[str, TokenGrant] = field(default_factory=dict[str, TokenGrant])
    manifests: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, app: App) -> None:
        """Register an app."""
        self.known[str(app.id)] = app


# Check runs and statuses of commits.


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation of a check run; `level` is notice, warning or failure."""

    path: str
    line: int
    message: str
    level: str = "failure"
    title: str | None = None


@dataclass(frozen=True, slots=True)
class CheckOutput:
    """The output of a check run: its `log`, and its own summary."""

    log: str | None = None
    title: str | None = None
    summary: str | None = None
    annotations: Sequence[Annotation] = ()


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A check run; without a conclusion it is in progress."""

    id: int
    commit: tuple[str, str]
    name: str
    app: str
    conclusion: str | None
    output: CheckOutput
    at: datetime
    suite: int = 1
    external_id: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """A commit status; the state is pending, success, failure or error."""

    id: int
    context: str
    state: str
    description: str | None
    at: datetime


@dataclass(slots=True)
class CheckRuns:
    """All check runs and statuses; a commit is (repository in lower case, SHA)."""

    stamps: IdsAndTimes
    checks: list[CheckRun] = field(default_factory=list[CheckRun])
    statuses: dict[tuple[str, str], list[Status]] = field(
        default_factory=dict[tuple[str, str], list[Status]]
    )

    def check(
        self,
        commit: tuple[str, str],
        name: str,
        conclusion: str | None = None,
        output: CheckOutput | None = None,
        app: str = ACTIONS,
        suite: int = 1,
        *,
        external_id: str = "",
    ) -> int:
        """Add a check run to a commit, and return its id; a known name is a re-run in its suite.

        Each workflow has its own suite.
        """
        now, where = self.stamps.now(), (commit[0].lower(), commit[1])
        content = output or CheckOutput()
        number = self.stamps.id()
        run = CheckRun(number, where, name, app, conclusion, content, now, suite, external_id)
        self.checks.append(run)
        return run.id

    def status(
        self, commit: tuple[str, str], context: str, state: str, description: str | None = None
    ) -> None:
        """Set a commit status; the newest of a context counts."""
        where = (commit[0].lower(), commit[1])
        made = Status(self.stamps.id(), context, state, description, self.stamps.now())
        self.statuses.setdefault(where, []).append(made)

    def checks_of(self, commit: tuple[str, str], *, every: bool) -> list[CheckRun]:
        """List the check runs of a commit, newest first: the latest of each name, or `every`."""
        found = [run for run in self.checks if run.commit == commit]
        newest = {(run.app, run.suite, run.name): run for run in found}
        return list(reversed(found if every else list(newest.values())))

    def statuses_of(self, commit: tuple[str, str]) -> list[Status]:
        """List the newest status of each context."""
        return list({one.context: one for one in self.statuses.get(commit, [])}.values())

    def find(self, repository: str, number: str) -> CheckRun | None:
        """Return a check run of a repository by its id."""
        named = (run for run in self.checks if str(run.id) == number)
        return next((run for run in named if run.commit[0] == repository.lower()), None)
