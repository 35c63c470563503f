"""What the simulated GitHub remembers: plain records, changed under the world's lock. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from github_simulator.reply import ErrorReply

ACTIONS = "github-actions"

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


# Accounts, issues and repositories.


class Permission(StrEnum):
    """What a person may do on a repository, weakest first: GitHub's `role_name`."""

    NONE = "none"
    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    MAINTAIN = "maintain"
    ADMIN = "admin"

    def reaches(self, needed: "Permission") -> bool:
        """Tell whether this permission is at least `needed`."""
        order = list(Permission)
        return order.index(self) >= order.index(needed)


@dataclass(slots=True)
class User:
    """An account; `type` is `User`, `Bot` or `Organization`. Whose `login` changes keeps the id."""

    id: int
    login: str
    type: str = "User"
    is_gone: bool = False


@dataclass(slots=True)
class Label:
    """A label of a repository; GitHub tells names apart without regard to case."""

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


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was done to an issue; `label` is (name, colour) as they were then."""

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
    """A submitted review; `state` is APPROVED, CHANGES_REQUESTED or COMMENTED."""

    id: int
    author: User
    state: str
    body: str
    commit_id: str
    submitted_at: datetime


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """What somebody said about a line, in a review; `hunk` is the code that it points at."""

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
    """What makes an issue a pull request; `looked_at` is what `mergeable` was computed for."""

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
    """A change of the text of an issue."""

    editor: User
    at: datetime


@dataclass(slots=True)
class Issue:
    """An issue, or a pull request where `pull` is there: both share one series of numbers."""

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
    reactions: list[Reaction] = field(default_factory=list[Reaction])

    @property
    def label_names(self) -> list[str]:
        """List the names of its labels."""
        return [label.name for label in self.labels]


class IssueLike(Protocol):
    """Whatever names an issue or a pull request: `repository` is `owner/name`."""

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


@dataclass(slots=True)
class Repository:
    """A repository: its issues here, its commits in the bare repository on disk.

    `role_names` are the roles of an organisation's own making, by login; what they may do is their
    base, in `collaborators`. `drafts` tells whether its plan has draft pull requests, and `strict`
    whether its branches take only what is up to date with them.
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

    @property
    def full_name(self) -> str:
        """Give `owner/name`."""
        return f"{self.owner.login}/{self.name}"

    def role_of(self, user: User | None) -> Permission:
        """Tell what a user may do here; anybody may read what is public."""
        if user and user.login.lower() == self.owner.login.lower():
            return Permission.ADMIN
        public = Permission.NONE if self.private else Permission.READ
        return self.collaborators.get(user.login.lower(), public) if user else public

    def is_visible_to(self, user: User | None) -> bool:
        """Tell whether a user may read here."""
        return self.role_of(user) is not Permission.NONE

    def is_collaborator(self, user: User) -> bool:
        """Tell whether a user was given a role here, be it only to read."""
        return user.login.lower() in {self.owner.login.lower(), *self.collaborators}

    def label(self, name: str) -> Label | None:
        """Find a label by its name, whatever its case."""
        return next((one for one in self.labels if one.name.lower() == name.lower()), None)

    def visible(self) -> list[Issue]:
        """List the issues and pull requests that are still there."""
        issues = self.issues.values()
        return [issue for issue in issues if not issue.deleted and not issue.moved_to]


@dataclass(frozen=True, slots=True)
class IdsAndTimes:
    """Where ids and times come from; GitHub's times have no fractions of a second."""

    clock: Callable[[], datetime]
    ids: Iterator[int]

    def id(self) -> int:
        """Give an id that was never given before, larger than all others."""
        return next(self.ids)

    def now(self) -> datetime:
        """Tell the time."""
        return self.clock().replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Actor:
    """A user at work in a repository."""

    user: User
    repository: Repository
    stamps: IdsAndTimes

    def may(self, needed: Permission) -> bool:
        """Tell whether the user's role here is at least `needed`."""
        return self.repository.role_of(self.user).reaches(needed)


# Apps and their tokens.


@dataclass(frozen=True, slots=True)
class App:
    """An app, the account that its comments bear, and where it is installed; names in lower case.

    `public_key` is in PEM form, the other half of the key that GitHub gives once.
    """

    id: int
    user: User
    public_key: str
    installation: int
    repositories: frozenset[str]

    @property
    def slug(self) -> str:
        """Give the name of its page."""
        return self.user.login.removesuffix("[bot]")


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """What one token is good for, and until when."""

    until: datetime
    repositories: frozenset[str]

    def check(self, path: str, now: datetime) -> None:
        """Refuse a request that comes too late, or is for another repository."""
        if self.until <= now:
            raise ErrorReply(401, "Bad credentials")
        root, _, rest = path.lstrip("/").partition("/")
        named = "/".join(rest.lower().split("/")[:2])
        if root == "repos" and named not in self.repositories:
            raise ErrorReply(403, "Resource not accessible by integration")


@dataclass(slots=True)
class Apps:
    """All apps by their id, all their tokens, and manifests by the code of each."""

    known: dict[str, App] = field(default_factory=dict[str, App])
    grants: dict[str, TokenGrant] = field(default_factory=dict[str, TokenGrant])
    manifests: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, app: App) -> None:
        """Make an app known."""
        self.known[str(app.id)] = app


# Check runs and statuses of commits.


@dataclass(frozen=True, slots=True)
class Annotation:
    """What a check run says about a line; `level` is notice, warning or failure."""

    path: str
    line: int
    message: str
    level: str = "failure"


@dataclass(frozen=True, slots=True)
class CheckOutput:
    """What a check run prints, `log`, and what it says of itself."""

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
    """All check runs and statuses; a commit is (name of the repository in lower case, SHA)."""

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
    ) -> int:
        """Have a check run on a commit; the same name again is a re-run in its suite. Give its id.

        Each workflow has a suite of its own.
        """
        now, where = self.stamps.now(), (commit[0].lower(), commit[1])
        said = output or CheckOutput()
        run = CheckRun(self.stamps.id(), where, name, app, conclusion, said, now, suite)
        self.checks.append(run)
        return run.id

    def status(
        self, commit: tuple[str, str], context: str, state: str, description: str | None = None
    ) -> None:
        """Set a commit status; of one context the newest counts."""
        where = (commit[0].lower(), commit[1])
        made = Status(self.stamps.id(), context, state, description, self.stamps.now())
        self.statuses.setdefault(where, []).append(made)

    def checks_of(self, commit: tuple[str, str], *, every: bool) -> list[CheckRun]:
        """List the check runs of a commit, newest first; only the latest of each, or `every`."""
        found = [run for run in self.checks if run.commit == commit]
        newest = {(run.app, run.suite, run.name): run for run in found}
        return list(reversed(found if every else list(newest.values())))

    def statuses_of(self, commit: tuple[str, str]) -> list[Status]:
        """List the newest status of each context."""
        return list({one.context: one for one in self.statuses.get(commit, [])}.values())

    def find(self, repository: str, number: str) -> CheckRun | None:
        """Find a check run of a repository by its id."""
        named = (run for run in self.checks if str(run.id) == number)
        return next((run for run in named if run.commit[0] == repository.lower()), None)
