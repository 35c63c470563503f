"""What each event changes of a status in which everything is set, and that it changes no more."""

from dataclasses import replace
from datetime import timedelta
from functools import reduce

import pytest

from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.events import (
    AgentStarted,
    AttemptStarted,
    Authorised,
    BroughtUpToDate,
    CiFailed,
    CiPassed,
    CommandReceived,
    Conflicted,
    Decided,
    Drafted,
    Escalated,
    Event,
    FailedCheck,
    Forgotten,
    HumanResponded,
    IssueSeen,
    Published,
    Remark,
    Resolution,
    Resolved,
    Restored,
    RetryScheduled,
    ReviewReceived,
    StoodDown,
    Waiting,
)
from mulligan.domain.feedback import Feedback
from mulligan.domain.fold import advance
from mulligan.domain.issue import CommentAct, ConsoleAct, ReviewAct, Stage
from mulligan.domain.outcome import Escalate, Outcome, Retry
from mulligan.domain.recorded_effects import (
    NO_EFFECTS,
    BaseMerged,
    CommentsRead,
    Pushed,
    StageShown,
)
from mulligan.domain.status import (
    CommandTimes,
    Conflict,
    FailedHead,
    Handleable,
    Handled,
    HandledIds,
    IssueStatus,
    Phase,
    PullStatus,
    Request,
    SeenText,
)
from world.ledgers import ISSUES, START, completed

pytestmark = pytest.mark.pure

REF, LATER = ISSUES[0], START + timedelta(hours=2)
ONE, TWO = (Remark(author="wes", body=body, thread=7) for body in ("Please.", "And this."))
OLD = "https://x/pull/4"


def order(verb: Verb, comment: int, *, is_done: bool = False) -> PendingCommand:
    at = CommentAct(comment)
    return PendingCommand(at, verb, "", "ada", START, Stage.REVIEW, actor_id=3, is_done=is_done)


ABORT, SKIP, SECOND_SKIP = order(Verb.ABORT, 10), order(Verb.SKIP, 11), order(Verb.SKIP, 12)
PENDING = (ABORT, SKIP, SECOND_SKIP)
UNSHOWN = NO_EFFECTS.plus(Pushed(branch=REF.branch, head_sha="old"))
BUSY = IssueStatus(
    REF,
    stage=Stage.REVIEW,
    phase=Phase.DECIDED,
    epoch=2,
    attempt=2,
    number=5,
    forgotten_epochs=1,
    request=Request("labeled:7", "ada", 3, START, "Be brief."),
    text=SeenText("Mend it", "old", "labeled:7"),
    started_at=START,
    outcome=Outcome.SUCCEEDED,
    decision=Retry(reason="Again."),
    reason="Again.",
    due=START + timedelta(hours=1),
    is_kept=True,
    pull=PullStatus(OLD, 4, draft_of=1, left_draft="No GraphQL.", updated_to="b0", passed=3),
    feedback=Feedback(at=START, remarks=(ONE,), received=(5,), conflict="a"),
    rounds=2,
    ci_attempts=1,
    review_start=1,
    pending=PENDING,
    paused_by="bob",
    commanded=CommandTimes(START, START),
    handled=Handled().plus(CommentAct(10)),
    effects=UNSHOWN.plus(StageShown(stage=Stage.REVIEW)),
    known_since=START,
    asked_at="https://x/1#old",
    elsewhere=True,
    labelled=True,
    restored="status comment 3",
)
FRESH = replace(BUSY, is_kept=False, outcome=Outcome.CHECKS_FAILED, labelled=False)
Changes = dict[str, object]
RESTING: Changes = {"phase": Phase.IDLE, "due": None}
READY: Changes = {**RESTING, "stage": Stage.READY, "effects": UNSHOWN}
RETURNED: Changes = {
    **READY,
    "outcome": None,
    "reason": "",
    "is_kept": False,
    "pull": replace(BUSY.pull, passed=0),
}
EPOCH: Changes = {
    **READY,
    "epoch": 3,
    "attempt": 0,
    "outcome": None,
    "decision": None,
    "reason": "",
    "ci_attempts": 0,
    "review_start": None,
    "elsewhere": False,
}
ENDED: Changes = {
    **RESTING,
    "stage": Stage.RESOLVED,
    "effects": UNSHOWN,
    "is_kept": False,
    "feedback": None,
}


def handled(*each: Handleable) -> Handled:
    return reduce(Handled.plus, each, BUSY.handled)


def feedback(**changes: object) -> Feedback:
    assert BUSY.feedback
    return BUSY.feedback.model_copy(update={"at": LATER, **changes})


def ordered(verb: Verb, actor: str = "mia") -> CommandReceived:
    return CommandReceived(
        key="comment:20", command=verb, text="Do it.", actor=actor, at=LATER, actor_id=8
    )


def taken(verb: Verb, paused_by: str, who: str = "mia") -> Changes:
    stops = verb in {Verb.SKIP, Verb.ABORT}
    new = PendingCommand(CommentAct(20), verb, "Do it.", who, LATER, Stage.REVIEW, actor_id=8)
    return {
        "pending": (*PENDING, new),
        "handled": handled(CommentAct(20)),
        "paused_by": paused_by,
        "commanded": CommandTimes(LATER, START) if stops else CommandTimes(START, LATER),
    }


ASKED = Authorised(act="comment:9", actor="wes", act_at=LATER, actor_id=8)
REVIEWED = ReviewReceived(reviews=(9, 8), author="wes", author_id=8, at=LATER, remarks=(TWO,))
REVIEWS: Changes = {
    "handled": handled(ReviewAct(9), ReviewAct(8)),
    "feedback": feedback(remarks=(ONE, TWO), received=(5, 9, 8)),
}
RED = (FailedCheck(name="tests"),)
CI: Changes = {"handled": handled(FailedHead("h")), "feedback": feedback(checks=RED)}
GOOD, BAD = completed(REF, 3, Outcome.SUCCEEDED), completed(REF, 3)
WITH_FIX = replace(BUSY, pending=(order(Verb.FIX, 13),))
REFUSED: Changes = {
    "phase": Phase.DECIDED,
    "decision": Escalate(reason="Enough."),
    "reason": "Enough.",
}

CHANGED = {"phase": Phase.COMPLETED, "outcome": Outcome.SUCCEEDED, "is_unverified": True}
"""After an attempt that made a change, without a check."""

ROWS: dict[str, tuple[IssueStatus, Event, Changes]] = {
    "a log line": (BUSY, AgentStarted(agent="x"), {}),
    "text": (
        BUSY,
        IssueSeen(title="New", text_sha256="new", act="labeled:8"),
        {"text": SeenText("New", "new", "labeled:8")},
    ),
    "a request": (
        BUSY,
        ASKED,
        {**EPOCH, "rounds": 0, "request": Request("comment:9", "wes", 8, LATER)},
    ),
    "a request with guidance": (
        BUSY,
        ASKED.model_copy(update={"guidance": "Round up."}),
        {
            **EPOCH,
            "rounds": 0,
            "is_kept": False,
            "request": Request("comment:9", "wes", 8, LATER, "Round up."),
        },
    ),
    "a start": (
        BUSY,
        AttemptStarted(attempt=3, number=6, worker="here"),
        {
            "stage": Stage.RUNNING,
            "phase": Phase.ATTEMPTING,
            "attempt": 3,
            "number": 6,
            "started_at": LATER,
            "due": None,
            "reason": "",
            "is_kept": False,
            "pull": replace(BUSY.pull, passed=0),
            "effects": UNSHOWN,
        },
    ),
    "a success": (
        BUSY,
        GOOD,
        {**CHANGED, "reason": GOOD.meta.error},
    ),
    "a failure": (
        BUSY,
        BAD,
        {
            "phase": Phase.COMPLETED,
            "outcome": Outcome.CHECKS_FAILED,
            "is_kept": False,
            "reason": BAD.meta.error,
        },
    ),
    "a success of which nothing is kept": (
        FRESH,
        GOOD,
        {**CHANGED, "reason": GOOD.meta.error},
    ),
    "a decision": (
        replace(BUSY, phase=Phase.COMPLETED),
        Decided(decision=Escalate(reason="Enough.")),
        REFUSED,
    ),
    "a pause": (BUSY, ordered(Verb.PAUSE), taken(Verb.PAUSE, "mia")),
    "the operator's pause": (
        BUSY,
        ordered(Verb.PAUSE, ""),
        taken(Verb.PAUSE, "An operator", ""),
    ),
    "a resume": (BUSY, ordered(Verb.RESUME), taken(Verb.RESUME, "")),
    "a retry": (BUSY, ordered(Verb.RETRY), taken(Verb.RETRY, "")),
    "a skip": (BUSY, ordered(Verb.SKIP), taken(Verb.SKIP, "bob")),
    "an abort": (BUSY, ordered(Verb.ABORT), taken(Verb.ABORT, "bob")),
    "a question": (
        BUSY,
        ordered(Verb.STATUS),
        {**taken(Verb.STATUS, "bob"), "commanded": BUSY.commanded},
    ),
    "a resume that is read after a newer pause": (
        replace(BUSY, commanded=CommandTimes(paused=LATER + timedelta(seconds=1))),
        ordered(Verb.RESUME),
        {
            **taken(Verb.RESUME, "bob"),
            "commanded": CommandTimes(paused=LATER + timedelta(seconds=1)),
        },
    ),
    "a skip that is read after a newer one": (
        replace(BUSY, commanded=CommandTimes(stopped=LATER + timedelta(seconds=1))),
        ordered(Verb.SKIP),
        {**taken(Verb.SKIP, "bob"), "commanded": CommandTimes(LATER + timedelta(seconds=1))},
    ),
    "an operator's abort, by a clock that is late": (
        replace(BUSY, pending=(), request=Request("labeled:7", "ada", at=LATER)),
        CommandReceived(key="command:1", command=Verb.ABORT, at=START),
        {
            "pending": (PendingCommand(ConsoleAct("1"), Verb.ABORT, "", "", LATER, Stage.REVIEW),),
            "handled": handled(ConsoleAct("1")),
            "commanded": CommandTimes(LATER, START),
        },
    ),
    "a command that was given before another": (
        BUSY,
        CommandReceived(key="comment:20", command=Verb.STATUS, at=START - timedelta(days=1)),
        {
            "pending": (
                PendingCommand(
                    CommentAct(20), Verb.STATUS, "", "", START - timedelta(days=1), Stage.REVIEW
                ),
                *PENDING,
            ),
            "handled": handled(CommentAct(20)),
        },
    ),
    "a command that was read before": (
        replace(BUSY, handled=handled(CommentAct(20))),
        ordered(Verb.PAUSE),
        {},
    ),
    "an answer": (
        BUSY,
        HumanResponded(key="comment:11", command=Verb.SKIP, answer="Done."),
        {"pending": (ABORT, SECOND_SKIP)},
    ),
    "a review": (BUSY, REVIEWED, {**RETURNED, **REVIEWS, "review_start": BUSY.attempt}),
    "a review beside another one": (
        replace(BUSY, stage=Stage.READY),
        REVIEWED,
        {**RETURNED, **REVIEWS},
    ),
    "a review that opens an epoch": (
        BUSY,
        REVIEWED.model_copy(update={"opens_epoch": True}),
        {
            **RETURNED,
            **EPOCH,
            **REVIEWS,
            "review_start": 0,
            "rounds": 3,
            "is_kept": False,
            "request": Request("review:9", "wes", 8, LATER),
        },
    ),
    "a review too many": (
        replace(BUSY, phase=Phase.IDLE),
        REVIEWED.model_copy(update={"refused": "Enough."}),
        {
            "outcome": None,
            "is_kept": False,
            "pull": replace(BUSY.pull, passed=0),
            "effects": UNSHOWN,
            **REVIEWS,
            **REFUSED,
        },
    ),
    "a conflict": (
        BUSY,
        Conflicted(base_sha="b", head_sha="h", files=("a", "c")),
        {
            **RETURNED,
            "handled": handled(Conflict("b", "h")),
            "feedback": feedback(conflict="a, c"),
        },
    ),
    "failed checks": (
        BUSY,
        CiFailed(head_sha="h", checks=RED),
        {**RETURNED, **CI, "ci_attempts": 2},
    ),
    "failed checks too often": (
        BUSY,
        CiFailed(head_sha="h", checks=RED, refused="Enough."),
        {
            "outcome": None,
            "is_kept": False,
            "pull": replace(BUSY.pull, passed=0),
            "effects": UNSHOWN,
            **CI,
            **REFUSED,
        },
    ),
    "passed checks": (
        BUSY,
        CiPassed(head_sha="h", count=7),
        {"pull": replace(BUSY.pull, passed=7), "effects": UNSHOWN},
    ),
    "read comments": (BUSY, CommentsRead(read_to=9), {}),
    "a push": (
        replace(BUSY, stage=Stage.READY),
        Pushed(branch=REF.branch, head_sha="new"),
        {"effects": BUSY.effects.plus(Pushed(branch=REF.branch, head_sha="new"))},
    ),
    **{
        f"the stage {stage} on GitHub": (
            replace(BUSY, stage=stage),
            StageShown(stage=stage),
            {"effects": BUSY.effects.plus(StageShown(stage=stage)), "labelled": labelled},
        )
        for stage, labelled in (
            *((Stage.READY, False), (Stage.RUNNING, False), (Stage.RESOLVED, False)),
            *((Stage.REVIEW, True), (Stage.HITL, True)),
        )
    },
    "the stage of an issue without a label": (
        FRESH,
        StageShown(stage=Stage.REVIEW),
        {"effects": BUSY.effects.plus(StageShown(stage=Stage.REVIEW))},
    ),
    "a pull request": (
        replace(BUSY, stage=Stage.RUNNING, labelled=False),
        Published(pull_request="https://x/pull/8", number=8, head_sha="h", left_draft="Odd."),
        {
            **RESTING,
            "stage": Stage.REVIEW,
            "labelled": True,
            "feedback": None,
            "is_kept": False,
            "pull": PullStatus("https://x/pull/8", 8, left_draft="Odd."),
            "effects": UNSHOWN,
        },
    ),
    "a draft": (
        BUSY,
        Drafted(pull_request="https://x/pull/8", number=8, head_sha="h", attempt=2),
        {"pull": replace(BUSY.pull, url="https://x/pull/8", number=8, draft_of=2)},
    ),
    "a merge of the base": (
        BUSY,
        BroughtUpToDate(base_sha="b1", head_sha="new"),
        {
            "pull": replace(BUSY.pull, passed=0, updated_to="b1"),
            "effects": UNSHOWN.plus(Pushed(branch=REF.branch, head_sha="new")),
        },
    ),
    "another attempt": (
        BUSY,
        RetryScheduled(due=LATER, reason="Red."),
        {**READY, "due": LATER, "reason": "Red."},
    ),
    "a wait": (
        BUSY,
        Waiting(until=LATER, reason="No disk."),
        {**READY, "due": LATER, "reason": "No disk."},
    ),
    **{
        f"an escalation, {name}": (
            replace(FRESH, is_kept=is_kept, outcome=outcome),
            Escalated(reason="Enough.", comment="https://x/1#new"),
            {
                **RESTING,
                "stage": Stage.HITL,
                "effects": UNSHOWN,
                "reason": "Enough.",
                "asked_at": "https://x/1#new",
                "labelled": True,
                "is_kept": keeps,
            },
        )
        for name, is_kept, outcome, keeps in (
            ("the work is kept", True, Outcome.CHECKS_FAILED, True),
            ("the work is verified", False, Outcome.SUCCEEDED, True),
            ("without verified work", False, Outcome.CHECKS_FAILED, False),
        )
    },
    "a withdrawal": (
        BUSY,
        StoodDown(reason="Closed."),
        {
            **ENDED,
            "reason": "Closed.",
            "elsewhere": False,
            "pending": (replace(ABORT, is_done=True), SKIP, SECOND_SKIP),
        },
    ),
    "a withdrawal to another installation": (
        replace(BUSY, elsewhere=False, pending=()),
        StoodDown(reason="Closed.", elsewhere=True),
        {**ENDED, "reason": "Closed.", "elsewhere": True},
    ),
    "a withdrawal for new guidance": (
        WITH_FIX,
        StoodDown(reason="New guidance.", elsewhere=True),
        {**ENDED, "reason": "New guidance.", "feedback": BUSY.feedback},
    ),
    "a skip that ends the work": (
        BUSY,
        Resolved(
            resolution=Resolution.SKIPPED,
            reason="ada skipped it.",
            total_attempts=1,
            total_duration_ms=5,
        ),
        {
            **ENDED,
            "reason": "ada skipped it.",
            "paused_by": "",
            "pending": (ABORT, replace(SKIP, is_done=True), SECOND_SKIP),
        },
    ),
    "a second skip": (
        replace(BUSY, pending=(ABORT, replace(SKIP, is_done=True), SECOND_SKIP)),
        Resolved(
            resolution=Resolution.SKIPPED,
            reason="ada skipped it.",
            total_attempts=1,
            total_duration_ms=5,
        ),
        {**ENDED, "reason": "ada skipped it.", "paused_by": ""},
    ),
    "a merge": (
        BUSY,
        Resolved(
            resolution=Resolution.MERGED,
            reason="Its pull request was merged.",
            total_attempts=1,
            total_duration_ms=5,
        ),
        {
            **ENDED,
            "reason": "Its pull request was merged.",
            "paused_by": "",
            "pull": replace(BUSY.pull, number=None, draft_of=0, left_draft=""),
        },
    ),
    "a restoration": (
        BUSY,
        Restored(
            source="GitHub",
            number=9,
            epochs=4,
            rounds=1,
            ci_attempts=2,
            review_start=4,
            paused_by="mia",
            effects=(BaseMerged(base_sha="b", head_sha="h", merge="m"), CommentsRead(read_to=9)),
            handled=("comment<=30",),
        ),
        {
            "restored": "GitHub",
            "number": 9,
            "forgotten_epochs": 4,
            "rounds": 1,
            "ci_attempts": 2,
            "review_start": 4,
            "paused_by": "mia",
            "effects": BUSY.effects.plus(BaseMerged(base_sha="b", head_sha="h", merge="m")),
            "handled": Handled(HandledIds(30)),
        },
    ),
    "a restoration of less": (
        replace(FRESH, epoch=1),
        Restored(source="GitHub", number=1),
        {
            "restored": "GitHub",
            "forgotten_epochs": 0,
            "rounds": 0,
            "ci_attempts": 0,
            "review_start": None,
            "paused_by": "",
            "handled": Handled(),
            "labelled": True,
        },
    ),
    "a restoration of no epoch": (
        replace(BUSY, epoch=0),
        Restored(
            source="GitHub",
            number=1,
            rounds=2,
            ci_attempts=1,
            paused_by="bob",
            epochs=1,
            review_start=1,
        ),
        {"restored": "GitHub", "handled": Handled(), "labelled": False},
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_an_event_changes_what_it_is_about_and_nothing_else(name: str) -> None:
    before, event, changes = ROWS[name]
    assert advance(before, event, LATER) == replace(before, **changes)


def test_a_forgotten_history_leaves_its_sum_and_nothing_else() -> None:
    pushed = Pushed(branch=REF.branch, head_sha="last")
    event = Forgotten(
        reason="It was merged.",
        number=9,
        act="labeled:3",
        known_since=START - timedelta(days=90),
        pull_request="https://x/pull/2",
        effects=(pushed, CommentsRead(read_to=9)),
        epochs=4,
        heard=("comment<=30", "review<=6"),
    )
    assert advance(BUSY, event, LATER) == IssueStatus(
        REF,
        stage=Stage.RESOLVED,
        reason="It was merged.",
        number=9,
        request=Request("labeled:3"),
        known_since=START - timedelta(days=90),
        pull=PullStatus("https://x/pull/2"),
        effects=NO_EFFECTS.plus(pushed),
        forgotten_epochs=4,
        handled=Handled(HandledIds(30), HandledIds(6)),
    )


def test_an_issue_is_known_since_its_first_event() -> None:
    seen = advance(IssueStatus(REF), IssueSeen(title="Mend it"), START)
    assert seen == IssueStatus(REF, text=SeenText("Mend it"), known_since=START)
    assert advance(seen, ASKED, LATER).known_since == START


def test_a_review_without_a_number_still_opens_an_epoch() -> None:
    event = REVIEWED.model_copy(update={"reviews": (), "opens_epoch": True})
    assert advance(BUSY, event, LATER).request.written_act == "review:0"


def test_a_conflict_in_no_file_by_name_is_in_the_same_lines() -> None:
    found = advance(BUSY, Conflicted(base_sha="b", head_sha="h"), LATER).feedback
    assert found == feedback(conflict="the same lines")


@pytest.mark.parametrize(
    ("pending", "expected"), [(None, None), (Feedback(at=START, received=(5,)), 1)]
)
@pytest.mark.parametrize(
    "event",
    [
        Conflicted(base_sha="b", head_sha="h", files=("a",)),
        CiFailed(head_sha="h", checks=()),
    ],
)
def test_attempts_for_something_else_count_for_no_review(
    event: Conflicted | CiFailed, pending: Feedback | None, expected: int | None
) -> None:
    reviewed = replace(BUSY, feedback=pending, review_start=1)
    assert advance(reviewed, event, LATER).review_start == expected


def test_checks_that_make_no_attempt_leave_the_count_as_it_is() -> None:
    refused = CiFailed(head_sha="h", checks=(), refused="No attempt is left.")
    assert advance(replace(BUSY, feedback=None), refused, LATER).review_start == 1
