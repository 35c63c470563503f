"""An issue as Mulligan sees it: its name, its text, and who asked for the work. Pure."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from mulligan.domain.errors import LeaseLostError, UsageError

# Names.

REPOSITORY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
"""`owner/name`, as GitHub allows them: safe in paths, refs and URLs as it stands."""

COMMIT_SHA = re.compile(r"[0-9a-f]{40}")
"""A commit's name in full."""

MARKER = "<!-- mulligan:"
"""Begins the hidden marker of everything that Mulligan writes on GitHub."""

BRANCH_PREFIX = "mulligan/issue-"
"""Begins the name of every branch of Mulligan's; the issue's number follows."""


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
        """Name the one branch of the issue, on which its pull request stands."""
        return f"{BRANCH_PREFIX}{self.number}"

    def __str__(self) -> str:
        return f"{self.repository}#{self.number}"


# The issue as it was read.


class Stage(StrEnum):
    """Where an issue stands; all but RESOLVED are shown as a label."""

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
        """Hash title and body, by which a later change of either shows (SPEC T2)."""
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
    """What was done to title and text since the act, as far as it is known (SPEC T2).

    `by_strangers` are by people who may not ask for work, oldest first. `unread` says why that
    could not be found out now. A server that is not `telling` keeps no record of who changed a
    text; there only the renamings are known.
    """

    by_strangers: tuple[Edit, ...] = ()
    unread_reason: str = ""
    names_authors: bool = True


@dataclass(frozen=True, slots=True)
class AuthorisingAct:
    """Who asked for the work, and how (SPEC T1).

    `act` is `labeled:<event id>`, `comment:<comment id>`, `command:<time>` for a command on the
    command line, or `operator:<time>` for `mulligan work`; `trusted` is the ruling on the actor's
    permission at the time it was read; `reason` explains a refusal. `actor_id` is GitHub's number
    of the account, which stays when it is renamed. `guidance` is what that person says is to be
    done, which holds for the whole epoch (SPEC C14).
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
    """Why work that has begun must not go on: trust was lost, or the text is another (T1, T2)."""

    reason: str
    by_edit: bool = False


# Its repository, and its lease.


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """What the tracker knows of a repository; `may_push` is None where it does not say."""

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
