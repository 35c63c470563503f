"""What becomes of reviews, and what of them is told to the agent and to the reviewer."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mulligan.config.policy import ContextLimits, ReviewSettings, WatchCi
from mulligan.domain.events import FailedCheck, Remark, ReviewsWithdrawn
from mulligan.domain.feedback import Feedback, Review
from mulligan.domain.issue import ReviewAct, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.status import Handled, IssueStatus, Request
from mulligan.implement.decide import (
    AttemptsLeft,
    EndedAttempt,
    decide_on_failed_checks,
    decide_on_reviews,
    decide_on_withdrawal,
    is_settled,
    new_reviews,
)
from mulligan.implement.prompt.context_sections import assemble
from mulligan.implement.prompt.review_answers import (
    Diffs,
    ReviewAnswer,
    answers_in_commit,
    answers_unchanged,
    review_answer,
    thread_answer,
    unchanged_answer,
)
from world.stories import NOON, REF, attempt, case, published

pytestmark = pytest.mark.pure
SETTINGS = ReviewSettings(settle=timedelta(minutes=2), rounds=2)
STATUS = IssueStatus(REF, stage=Stage.REVIEW, epoch=1)
SAID = Remark(
    author="wes", body="Rename it.", path="src/add.py", line=8, code="@@ -1 +1 @@\n x", thread=4
)
FIRST = Review(1, "wes", 30, NOON, requests_changes=True, remarks=(SAID,))
NEXT = Review(2, "mia", 31, NOON + timedelta(minutes=1), requests_changes=False)
SOME, NONE = AttemptsLeft(1, 3), AttemptsLeft(3, 3)


def test_only_reviews_that_were_not_heard_are_new() -> None:
    assert new_reviews([FIRST, NEXT], STATUS) == [FIRST, NEXT]
    assert new_reviews([FIRST, NEXT], replace(STATUS, handled=Handled().plus(ReviewAct(1)))) == []
    assert new_reviews([], STATUS) == []


def test_a_review_that_was_withdrawn_is_not_new() -> None:
    assert new_reviews([replace(FIRST, withdrawn=True), NEXT], STATUS) == []


GONE = replace(FIRST, withdrawn=True)
DISMISSED = replace(GONE, requests_changes=False)
HEARD = Handled().plus(ReviewAct(1)).plus(ReviewAct(2))
PENDING = replace(STATUS, handled=HEARD, feedback=Feedback(at=NOON, received=(1,)))
BY_REVIEW = replace(PENDING, request=Request(str(ReviewAct(1))))
BOTH = replace(PENDING, feedback=Feedback(at=NOON, received=(1, 2)))
CONFLICT = replace(PENDING, feedback=Feedback(at=NOON, received=(1,), conflict="a.py"))
PUBLISHED = [EndedAttempt(Outcome.CHECKS_FAILED), EndedAttempt(Outcome.SUCCEEDED)]


@pytest.mark.parametrize(
    ("status", "reviews", "epoch", "expected"),
    [
        (STATUS, [FIRST, NEXT], [], None),
        (STATUS, [GONE], [], ReviewsWithdrawn(reviews=(1,))),
        (STATUS, [DISMISSED], [], None),
        (replace(STATUS, handled=HEARD), [GONE], PUBLISHED, None),
        (PENDING, [GONE], PUBLISHED, ReviewsWithdrawn(reviews=(1,), ends_work=True)),
        (PENDING, [DISMISSED], PUBLISHED, ReviewsWithdrawn(reviews=(1,), ends_work=True)),
        (PENDING, [GONE], PUBLISHED[:1], ReviewsWithdrawn(reviews=(1,))),
        (BY_REVIEW, [GONE], [], ReviewsWithdrawn(reviews=(1,), ends_work=True)),
        (BOTH, [GONE], PUBLISHED, ReviewsWithdrawn(reviews=(1,))),
        (CONFLICT, [GONE], PUBLISHED, ReviewsWithdrawn(reviews=(1,))),
    ],
)
def test_a_withdrawal_ends_the_work_that_is_for_nothing_else(
    status: IssueStatus,
    reviews: list[Review],
    epoch: list[EndedAttempt],
    expected: ReviewsWithdrawn | None,
) -> None:
    assert decide_on_withdrawal(reviews, status, epoch) == expected


@pytest.mark.parametrize(("minutes", "settled"), [(2, False), (3, True)])
def test_reviews_settle_when_nobody_adds_to_them(minutes: int, settled: bool) -> None:  # noqa: FBT001
    assert is_settled([NEXT, FIRST], SETTINGS, NOON + timedelta(minutes=minutes)) is settled


@pytest.mark.parametrize(
    ("status", "left", "opens", "refused"),
    [
        (STATUS, SOME, False, ""),
        (STATUS, NONE, True, ""),
        (replace(STATUS, stage=Stage.HITL), SOME, True, ""),
        (replace(STATUS, rounds=2), SOME, False, ""),
        (replace(STATUS, rounds=2), NONE, False, "Reviews have already started 2 rounds"),
    ],
)
def test_a_review_makes_an_attempt_or_a_round_or_asks_a_person(
    status: IssueStatus,
    left: AttemptsLeft,
    opens: bool,  # noqa: FBT001
    refused: str,
) -> None:
    event = decide_on_reviews([FIRST, NEXT], status, left, SETTINGS)
    assert (event.reviews, event.author, event.at) == ((1, 2), "wes", NOON)
    assert event.author_id == FIRST.author_id
    assert event.remarks == (SAID,)
    assert event.opens_epoch is opens
    assert event.refused.startswith(refused)
    assert bool(event.refused) is bool(refused)


def test_who_asked_for_changes_last_is_named() -> None:
    later = Review(3, "mia", 31, NOON + timedelta(minutes=5), requests_changes=True)
    event = decide_on_reviews([later, FIRST], STATUS, SOME, SETTINGS)
    assert (event.author, event.at) == ("mia", later.at)


def told(feedback: Feedback, budget: int = 4000, *, standing: bool = True) -> str:
    found = case(attempt(1, Outcome.SUCCEEDED))
    found = replace(found, status=replace(found.status, feedback=feedback))
    limits = ContextLimits(max_context_tokens=budget)
    return assemble(found, limits, b"diff --git a/x b/x\n+new\n", standing=standing).text


def test_the_reviewers_words_take_the_place_of_failed_checks() -> None:
    text = told(Feedback(at=NOON, remarks=(SAID,)))
    feedback = text.partition("## Actionable feedback")[2].partition("\n## ")[0]
    for words in ("ask for these changes", "wes on src/add.py:8:", "Rename it.", "@@ -1 +1 @@"):
        assert words in feedback
    assert "stand in the pull request now" in text
    assert "discarded" not in text


def test_a_remark_cannot_close_its_fence_nor_hide_anything() -> None:
    text = told(Feedback(at=NOON, remarks=(Remark(author="e", body="<!-- psst -->Seen"),)))
    assert "Seen" in text
    assert "psst" not in text


def test_a_remark_on_a_whole_file_or_on_none_is_told_too() -> None:
    text = told(Feedback(at=NOON, remarks=(Remark(author="e", body="A", path="x.py"), SAID)))
    assert "e on x.py:" in text
    assert "e:\n" in told(Feedback(at=NOON, remarks=(Remark(author="e", body="A"),)))
    gone = Remark(author="e", body="A", path="x.py", line=4, side="LEFT")
    assert "e on x.py:4 (a deleted line):" in told(Feedback(at=NOON, remarks=(gone,)))


def test_a_conflict_is_told() -> None:
    text = told(Feedback(at=NOON, conflict="src/add.py"), standing=False)
    assert "does not merge into it any more" in text
    assert "ask for these changes" not in text
    assert "discarded" in text


def test_many_remarks_are_cut_with_a_mark() -> None:
    many = tuple(Remark(author="wes", body=f"Change {n}. " * 40) for n in range(40))
    text = told(Feedback(at=NOON, remarks=many), budget=500)
    assert len(text.encode()) <= 2000
    assert "Change 0." in text
    assert "lines omitted]" in text


HEAD = "c0ffee1234" * 4
PLACE = "diff --git a/src/add.py b/src/add.py\n--- a/src/add.py\n+++ b/src/add.py\n"
OLD = f"{PLACE}@@ -1,2 +1,3 @@\n x\n-y\n+total = 1\n+z\n".encode()
NEW = f"{PLACE}@@ -1,2 +1,4 @@\n x\n-y\n+`sum` = 1\n+z\n+last = @zoe\n".encode()
MOVED = f"{PLACE}@@ -7,2 +7,3 @@\n x\n-y\n+total = 1\n+z\n".encode()
FEWER = f"{PLACE}@@ -1,2 +1,2 @@\n x\n-y\n+z\n".encode()
BINARY = b"diff --git a/src/add.py b/src/add.py\nindex 1..2 100644\nBinary files differ\n"
UNTOUCHED = (
    "This file did not change. Commit c0ffee1234 has the new work.\nThe agent: Did it, `@bob`."
)


@pytest.mark.parametrize(
    ("path", "diffs", "answer"),
    [
        ("src/add.py", Diffs(), "Changed in c0ffee1234.\nThe agent: Did it, `@bob`."),
        ("src/other.py", Diffs(), UNTOUCHED),
        ("src/other.py", Diffs(NEW, OLD), UNTOUCHED),
        ("src/add.py", Diffs(MOVED, OLD), UNTOUCHED),
        (
            "src/add.py",
            Diffs(NEW, OLD),
            "Changed in c0ffee1234.\nLine 4 is now `last = @zoe` (and 1 other new line).",
        ),
        ("src/add.py", Diffs(FEWER, OLD), "Changed in c0ffee1234.\nLines were removed."),
        ("src/add.py", Diffs(BINARY, OLD), "Changed in c0ffee1234.\nThe file changed as a whole."),
        (
            "src/add.py",
            Diffs(b"", OLD),
            "Changed in c0ffee1234.\nThe pull request no longer changes this file.",
        ),
    ],
)
def test_a_thread_is_answered_in_two_lines(path: str, diffs: Diffs, answer: str) -> None:
    said = "Did it, @bob. And then I ran all tests, which took a while.\n\nMore words."
    meta = attempt(2, Outcome.SUCCEEDED).model_copy(update={"agent_summary": said})
    assert thread_answer(HEAD, SAID.model_copy(update={"path": path}), meta, diffs) == answer
    silent = meta.model_copy(update={"agent_summary": ""})
    assert "The agent" not in thread_answer(HEAD, SAID, silent, Diffs())


ASIDE = Remark(author="mia", body="Split it.", review=9)
LATER = Remark(author="mia", body="Here too.", path="src/other.py", thread=4)
MADE = attempt(2, Outcome.SUCCEEDED)


def test_every_line_comment_and_every_whole_review_is_answered_once() -> None:
    found = published(attempt(1, Outcome.SUCCEEDED), MADE)
    feedback = Feedback(at=NOON, remarks=(SAID, ASIDE, LATER))
    asked = replace(found, status=replace(found.status, feedback=feedback, reason="It is red."))
    where = f"{found.status.pull.url}#pullrequestreview-9"
    assert list(answers_in_commit(asked, "c0ffee")) == [
        ReviewAnswer(4, thread_answer("c0ffee", SAID, MADE, Diffs()), 2),
        ReviewAnswer(9, review_answer("c0ffee", where, "mia", MADE), on_line=False),
    ]
    text = unchanged_answer("It is red.", "https://x/1#c")
    assert list(answers_unchanged(asked, "https://x/1#c")) == [
        ReviewAnswer(4, text, 2),
        ReviewAnswer(9, text, 2, on_line=False),
    ]


@pytest.mark.parametrize("found", [published(MADE), replace(published(), history=())])
def test_without_feedback_or_an_attempt_nobody_is_answered(found: IssueContext) -> None:
    unasked = found if found.history else replace(found, status=ASKED)
    assert list(answers_in_commit(unasked, "c0ffee")) == []
    assert list(answers_unchanged(unasked, "https://x/1#c")) == []


ASKED = replace(STATUS, feedback=Feedback(at=NOON, remarks=(SAID,)))


def test_a_review_is_answered_with_the_commit_and_with_why_there_is_none() -> None:
    said = review_answer("c0ffee", "https://x/2#r", "mia\n@zoe", MADE)
    assert said.startswith("To [the review](https://x/2#r) by mia `@zoe`: the work is in c0ffee.\n")
    why = unchanged_answer("It is red,\nsee @zoe.", "https://x/1#c")
    assert "Mulligan changed nothing here for this review. It is red, see `@zoe`.\n\n" in why
    assert "[The comment on the issue](https://x/1#c) lists your options" in why


RED = (
    FailedCheck(name="tests\n(3.12)", digest="FAILED test_add.py\n" + "E   boom\n" * 90),
    FailedCheck(name="deploy"),
)


@pytest.mark.parametrize(
    ("made", "left", "refused"),
    [
        (0, SOME, ""),
        (1, SOME, ""),
        (2, SOME, "Checks of the pull request still fail on GitHub after 2 attempts: "),
        (0, NONE, "Checks of the pull request fail on GitHub, and no attempt is left: "),
    ],
)
def test_checks_on_github_make_an_attempt_or_ask_a_person(
    made: int, left: AttemptsLeft, refused: str
) -> None:
    event = decide_on_failed_checks("abc", RED, replace(STATUS, ci_attempts=made), left, WatchCi())
    assert (event.head_sha, event.checks) == ("abc", RED)
    assert event.refused == (f"{refused}tests (3.12), deploy." if refused else "")


@pytest.mark.parametrize("shown", [True, False])
def test_what_failed_on_github_is_told_within_its_limits(shown: bool) -> None:  # noqa: FBT001
    limits = ContextLimits(max_check_output_lines=10, include_check_output=shown)
    asked = replace(STATUS, feedback=Feedback(at=NOON, checks=RED))
    there = replace(case(attempt(1, Outcome.SUCCEEDED)), status=asked)
    found = assemble(there, limits, b"", standing=True)
    assert found.sources == ("outcome", "github")
    assert "The checks that GitHub runs on the pull request have failed." in found.text
    assert 'from="checks on GitHub"' in found.text
    assert "tests (3.12) failed." in found.text
    assert "deploy failed." in found.text
    assert found.text.count("E   boom") == (8 if shown else 0)


def test_of_a_log_that_its_findings_do_not_explain_more_is_told() -> None:
    long = "\n".join(f"the server printed {n} {'x' * 30}" for n in range(200))
    red = (FailedCheck(name="tests", digest="printed 0", long_digest=long),)
    asked = replace(STATUS, feedback=Feedback(at=NOON, checks=red))
    there = replace(case(attempt(1, Outcome.SUCCEEDED)), status=asked)
    limits = ContextLimits(max_digest_chars=4000)
    assert 70 < assemble(there, limits, b"", standing=True).text.count("the server printed") < 90
