"""What is left of the feedback, and of the work, after reviews were withdrawn (PR-2)."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mulligan.domain.attempt import CHANGES_WITHDRAWN
from mulligan.domain.events import Remark, ReviewsWithdrawn, StoodDown
from mulligan.domain.feedback import Feedback
from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef, ReviewAct, Stage
from mulligan.domain.outcome import StandDown
from mulligan.domain.status import IssueStatus, Phase, PullStatus

pytestmark = pytest.mark.pure

NOW = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
ONE = Remark(author="wes", body="One.", review=1)
ON_LINE = Remark(author="wes", body="Here.", review=1, thread=7)
TWO = Remark(author="mia", body="Two.", review=2)
BOTH = Feedback(at=NOW, remarks=(ONE, ON_LINE, TWO), received=(1, 2))
DUE = IssueStatus(
    IssueRef("octo/calc", 12), stage=Stage.READY, pull=PullStatus("#13", 13), feedback=BOTH
)


def test_a_review_with_comments_on_lines_is_answered_there() -> None:
    assert (BOTH.reviews, BOTH.threads) == ({2: "mia"}, (7,))


@pytest.mark.parametrize(
    ("feedback", "gone", "left"),
    [
        (BOTH, (1,), Feedback(at=NOW, remarks=(TWO,), received=(2,))),
        (BOTH, (1, 2), None),
        (Feedback(at=NOW, received=(1,), conflict="a"), (1,), Feedback(at=NOW, conflict="a")),
    ],
)
def test_the_other_feedback_is_left(
    feedback: Feedback, gone: tuple[int, ...], left: Feedback | None
) -> None:
    after = advance(replace(DUE, feedback=feedback), ReviewsWithdrawn(reviews=gone), NOW)
    assert after.feedback == left
    assert (after.stage, after.phase) == (Stage.READY, Phase.IDLE)


def test_a_review_that_was_withdrawn_before_it_was_read_is_handled() -> None:
    after = advance(replace(DUE, feedback=None), ReviewsWithdrawn(reviews=(9,)), NOW)
    assert ReviewAct(9) in after.handled
    assert after.feedback is None


def test_the_end_of_the_work_is_decided_where_nothing_is_under_way() -> None:
    after = advance(DUE, ReviewsWithdrawn(reviews=(1, 2), ends_work=True), NOW)
    assert after.phase is Phase.DECIDED
    assert after.decision == StandDown(reason=CHANGES_WITHDRAWN, keeps_pull=True)


def test_an_attempt_under_way_keeps_its_feedback_until_it_ends() -> None:
    at_work = replace(DUE, stage=Stage.RUNNING, phase=Phase.ATTEMPTING)
    after = advance(at_work, ReviewsWithdrawn(reviews=(1, 2), ends_work=True), NOW)
    assert (after.phase, after.feedback) == (Phase.ATTEMPTING, BOTH)


@pytest.mark.parametrize(("draft_of", "stage"), [(0, Stage.REVIEW), (3, Stage.HITL)])
def test_the_pull_request_waits_as_before(draft_of: int, stage: Stage) -> None:
    decided = replace(DUE, phase=Phase.DECIDED, pull=replace(DUE.pull, draft_of=draft_of))
    after = advance(decided, StoodDown(reason=CHANGES_WITHDRAWN, keeps_pull=True), NOW)
    assert (after.stage, after.phase, after.feedback) == (stage, Phase.IDLE, None)
    assert after.labelled
