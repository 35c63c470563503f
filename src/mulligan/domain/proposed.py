"""What Mulligan does to the one pull request of an issue, as the ledger records it. Pure."""

from typing import Literal

from mulligan.domain.record import Record


class PublishStarted(Record):
    """The verified commit is about to be pushed."""

    kind: Literal["publish_started"] = "publish_started"
    head_sha: str


class Published(Record):
    """The pull request is open; `left_draft` says why it is still a draft, where it should not."""

    kind: Literal["published"] = "published"
    pull_request: str
    number: int
    head_sha: str
    left_draft: str = ""


class Drafted(Record):
    """The pull request is a draft, with the work of an attempt that was not verified (SPEC H3).

    `attempt` is its number over all epochs.
    """

    kind: Literal["drafted"] = "drafted"
    pull_request: str
    number: int
    head_sha: str
    attempt: int


class BroughtUpToDate(Record):
    """Mulligan merged the base branch, at `base_sha`, into the pull request; `head_sha` came of it.

    The push of that is in this event too, so that nothing can come between them.
    """

    kind: Literal["brought_up_to_date"] = "brought_up_to_date"
    base_sha: str
    head_sha: str
