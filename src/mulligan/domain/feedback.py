"""What comes back from a pull request that is open, and asks for another attempt. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mulligan.domain.ci import CiFailed, CiPassed, FailedCheck
from mulligan.domain.record import Record

MOST_REMARKS = 50
BODY_CHARS = 4000
CODE_CHARS = 2000
MERGED = "Its pull request was merged."
NOT_MERGED = "Its pull request was closed without being merged."


class Remark(Record):
    """What a trusted person wants changed; on a line, where there is a `path`.

    `code` is what the line looked like in its surroundings; `thread` is the comment to be
    answered, `review` the review to be answered as a whole, 0 where there is none.
    """

    author: str
    body: str
    path: str = ""
    line: int | None = None
    side: str = "RIGHT"
    code: str = ""
    thread: int = 0
    review: int = 0


class ReviewReceived(Record):
    """Trusted people request changes (SPEC P3); `reviews` are the ids, `at` that of the last.

    `opens_epoch` where no attempt was left; `refused` says why a person is asked instead.
    """

    kind: Literal["review_received"] = "review_received"
    reviews: tuple[int, ...]
    author: str
    author_id: int | None = None
    at: datetime
    remarks: tuple[Remark, ...]
    opens_epoch: bool = False
    refused: str = ""


class Conflicted(Record):
    """The base branch moved, and the pull request does not merge any more (SPEC P5)."""

    kind: Literal["conflicted"] = "conflicted"
    base_sha: str
    head_sha: str
    files: tuple[str, ...] = ()


Returned = ReviewReceived | Conflicted | CiFailed | CiPassed
"""What a pull request brings back."""


class Feedback(Record):
    """All that is pending: remarks of reviewers, a conflict, checks that failed on GitHub.

    `at` is when the last of it came.
    """

    at: datetime
    remarks: tuple[Remark, ...] = ()
    conflict: str = ""
    checks: tuple[FailedCheck, ...] = ()

    @property
    def threads(self) -> tuple[int, ...]:
        """Name the comments that are to be answered, each once."""
        return tuple(dict.fromkeys(said.thread for said in self.remarks if said.thread))

    @property
    def reviews(self) -> dict[int, str]:
        """Name the reviews that are to be answered as a whole, and who wrote each."""
        return {said.review: said.author for said in self.remarks if said.review}


@dataclass(frozen=True, slots=True)
class Review:
    """A review that a trusted person submitted; `objects` where it requests changes."""

    id: int
    author: str
    author_id: int | None
    at: datetime
    objects: bool
    remarks: tuple[Remark, ...] = ()

    @property
    def key(self) -> str:
        """Give the name under which it is remembered that it was acted on."""
        return f"review:{self.id}"


@dataclass(frozen=True, slots=True)
class OpenPull:
    """A pull request of Mulligan's as a list has it; any review moves `updated_at`."""

    number: int
    branch: str
    head_sha: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class PullState:
    """What became of a pull request; `into_default` tells whether GitHub closes the issue.

    It `is_behind` where nothing but commits of the base branch is missing for it to be merged.
    """

    is_open: bool
    is_merged: bool = False
    into_default: bool = True
    is_draft: bool = False
    is_behind: bool = False


def joined(pending: Feedback | None, new: Feedback) -> Feedback:
    """Add to what is pending; a conflict, and failed checks, replace older ones."""
    if pending is None:
        return new
    return Feedback(
        at=max(pending.at, new.at),
        remarks=(*pending.remarks, *new.remarks)[:MOST_REMARKS],
        conflict=new.conflict or pending.conflict,
        checks=new.checks or pending.checks,
    )
