"""Effects on GitHub and in git that Mulligan recorded, so that none is repeated. Pure.

Each kind of effect is a type with a `kind`, and is recorded as an event EffectDone. `written`
returns the event's key and remote id, and `read` parses them. Of equal keys only the last counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, ClassVar, Self, TypeVar

from pydantic import PlainSerializer, PlainValidator

from mulligan.domain.events import EffectDone, Event, Forgotten, KeptEffect
from mulligan.domain.issue import Act, Stage, parse_act

ONCE = "issue"
"""The key of effects that occur at most once per issue."""

DEFERRED, REFUSED, FOUND = "later", "refused", "found"


# The effects.


@dataclass(frozen=True, slots=True)
class StageShown:
    """Labels and status comment show a stage; None while the comment is delayed."""

    stage: Stage | None
    kind: ClassVar[str] = "shown_stage"

    @property
    def written(self) -> tuple[str, str]:
        return ONCE, self.stage or DEFERRED

    @classmethod
    def read(cls, _key: str, value: str) -> Self:
        return cls(None if value == DEFERRED else Stage(value))


@dataclass(frozen=True, slots=True)
class StatusWritten:
    """The status comment was written."""

    comment: str
    kind: ClassVar[str] = "status_comment"

    @property
    def written(self) -> tuple[str, str]:
        return ONCE, self.comment

    @classmethod
    def read(cls, _key: str, value: str) -> Self:
        return cls(value)


@dataclass(frozen=True, slots=True)
class _CommentOnAct:
    act: Act
    comment: str

    @property
    def written(self) -> tuple[str, str]:
        return str(self.act), self.comment

    @classmethod
    def read(cls, key: str, value: str) -> Self:
        return cls(parse_act(key), value)


@dataclass(frozen=True, slots=True)
class LabelRequested(_CommentOnAct):
    """A comment asked for the label again, since the text was changed after the act."""

    kind: ClassVar[str] = "label_comment"


@dataclass(frozen=True, slots=True)
class CommandAnswered(_CommentOnAct):
    """A command was answered in a comment."""

    kind: ClassVar[str] = "reply"


class Obstacle(StrEnum):
    """The kind of obstacle: one of the issue itself, or the disk or the agents of one worker."""

    ISSUE = "issue"
    DISK = "disk"
    AGENT = "agent"
    ALL_AGENTS = "all_agents"
    """No agent that the repository may use can start a run, or its work is paused."""


@dataclass(frozen=True, slots=True)
class BlockShown:
    """The reason of an obstacle was shown in an epoch; `digest` is the reason's hash."""

    obstacle: Obstacle
    epoch: int
    digest: str
    kind: ClassVar[str] = "held"

    @property
    def written(self) -> tuple[str, str]:
        return self.obstacle, f"{self.epoch}:{self.digest}"

    @classmethod
    def read(cls, key: str, value: str) -> Self:
        epoch, _, digest = value.partition(":")
        return cls(Obstacle(key), int(epoch), digest)


def block_shown(obstacle: Obstacle, epoch: int, reason: str) -> BlockShown:
    """Return the record that the reason of an obstacle was shown."""
    return BlockShown(obstacle, epoch, sha256(reason.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class Pushed:
    """The issue's branch was pushed."""

    branch: str
    head_sha: str
    kind: ClassVar[str] = "push"

    @property
    def written(self) -> tuple[str, str]:
        return self.branch, self.head_sha

    @classmethod
    def read(cls, key: str, value: str) -> Self:
        return cls(key, value)


@dataclass(frozen=True, slots=True)
class WorkPushed:
    """The unverified work of an attempt was pushed to its own ref."""

    attempt: int
    git_ref: str
    kind: ClassVar[str] = "pushed_work"

    @property
    def written(self) -> tuple[str, str]:
        return str(self.attempt), self.git_ref

    @classmethod
    def read(cls, key: str, value: str) -> Self:
        return cls(int(key), value)


@dataclass(frozen=True, slots=True)
class _Merge:
    base_sha: str
    head_sha: str
    merge: str

    @property
    def written(self) -> tuple[str, str]:
        return f"{self.base_sha}:{self.head_sha}", self.merge

    @classmethod
    def read(cls, key: str, value: str) -> Self:
        base, _, head = key.partition(":")
        return cls(base, head, value)


@dataclass(frozen=True, slots=True)
class BaseMerged(_Merge):
    """The base was merged into the pull request's head, as the commit `merge`."""

    kind: ClassVar[str] = "merge"


@dataclass(frozen=True, slots=True)
class MergeRefused(_Merge):
    """A merge of the base into the head could not be pushed; it is not retried."""

    merge: str = REFUSED
    kind: ClassVar[str] = "merge_refused"


@dataclass(frozen=True, slots=True)
class ReviewsSettling:
    """A review waits until then for further ones; both are None if none waits."""

    review: int | None = None
    until: datetime | None = None
    kind: ClassVar[str] = "settling"

    @property
    def written(self) -> tuple[str, str]:
        return ONCE, f"{self.review} {self.until.isoformat()}" if self.until else ""

    @classmethod
    def read(cls, _key: str, value: str) -> Self:
        review, _, until = value.partition(" ")
        return cls(int(review), datetime.fromisoformat(until)) if until else cls()


class Topic(StrEnum):
    """The subject of a sentence about the pull request, or about the work that is in it."""

    MEANWHILE = "meanwhile"
    TEXT = "text"
    REVIEWS = "reviews"
    BRANCH = "branch"
    BASE = "base"
    CHECKS = "checks"


@dataclass(frozen=True, slots=True)
class PullNote:
    """A sentence about the pull request, for people; one for each topic, and "" for none."""

    topic: Topic
    text: str
    kind: ClassVar[str] = "pull_note"

    @property
    def written(self) -> tuple[str, str]:
        return self.topic, self.text

    @classmethod
    def read(cls, key: str, value: str) -> Self:
        return cls(Topic(key), value)


@dataclass(frozen=True, slots=True)
class Answered:
    """A review was answered: as a whole, or (`attempt`) one of its line comments."""

    number: int
    attempt: int | None
    comment: str
    kind: ClassVar[str] = "answer"

    @property
    def written(self) -> tuple[str, str]:
        as_a_whole = self.attempt is None
        key = f"review:{self.number}" if as_a_whole else f"{self.number}:{self.attempt}"
        return key, self.comment

    @classmethod
    def read(cls, key: str, value: str) -> Self:
        first, _, second = key.partition(":")
        if first == "review":
            return cls(int(second), None, value)
        return cls(int(first), int(second), value)


@dataclass(frozen=True, slots=True)
class CommentsRead:
    """The comments of the whole repository were read up to this id."""

    read_to: int
    kind: ClassVar[str] = "comments_read"

    @property
    def written(self) -> tuple[str, str]:
        return ONCE, f"to:{self.read_to}"

    @classmethod
    def read(cls, _key: str, value: str) -> Self:
        return cls(int(value.removeprefix("to:")))


@dataclass(frozen=True, slots=True)
class NotFoundSince:
    """GitHub has not found something since then; None once it was found again (GITHUB-3)."""

    what: str
    since: datetime | None = None
    kind: ClassVar[str] = "not_found"

    @property
    def written(self) -> tuple[str, str]:
        return self.what, self.since.isoformat() if self.since else FOUND

    @classmethod
    def read(cls, key: str, value: str) -> Self:
        return cls(key, None if value == FOUND else datetime.fromisoformat(value))


@dataclass(frozen=True, slots=True)
class InHand:
    """The issue said, under this request, that it waits for somebody's pull request (HAND-1)."""

    act: Act
    kind: ClassVar[str] = "in_hand"

    @property
    def written(self) -> tuple[str, str]:
        return ONCE, str(self.act)

    @classmethod
    def read(cls, _key: str, value: str) -> Self:
        return cls(parse_act(value))


@dataclass(frozen=True, slots=True)
class PublicationDelayed:
    """The publication of the last attempt has failed since then; it is repeated (PUBLISH-1)."""

    since: datetime
    reason: str
    kind: ClassVar[str] = "publication_delayed"

    @property
    def written(self) -> tuple[str, str]:
        return ONCE, f"{self.since.isoformat()} {self.reason}"

    @classmethod
    def read(cls, _key: str, value: str) -> Self:
        since, _, reason = value.partition(" ")
        return cls(datetime.fromisoformat(since), reason)


@dataclass(frozen=True, slots=True)
class UnknownEffect:
    """An effect that another version recorded."""

    kind: str
    key: str
    remote_id: str

    @property
    def written(self) -> tuple[str, str]:
        return self.key, self.remote_id


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
    | Answered
    | CommandAnswered
    | CommentsRead
    | NotFoundSince
    | PublicationDelayed
    | InHand
    | UnknownEffect
)


# Their events.

READERS = {
    each.kind: each.read
    for each in (
        *(StageShown, StatusWritten, LabelRequested, BlockShown, Pushed, WorkPushed, BaseMerged),
        *(MergeRefused, ReviewsSettling, PullNote, Answered, CommandAnswered, CommentsRead),
        *(NotFoundSince, PublicationDelayed, InHand),
    )
}


def event_of(effect: Effect) -> EffectDone:
    """Return the event of an effect."""
    key, remote_id = effect.written
    return EffectDone(effect=effect.kind, key=key, remote_id=remote_id)


def effect_of(kind: str, key: str, remote_id: str) -> Effect:
    """Return the effect of an event."""
    read = READERS.get(kind)
    try:
        return read(key, remote_id) if read else UnknownEffect(kind, key, remote_id)
    except ValueError:
        return UnknownEffect(kind, key, remote_id)


def kept_effect(effect: Effect) -> KeptEffect:
    """Write an effect for an event that replaces earlier events."""
    key, remote_id = effect.written
    return KeptEffect(name=f"{effect.kind}:{key}", remote_id=remote_id)


def comments_read_to(event: Event) -> int:
    """Return the comment id up to which an event says that comments were read; else 0."""
    if isinstance(event, EffectDone) and event.effect == CommentsRead.kind:
        return _read_to(event.remote_id)
    if isinstance(event, Forgotten):
        kept = (each for each in event.effects if each.name.startswith(f"{CommentsRead.kind}:"))
        return max((_read_to(each.remote_id) for each in kept), default=0)
    return 0


def _read_to(remote_id: str) -> int:
    found = effect_of(CommentsRead.kind, ONCE, remote_id)
    return found.read_to if isinstance(found, CommentsRead) else 0


# All effects of an issue.

MAX_EFFECTS_PER_KIND = 100
"""Limit of effects of a kind to keep; above the number of threads in a review."""

E = TypeVar("E", bound=Effect)


def _read_all(rows: Sequence[tuple[str, str, str]]) -> tuple[Effect, ...]:
    return tuple(effect_of(*row) for row in rows)


def _write_all(effects: tuple[Effect, ...]) -> list[tuple[str, str, str]]:
    return [(each.kind, *each.written) for each in effects]


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects on an issue, in the order of their events; for each key the last one."""

    done: Annotated[tuple[Effect, ...], PlainValidator(_read_all), PlainSerializer(_write_all)] = ()

    def plus(self, effect: Effect) -> "Effects":
        """Add an effect; drop the oldest of its kind beyond MAX_EFFECTS_PER_KIND."""
        key = effect.written[0]
        same = [each for each in self.done if each.kind == effect.kind]
        dropped = [each for each in same if each.written[0] == key]
        if not dropped and len(same) == MAX_EFFECTS_PER_KIND:
            dropped = same[:1]
        return Effects((*(each for each in self.done if each not in dropped), effect))

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
        answered = {(each.number, each.attempt) for each in self.all(Answered)}
        return (number, attempt) in answered


NO_EFFECTS = Effects()
