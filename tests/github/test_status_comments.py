"""One status comment of each installation, not written more often than people can read it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mulligan.domain.case import Case
from mulligan.domain.issue import IssueRef, Stage
from mulligan.github.status_comments import QUIET
from world.simulated import NAME
from world.stories import attempt, case, published
from world.trackers import BOT, Desk, about, desk

EARLY = datetime(2025, 1, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as found:
        yield found


def known(found: Case, ref: IssueRef, *, since: int = 1, comment: str = "") -> Case:
    """Let an installation tell of the issue that heard of it at some second."""
    told = about(found, ref)
    effects = (("status_comment:issue", comment),) if comment else ()
    at = EARLY + timedelta(seconds=since)
    return replace(told, status=replace(told.status, known_since=at, effects=effects))


def bodies(office: Desk, ref: IssueRef) -> list[str]:
    return [comment.body for comment in office.hub.world.comments_of(ref)]


def test_two_installations_keep_a_comment_each_and_say_so(office: Desk) -> None:
    ref = office.ready()
    mine = office.tracker.update_status(known(case(), ref))
    theirs = office.tracker.update_status(known(case(stage=Stage.HITL), ref, since=2))
    assert mine != theirs
    office.tracker.update_status(known(published(attempt(1)), ref, comment=mine))
    first, second = bodies(office, ref)
    link = f"/{NAME}/issues/{ref.number}#issuecomment-"
    assert "asks for a review" in first
    assert "Another installation of Mulligan" in first
    assert f"{link}{theirs}" in first
    assert "handed this issue to a person" in second
    assert f"{link}{mine}" in second


def test_one_that_crashed_before_it_took_its_comment_down_finds_it_again(office: Desk) -> None:
    ref = office.ready()
    first = office.tracker.update_status(known(case(), ref))
    assert office.tracker.update_status(known(published(attempt(1)), ref)) == first
    assert "Another installation" not in bodies(office, ref)[0]


def test_a_comment_of_an_earlier_version_is_taken_over(office: Desk) -> None:
    ref = office.ready()
    old = f"<!-- mulligan:status {ref} -->\n\nMulligan is working on this."
    written = office.hub.world.comment(ref, old, BOT)
    assert office.tracker.update_status(known(case(), ref)) == str(written)
    (body,) = bodies(office, ref)
    assert " by=" in body


def test_that_another_attempt_runs_is_told_at_most_every_fifteen_seconds(office: Desk) -> None:
    ref = office.ready()
    comment = office.tracker.update_status(known(case(), ref))
    office.requests()
    again = known(case(attempt(1)), ref, comment=comment)
    assert office.tracker.update_status(again) == comment
    assert office.requests() == []
    office.clock.time += QUIET
    office.tracker.update_status(again)
    assert "attempt 2 of 3" in bodies(office, ref)[0]


@pytest.mark.parametrize("stage", [Stage.READY, Stage.REVIEW, Stage.HITL, Stage.RESOLVED])
def test_where_it_comes_to_rest_is_told_at_once(office: Desk, stage: Stage) -> None:
    ref = office.ready()
    comment = office.tracker.update_status(known(case(), ref))
    office.tracker.update_status(known(case(attempt(1), stage=stage), ref, comment=comment))
    assert "is working on this" not in bodies(office, ref)[0]
