"""Which files go, which issues are at rest, and which still need what their attempts left."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.events import Authorised, Forgotten
from mulligan.domain.feedback import Feedback
from mulligan.domain.issue import CommentAct, IssueRef, LabelAct, Stage
from mulligan.domain.recorded_effects import NO_EFFECTS, CommentsRead, Pushed
from mulligan.domain.retention import (
    AttemptFiles,
    has_rested,
    is_at_rest,
    may_be_forgotten,
    needs_commit,
    needs_files,
    outdated,
    remnant_of,
)
from mulligan.domain.status import Handled, IssueStatus, Phase, PullStatus, Request

pytestmark = pytest.mark.pure

NOW = datetime(2025, 3, 31, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
ONE, TWO = IssueRef("octo/hello", 1), IssueRef("octo/hello", 2)
REVIEWED = IssueStatus(ONE, stage=Stage.REVIEW)


def files(issue: IssueRef, number: int, days_ago: int, size: int = 10) -> AttemptFiles:
    return AttemptFiles(issue, number, size, NOW - days_ago * DAY)


@pytest.mark.parametrize(
    ("most", "spared", "going"),
    [
        (1000, [], [(ONE, 1)]),
        (30, [], [(ONE, 1)]),
        (29, [], [(ONE, 1), (TWO, 1)]),
        (10, [], [(ONE, 1), (TWO, 1), (ONE, 2)]),
        (0, [], [(ONE, 1), (TWO, 1), (ONE, 2), (TWO, 2)]),
        (1000, [ONE], []),
        (10, [ONE], [(TWO, 1), (TWO, 2)]),
        (0, [ONE, TWO], []),
    ],
)
def test_the_oldest_go_first_until_the_rest_has_room(
    most: int, spared: list[IssueRef], going: list[tuple[IssueRef, int]]
) -> None:
    found = [files(TWO, 2, 1), files(ONE, 1, 31), files(ONE, 2, 2), files(TWO, 1, 30)]
    chosen = outdated(found, spared, NOW - 30 * DAY, most)
    assert [(each.issue, each.number) for each in chosen] == going


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("stage", Stage)
def test_only_an_issue_that_waits_for_a_person_is_at_rest(stage: Stage, phase: Phase) -> None:
    status = replace(REVIEWED, stage=stage, phase=phase)
    resting = phase is Phase.IDLE and stage not in {Stage.READY, Stage.RUNNING}
    assert is_at_rest(status) is resting
    assert needs_files(status) is not resting


def test_work_that_waits_to_be_published_needs_its_files() -> None:
    assert needs_files(replace(REVIEWED, stage=Stage.HITL, is_kept=True))


@pytest.mark.parametrize(
    ("stage", "days_ago", "rested"),
    [(Stage.HITL, 8, True), (Stage.HITL, 7, False), (Stage.READY, 8, False)],
)
def test_an_issue_has_rested_once_nothing_happened_for_long(
    stage: Stage, days_ago: int, *, rested: bool
) -> None:
    status = replace(REVIEWED, stage=stage)
    assert has_rested(status, NOW - days_ago * DAY, NOW, 7 * DAY) is rested


@pytest.mark.parametrize("phase", Phase)
def test_a_verified_commit_is_needed_until_it_is_published_or_given_up(phase: Phase) -> None:
    assert needs_commit(replace(REVIEWED, phase=phase)) is (phase is not Phase.IDLE)
    assert needs_commit(replace(REVIEWED, phase=phase, is_kept=True))


GONE = replace(REVIEWED, stage=Stage.RESOLVED, pull=PullStatus("https://x/pull/2"))
PAUSE = PendingCommand(CommentAct(9), Verb.PAUSE, "", "ada", NOW, Stage.REVIEW)


@pytest.mark.parametrize(
    ("status", "forgotten"),
    [
        (GONE, True),
        (REVIEWED, False),
        (replace(GONE, phase=Phase.DECIDED), False),
        (replace(GONE, pull=PullStatus("https://x/pull/2", 2)), False),
        (replace(GONE, feedback=Feedback(at=NOW)), False),
        (replace(GONE, pending=(PAUSE,)), False),
        (replace(GONE, paused_by="ada"), False),
    ],
)
def test_a_history_is_forgotten_once_nothing_is_open(
    status: IssueStatus, *, forgotten: bool
) -> None:
    assert may_be_forgotten(status) is forgotten


def test_what_a_forgotten_history_leaves_keeps_effects_and_handled_acts() -> None:
    pushed = Pushed(branch=ONE.branch, head_sha="abc")
    status = replace(
        GONE,
        reason="merged",
        number=4,
        epoch=2,
        forgotten_epochs=1,
        known_since=NOW,
        request=Request(str(LabelAct(7))),
        effects=NO_EFFECTS.plus(pushed),
        handled=Handled().plus(CommentAct(9)),
    )
    asked = Authorised(act="labeled:7", actor="ada", act_at=NOW)
    cursors = [CommentsRead(read_to=number) for number in (5, 8, 7)]
    assert remnant_of(status, [asked, *cursors]) == Forgotten(
        reason="merged",
        number=4,
        act="labeled:7",
        known_since=NOW,
        pull_request="https://x/pull/2",
        effects=(pushed, CommentsRead(read_to=8)),
        epochs=3,
        heard=("comment<=9",),
    )
    assert remnant_of(status, [asked]).effects == (pushed,)
