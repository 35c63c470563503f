"""What follows an attempt: open a pull request, retry, escalate, wait or stand down. Pure."""

from typing import Annotated, Literal

from pydantic import Field

from mulligan.domain.record import Record


class OpenPullRequest(Record):
    """Publish the verified commit."""

    decision: Literal["open_pull_request"] = "open_pull_request"
    reason: str = "The change is verified."


class Retry(Record):
    """Make another attempt: at once (step 0), or after the k-th step of the backoff (SPEC O3)."""

    decision: Literal["retry"] = "retry"
    reason: str
    backoff_step: int = 0


class Escalate(Record):
    """Hand the issue to a person; `fix` is what that person can do, where it is known."""

    decision: Literal["escalate"] = "escalate"
    reason: str
    fix: str = ""


class WaitForBudget(Record):
    """Go on when the next budget window opens (SPEC 13a)."""

    decision: Literal["wait"] = "wait"
    reason: str


class StandDown(Record):
    """Leave the issue alone: a person withdrew it."""

    decision: Literal["stand_down"] = "stand_down"
    reason: str


Decision = Annotated[
    OpenPullRequest | Retry | Escalate | WaitForBudget | StandDown,
    Field(discriminator="decision"),
]
