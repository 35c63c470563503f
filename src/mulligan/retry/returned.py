"""Whether reviews make another attempt, and in which epoch (SPEC P3). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mulligan.config.policy import ReviewSettings, WatchCi
from mulligan.domain.ci import CiFailed, FailedCheck
from mulligan.domain.feedback import MOST_REMARKS, Review, ReviewReceived
from mulligan.domain.issue import Stage
from mulligan.domain.remembered import is_heard
from mulligan.domain.status import IssueStatus
from mulligan.retry.words import counted
from mulligan.text.escape import one_line

LISTENING = frozenset({Stage.READY, Stage.REVIEW, Stage.HITL})
"""Stages in which a review is acted on; while an attempt runs it waits."""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of an epoch: `spent` of `most` attempts are used up."""

    spent: int
    most: int

    @property
    def nothing(self) -> bool:
        """Tell whether no attempt is left."""
        return self.spent >= self.most


def new_reviews(reviews: Sequence[Review], status: IssueStatus) -> list[Review]:
    """Pick what was not acted on yet; nothing where none of it requests changes."""
    new = [each for each in reviews if not is_heard(status.heard, each.key)]
    return new if any(each.objects for each in new) else []


def is_settled(new: Sequence[Review], settings: ReviewSettings, now: datetime) -> bool:
    """Tell whether nobody has submitted a review for a while."""
    return max(each.at for each in new) + settings.settle <= now


def received(
    new: Sequence[Review], status: IssueStatus, left: Left, settings: ReviewSettings
) -> ReviewReceived:
    """Say what becomes of reviews: an attempt of this epoch, of a new one, or a person is asked."""
    last = max((each for each in new if each.objects), key=lambda each: each.at)
    opens = left.nothing or status.stage is Stage.HITL
    refused = ""
    if opens and status.rounds >= settings.rounds:
        rounds = counted(settings.rounds, "round")
        refused = f"Reviews have opened {rounds} already, and changes are requested again."
    return ReviewReceived(
        reviews=tuple(each.id for each in new),
        author=last.author,
        author_id=last.author_id,
        at=last.at,
        remarks=tuple(said for each in new for said in each.remarks)[:MOST_REMARKS],
        opens_epoch=opens and not refused,
        refused=refused,
    )


def failed_on_github(
    head_sha: str,
    checks: Sequence[FailedCheck],
    status: IssueStatus,
    left: Left,
    settings: WatchCi,
) -> CiFailed:
    """Say what becomes of checks that failed on GitHub: an attempt, or a person is asked (P4)."""
    names = ", ".join(one_line(check.name, 100) for check in checks)
    made, refused = counted(status.ci_attempts, "attempt"), ""
    if left.nothing:
        refused = f"Checks of the pull request fail on GitHub, and no attempt is left: {names}."
    elif status.ci_attempts >= settings.max_attempts:
        refused = f"Checks of the pull request fail on GitHub after {made} at them: {names}."
    return CiFailed(head_sha=head_sha, checks=tuple(checks), refused=refused)
