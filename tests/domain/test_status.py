"""Where an issue stands after its events, told as the stories that can happen."""

from collections.abc import Hashable, Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.domain.command import Verb
from mulligan.domain.events import (
    AgentStarted,
    AttemptStarted,
    Authorised,
    CommandReceived,
    Decided,
    Escalated,
    Event,
    HumanResponded,
    IssueSeen,
    Published,
    Resolution,
    Resolved,
    RetryScheduled,
    ReviewReceived,
    StoodDown,
    Waiting,
    WorktreeReset,
)
from mulligan.domain.fold import advance
from mulligan.domain.issue import CommentAct, LabelAct, Stage
from mulligan.domain.outcome import Escalate, OpenPullRequest, Outcome, Retry
from mulligan.domain.recorded_effects import (
    CommandAnswered,
    EscalationAnswered,
    InHand,
    PublicationDelayed,
    PullNote,
    Pushed,
    StageShown,
    key_of,
)
from mulligan.domain.status import IssueStatus, Phase, Request
from world.ledgers import ISSUES, START, completed, events

pytestmark = pytest.mark.pure

REF = ISSUES[0]
DUE = START + timedelta(minutes=1)
SEEN = IssueSeen(title="Mend it")
AUTHORISED = Authorised(act="labeled:7", actor="ada", act_at=START)
FIRST = AttemptStarted(attempt=1, number=1, worker="here")
FAILED = completed(REF, 1)
GOOD = completed(REF, 1, Outcome.SUCCEEDED)
AGAIN = Decided(decision=Retry(reason="2 attempts left.", backoff_step=1))
GIVE_UP = Decided(decision=Escalate(reason="All 3 attempts failed."))
OPEN = Decided(decision=OpenPullRequest(reason="The check 'tests' passed."))
SCHEDULED = RetryScheduled(due=DUE, reason="2 attempts left.")
WAITING = Waiting(until=DUE, reason="The budget is used up.")
ESCALATED = Escalated(reason="All 3 attempts failed.", comment="https://x/1#c")
PUBLISHED = Published(pull_request="https://x/pull/2", number=2, head_sha="abc")
STOOD_DOWN = StoodDown(reason="The label was taken off.")
RESOLVED = Resolved(
    resolution=Resolution.SKIPPED, reason="merged", total_attempts=1, total_duration_ms=5
)


def after(*events: Event) -> IssueStatus:
    status = IssueStatus(REF)
    for minutes, event in enumerate(events):
        status = advance(status, event, START + timedelta(minutes=minutes))
    return status


@pytest.mark.parametrize(
    ("events", "stage", "phase", "due", "reason"),
    [
        ([], Stage.READY, Phase.IDLE, None, ""),
        ([SEEN, AUTHORISED], Stage.READY, Phase.IDLE, None, ""),
        ([AUTHORISED, FIRST], Stage.RUNNING, Phase.ATTEMPTING, None, ""),
        ([AUTHORISED, FIRST, FAILED], Stage.RUNNING, Phase.COMPLETED, None, FAILED.meta.error),
        ([FIRST, FAILED, AGAIN], Stage.RUNNING, Phase.DECIDED, None, "2 attempts left."),
        ([FIRST, FAILED, AGAIN, SCHEDULED], Stage.READY, Phase.IDLE, DUE, "2 attempts left."),
        ([FIRST, FAILED, AGAIN, SCHEDULED, FIRST], Stage.RUNNING, Phase.ATTEMPTING, None, ""),
        ([FIRST, WAITING], Stage.READY, Phase.IDLE, DUE, "The budget is used up."),
        ([GIVE_UP, ESCALATED], Stage.HITL, Phase.IDLE, None, "All 3 attempts failed."),
        ([GOOD, OPEN, PUBLISHED], Stage.REVIEW, Phase.IDLE, None, "The check 'tests' passed."),
        ([FIRST, STOOD_DOWN], Stage.RESOLVED, Phase.IDLE, None, "The label was taken off."),
        ([PUBLISHED, RESOLVED], Stage.RESOLVED, Phase.IDLE, None, "merged"),
        ([ESCALATED, AUTHORISED], Stage.READY, Phase.IDLE, None, ""),
    ],
)
def test_events_lead_to_a_stage_and_to_what_is_next(
    events: Sequence[Event], stage: Stage, phase: Phase, due: object, reason: str
) -> None:
    status = after(*events)
    assert (status.stage, status.phase) == (stage, phase)
    assert (status.due, status.reason) == (due, reason)


@pytest.mark.parametrize("last", [ESCALATED, PUBLISHED, STOOD_DOWN, RESOLVED])
def test_an_issue_that_is_settled_waits_for_no_time(last: Event) -> None:
    assert after(WAITING, last).due is None


def test_an_attempt_leaves_its_numbers_its_outcome_and_its_start() -> None:
    status = after(SEEN, AUTHORISED, FIRST, FAILED)
    assert (status.text.title, status.epoch, status.attempt, status.number) == ("Mend it", 1, 1, 1)
    assert status.outcome is Outcome.CHECKS_FAILED
    assert status.started_at == START + timedelta(minutes=2)


def test_the_decision_is_kept_so_that_it_can_be_carried_out_again() -> None:
    assert after(FIRST, FAILED, AGAIN).decision == AGAIN.decision


def test_a_new_epoch_counts_afresh_and_forgets_nothing_that_was_made() -> None:
    answer = Authorised(act="labeled:9", actor="bob", act_at=DUE)
    pushed = Pushed(branch="branch", head_sha="abc")
    status = after(SEEN, AUTHORISED, FIRST, pushed, GOOD, OPEN, PUBLISHED, answer)
    assert (status.epoch, status.attempt, status.number) == (2, 0, 1)
    assert status.request == Request(str(LabelAct(9)), "bob", at=DUE)
    assert (status.outcome, status.decision) == (None, None)
    assert status.pull.url == "https://x/pull/2"
    assert status.effects.pushed == "abc"


def test_an_effect_done_again_takes_the_place_of_the_first() -> None:
    first = Pushed(branch="branch", head_sha="abc")
    second = Pushed(branch="branch", head_sha="def")
    other = CommandAnswered(act=CommentAct(1), comment="1")
    status = after(first, other, second)
    assert status.effects.done == (other, second)
    assert status.effects.pushed == "def"


def test_a_stage_is_shown_until_it_changes() -> None:
    shown = StageShown(stage=Stage.READY)
    assert after(AUTHORISED, shown).is_shown
    assert after(AUTHORISED, shown, SEEN).is_shown
    assert not after(AUTHORISED, shown, FIRST).is_shown
    assert not after(AUTHORISED, shown, FIRST, GOOD, AGAIN, SCHEDULED).is_shown
    assert not after(AUTHORISED, FIRST, shown).is_shown


@pytest.mark.parametrize(
    "story", [AgentStarted(agent="x"), WorktreeReset(base_sha="a", start_sha="a")]
)
def test_events_that_only_tell_a_story_change_nothing(story: Event) -> None:
    assert after(AUTHORISED, FIRST, story) == after(AUTHORISED, FIRST)


def keys(status: IssueStatus) -> set[Hashable]:
    """Return the keys of the effects that no event undoes."""
    passing = (PublicationDelayed, PullNote, InHand, StageShown)
    return {key_of(each) for each in status.effects.done if not isinstance(each, passing)}


@given(st.lists(events(), max_size=20))
def test_whatever_happens_an_issue_is_in_one_stage_and_its_counts_never_fall(
    happened: list[Event],
) -> None:
    status = IssueStatus(REF)
    for event in happened:
        following = advance(status, event, START)
        assert following.issue == REF
        if event.kind == "forgotten":
            # It stands first in what is left of an issue, and is all that is left.
            assert (following.epoch, following.phase) == (0, Phase.IDLE)
            status = following
            continue
        opens = event.opens_epoch if isinstance(event, ReviewReceived) else False
        assert following.epoch - status.epoch == (event.kind == "authorised" or opens)
        assert keys(status) <= keys(following)
        settled = following.stage in {Stage.REVIEW, Stage.HITL, Stage.RESOLVED}
        if settled and following.stage is not status.stage:
            assert (following.phase, following.due) == (Phase.IDLE, None)
        status = following


def test_a_command_that_was_read_twice_is_recorded_once() -> None:
    order = CommandReceived(key="comment:9", command=Verb.STATUS, actor="ada", at=START)
    assert after(SEEN, order, order) == after(SEEN, order)
    answered = HumanResponded(key="comment:9", command=Verb.STATUS, answer="Done.")
    assert after(SEEN, order, answered, order).pending == ()


def test_work_is_ended_by_a_command_other_than_the_one_that_asked_for_it() -> None:
    asked = Authorised(act="comment:9", actor="ada", act_at=START)
    orders = [
        CommandReceived(key="comment:9", command=Verb.FIX, actor="ada", at=START),
        CommandReceived(key="comment:10", command=Verb.PAUSE, actor="ada", at=START),
        CommandReceived(key="comment:11", command=Verb.SKIP, actor="bob", at=START),
    ]
    assert not after(SEEN, asked, FIRST, *orders[:2]).ending_reason
    assert after(SEEN, asked, FIRST, *orders).ending_reason == "bob skipped it."


def test_a_comment_that_is_delayed_shows_no_stage() -> None:
    status = after(SEEN, AUTHORISED, StageShown(stage=None))
    assert (status.has_deferred_comment, status.is_shown) == (True, False)
    assert not after(SEEN, AUTHORISED, StageShown(stage=Stage.READY)).has_deferred_comment


def test_a_pause_ends_with_the_issue_and_not_with_the_label() -> None:
    pause = CommandReceived(key="comment:9", command=Verb.PAUSE, actor="ada", at=START)
    begun = (SEEN, AUTHORISED, pause)
    assert after(*begun, STOOD_DOWN).paused_by == "ada"
    assert after(*begun, RESOLVED).paused_by == ""


def test_only_new_guidance_saves_a_review_from_the_end_of_its_attempt() -> None:
    review = ReviewReceived(reviews=(4,), author="wes", at=START, remarks=())
    fix = CommandReceived(key="comment:9", command=Verb.FIX, text="Keep it short.", at=START)
    begun = (SEEN, AUTHORISED, FIRST, GOOD, OPEN, PUBLISHED, review)
    assert after(*begun, STOOD_DOWN).feedback is None
    assert after(*begun, fix, STOOD_DOWN).feedback == after(*begun).feedback
    assert after(*begun, fix, RESOLVED).feedback is None


def test_the_end_of_the_work_is_all_that_an_abort_and_the_first_skip_wanted() -> None:
    keys = {"comment:9": Verb.ABORT, "comment:10": Verb.SKIP, "comment:11": Verb.SKIP}
    orders = [CommandReceived(key=key, command=keys[key], at=START) for key in keys]
    merged = Resolved(
        resolution=Resolution.MERGED, reason="It ended.", total_attempts=1, total_duration_ms=5
    )

    def done(*end: Event) -> list[bool]:
        return [each.is_done for each in after(SEEN, AUTHORISED, FIRST, *orders, *end).pending]

    assert done() == done(merged) == [False, False, False]
    assert done(STOOD_DOWN) == [True, False, False]
    assert done(RESOLVED) == [False, True, False]
    assert done(STOOD_DOWN, RESOLVED) == [True, True, False]


def test_an_answer_counts_for_the_escalation_that_it_names() -> None:
    answered = EscalationAnswered(comment=ESCALATED.comment)
    assert not after(GIVE_UP, ESCALATED).is_escalation_answered
    assert after(GIVE_UP, ESCALATED, answered).is_escalation_answered
    again = Escalated(reason="Again.", comment="https://x/1#d")
    assert not after(GIVE_UP, ESCALATED, answered, AUTHORISED, again).is_escalation_answered
