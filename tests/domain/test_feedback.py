"""What a pull request brings back, folded into where its issue stands."""

from datetime import timedelta
from functools import reduce

import pytest

from mulligan.domain.events import (
    AttemptStarted,
    Authorised,
    BroughtUpToDate,
    CiFailed,
    CiPassed,
    Conflicted,
    Drafted,
    Escalated,
    Event,
    FailedCheck,
    Published,
    Remark,
    Resolution,
    Resolved,
    ReviewReceived,
    StoodDown,
)
from mulligan.domain.feedback import Feedback, Review
from mulligan.domain.fold import advance
from mulligan.domain.issue import LabelAct, ReviewAct, Stage
from mulligan.domain.issue_context import own_commits
from mulligan.domain.outcome import Escalate, Outcome
from mulligan.domain.recorded_effects import BaseMerged, Pushed, StageShown
from mulligan.domain.status import (
    Conflict,
    FailedHead,
    Handleable,
    Handled,
    IssueStatus,
    Phase,
    Request,
)
from world.ledgers import ISSUES, START, completed

pytestmark = pytest.mark.pure
REF = ISSUES[0]
ONE, TWO = (Remark(author="wes", body=body, thread=7) for body in ("Please.", "And this."))
PUBLISHED = Published(pull_request="https://x/pull/2", number=2, head_sha="abc")
BEFORE = (
    Authorised(act="labeled:7", actor="ada", act_at=START),
    AttemptStarted(attempt=1, number=1, worker="here"),
    completed(REF, 1, Outcome.SUCCEEDED),
    PUBLISHED,
)
REVIEWED = ReviewReceived(reviews=(5, 6), author="wes", author_id=3, at=START, remarks=(ONE,))
AGAIN = ReviewReceived(reviews=(8,), author="mia", at=START + timedelta(days=1), remarks=(TWO,))
FAILED = CiFailed(head_sha="h", checks=(FailedCheck(name="tests", digest="1 failed"),))
CONFLICTED = Conflicted(base_sha="b", head_sha="h", files=("a", "c"))


def after(*events: Event) -> IssueStatus:
    status = IssueStatus(REF)
    for event in (*BEFORE, *events):
        status = advance(status, event, START)
    return status


def handled(*each: Handleable) -> Handled:
    return reduce(Handled.plus, each, Handled())


def test_a_review_makes_the_issue_due_in_the_same_epoch() -> None:
    status = after(REVIEWED)
    assert (status.stage, status.phase, status.epoch) == (Stage.READY, Phase.IDLE, 1)
    assert (status.request.act, status.handled) == (
        LabelAct(7),
        handled(ReviewAct(5), ReviewAct(6)),
    )
    assert status.feedback == Feedback(at=START, remarks=(ONE,), received=(5, 6))
    assert not status.is_shown


def test_feedback_is_told_until_an_attempt_at_it_is_published() -> None:
    begun = AttemptStarted(attempt=2, number=2, worker="here")
    assert after(REVIEWED, begun).feedback
    assert after(REVIEWED, begun, Escalated(reason="x", comment="")).feedback
    done = after(REVIEWED, begun, PUBLISHED)
    assert (done.feedback, done.stage, done.pull.number) == (None, Stage.REVIEW, 2)
    assert done.handled == handled(ReviewAct(5), ReviewAct(6))


def test_what_comes_back_adds_up() -> None:
    status = after(REVIEWED, AGAIN, CONFLICTED)
    assert status.feedback == Feedback(
        at=AGAIN.at, remarks=(ONE, TWO), received=(5, 6, 8), conflict="a, c"
    )
    assert status.feedback
    assert status.feedback.threads == (7,)
    reviews = map(ReviewAct, (5, 6, 8))
    assert status.handled == handled(*reviews, Conflict("b", "h"))
    assert after(CONFLICTED, REVIEWED).feedback == Feedback(
        at=START, remarks=(ONE,), received=(5, 6), conflict="a, c"
    )


def test_a_review_can_open_an_epoch_in_its_authors_name() -> None:
    status = after(REVIEWED.model_copy(update={"opens_epoch": True}))
    assert (status.epoch, status.attempt, status.rounds) == (2, 0, 1)
    assert status.request == Request(str(ReviewAct(6)), "wes", 3, REVIEWED.at)
    asked = Authorised(act="labeled:9", actor="ada", act_at=START)
    assert advance(status, asked, START).rounds == 0


def test_a_review_that_is_refused_asks_a_person() -> None:
    status = after(REVIEWED.model_copy(update={"refused": "That is enough."}))
    assert (status.stage, status.phase) == (Stage.REVIEW, Phase.DECIDED)
    assert status.decision == Escalate(reason="That is enough.")
    # What was published before is not kept to be published again.
    asked = advance(status, Escalated(reason="That is enough.", comment=""), START)
    assert (asked.stage, asked.is_kept) == (Stage.HITL, False)


@pytest.mark.parametrize(
    ("end", "number"),
    [
        (StoodDown(reason="The issue was closed."), 2),
        (
            Resolved(
                resolution=Resolution.SKIPPED,
                reason="wes left it out.",
                total_attempts=1,
                total_duration_ms=5,
            ),
            2,
        ),
        (
            Resolved(
                resolution=Resolution.MERGED,
                reason="It ended.",
                total_attempts=1,
                total_duration_ms=5,
            ),
            None,
        ),
        (
            Resolved(
                resolution=Resolution.CLOSED,
                reason="It ended.",
                total_attempts=1,
                total_duration_ms=5,
            ),
            None,
        ),
    ],
)
def test_an_end_leaves_nothing_pending(end: Event, number: int | None) -> None:
    status = after(REVIEWED, end)
    assert (status.stage, status.feedback) == (Stage.RESOLVED, None)
    assert status.pull.number == number


def test_a_conflict_in_no_file_by_name_is_one() -> None:
    pending = after(Conflicted(base_sha="b", head_sha="h")).feedback
    assert pending
    assert pending.conflict == "the same lines"


def test_a_review_without_a_line_is_answered_as_a_whole() -> None:
    whole = Remark(author="mia", body="Split it.", review=9)
    feedback = Feedback(at=START, remarks=(ONE, whole, TWO))
    assert (feedback.threads, feedback.reviews) == ((7,), {9: "mia"})


def test_a_review_has_a_key() -> None:
    assert Review(5, "wes", None, START, requests_changes=True).act == ReviewAct(5)


def test_checks_that_fail_on_github_make_the_issue_due_in_the_same_epoch() -> None:
    status = after(FAILED)
    assert (status.stage, status.phase, status.epoch) == (Stage.READY, Phase.IDLE, 1)
    assert (status.handled, status.ci_attempts) == (handled(FailedHead("h")), 1)
    assert status.feedback == Feedback(at=START, checks=FAILED.checks)
    again = FAILED.model_copy(update={"head_sha": "i", "checks": (FailedCheck(name="lint"),)})
    both = after(REVIEWED, FAILED, again).feedback
    lint = (FailedCheck(name="lint"),)
    assert both == Feedback(at=START, remarks=(ONE,), received=(5, 6), checks=lint)


def test_attempts_for_checks_on_github_are_counted_by_the_epoch() -> None:
    begun = AttemptStarted(attempt=2, number=2, worker="here")
    refused = FAILED.model_copy(update={"head_sha": "i", "refused": "That is enough."})
    status = after(FAILED, begun, PUBLISHED, refused)
    assert status.ci_attempts == 1
    assert status.handled == handled(FailedHead("h"), FailedHead("i"))
    assert status.decision == Escalate(reason="That is enough.")
    asked = Authorised(act="labeled:9", actor="ada", act_at=START)
    assert advance(status, asked, START).ci_attempts == 0


def test_what_passed_on_github_is_shown_until_the_head_is_another() -> None:
    shown = StageShown(stage=Stage.REVIEW)
    passed = after(shown, CiPassed(head_sha="h", count=2))
    assert (passed.pull.passed, passed.stage, passed.is_shown) == (2, Stage.REVIEW, False)
    for event in (REVIEWED, FAILED, PUBLISHED, AttemptStarted(attempt=2, number=2, worker="x")):
        assert advance(passed, event, START).pull.passed == 0


def test_a_draft_is_known_until_its_work_is_verified() -> None:
    drafted = Drafted(pull_request="https://x/pull/3", number=3, head_sha="abc", attempt=1)
    status = after(
        Resolved(resolution=Resolution.SKIPPED, reason="x", total_attempts=1, total_duration_ms=1),
        drafted,
    )
    assert (status.pull.url, status.pull.number) == ("https://x/pull/3", 3)
    assert status.pull.draft_of == 1
    again = PUBLISHED.model_copy(update={"left_draft": "There is no GraphQL."})
    left = advance(status, again, START)
    assert (left.pull.draft_of, left.pull.left_draft) == (0, "There is no GraphQL.")
    assert advance(left, PUBLISHED, START).pull.left_draft == ""


def test_a_merge_of_the_base_is_mulligans_own_and_its_checks_are_to_come() -> None:
    merge = BaseMerged(base_sha="b", head_sha="abc", merge="def")
    shown = StageShown(stage=Stage.REVIEW)
    update = BroughtUpToDate(base_sha="b", head_sha="def")
    pushed = Pushed(branch=REF.branch, head_sha="abc")
    assert after(pushed, merge).unrecorded_merge("def") == merge
    assert after(pushed, merge).unrecorded_merge("abc") is None
    assert after(pushed, merge, update).unrecorded_merge("def") is None
    status = after(CiPassed(head_sha="abc", count=2), merge, shown, update)
    assert (status.pull.passed, status.pull.updated_to, status.is_shown) == (0, "b", False)
    assert status.effects.pushed == "def"
    assert own_commits(status, ()) == {"def"}
    assert advance(status, PUBLISHED, START).pull.updated_to == ""
