"""Divide an attempt's time into its parts, and add them up over attempts. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mulligan.domain.result import AttemptTimes, SetUpFiles, WorkerResultMeta

NO_TIME = timedelta()

MILLISECOND = timedelta(milliseconds=1)


class Part(StrEnum):
    """A part of an attempt that is measured; the rest is `other`."""

    WORKTREE = "worktree"
    SET_UP = "setup"
    AGENT = "agent"
    CHECKS = "checks"
    REVIEWER = "reviewer"


@dataclass(slots=True)
class Copies:
    """The time of copying what setup commands left, so far; `because` is why there are no layers.

    Without a reason, commands have layers, and only setup commands that run again need copies.
    """

    because: str = ""
    took: timedelta = NO_TIME

    @property
    def recorded(self) -> SetUpFiles:
        """Return what the record of an attempt keeps."""
        return SetUpFiles(copied_ms=self.took // MILLISECOND, copied_because=self.because)


def attempt_times(
    measured: Mapping[Part, timedelta],
    whole: timedelta,
    waited: timedelta,
    *,
    set_up_reused: bool = False,
) -> AttemptTimes | None:
    """Return the parts of an attempt that took `whole`.

    None if the parts are longer than the whole, as after a change of the machine's clock.
    """
    parts = {part: measured.get(part, NO_TIME) // MILLISECOND for part in Part}
    other = round(whole / MILLISECOND) - sum(parts.values())
    if other < 0:
        return None
    return AttemptTimes(
        waited_ms=waited // MILLISECOND,
        worktree_ms=parts[Part.WORKTREE],
        set_up_ms=parts[Part.SET_UP],
        set_up_reused=set_up_reused,
        agent_ms=parts[Part.AGENT],
        checks_ms=parts[Part.CHECKS],
        reviewer_ms=parts[Part.REVIEWER],
        other_ms=other,
    )


def time_waited(
    began: datetime, requested: datetime | None, history: Iterable[WorkerResultMeta]
) -> timedelta:
    """Return how long an attempt waited: since its round's previous attempt, else the request.

    `history` are the earlier attempts of the round, oldest first. GitHub's clock may be ahead of
    this machine's, so that the request seems to come later than the attempt.
    """
    since = requested or began
    for meta in history:
        since = meta.finished_at
    return max(began - since, NO_TIME)


def total_times(history: Iterable[WorkerResultMeta]) -> AttemptTimes:
    """Add up the times of attempts; one without recorded parts counts as `other` time."""
    found = [meta.times or AttemptTimes(other_ms=meta.duration_ms) for meta in history]
    return AttemptTimes(
        waited_ms=sum(each.waited_ms for each in found),
        worktree_ms=sum(each.worktree_ms for each in found),
        set_up_ms=sum(each.set_up_ms for each in found),
        set_up_reused=any(each.set_up_reused for each in found),
        agent_ms=sum(each.agent_ms for each in found),
        checks_ms=sum(each.checks_ms for each in found),
        reviewer_ms=sum(each.reviewer_ms for each in found),
        other_ms=sum(each.other_ms for each in found),
    )
