"""An issue: its reference, its text, who requested the work, and its lease. Pure."""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import PlainSerializer, PlainValidator

from mulligan.domain.attachment import Attachment
from mulligan.domain.errors import LeaseLostError, MisconfiguredError, UsageError

# References.

REPOSITORY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
"""`owner/name` as GitHub allows it: safe in paths, refs and URLs without escaping."""

COMMIT_SHA = re.compile(r"[0-9a-f]{40}")
"""A full commit hash."""

HEADS = "refs/heads/"

BRANCH_DIRECTORY = "mulligan"

BRANCH_PREFIX = f"{BRANCH_DIRECTORY}/issue-"
"""The prefix of Mulligan's branches; the issue's number follows."""


def branch_in_the_way(repository: str) -> MisconfiguredError:
    """Return the error for a branch beside which git cannot create Mulligan's branches."""
    return MisconfiguredError(
        f"{repository} has a branch named {BRANCH_DIRECTORY!r}, so git cannot create the branch "
        f"{BRANCH_PREFIX}N of an issue. Delete or rename that branch."
    )


def check_branches(
    heads: Mapping[str, str], repository: str, issue: "IssueRef | None", own: Collection[str]
) -> None:
    """Raise MisconfiguredError if one of the remote `heads` prevents Mulligan's branches.

    With an `issue`, that is also a branch below the issue's, and the issue's branch itself unless
    it is at one of Mulligan's `own` commits.
    """
    if f"{HEADS}{BRANCH_DIRECTORY}" in heads:
        raise branch_in_the_way(repository)
    if issue is None:
        return
    below = (name for name in sorted(heads) if name.startswith(f"{HEADS}{issue.branch}/"))
    if name := next(below, ""):
        message = (
            f"{repository} has a branch named {name.removeprefix(HEADS)!r}, so git cannot create "
            f"the branch {issue.branch} of the issue. Delete or rename that branch."
        )
        raise MisconfiguredError(message)
    if heads.get(f"{HEADS}{issue.branch}", "") not in {"", *own}:
        message = (
            f"The branch {issue.branch} of {repository} has commits that Mulligan did not make. "
            "Merge, delete or rename that branch."
        )
        raise MisconfiguredError(message)


@dataclass(frozen=True, slots=True, order=True)
class IssueRef:
    """A reference to an issue, written `owner/name#12`."""

    repository: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `owner/name#12`; UsageError explains the error in any other text."""
        repository, _, number = text.rpartition("#")
        if not REPOSITORY.fullmatch(repository) or not re.fullmatch(r"[1-9][0-9]{0,9}", number):
            raise UsageError(f"{text!r} does not name an issue; write OWNER/NAME#NUMBER.")
        return cls(repository, int(number))

    @property
    def branch(self) -> str:
        """Return the issue's branch, the head of its pull request."""
        return f"{BRANCH_PREFIX}{self.number}"

    def __str__(self) -> str:
        return f"{self.repository}#{self.number}"


# The issue as it was read.


class Stage(StrEnum):
    """The stage of an issue; all but RESOLVED are shown as a label."""

    READY = "ready"
    RUNNING = "running"
    REVIEW = "review"
    HITL = "hitl"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment by a person who is trusted on the repository.

    `html` is GitHub's rendering of its body; empty if it was not asked for.
    """

    author: str
    body: str
    created_at: datetime
    id: int = 0
    html: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue at the time of reading.

    `comments` are trusted people's only, oldest first, if they were read. `comment_count` counts
    those of everybody; None if it is not known. `blockers` counts the open issues that GitHub lists
    as blocking it. `html` is GitHub's rendering of the body; empty if it was not asked for.
    `attachments` are those of body and comments, in their order, if they were downloaded.
    """

    ref: IssueRef
    title: str
    body: str
    author: str = ""
    url: str = ""
    is_open: bool = True
    is_pull_request: bool = False
    is_locked: bool = False
    labels: frozenset[str] = frozenset()
    comments: tuple[Comment, ...] = ()
    comment_count: int | None = None
    blockers: int = 0
    html: str = field(default="", repr=False, compare=False)
    attachments: tuple[Attachment, ...] = ()

    def carries(self, label: str) -> bool:
        """Return whether the issue has a label; GitHub ignores the case of its name."""
        return label.casefold() in {each.casefold() for each in self.labels}

    @property
    def text_sha256(self) -> str:
        """Return the hash of title and body, to detect later changes (TRUST-2)."""
        text = f"{self.title}\0{self.body}".encode(errors="surrogatepass")
        return hashlib.sha256(text).hexdigest()


# The acts that request work.


@dataclass(frozen=True, slots=True)
class LabelAct:
    """Somebody added the ready label; `event` is the id of GitHub's event."""

    event: int

    def __str__(self) -> str:
        return f"labeled:{self.event}"


@dataclass(frozen=True, slots=True)
class CommentAct:
    """Somebody wrote a command in a comment."""

    comment: int

    def __str__(self) -> str:
        return f"comment:{self.comment}"


@dataclass(frozen=True, slots=True)
class ReviewAct:
    """Somebody requested changes in a review, and no attempt was left."""

    review: int

    def __str__(self) -> str:
        return f"review:{self.review}"


@dataclass(frozen=True, slots=True)
class ConsoleAct:
    """The operator gave a command on the command line (`mulligan retry`); `at` is ISO 8601."""

    at: str

    def __str__(self) -> str:
        return f"command:{self.at}"


@dataclass(frozen=True, slots=True)
class OperatorAct:
    """The operator ran `mulligan work`; `at` is ISO 8601."""

    at: str = ""

    def __str__(self) -> str:
        return f"operator:{self.at}"


@dataclass(frozen=True, slots=True)
class UnknownAct:
    """An act recorded by another version."""

    text: str

    def __str__(self) -> str:
        return self.text


Act = LabelAct | CommentAct | ReviewAct | ConsoleAct | OperatorAct | UnknownAct
"""An authorising act (TRUST-1); `str` writes it for events, and `parse_act` reads it back."""

ACTS_WITH_ID: Mapping[str, Callable[[int], Act]] = {
    "labeled": LabelAct,
    "comment": CommentAct,
    "review": ReviewAct,
}

ACTS_WITH_TIME: Mapping[str, Callable[[str], Act]] = {
    "command": ConsoleAct,
    "operator": OperatorAct,
}


def parse_act(text: str) -> Act:
    """Parse an act as events store it."""
    kind, _, rest = text.partition(":")
    if (with_id := ACTS_WITH_ID.get(kind)) and rest.isascii() and rest.isdecimal():
        return with_id(int(rest))
    if with_time := ACTS_WITH_TIME.get(kind):
        return with_time(rest)
    return UnknownAct(text)


def _read_act(text: object) -> Act:
    return parse_act(str(text))


WrittenAct = Annotated[Act, PlainValidator(_read_act), PlainSerializer(str, return_type=str)]
"""An act in a record that is stored as JSON."""


# Who requested the work, and who changed the text since.


class Permission(StrEnum):
    """The roles of a person on a repository, weakest first (GitHub's `role_name`)."""

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


@dataclass(frozen=True, slots=True)
class Edit:
    """Somebody changed `what`, the title or the text; `actor` is empty for a deleted account."""

    actor: str
    at: datetime
    what: str

    def __str__(self) -> str:
        who = self.actor or "A deleted account"
        return (
            f"{who} changed the {self.what} at {self.at:%Y-%m-%d %H:%M:%S} UTC, after the label "
            "was added, without the permission to start work"
        )


@dataclass(frozen=True, slots=True)
class Edits:
    """The known edits of title and text since the act (TRUST-2).

    `by_strangers` are by people who may not request work, oldest first. If the server does not
    record who changed a text, `names_authors` is False and only title changes are known.
    """

    by_strangers: tuple[Edit, ...] = ()
    names_authors: bool = True


@dataclass(frozen=True, slots=True)
class AuthorisingAct:
    """Who requested the work, and how (TRUST-1).

    `trusted` is whether the actor's permission sufficed when it was read; `reason` explains a
    refusal. `actor_id` is GitHub's id of the account, which a rename keeps. `guidance` is that
    person's instruction, which holds for the whole epoch (CONTEXT-12).
    """

    act: Act
    actor: str
    at: datetime
    trusted: bool
    reason: str = ""
    actor_id: int | None = None
    edits: Edits = Edits()
    guidance: str = ""

    @property
    def by_label(self) -> bool:
        """Return whether a label requested the work."""
        return isinstance(self.act, LabelAct)

    @property
    def by_comment(self) -> bool:
        """Return whether a command in a comment requested the work."""
        return isinstance(self.act, CommentAct)


@dataclass(frozen=True, slots=True)
class Objection:
    """Why running work must stop: trust was lost, or the text was changed (TRUST-1, TRUST-2)."""

    reason: str
    by_edit: bool = False


# Its repository, and its lease.


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """GitHub's facts about a repository; `may_push` is None if GitHub does not report it."""

    name: str
    clone_url: str
    default_branch: str
    archived: bool = False
    has_issues: bool = True
    may_push: bool | None = None
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one worker to work on one issue; `fence` grows with every claim of the issue."""

    issue: IssueRef
    worker: str
    fence: int


def lease_lost(lease: Lease) -> LeaseLostError:
    """Return the error for a lease that another worker holds now."""
    return LeaseLostError(f"Another worker has taken over {lease.issue}; this one stops.")


@dataclass(frozen=True, slots=True)
class PollerLease:
    """The right of one worker of a fleet to poll with an account of GitHub; see `Lease.fence`."""

    account: str
    worker: str
    fence: int
