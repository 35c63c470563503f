"""The right of one worker to work on one issue. Pure."""

from dataclasses import dataclass

from mulligan.domain.issue import IssueRef
from mulligan.errors import LeaseLostError


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one worker to work on one issue; `fence` grows with every claim of the issue."""

    issue: IssueRef
    worker: str
    fence: int


def lost(lease: Lease) -> LeaseLostError:
    """Say that another worker has the issue now."""
    return LeaseLostError(f"Another worker has taken over {lease.issue}; this one stops.")
