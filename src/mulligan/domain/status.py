"""The status of an issue, and the keys of handled acts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, TypeVar

from pydantic import Field

from mulligan.domain.command import OPENING, STOPPING, PendingCommand
from mulligan.domain.feedback import Feedback
from mulligan.domain.issue import (
    Act,
    CommentAct,
    ConsoleAct,
    IssueRef,
    LabelAct,
    ReviewAct,
    Stage,
    WrittenAct,
    parse_act,
)
from mulligan.domain.outcome import Decision, OpenPullRequest, Outcome
from mulligan.domain.recorded_effects import (
    NO_EFFECTS,
    BaseMerged,
    Effects,
    EscalationAnswered,
    Obstacle,
    PublicationDelayed,
    ReviewsSettling,
    StageShown,
)

STATUS_EDIT_INTERVAL = timedelta(seconds=15)
"""The minimum time between two edits of the status comment (STATUS-1)."""


# Handled commands, reviews, conflicts and failed heads.

MAX_HANDLED_PER_KIND = 100
"""Limit of handled keys of a kind to keep."""


@dataclass(frozen=True, slots=True)
class HandledIds:
    """Handled comments or reviews: all up to the id `up_to`, and `ids`.

    GitHub assigns these ids in ascending order.
    """

    up_to: int = 0
    ids: tuple[int, ...] = ()

    def __contains__(self, number: int) -> bool:
        return number <= self.up_to or number in self.ids

    def plus(self, number: int) -> "HandledIds":
        """Add an id; raise `up_to` over the lowest ids beyond MAX_HANDLED_PER_KIND."""
        ids = (*(each for each in self.ids if each != number), number)
        if len(ids) <= MAX_HANDLED_PER_KIND:
            return HandledIds(self.up_to, ids)
        lowest = min(ids)
        kept = tuple(each for each in ids if each != lowest)
        return HandledIds(max(self.up_to, lowest), kept)

    @property
    def highest(self) -> int:
        """Return the highest handled id; 0 if there is none."""
        return max(self.up_to, *self.ids, 0)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A head that conflicts with a base."""

    base_sha: str
    head_sha: str


@dataclass(frozen=True, slots=True)
class FailedHead:
    """A head whose checks failed on GitHub."""

    head_sha: str


Handleable = Act | Conflict | FailedHead
"""Acts and events that are handled once: commands, reviews, conflicts, failed heads."""

UP_TO_MARK = "<="
"""Mark in the event of a deleted history: all ids up to the following number are handled."""


@dataclass(frozen=True, slots=True)
class Handled:
    """Everything already handled; of commands on the command line, the last ones."""

    comments: HandledIds = HandledIds()
    reviews: HandledIds = HandledIds()
    console: tuple[WrittenAct, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    failed_heads: tuple[FailedHead, ...] = ()

    def __contains__(self, each: Handleable) -> bool:
        match each:
            case CommentAct(comment):
                return comment in self.comments
            case ReviewAct(review):
                return review in self.reviews
            case Conflict():
                return each in self.conflicts
            case FailedHead():
                return each in self.failed_heads
            case _:
                return each in self.console

    def plus(self, each: Handleable) -> "Handled":
        """Add one; drop the oldest of its kind beyond MAX_HANDLED_PER_KIND."""
        match each:
            case CommentAct(comment):
                return replace(self, comments=self.comments.plus(comment))
            case ReviewAct(review):
                return replace(self, reviews=self.reviews.plus(review))
            case Conflict():
                return replace(self, conflicts=_last(self.conflicts, each))
            case FailedHead():
                return replace(self, failed_heads=_last(self.failed_heads, each))
            case _:
                return replace(self, console=_last(self.console, each))

    @property
    def marks(self) -> tuple[str, ...]:
        """Return one mark for comments and one for reviews that cover all handled ones."""
        highest = (("comment", self.comments.highest), ("review", self.reviews.highest))
        return tuple(f"{kind}{UP_TO_MARK}{number}" for kind, number in highest if number)


T = TypeVar("T")


def _last(kept: tuple[T, ...], new: T) -> tuple[T, ...]:
    return (*(each for each in kept if each != new), new)[-MAX_HANDLED_PER_KIND:]


def handled_of(marks: Iterable[str]) -> Handled:
    """Return the handled keys from the marks of a deleted history."""
    found = dict(mark.split(UP_TO_MARK) for mark in marks if UP_TO_MARK in mark)
    highest = {kind: HandledIds(int(number)) for kind, number in found.items()}
    none = HandledIds()
    return Handled(highest.get("comment", none), highest.get("review", none))


# The status.


class Phase(StrEnum):
    """The next step of an issue after a restart (RECOVERY-1)."""

    IDLE = "idle"
    ATTEMPTING = "attempting"
    COMPLETED = "completed"
    DECIDED = "decided"


UnparsedAct = Annotated[str, Field(alias="act")]
"""An act as events store it, "" for none; parsed on demand, since most are never needed."""


def _parsed(written: str) -> Act | None:
    return parse_act(written) if written else None


@dataclass(frozen=True, slots=True)
class Request:
    """Who requested the work of an epoch, and how; `guidance` are the instructions (CONTEXT-12).

    `actor_id` is GitHub's id of the account.
    """

    written_act: UnparsedAct = ""
    actor: str = ""
    actor_id: int | None = None
    at: datetime | None = None
    guidance: str = ""

    @property
    def act(self) -> Act | None:
        """Return the act that asked for the work, if any."""
        return _parsed(self.written_act)

    @property
    def by_label(self) -> bool:
        """Return whether a label requested the work."""
        return isinstance(self.act, LabelAct)

    @property
    def by_command(self) -> bool:
        """Return whether a command requested the work, which then needs no label."""
        return isinstance(self.act, CommentAct | ConsoleAct)


@dataclass(frozen=True, slots=True)
class SeenText:
    """The title, and the hash of the whole text, last seen under an act (TRUST-2)."""

    title: str = ""
    sha256: str = ""
    written_act: UnparsedAct = ""

    @property
    def act(self) -> Act | None:
        """Return the act under which the text was seen, if any."""
        return _parsed(self.written_act)


@dataclass(frozen=True, slots=True)
class PullStatus:
    """The issue's pull request; without a number it ended, or there was none.

    - `draft_of` is the attempt that it shows as a draft, 0 for none; `left_draft` says why it is
      still a draft although its work is verified.
    - `updated_to` is the base branch's commit that Mulligan merged into it.
    - `passed` counts the checks that passed on its head in review.
    """

    url: str | None = None
    number: int | None = None
    draft_of: int = 0
    left_draft: str = ""
    updated_to: str = ""
    passed: int = 0


@dataclass(frozen=True, slots=True)
class CommandTimes:
    """When the newest commands were given, also those that are not executed yet (COMMAND-1).

    `stopped` is of the newest skip or abort: a request that is not newer starts nothing. `paused`
    is of the newest command that began or ended a pause: an older one changes nothing.
    """

    stopped: datetime | None = None
    paused: datetime | None = None

    def has_stopped(self, requested: datetime) -> bool:
        """Return whether a request of that time was stopped; GitHub's times are whole seconds."""
        return self.stopped is not None and requested <= self.stopped


@dataclass(frozen=True, slots=True)
class IssueStatus:
    """The status of one issue, folded from its events (domain/fold.py).

    - `attempt` counts within `epoch`, `number` over all epochs. `forgotten_epochs` counts the
      epochs deleted by retention.
    - `outcome` is that of the last attempt; `is_unverified` if no check verified its change.
    - `reason` is a sentence for people; `obstacle` is what a queued issue waits for, if it is one.
    - `due` is when the next attempt may start.
    - `is_kept`: the last attempt's commit is verified, but waits to be published until a maintainer
      has fixed the obstacle.
    - `feedback` is the feedback of the pull request, until an attempt that answers it is published.
      `rounds` counts the epochs opened by reviews since the last request, `ci_attempts` the epoch's
      attempts because of failed checks on GitHub. `review_start` counts the epoch's attempts before
      the review that the last ones are for; None if they are for no review.
    - `pending` are the unanswered commands, oldest first; `paused_by` names who paused the issue.
    - `known_since` is when this ledger first recorded the issue.
    - `asked_at` is the URL of the last escalation comment.
    - `restored` says from what the status was rebuilt after the ledger was lost.
    - `elsewhere`: the issue was left to another installation. `labelled`: this ledger set the
      review or hitl label that the issue carries.
    """

    issue: IssueRef
    stage: Stage = Stage.READY
    phase: Phase = Phase.IDLE
    epoch: int = 0
    attempt: int = 0
    number: int = 0
    forgotten_epochs: int = 0
    request: Request = Request()
    text: SeenText = SeenText()
    started_at: datetime | None = None
    outcome: Outcome | None = None
    is_unverified: bool = False
    decision: Decision | None = None
    reason: str = ""
    due: datetime | None = None
    is_kept: bool = False
    pull: PullStatus = PullStatus()
    feedback: Feedback | None = None
    rounds: int = 0
    ci_attempts: int = 0
    review_start: int | None = None
    pending: tuple[PendingCommand, ...] = ()
    paused_by: str = ""
    commanded: CommandTimes = CommandTimes()
    handled: Handled = Handled()
    effects: Effects = NO_EFFECTS
    known_since: datetime | None = None
    asked_at: str = ""
    obstacle: Obstacle | None = None
    elsewhere: bool = False
    labelled: bool = False
    restored: str = ""

    @property
    def epochs(self) -> int:
        """Count all epochs, including those deleted by retention."""
        return self.forgotten_epochs + self.epoch

    @property
    def is_held(self) -> bool:
        """Return whether the issue shows that no agent of its repository can start a run."""
        return self.stage is Stage.READY and self.obstacle is Obstacle.ALL_AGENTS

    def may_show_hold(self, now: datetime) -> bool:
        """Return whether the issue waits for an attempt, and shows no other reason for that."""
        waits = self.stage is Stage.READY and self.phase is Phase.IDLE and not self.paused_by
        is_over = self.due is not None and self.due <= now
        is_free = is_over or (self.due is None and (self.is_held or not self.reason))
        return bool(self.epoch) and waits and is_free

    @property
    def ending_reason(self) -> str:
        """Return which pending command stops the running work; "" if none does."""
        act = self.request.act
        found = (each for each in self.pending if each.verb in STOPPING and each.act != act)
        return next((each.as_withdrawal for each in found if not self.is_overtaken(each)), "")

    def is_overtaken(self, order: PendingCommand) -> bool:
        """Return whether a later command or request replaces `order`, whenever both were read.

        A later request replaces a stop, and a later stop replaces a request for attempts.
        """
        opens, stops = order.verb in OPENING, order.verb in STOPPING
        later = self.commanded.stopped if opens else self.request.at if stops else None
        return later is not None and order.at < later

    @property
    def next_order(self) -> PendingCommand | None:
        """Return the pending command that starts or stops work next; None if there is none."""
        found = (each for each in self.pending if each.verb in {*OPENING, *STOPPING})
        return next((each for each in found if not (each.is_done or self.is_overtaken(each))), None)

    @property
    def has_new_request(self) -> bool:
        """Return whether a pending command requests new attempts."""
        return any(each.verb in OPENING and not self.is_overtaken(each) for each in self.pending)

    @property
    def instance(self) -> str:
        """Return the installation's name: the time at which its ledger first recorded the issue."""
        seen = f"{self.issue} {self.known_since.isoformat() if self.known_since else ''}"
        return sha256(seen.encode()).hexdigest()[:12]

    @property
    def merge_commits(self) -> frozenset[str]:
        """Return the commits that merged the base branch into the pull request."""
        return frozenset(each.merge for each in self.effects.all(BaseMerged))

    @property
    def merged_bases(self) -> frozenset[str]:
        """Return the base branch's commits that Mulligan merged into the pull request."""
        return frozenset(each.base_sha for each in self.effects.all(BaseMerged))

    def unrecorded_merge(self, head_sha: str | None) -> BaseMerged | None:
        """Return the merge into the last pushed commit that equals the branch's head, if any."""
        merges, pushed = self.effects.all(BaseMerged), self.effects.pushed
        return next((m for m in merges if (m.merge, m.head_sha) == (head_sha, pushed)), None)

    @property
    def publication_delay(self) -> PublicationDelayed | None:
        """Return since when, and why, the publication of the last attempt fails; None if not."""
        publishes = self.phase is Phase.DECIDED and isinstance(self.decision, OpenPullRequest)
        return self.effects.last(PublicationDelayed) if publishes else None

    @property
    def reviews_settle_at(self) -> datetime | None:
        """Return until when Mulligan waits for further reviews; None if no review waits."""
        settling = self.effects.last(ReviewsSettling)
        if settling is None or settling.review is None or self.stage is Stage.RESOLVED:
            return None
        return None if settling.review in self.handled.reviews else settling.until

    @property
    def is_escalation_answered(self) -> bool:
        """Return whether the last escalation comment says who answered it."""
        answered = self.effects.last(EscalationAnswered)
        return answered is not None and answered.comment == self.asked_at

    @property
    def is_shown(self) -> bool:
        """Return whether GitHub shows the current stage."""
        return self.effects.shown == StageShown(stage=self.stage)

    @property
    def has_deferred_comment(self) -> bool:
        """Return whether an edit of the status comment is delayed."""
        return self.effects.shown == StageShown(stage=None)
