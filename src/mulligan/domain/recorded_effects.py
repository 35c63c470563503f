"""Effects on GitHub and in git that Mulligan recorded, to repeat none of them. Pure.

Each effect is an event. Of effects with equal keys (`key_of`), only the last one counts.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, TypeVar, assert_never, get_args

from pydantic import Field

from mulligan.domain.issue import Act, Stage, WrittenAct
from mulligan.domain.outcome import Record

# The effects.


class StageShown(Record):
    """Labels and status comment show a stage; null while the comment is delayed."""

    kind: Literal["stage_shown"] = "stage_shown"
    stage: Stage | None


class StatusWritten(Record):
    """The status comment was written; `comment` is its id."""

    kind: Literal["status_written"] = "status_written"
    comment: str


class LabelRequested(Record):
    """A comment asked for the label again, since the text was changed after the act."""

    kind: Literal["label_requested"] = "label_requested"
    act: WrittenAct
    comment: str


class CommandAnswered(Record):
    """A command was answered in a comment."""

    kind: Literal["command_answered"] = "command_answered"
    act: WrittenAct
    comment: str


class EscalationAnswered(Record):
    """The escalation comment at this address says who answered it."""

    kind: Literal["escalation_answered"] = "escalation_answered"
    comment: str


class Obstacle(StrEnum):
    """The kind of obstacle: one of the issue itself, or the disk or the agents of one worker."""

    ISSUE = "issue"
    DISK = "disk"
    AGENT = "agent"
    ALL_AGENTS = "all_agents"
    """No agent that the repository may use can start a run, or its work is paused."""


class BlockShown(Record):
    """The reason of an obstacle was shown in an epoch; "" if version 1 recorded it."""

    kind: Literal["block_shown"] = "block_shown"
    obstacle: Obstacle
    epoch: int
    reason: str = ""


class Pushed(Record):
    """The issue's branch was pushed."""

    kind: Literal["pushed"] = "pushed"
    branch: str
    head_sha: str


class WorkPushed(Record):
    """The unverified work of an attempt was pushed to its own ref."""

    kind: Literal["work_pushed"] = "work_pushed"
    attempt: int
    git_ref: str


class BaseMerged(Record):
    """The base was merged into the pull request's head, as the commit `merge`."""

    kind: Literal["base_merged"] = "base_merged"
    base_sha: str
    head_sha: str
    merge: str


class MergeRefused(Record):
    """A merge of the base into the head could not be pushed; it is not retried."""

    kind: Literal["merge_refused"] = "merge_refused"
    base_sha: str
    head_sha: str


class ReviewsSettling(Record):
    """A review waits until then for further ones; both are null if none waits."""

    kind: Literal["reviews_settling"] = "reviews_settling"
    review: int | None = None
    until: datetime | None = None


class Topic(StrEnum):
    """The subject of a sentence about the pull request, or about the work that is in it."""

    MEANWHILE = "meanwhile"
    TEXT = "text"
    REVIEWS = "reviews"
    BRANCH = "branch"
    BASE = "base"
    CHECKS = "checks"


class PullNote(Record):
    """A sentence about the pull request, for people; one for each topic, and "" for none."""

    kind: Literal["pull_note"] = "pull_note"
    topic: Topic
    text: str


class ReviewAnswered(Record):
    """A review was answered: as a whole, or (`attempt`) one of its line comments."""

    kind: Literal["review_answered"] = "review_answered"
    number: int
    attempt: int | None = None
    comment: str


class CommentsRead(Record):
    """The comments of the whole repository were read up to this id."""

    kind: Literal["comments_read"] = "comments_read"
    read_to: int


class NotFoundSince(Record):
    """GitHub has not found something since then; null once it was found again (GITHUB-3)."""

    kind: Literal["not_found_since"] = "not_found_since"
    what: str
    since: datetime | None = None


class InHand(Record):
    """The issue said, under this request, that it waits for somebody's pull request (HAND-1)."""

    kind: Literal["in_hand"] = "in_hand"
    act: WrittenAct


class PublicationDelayed(Record):
    """The publication of the last attempt has failed since then; it is repeated (PUBLISH-1)."""

    kind: Literal["publication_delayed"] = "publication_delayed"
    since: datetime
    reason: str


Effect = (
    StageShown
    | StatusWritten
    | LabelRequested
    | BlockShown
    | Pushed
    | WorkPushed
    | BaseMerged
    | MergeRefused
    | ReviewsSettling
    | PullNote
    | ReviewAnswered
    | CommandAnswered
    | EscalationAnswered
    | CommentsRead
    | NotFoundSince
    | PublicationDelayed
    | InHand
)

EFFECT_TYPES: tuple[type[Effect], ...] = get_args(Effect)

EFFECT_KINDS = tuple(str(each.model_fields["kind"].default) for each in EFFECT_TYPES)

WrittenEffect = Annotated[Effect, Field(discriminator="kind")]
"""An effect in a record that is stored as JSON."""


def key_of(effect: Effect) -> Hashable:
    """Return the key of an effect; of effects with equal keys, only the last one counts."""
    match effect:
        case BlockShown(obstacle=about) | PullNote(topic=about) | NotFoundSince(what=about):
            return effect.kind, about
        case LabelRequested(act=act) | CommandAnswered(act=act):
            return effect.kind, act
        case Pushed(branch=branch):
            return effect.kind, branch
        case WorkPushed(attempt=attempt):
            return effect.kind, attempt
        case BaseMerged(base_sha=base, head_sha=head) | MergeRefused(base_sha=base, head_sha=head):
            return effect.kind, base, head
        case ReviewAnswered(number=number, attempt=attempt):
            return effect.kind, number, attempt
        case StageShown() | StatusWritten() | ReviewsSettling() | CommentsRead():
            return effect.kind
        case PublicationDelayed() | InHand() | EscalationAnswered():
            return effect.kind
        case _:
            assert_never(effect)


# All effects of an issue.

MAX_EFFECTS_PER_KIND = 100
"""Limit of effects of a kind to keep; above the number of threads in a review."""

E = TypeVar("E", bound=Effect)


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects on an issue, in the order of their events; for each key the last one."""

    done: tuple[WrittenEffect, ...] = ()

    def plus(self, effect: Effect) -> "Effects":
        """Add an effect; drop the oldest of its kind beyond MAX_EFFECTS_PER_KIND."""
        kept = [each for each in self.done if key_of(each) != key_of(effect)]
        same = [each for each in kept if each.kind == effect.kind]
        if len(same) == MAX_EFFECTS_PER_KIND:
            kept.remove(same[0])
        return Effects((*kept, effect))

    def without(self, kind: type[Effect]) -> "Effects":
        """Drop the effects of a kind."""
        return Effects(tuple(each for each in self.done if not isinstance(each, kind)))

    def all(self, kind: type[E]) -> tuple[E, ...]:
        """Return the effects of a kind."""
        return tuple(each for each in self.done if isinstance(each, kind))

    def last(self, kind: type[E]) -> E | None:
        """Return the last effect of a kind; None if there is none."""
        return next((each for each in reversed(self.done) if isinstance(each, kind)), None)

    @property
    def shown(self) -> StageShown | None:
        """Return the stage that GitHub shows, as far as recorded."""
        return self.last(StageShown)

    @property
    def status_comment(self) -> str:
        """Return the id of the status comment; empty if there is none."""
        written = self.last(StatusWritten)
        return written.comment if written else ""

    @property
    def pushed(self) -> str | None:
        """Return the last pushed commit of the issue's branch."""
        pushed = self.last(Pushed)
        return pushed.head_sha if pushed else None

    def pull_note(self, topic: Topic) -> str:
        """Return the sentence about the pull request on a topic; empty if there is none."""
        return next((each.text for each in self.all(PullNote) if each.topic is topic), "")

    def without_note(self, topic: Topic) -> "Effects":
        """Drop the sentence on a topic."""
        notes = [each for each in self.all(PullNote) if each.topic is topic]
        return Effects(tuple(each for each in self.done if each not in notes))

    @property
    def pull_notes(self) -> tuple[str, ...]:
        """Return the sentences about the pull request, in the order of their topics."""
        return tuple(text for topic in Topic if (text := self.pull_note(topic)))

    def label_request(self, act: Act | None) -> str:
        """Return the comment that asked for the label again after an act, or an empty string."""
        comments = (each.comment for each in self.all(LabelRequested) if each.act == act)
        return next(comments, "")

    def has_answered(self, number: int, attempt: int | None = None) -> bool:
        """Return whether a review, or a line comment for an attempt, was answered."""
        answered = {(each.number, each.attempt) for each in self.all(ReviewAnswered)}
        return (number, attempt) in answered


NO_EFFECTS = Effects()
