"""What is said of an issue at every moment of its life."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce

import pytest

from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.eligibility import RULES, Facts
from mulligan.domain.explanation import (
    LOCKED,
    NOBODY_AT_WORK,
    NOT_TELLING,
    ExplanationInputs,
    describe_attempt,
    describe_request,
    describe_restoration,
    describe_review,
    explain,
    explain_unread,
)
from mulligan.domain.issue import (
    AuthorisingAct,
    CommentAct,
    Edits,
    Issue,
    IssueRef,
    LabelAct,
    OperatorAct,
    ReviewAct,
    Stage,
)
from mulligan.domain.outcome import Escalate, OpenPullRequest
from mulligan.domain.recorded_effects import NO_EFFECTS, ReviewsSettling
from mulligan.domain.status import Handled, IssueStatus, Phase, PullStatus, Request, SeenText

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
REF = IssueRef("octo/hello", 12)
ISSUE = Issue(REF, "Mend it", "", labels=frozenset({"mulligan"}))
BARE = replace(ISSUE, labels=frozenset[str]())
FIRST = AuthorisingAct(LabelAct(7), "ada", NOON, trusted=True)
AGAIN = AuthorisingAct(LabelAct(8), "bob", NOON + timedelta(hours=1), trusted=True)
STRANGER = AuthorisingAct(LabelAct(9), "eve", NOON, trusted=False, reason="eve may only read.")
NEW = IssueStatus(REF)
KNOWN = IssueStatus(
    REF, epoch=1, attempt=1, number=1, request=Request(str(LabelAct(7)), "ada", at=NOON)
)
HITL = replace(KNOWN, stage=Stage.HITL, reason="All 3 attempts failed.")
RUNNING = replace(KNOWN, stage=Stage.RUNNING, phase=Phase.ATTEMPTING, started_at=NOON)
DECIDED = replace(RUNNING, phase=Phase.DECIDED)
SKIP = PendingCommand(OperatorAct(), Verb.SKIP, "", "", NOON + timedelta(minutes=5), Stage.READY)
WAITING = replace(KNOWN, due=NOON + timedelta(minutes=5), reason="No disk.")
PASSED = "The check 'tests' passed."
URL = "https://github.com/octo/hello/pull/13"
COMMENT = "https://github.com/octo/hello/issues/12#issuecomment-1"
ALONE = ExplanationInputs(counted=1, most=3)
HELD = replace(ALONE, holder="vm:4711", at_work="`mulligan run`")


def facts(
    status: IssueStatus = KNOWN, issue: Issue = ISSUE, act: AuthorisingAct | None = FIRST
) -> Facts:
    return Facts(issue, status, act, "mulligan", NOON)


@pytest.mark.parametrize(
    ("case", "around", "summary"),
    [
        (facts(NEW), ALONE, "Mulligan starts work at the next pass: attempt 1 of 3."),
        (facts(), ALONE, "Mulligan starts work at the next pass: attempt 2 of 3."),
        (facts(HITL, act=AGAIN), ALONE, "Mulligan starts work at the next pass: attempt 1 of 3."),
        (
            facts(RUNNING),
            HELD,
            "The worker vm:4711 is working on it now: attempt 1, since 2025-03-01 12:00:00 UTC.",
        ),
        (
            facts(replace(RUNNING, started_at=None)),
            HELD,
            "The worker vm:4711 is working on it now: attempt 1.",
        ),
        (facts(DECIDED), HELD, "The worker vm:4711 is working on it now."),
        (
            facts(RUNNING),
            ALONE,
            "Attempt 1 was cut off; the next pass records that and continues.",
        ),
        (
            facts(replace(RUNNING, phase=Phase.COMPLETED)),
            ALONE,
            "Attempt 1 has ended; the next pass decides what follows.",
        ),
        (
            facts(replace(DECIDED, decision=OpenPullRequest(), reason=PASSED)),
            ALONE,
            f"Its change is not published yet; the next pass publishes it. {PASSED}",
        ),
        (
            facts(replace(DECIDED, decision=Escalate(reason="No."), reason="No.")),
            ALONE,
            "The next pass carries out the decision: No.",
        ),
        (
            facts(replace(KNOWN, stage=Stage.REVIEW, pull=PullStatus(URL), reason=PASSED), BARE),
            ALONE,
            f"It is in review: {URL} {PASSED}",
        ),
        (facts(HITL, BARE), ALONE, "It needs human review: All 3 attempts failed."),
        (
            facts(HITL, act=STRANGER),
            replace(ALONE, asked_at=COMMENT),
            f"It needs human review: All 3 attempts failed. See {COMMENT}",
        ),
        (
            facts(replace(KNOWN, stage=Stage.RESOLVED, reason="Its label was removed.")),
            ALONE,
            "It is resolved: Its label was removed.",
        ),
        (
            facts(replace(KNOWN, stage=Stage.RESOLVED, reason="See #13.", elsewhere=True)),
            ALONE,
            "Another installation of Mulligan has it: See #13.",
        ),
        (facts(WAITING), ALONE, "It waits until 2025-03-01 12:05:00 UTC: No disk."),
        (
            facts(WAITING, BARE),
            ALONE,
            "It will not be worked on: The label 'mulligan' is not on it; add it.",
        ),
        (facts(act=STRANGER), ALONE, "It will not be worked on: eve may only read."),
        (
            facts(HITL, replace(ISSUE, is_open=False)),
            ALONE,
            "It will not be worked on: The issue is closed; reopen it.",
        ),
        (
            facts(NEW, replace(ISSUE, is_pull_request=True)),
            ALONE,
            "It will not be worked on: It is a pull request; add the label to an issue.",
        ),
        (
            replace(facts(), archived=True),
            ALONE,
            "It will not be worked on: The repository is archived; unarchive it.",
        ),
    ],
)
def test_one_line_says_what_will_be_done_and_why(
    case: Facts, around: ExplanationInputs, summary: str
) -> None:
    found = explain(case, around)
    assert found.summary == summary
    assert found.eligible is ("next pass: attempt" in summary)
    assert len(found.rules) == len(RULES)


def test_a_recorded_command_comes_first() -> None:
    found = explain(facts(replace(KNOWN, pending=(SKIP,))), ALONE)
    assert found.summary == "The next pass carries out `skip`, given by an operator."


def test_a_verified_commit_that_was_kept_needs_no_attempt() -> None:
    found = explain(facts(replace(KNOWN, is_kept=True)), ALONE)
    words = "The next pass publishes the commit of its last attempt, which was kept."
    assert (found.summary, found.eligible) == (words, True)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (facts(), "ada requested the work with the label at 2025-03-01 12:00:00 UTC."),
        (
            facts(RUNNING, act=AGAIN),
            "ada requested the work with the label at 2025-03-01 12:00:00 UTC.",
        ),
        (facts(act=AGAIN), "bob requested the work with the label at 2025-03-01 13:00:00 UTC."),
        (
            facts(HITL, act=AGAIN),
            "bob requested the work with the label at 2025-03-01 13:00:00 UTC.",
        ),
        (
            facts(NEW, act=STRANGER),
            (
                "eve added the label at 2025-03-01 12:00:00 UTC, without the permission to start "
                "work."
            ),
        ),
        (
            facts(NEW, act=replace(STRANGER, actor="")),
            (
                "Somebody added the label at 2025-03-01 12:00:00 UTC, without the permission to "
                "start work."
            ),
        ),
        (facts(NEW, act=None), "Nobody has requested the work."),
        (
            facts(replace(KNOWN, request=Request(str(ReviewAct(7)), "wes", at=NOON))),
            "wes requested the work with a review at 2025-03-01 12:00:00 UTC.",
        ),
        (
            facts(replace(KNOWN, request=Request(str(CommentAct(7)), "ada", at=NOON))),
            "ada requested the work with a comment at 2025-03-01 12:00:00 UTC.",
        ),
        (
            facts(replace(KNOWN, request=Request(str(OperatorAct("2025")), at=NOON))),
            "An operator's command requested the work at 2025-03-01 12:00:00 UTC.",
        ),
    ],
)
def test_whose_request_counts_is_said(case: Facts, said: str) -> None:
    assert describe_request(explain(case, ALONE).act) == said


@pytest.mark.parametrize("case", [facts(), facts(WAITING), facts(RUNNING)])
def test_work_that_nobody_is_there_to_do_is_pointed_out(case: Facts) -> None:
    assert explain(case, ALONE).notes == (NOBODY_AT_WORK,)
    assert explain(case, replace(ALONE, at_work="`mulligan run`")).notes == ()
    assert explain(case, HELD).notes == ()


def test_where_nothing_is_to_be_done_nobody_is_missed() -> None:
    assert explain(facts(HITL), ALONE).notes == ()


def test_a_locked_conversation_is_mentioned() -> None:
    assert explain(facts(HITL, replace(ISSUE, is_locked=True)), ALONE).notes == (LOCKED,)


def test_a_server_that_keeps_no_record_of_edits_is_mentioned() -> None:
    silent = replace(FIRST, edits=Edits(names_authors=False))
    assert explain(facts(HITL, act=silent), ALONE).notes == (NOT_TELLING,)
    assert explain(facts(HITL, act=None), ALONE).notes == ()


def test_a_base_branch_that_cannot_be_fetched_is_told_before_the_next_pass_is_promised() -> None:
    around = replace(ALONE, unreachable="octo/hello has no branch 'dev'; push one.")
    assert explain(facts(), around).summary == (
        "It cannot be worked on now: octo/hello has no branch 'dev'; push one."
    )


@pytest.mark.parametrize(
    ("stage", "heard", "told"),
    [
        (Stage.REVIEW, (), True),
        (Stage.READY, (ReviewAct(6),), True),
        (Stage.HITL, (ReviewAct(7),), False),
        (Stage.RESOLVED, (), False),
    ],
)
def test_a_review_that_further_ones_are_waited_for_is_told(
    stage: Stage,
    heard: tuple[ReviewAct, ...],
    told: bool,  # noqa: FBT001
) -> None:
    effects, handled = (
        NO_EFFECTS.plus(ReviewsSettling(review=7, until=NOON)),
        reduce(Handled.plus, heard, Handled()),
    )
    status = replace(KNOWN, stage=stage, handled=handled, effects=effects)
    words = (
        "A review requests changes. Mulligan acts on it after 2025-03-01 12:00:00 UTC, "
        "together with the reviews that come until then."
    )
    assert (words in explain(facts(status), HELD).notes) is told
    assert describe_review(replace(status, effects=effects.plus(ReviewsSettling()))) == ""


def test_a_running_attempt_is_told_with_its_start() -> None:
    assert describe_attempt(RUNNING) == "Attempt 1 began at 2025-03-01 12:00:00 UTC."
    assert describe_attempt(KNOWN) == ""


def test_an_issue_of_a_lost_ledger_is_told_with_what_it_was_restored_from() -> None:
    restored = replace(KNOWN, restored="status comment 3")
    words = "The ledger was lost. Mulligan restored this issue from status comment 3."
    assert describe_restoration(restored) == words
    assert explain(facts(restored), HELD).notes == (words,)
    assert describe_restoration(KNOWN) == ""


def test_an_issue_that_is_gone_keeps_what_the_ledger_knows() -> None:
    found = explain_unread(
        replace(HITL, text=SeenText("Mend it")), "The issue is gone.", exists=False
    )
    assert (found.issue, found.title, found.stage) == (REF, "Mend it", Stage.HITL)
    assert found.summary == "It will not be worked on: The issue is gone."
    assert not found.eligible
