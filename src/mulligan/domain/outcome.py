"""The outcomes of an attempt, and the decisions that follow (OUTCOME-1). Pure."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Record(BaseModel):
    """A frozen fact that is stored as JSON; fields of a later version are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Outcome(StrEnum):
    """The outcomes of an attempt, in the order in which they are tested (OUTCOME-1)."""

    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"
    DENIED = "DENIED"
    MISCONFIGURED = "MISCONFIGURED"
    INFRASTRUCTURE = "INFRASTRUCTURE"
    OVER_BUDGET = "OVER_BUDGET"
    AGENT_TIMED_OUT = "AGENT_TIMED_OUT"
    BLOCKED = "BLOCKED"
    NOTHING_TO_DO = "NOTHING_TO_DO"
    AGENT_CRASHED = "AGENT_CRASHED"
    ZERO_COMMIT = "ZERO_COMMIT"
    ZERO_DIFF = "ZERO_DIFF"
    SCOPE_VIOLATION = "SCOPE_VIOLATION"
    CHECKS_FAILED = "CHECKS_FAILED"
    REJECTED = "REJECTED"
    SUCCEEDED = "SUCCEEDED"


FREE = frozenset(
    {
        Outcome.CANCELLED,
        Outcome.INTERRUPTED,
        Outcome.DENIED,
        Outcome.MISCONFIGURED,
        Outcome.INFRASTRUCTURE,
        Outcome.OVER_BUDGET,
    }
)
"""Outcomes that the agent did not cause, and that cost no attempt (OUTCOME-4)."""

NO_OUTPUT = frozenset({Outcome.ZERO_COMMIT, Outcome.ZERO_DIFF})
"""Outcomes of an agent that did not change the tree."""


class ZeroKind(StrEnum):
    """Why an agent left no change, in the order in which the reasons are tested (OUTCOME-3)."""

    REFUSED = "refused"
    CUT_OFF = "cut_off"
    KILLED = "killed"
    ASKED = "asked"
    NESTED = "nested"
    """It worked in a git repository of its own inside the worktree."""
    NOT_CHECKED_OUT = "not_checked_out"
    """Its work is on another branch, in a stash or in a commit that it left."""
    ONLY_IGNORED = "only_ignored"
    PROPOSED = "proposed"
    UNDONE = "undone"
    NOTHING = "nothing"


# Decisions.


class OpenPullRequest(Record):
    """Publish the commit of the attempt; `reason` names the checks that passed on it."""

    decision: Literal["open_pull_request"] = "open_pull_request"
    reason: str = ""


class Retry(Record):
    """Make another attempt: at once (step 0), or after step k of the backoff (DECISION-4).

    `not_before` is the time in the `Retry-After` of the model's service, if it sent one (AGENT-6),
    or the end of the agent's rest, if `agent_rests` (OUTCOME-6).
    """

    decision: Literal["retry"] = "retry"
    reason: str
    backoff_step: int = 0
    not_before: datetime | None = None
    agent_rests: bool = False


class Escalate(Record):
    """Ask for human review; `fix` is what the maintainer can do, if known."""

    decision: Literal["escalate"] = "escalate"
    reason: str
    fix: str = ""


class WaitForBudget(Record):
    """Continue when the next budget window opens (BUDGET-1)."""

    decision: Literal["wait"] = "wait"
    reason: str


class WaitForPullRequest(Record):
    """Keep the commit, and wait: somebody's open pull request closes the issue (HAND-1)."""

    decision: Literal["wait_for_pull_request"] = "wait_for_pull_request"
    reason: str


class StandDown(Record):
    """Stop work on the issue: its request was withdrawn.

    `keeps_pull`: only the changes that reviews requested were withdrawn, so that the pull request
    stays open as it is.
    """

    decision: Literal["stand_down"] = "stand_down"
    reason: str
    keeps_pull: bool = False


Decision = Annotated[
    OpenPullRequest | Retry | Escalate | WaitForBudget | WaitForPullRequest | StandDown,
    Field(discriminator="decision"),
]
