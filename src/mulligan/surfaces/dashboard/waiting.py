"""Sort the issues by what they wait for: nothing, a worker, a time, or a person. Pure."""

from datetime import datetime
from enum import StrEnum

from mulligan.domain.issue import Stage
from mulligan.domain.status import IssueStatus, Phase


class Hold(StrEnum):
    """What an issue is held up by that was asked for and is not being worked on."""

    QUEUED = "queued"
    DUE = "due"
    PAUSED = "paused"


def hold_of(status: IssueStatus, now: datetime) -> Hold | None:
    """Say what an issue waits for; None where it is worked on, rests, or is done with."""
    if status.stage is not Stage.READY or status.phase is not Phase.IDLE:
        return None
    if status.paused_by:
        return Hold.PAUSED
    return Hold.DUE if status.due is not None and status.due > now else Hold.QUEUED


def is_under_way(status: IssueStatus) -> bool:
    """Tell whether an attempt runs, or what it came to is not carried out yet."""
    return status.phase is not Phase.IDLE or status.stage is Stage.RUNNING
