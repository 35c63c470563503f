"""An issue: its name, its text, who requested the work, and its lease. Pure."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from mulligan.domain.errors import LeaseLostError, UsageError

# Names.

REPOSITORY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
"""`owner/name` as GitHub allows it: safe in paths, refs and URLs without escaping."""

COMMIT_SHA = re.compile(r"[0-9a-f]{40}")
"""A commit's name in full."""

MARKER = "<!-- mulligan:"
"""The start of the hidden marker in everything Mulligan writes on GitHub."""

BRANCH_PREFIX = "mulligan/issue-"
"""The prefix of Mulligan's branches; the issue's number follows."""


@dataclass(frozen=True, slots=True, order=True)
class IssueRef:
    """The name of an issue, written `owner/name#12`."""

    repository: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `owner/name#12`; UsageError says what is wrong with anything else."""
        repository, _, number = text.rpartition("#")
        if not REPOSITORY.fullmatch(repository) or not re.fullmatch(r"[1-9][0-9]{0,9}", number):
            message = f"{text!r} does not name an issue; write OWNER/NAME#NUMBER."
            raise UsageError(message)
        return cls(repository, int(number))

    @property
    def branch(self) -> str:
        """Name the issue's branch, the head of its pull request."""
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
    """A comment by a person who is trusted on the repository."""

    author: str
    body: str
    created_at: datetime
    id: int = 0


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as it stood when it was read; `comments`: trusted people's only, oldest first."""

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

    @property
    def text_sha256(self) -> str:
        """Hash title and body, to detect later changes (SPEC T2)."""
        text = f"{self.title}\0{self.body}".encode(errors="surrogatepass")
        return hashlib.sha256(text).hexdigest()


# Who asked for the work, and who changed the text since.


class Permission(StrEnum):
    """What a person may do on a repository, weakest first (GitHub's `role_name`)."""

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


@dataclass(frozen=True, slots=True)
class Edit:
    """Somebody changed `what`, the title or the text; `actor` is empty for a deleted account."""

    actor: str
    at: datetime
    what: str

    def __str__(self) -> str:
        who = self.actor or "An account that is gone"
        return (
            f"{who} changed the {self.what} at {self.at:%Y-%m-%d %H:%M:%S} UTC, after the label "
            "was put on, and may not ask for work here"
        )


@dataclass(frozen=True, slots=True)
class Edits:
    """The known edits of title and text since the act (SPEC T2).

    `by_strangers` are by people who may not request work, oldest first. `unread_reason` says why
    the edits could not be read. If the server does not record who changed a text, `names_authors`
    is False and only title changes are known.
    """

    by_strangers: tuple[Edit, ...] = ()
    unread_reason: str = ""
    names_authors: bool = True


@dataclass(frozen=True, slots=True)
class AuthorisingAct:
    """Who asked for the work, and how (SPEC T1).

    `act` is `labeled:<event id>`, `comment:<comment id>`, `command:<time>` for a command on the
    command line, or `operator:<time>` for `mulligan work`; `trusted` says whether the actor's
    permission sufficed when it was read; `reason` explains a refusal. `actor_id` is GitHub's number
    of the account, which stays when it is renamed. `guidance` is that person's instructions,
    which hold for the whole epoch (SPEC C14).
    """

    act: str
    actor: str
    at: datetime
    trusted: bool
    reason: str = ""
    actor_id: int | None = None
    edits: Edits = Edits()
    guidance: str = ""

    @property
    def by_label(self) -> bool:
        """Tell whether a label asked for the work."""
        return self.act.startswith("labeled:")

    @property
    def by_comment(self) -> bool:
        """Tell whether a command in a comment asked for the work."""
        return self.act.startswith("comment:")

    @property
    def by_review(self) -> bool:
        """Tell whether a review of the pull request asked for the work."""
        return self.act.startswith("review:")


@dataclass(frozen=True, slots=True)
class Objection:
    """Why running work must stop: trust was lost, or the text was changed (SPEC T1, T2)."""

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


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one worker to work on one issue; `fence` grows with every claim of the issue."""

    issue: IssueRef
    worker: str
    fence: int


def lease_lost(lease: Lease) -> LeaseLostError:
    """Say that another worker has the issue now."""
    return LeaseLostError(f"Another worker has taken over {lease.issue}; this one stops.")
