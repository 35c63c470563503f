"""What was done is not done twice, however much was done since, and the record stays small."""

from datetime import UTC, datetime
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from mulligan.domain.events import Forgotten, IssueSeen, comments_read_to
from mulligan.domain.issue import (
    CommentAct,
    ConsoleAct,
    LabelAct,
    OperatorAct,
    ReviewAct,
    UnknownAct,
    parse_act,
)
from mulligan.domain.recorded_effects import (
    MAX_EFFECTS_PER_KIND,
    NO_EFFECTS,
    BaseMerged,
    CommandAnswered,
    CommentsRead,
    Effect,
    Effects,
    LabelRequested,
    Pushed,
    ReviewAnswered,
    StatusWritten,
)
from mulligan.domain.status import (
    MAX_HANDLED_PER_KIND,
    Conflict,
    FailedHead,
    Handleable,
    Handled,
    handled_of,
)

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
IDS = st.integers(1, 10**6)
KINDS = (
    st.builds(CommentAct, IDS),
    st.builds(ReviewAct, IDS),
    st.builds(ConsoleAct, IDS.map(str)),
    st.builds(Conflict, IDS.map(str), IDS.map(str)),
    st.builds(FailedHead, IDS.map(str)),
)
HANDLEABLE = st.one_of(*KINDS)


def handled(*each: Handleable) -> Handled:
    return reduce(Handled.plus, each, Handled())


def size(found: Handled) -> int:
    ids = len(found.comments.ids) + len(found.reviews.ids)
    return ids + len(found.console) + len(found.conflicts) + len(found.failed_heads)


@settings(max_examples=25, deadline=None)
@given(st.lists(HANDLEABLE, max_size=400))
def test_what_was_heard_of_people_is_never_forgotten(said: list[Handleable]) -> None:
    found = Handled()
    for each in said:
        found = found.plus(each)
        assert each in found
    assert all(each in found for each in said if isinstance(each, CommentAct | ReviewAct))
    assert size(found) <= len(KINDS) * MAX_HANDLED_PER_KIND


@pytest.mark.parametrize(("kind", "other"), [(CommentAct, ReviewAct), (ReviewAct, CommentAct)])
@settings(max_examples=25, deadline=None)
@given(count=st.integers(MAX_HANDLED_PER_KIND + 2, 4 * MAX_HANDLED_PER_KIND))
def test_what_comes_after_all_that_was_heard_is_new(
    kind: type[CommentAct | ReviewAct], other: type[CommentAct | ReviewAct], count: int
) -> None:
    found = handled(*map(kind, range(1, count)))
    assert size(found) == MAX_HANDLED_PER_KIND
    assert all(kind(number) in found for number in range(1, count))
    assert kind(count) not in found
    assert other(1) not in found


@settings(max_examples=25, deadline=None)
@given(st.lists(HANDLEABLE, max_size=250))
def test_in_sum_it_is_one_mark_for_each_kind_that_has_an_order(said: list[Handleable]) -> None:
    marks = handled(*said).marks
    ordered = [each for each in said if isinstance(each, CommentAct | ReviewAct)]
    assert all(each in handled_of(marks) for each in ordered)
    assert len(marks) == len({type(each) for each in ordered})
    assert handled_of(marks).marks == marks


def test_the_last_of_what_has_no_order_is_kept() -> None:
    found = handled(*(FailedHead(f"{number}") for number in range(MAX_HANDLED_PER_KIND + 5)))
    assert size(found) == MAX_HANDLED_PER_KIND
    assert FailedHead(f"{MAX_HANDLED_PER_KIND + 4}") in found
    assert FailedHead("0") not in found


def test_each_is_kept_once() -> None:
    twice = handled(*[FailedHead("a"), FailedHead("a"), FailedHead("b")], *map(CommentAct, (3, 3)))
    assert twice.failed_heads == (FailedHead("a"), FailedHead("b"))
    assert twice.comments.ids == (3,)


def effects(*each: Effect) -> Effects:
    return reduce(Effects.plus, each, NO_EFFECTS)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 10**6), max_size=150), st.integers(10**6, 10**7))
def test_the_effects_of_the_last_attempt_are_kept(numbers: list[int], last: int) -> None:
    once = (Pushed(branch="mulligan/issue-12", head_sha="c0ffee"), StatusWritten(comment="7"))
    replies = (CommandAnswered(act=CommentAct(number), comment="1") for number in numbers)
    answers = (ReviewAnswered(number=number, attempt=1, comment="2") for number in numbers)
    found = effects(
        *once,
        *replies,
        *answers,
        *(ReviewAnswered(number=n, attempt=last, comment="3") for n in range(50)),
    )
    assert len(found.done) <= 2 * MAX_EFFECTS_PER_KIND + 2
    assert all(found.has_answered(number, last) for number in range(50))
    assert (found.pushed, found.status_comment) == ("c0ffee", "7")


def test_a_comment_that_asks_for_the_label_is_known_by_its_act() -> None:
    found = effects(
        LabelRequested(act=LabelAct(7), comment="78"), LabelRequested(act=LabelAct(8), comment="79")
    )
    assert [found.label_request(act) for act in (LabelAct(7), LabelAct(8), None)] == [
        "78",
        "79",
        "",
    ]


def test_effects_and_handled_acts_are_stored_and_read_back() -> None:
    stored = TypeAdapter(tuple[Effects, Handled])
    done = effects(
        StatusWritten(comment="7"), Pushed(branch="mulligan/issue-12", head_sha="c0ffee")
    )
    found = (done, handled(ConsoleAct("2025"), CommentAct(7), Conflict("a", "b")))
    assert stored.validate_json(stored.dump_json(found)) == found


def test_what_was_done_last_is_kept_whatever_its_key() -> None:
    merges = [
        BaseMerged(base_sha=f"b{n}", head_sha=f"h{n}", merge=f"m{n}")
        for n in range(3 * MAX_EFFECTS_PER_KIND)
    ]
    assert effects(*merges).all(BaseMerged) == tuple(merges[-MAX_EFFECTS_PER_KIND:])


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (LabelAct(7), "labeled:7"),
        (CommentAct(9), "comment:9"),
        (ReviewAct(5), "review:5"),
        (ConsoleAct("2025-03-01T12:00:00+00:00"), "command:2025-03-01T12:00:00+00:00"),
        (OperatorAct("now"), "operator:now"),
        (UnknownAct("labeled:x"), "labeled:x"),
        (UnknownAct("seance"), "seance"),
    ],
)
def test_an_act_is_read_as_it_was_written(act: object, text: str) -> None:
    assert str(act) == text
    assert parse_act(text) == act


def test_only_a_cursor_says_how_far_comments_were_read() -> None:
    assert comments_read_to(CommentsRead(read_to=9)) == 9
    assert comments_read_to(StatusWritten(comment="9")) == 0
    assert comments_read_to(IssueSeen(title="to:9")) == 0


def test_a_forgotten_history_keeps_how_far_comments_were_read() -> None:
    kept = (CommentsRead(read_to=9), StatusWritten(comment="77"))
    left = Forgotten(reason="merged", number=1, act="labeled:7", known_since=NOON, effects=kept)
    assert comments_read_to(left) == 9
    assert comments_read_to(left.model_copy(update={"effects": kept[1:]})) == 0
