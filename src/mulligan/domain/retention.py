"""Choose which files and histories to delete, and which to keep (LEDGER-3). Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mulligan.domain.eligibility import SETTLED_STAGES
from mulligan.domain.events import Event, Forgotten, comments_read_to
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.recorded_effects import CommentsRead
from mulligan.domain.status import IssueStatus, Phase


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """The artifacts of one attempt: their size in bytes, and the time of the newest."""

    issue: IssueRef
    number: int
    size: int
    at: datetime


def is_at_rest(status: IssueStatus) -> bool:
    """Return whether an issue has no work left until a new request."""
    return status.phase is Phase.IDLE and status.stage in SETTLED_STAGES


def needs_files(status: IssueStatus) -> bool:
    """Return whether the next attempt or a publication needs the files of earlier attempts."""
    return status.is_kept or not is_at_rest(status)


def needs_commit(status: IssueStatus) -> bool:
    """Return whether a verified commit waits, or may still wait, to be published."""
    return status.is_kept or status.phase is not Phase.IDLE


def outdated(
    found: Collection[AttemptFiles],
    kept_issues: Iterable[IssueRef],
    oldest: datetime,
    most_bytes: int,
) -> tuple[AttemptFiles, ...]:
    """Choose the files to delete, oldest first: before `oldest`, or beyond `most_bytes` in total.

    Files of `kept_issues` stay, but count towards the total.
    """
    staying, going = frozenset(kept_issues), list[AttemptFiles]()
    held = sum(each.size for each in found)
    for each in sorted(found, key=lambda files: (files.at, files.issue, files.number)):
        if each.issue not in staying and (each.at < oldest or held > most_bytes):
            going.append(each)
            held -= each.size
    return tuple(going)


def may_be_forgotten(status: IssueStatus) -> bool:
    """Return whether the history may be deleted: nothing is open, and nobody paused the issue."""
    waits = status.pull.number or status.feedback or status.pending or status.paused_by
    return status.stage is Stage.RESOLVED and status.phase is Phase.IDLE and not waits


def remnant_of(status: IssueStatus, events: Iterable[Event]) -> Forgotten:
    """Return the part of a deleted history that is still needed: effects and handled acts.

    `events` are the history; one may record up to which comment the repository was read.
    """
    read_to = max(map(comments_read_to, events), default=0)
    cursor = (CommentsRead(read_to=read_to),) if read_to else ()
    return Forgotten(
        reason=status.reason,
        number=status.number,
        act=status.request.written_act,
        known_since=status.known_since,
        pull_request=status.pull.url,
        effects=(*status.effects.done, *cursor),
        epochs=status.epochs,
        heard=status.handled.marks,
    )


def has_rested(status: IssueStatus, last_event: datetime, now: datetime, time: timedelta) -> bool:
    """Return whether nothing has happened to a resting issue for longer than `time`."""
    return is_at_rest(status) and now - last_event > time
