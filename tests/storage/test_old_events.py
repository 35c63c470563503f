"""Effects that version 1 stored by a name, a key and a value are read as the events of today."""

from datetime import UTC, datetime
from functools import reduce
from typing import get_args

import pytest

from mulligan.domain.errors import ConfigError
from mulligan.domain.events import Forgotten, RecordedEvent, Resolution, Resolved, Restored
from mulligan.domain.issue import CommentAct, ConsoleAct, IssueRef, LabelAct, Stage, UnknownAct
from mulligan.domain.recorded_effects import (
    NO_EFFECTS,
    BaseMerged,
    BlockShown,
    CommandAnswered,
    CommentsRead,
    Effect,
    Effects,
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
from mulligan.domain.status import IssueStatus
from mulligan.storage.git_ref import mark_of, read_lines, write_lines
from mulligan.storage.serialization import Row, folded, recorded_of, replay
from mulligan.text.redact import Redactor

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
REF = IssueRef("octo/hello", 1)
OLD: list[tuple[str, Effect]] = [
    (
        '{"kind":"effect_done","effect":"status_comment","key":"issue","remote_id":"77"}',
        StatusWritten(comment="77"),
    ),
    (
        '{"kind":"effect_done","effect":"label_comment","key":"labeled:7","remote_id":"78"}',
        LabelRequested(act=LabelAct(7), comment="78"),
    ),
    (
        '{"kind":"effect_done","effect":"held","key":"all_agents","remote_id":"2:5e:ab"}',
        BlockShown(obstacle=Obstacle.ALL_AGENTS, epoch=2),
    ),
    (
        '{"kind":"effect_done","effect":"push","key":"mulligan/issue-1","remote_id":"c0ffee"}',
        Pushed(branch="mulligan/issue-1", head_sha="c0ffee"),
    ),
    (
        '{"kind":"effect_done","effect":"pushed_work","key":"3","remote_id":"refs/x"}',
        WorkPushed(attempt=3, git_ref="refs/x"),
    ),
    (
        '{"kind":"effect_done","effect":"merge","key":"b1:h1","remote_id":"m1"}',
        BaseMerged(base_sha="b1", head_sha="h1", merge="m1"),
    ),
    (
        '{"kind":"effect_done","effect":"merge_refused","key":"b2:h2","remote_id":"refused"}',
        MergeRefused(base_sha="b2", head_sha="h2"),
    ),
    (
        (
            '{"kind":"effect_done","effect":"settling","key":"issue",'
            '"remote_id":"7 2025-03-01T12:00:00+00:00"}'
        ),
        ReviewsSettling(review=7, until=NOON),
    ),
    (
        '{"kind":"effect_done","effect":"settling","key":"issue","remote_id":""}',
        ReviewsSettling(),
    ),
    (
        '{"kind":"effect_done","effect":"pull_note","key":"text","remote_id":"Edited: by hand."}',
        PullNote(topic=Topic.TEXT, text="Edited: by hand."),
    ),
    (
        '{"kind":"effect_done","effect":"answer","key":"review:7","remote_id":"79"}',
        ReviewAnswered(number=7, comment="79"),
    ),
    (
        '{"kind":"effect_done","effect":"answer","key":"7:2","remote_id":"80"}',
        ReviewAnswered(number=7, attempt=2, comment="80"),
    ),
    (
        '{"kind":"effect_done","effect":"reply","key":"comment:9","remote_id":"81"}',
        CommandAnswered(act=CommentAct(9), comment="81"),
    ),
    (
        (
            '{"kind":"effect_done","effect":"reply","key":"command:2025-03-01T12:00:00+00:00",'
            '"remote_id":"82"}'
        ),
        CommandAnswered(act=ConsoleAct("2025-03-01T12:00:00+00:00"), comment="82"),
    ),
    (
        '{"kind":"effect_done","effect":"comments_read","key":"issue","remote_id":"to:83"}',
        CommentsRead(read_to=83),
    ),
    (
        (
            '{"kind":"effect_done","effect":"not_found","key":"the issue o/r#3",'
            '"remote_id":"2025-03-01T12:00:00+00:00"}'
        ),
        NotFoundSince(what="the issue o/r#3", since=NOON),
    ),
    (
        '{"kind":"effect_done","effect":"not_found","key":"the issue o/r#4","remote_id":"found"}',
        NotFoundSince(what="the issue o/r#4"),
    ),
    (
        '{"kind":"effect_done","effect":"in_hand","key":"issue","remote_id":"of another kind"}',
        InHand(act=UnknownAct("of another kind")),
    ),
    (
        (
            '{"kind":"effect_done","effect":"publication_delayed","key":"issue",'
            '"remote_id":"2025-03-01T12:00:00+00:00 GitHub is away."}'
        ),
        PublicationDelayed(since=NOON, reason="GitHub is away."),
    ),
    (
        '{"kind":"effect_done","effect":"shown_stage","key":"issue","remote_id":"later"}',
        StageShown(stage=None),
    ),
    (
        '{"kind":"effect_done","effect":"shown_stage","key":"issue","remote_id":"ready"}',
        StageShown(stage=Stage.READY),
    ),
]
"""What version 1 wrote, and what it means."""


def row(body: str, kind: str = "effect_done", seq: int = 1) -> Row:
    at = "2025-03-01T12:00:00.000000+00:00"
    return Row(seq, at, REF.repository, REF.number, 1, None, kind, 1, body)


def line(body: str) -> bytes:
    known = '{"at": "2025-03-01T12:00:00.000000+00:00", "epoch": 1, "attempt": null, '
    return f'{known}"schema_version": 1, "event": {body}}}\n'.encode()


def last_ones() -> Effects:
    """Return what counts of all: each `settling` and `shown_stage` replaces the one before."""
    of_issue = (effect for _, effect in OLD if not isinstance(effect, CommentsRead))
    return reduce(Effects.plus, of_issue, NO_EFFECTS)


def test_no_kind_of_effect_is_left_out() -> None:
    newer = {EscalationAnswered}
    assert {type(effect) for _, effect in OLD} == set(get_args(Effect)) - newer


@pytest.mark.parametrize(("body", "effect"), OLD)
def test_an_effect_in_a_row_and_on_the_state_ref_is_read(body: str, effect: Effect) -> None:
    assert recorded_of(row(body)).event == effect
    assert [each.event for each in read_lines(REF, line(body))] == [effect]


def test_the_status_follows_from_the_effects_that_were_stored() -> None:
    events = [recorded_of(row(body, seq=seq)) for seq, (body, _) in enumerate(OLD)]
    statuses, read_to = replay(events)
    assert statuses[REF] == folded(REF, read_lines(REF, b"".join(line(body) for body, _ in OLD)))
    assert statuses[REF] == IssueStatus(
        REF, known_since=NOON, effects=last_ones(), obstacle=Obstacle.ALL_AGENTS
    )
    assert len(statuses[REF].effects.done) == len(OLD) - 3
    assert read_to == {"octo/hello": 83}


KEPT = (
    '"effects":[{"name":"push:mulligan/issue-1","remote_id":"c0ffee"},'
    '{"name":"answer:review:7","remote_id":"79"},{"name":"comments_read:issue","remote_id":"to:9"}]'
)


def test_what_replaces_earlier_events_keeps_their_effects() -> None:
    forgotten = (
        '{"kind":"forgotten","reason":"merged","number":2,"act":"labeled:7",'
        f'"known_since":null,"pull_request":null,{KEPT},"epochs":1,"heard":[]}}'
    )
    restored = f'{{"kind":"restored","source":"labels","number":2,{KEPT},"handled":[]}}'
    effects = (
        Pushed(branch="mulligan/issue-1", head_sha="c0ffee"),
        ReviewAnswered(number=7, comment="79"),
        CommentsRead(read_to=9),
    )
    assert read(forgotten, "forgotten").event == Forgotten(
        reason="merged", number=2, act="labeled:7", known_since=None, effects=effects, epochs=1
    )
    assert read(restored, "restored").event == Restored(source="labels", number=2, effects=effects)


@pytest.mark.parametrize(
    ("reason", "resolution"),
    [
        ("Its pull request was merged.", Resolution.MERGED),
        ("Its pull request was closed without being merged.", Resolution.CLOSED),
        ("ada wrote /mulligan skip.", Resolution.SKIPPED),
    ],
)
def test_the_end_of_a_pull_request_is_read_from_its_sentence(
    reason: str, resolution: Resolution
) -> None:
    counts = '"total_attempts":2,"total_duration_ms":5'
    body = f'{{"kind":"resolved","resolution":"{reason}",{counts}}}'
    assert read(body, "resolved").event == Resolved(
        resolution=resolution, reason=reason, total_attempts=2, total_duration_ms=5
    )


def read(body: str, kind: str) -> RecordedEvent:
    return recorded_of(row(body, kind))


@pytest.mark.parametrize(
    "body",
    [
        '{"kind":"effect_done","effect":"weather","key":"issue","remote_id":"rain"}',
        '{"kind":"effect_done","effect":"pushed_work","key":"no number","remote_id":"refs/x"}',
        '{"kind":"effect_done","effect":"push"}',
        '{"kind":"restored","effects":["push"]}',
        "[]",
        "{",
    ],
)
def test_what_nobody_wrote_is_named_as_unreadable(body: str) -> None:
    with pytest.raises(ConfigError, match=r"Event 1 of the ledger, .* cannot be read by this"):
        recorded_of(row(body))


def test_a_mark_covers_old_lines_and_new_ones_alike() -> None:
    """What a status comment confirmed before the upgrade stays confirmed."""
    stored = {type(effect): line(body) for body, effect in OLD}
    pushed, written = stored[Pushed], stored[StatusWritten]
    (recorded,) = read_lines(REF, written)
    new = write_lines([recorded], Redactor())
    assert new != written
    assert mark_of(pushed + stored[StageShown] + written + new) == mark_of(pushed) != ""
