"""One effect of each kind."""

from datetime import UTC, datetime

from mulligan.domain.issue import CommentAct, LabelAct, Stage
from mulligan.domain.recorded_effects import (
    BaseMerged,
    BlockShown,
    CommandAnswered,
    CommentsRead,
    Effect,
    EscalationAnswered,
    InHand,
    LabelRequested,
    MergeRefused,
    NotFoundSince,
    Obstacle,
    PublicationDelayed,
    PullNote,
    Pushed,
    ReviewAnswered,
    ReviewsSettling,
    StageShown,
    StatusWritten,
    Topic,
    WorkPushed,
)

NOON = datetime(2026, 11, 1, 12, 0, 5, tzinfo=UTC)
EFFECTS: tuple[Effect, ...] = (
    StageShown(stage=Stage.REVIEW),
    StatusWritten(comment="77"),
    LabelRequested(act=LabelAct(7), comment="78"),
    BlockShown(obstacle=Obstacle.DISK, epoch=2, reason="Full."),
    Pushed(branch="mulligan/issue-1", head_sha="c0ffee"),
    WorkPushed(attempt=3, git_ref="refs/mulligan/work/1"),
    BaseMerged(base_sha="b", head_sha="h", merge="m"),
    MergeRefused(base_sha="b", head_sha="h"),
    ReviewsSettling(review=7, until=NOON),
    PullNote(topic=Topic.TEXT, text="Somebody edited the text."),
    ReviewAnswered(number=7, attempt=2, comment="79"),
    CommandAnswered(act=CommentAct(9), comment="80"),
    EscalationAnswered(comment="https://x/1#issuecomment-82"),
    CommentsRead(read_to=81),
    NotFoundSince(what="the issue o/r#3", since=NOON),
    PublicationDelayed(since=NOON, reason="GitHub is away."),
    InHand(act=LabelAct(7)),
)
