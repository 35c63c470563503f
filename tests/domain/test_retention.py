"""Which files go, which issues are at rest, and which still need what their attempts left."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.retention import (
    AttemptFiles,
    has_rested,
    is_at_rest,
    needs_commit,
    needs_files,
    outdated,
)
from mulligan.domain.status import IssueStatus, Phase

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
