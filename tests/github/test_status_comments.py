"""One status comment of each installation, not written more often than people can read it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.config.policy import Labels
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import NO_EFFECTS, StageShown, StatusWritten
from mulligan.domain.status import STATUS_EDIT_INTERVAL
from mulligan.github.labels import label_styles
from mulligan.github.status_record import record_in
from world.simulated import NAME
from world.stories import attempt, case, published
from world.trackers import BOT, TrackerEnvironment, case_for, tracker_environment

LABELS = Labels()
EARLY = datetime(2025, 1, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found


def known(found: IssueContext, ref: IssueRef, *, since: int = 1, comment: str = "") -> IssueContext:
    """Let an installation tell of the issue that heard of it at some second."""
    told = case_for(found, ref)
    effects = NO_EFFECTS.plus(StatusWritten(comment=comment)) if comment else NO_EFFECTS
    at = EARLY + timedelta(seconds=since)
    return replace(told, status=replace(told.status, known_since=at, effects=effects))


def bodies(office: TrackerEnvironment, ref: IssueRef) -> list[str]:
    return [comment.body for comment in office.hub.world.comments_of(ref)]


def test_two_installations_keep_a_comment_each_and_say_so(office: TrackerEnvironment) -> None:
    ref = office.ready()
    mine = office.writer.update_status(known(case(), ref)) or ""
    theirs = office.writer.update_status(known(case(stage=Stage.HITL), ref, since=2))
    assert mine != theirs
    office.writer.update_status(known(published(attempt(1)), ref, comment=mine))
    first, second = bodies(office, ref)
    link = f"/{NAME}/issues/{ref.number}#issuecomment-"
    assert "asks for a review" in first
    assert "Another installation of Mulligan" in first
    assert f"{link}{theirs}" in first
    assert "needs human review (HITL)" in second
    assert f"{link}{mine}" in second


def with_count(found: IssueContext, count: int) -> IssueContext:
    """Let the issue have so many comments."""
    return replace(found, issue=replace(found.issue, comment_count=count))


def test_other_comments_are_not_read_again_until_one_comes_or_goes(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    mine = office.writer.update_status(with_count(known(case(), ref), 0)) or ""
    assert [line.split()[0] for line in office.requests()] == ["POST"]
    done = known(published(attempt(1)), ref, comment=mine)
    assert office.writer.update_status(with_count(done, 1)) == mine
    assert [line.split()[0] for line in office.requests()] == ["PATCH"]
    office.hub.world.comment(ref, f"<!-- mulligan:status {ref} by=another -->", BOT)
    office.clock.time += STATUS_EDIT_INTERVAL
    again = known(case(attempt(1), stage=Stage.HITL), ref, comment=mine)
    assert office.writer.update_status(with_count(again, 2)) == mine
    assert "Another installation of Mulligan" in bodies(office, ref)[0]


def shown(office: TrackerEnvironment, ref: IssueRef) -> IssueContext:
    """Show that an attempt runs, and return the issue as it is once that is published."""
    for look in label_styles(LABELS)[1:]:
        office.writer.create_label(NAME, look)
    office.writer.set_stage_labels(ref, Stage.RUNNING, LABELS)
    mine = office.writer.update_status(with_count(known(case(), ref), 0)) or ""
    office.requests()
    return with_count(known(published(attempt(1)), ref, comment=mine), 1)


def test_labels_and_status_change_with_one_request(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.hub.world.label(ref, "bug", "wes")
    done = shown(office, ref)
    mine = done.status.effects.status_comment
    assert office.writer.show_stage(done, Stage.REVIEW, LABELS) == mine
    writes = [line for line in office.requests() if not line.startswith("GET ")]
    assert writes == ["POST /graphql"]
    assert office.hub.world.labels_of(ref) == ["bug", "mulligan:review"]
    assert "asks for a review" in bodies(office, ref)[0]
    events = office.hub.world.issue(ref).events[-3:]
    assert [each.kind for each in events] == ["labeled", "unlabeled", "unlabeled"]


@pytest.mark.parametrize(
    "answer",
    [
        Fault(404),
        Fault(403),
        Fault(502),
        Fault(502, apply=True),
        Fault(200, body="<html>", content_type="text/html"),
        Fault(200, body='{"data": null, "errors": [{"type": "FORBIDDEN", "message": "No."}]}'),
    ],
    ids=["none", "forbidden", "away", "answer lost", "no JSON", "refused"],
)
def test_rest_does_what_graphql_leaves_undone(office: TrackerEnvironment, answer: Fault) -> None:
    ref = office.ready()
    done = shown(office, ref)
    office.hub.world.faults = lambda _, path: answer if path == "/graphql" else None
    mine = done.status.effects.status_comment
    assert office.writer.show_stage(done, Stage.REVIEW, LABELS) == mine
    assert office.hub.world.labels_of(ref) == ["mulligan:review"]
    (body,) = bodies(office, ref)
    assert "asks for a review" in body


def test_rest_creates_a_label_that_the_repository_lacks(office: TrackerEnvironment) -> None:
    ref, lacking = office.ready(), Labels(review="in review")
    done = shown(office, ref)
    office.writer.show_stage(done, Stage.REVIEW, lacking)
    assert office.hub.world.labels_of(ref) == ["in review"]


def test_a_known_comment_that_was_deleted_is_written_anew(office: TrackerEnvironment) -> None:
    ref = office.ready()
    mine = office.writer.update_status(with_count(known(case(), ref), 0)) or ""
    with office.hub.world.lock:
        office.hub.world.issue(ref).comments.clear()
    done = known(published(attempt(1)), ref, comment=mine)
    # Somebody's comment came in its place.
    office.hub.world.comment(ref, "Please hurry.", "wes")
    assert office.writer.update_status(with_count(done, 1)) != mine
    assert len(bodies(office, ref)) == 2


def test_one_that_crashed_before_it_took_its_comment_down_finds_it_again(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    first = office.writer.update_status(known(case(), ref))
    assert office.writer.update_status(known(published(attempt(1)), ref)) == first
    assert "Another installation" not in bodies(office, ref)[0]


def test_a_comment_of_an_earlier_version_is_taken_over(office: TrackerEnvironment) -> None:
    ref = office.ready()
    old = f"<!-- mulligan:status {ref} -->\n\nMulligan is working on this."
    written = office.hub.world.comment(ref, old, BOT)
    assert office.writer.update_status(known(case(), ref)) == str(written)
    (body,) = bodies(office, ref)
    assert " by=" in body


def test_two_changes_lie_fifteen_seconds_apart_whatever_they_say(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    comment = office.writer.update_status(known(case(), ref)) or ""
    waits = known(case(attempt(1), stage=Stage.READY, reason="It waits."), ref, comment=comment)
    assert office.writer.update_status(waits) == comment
    office.requests()
    done = known(published(attempt(1)), ref, comment=comment)
    office.clock.time += STATUS_EDIT_INTERVAL - timedelta(seconds=1)
    assert office.writer.update_status(done) is None
    assert office.requests() == []
    assert "It waits." in bodies(office, ref)[0]
    office.clock.time += timedelta(seconds=1)
    assert office.writer.update_status(done) == comment
    assert "asks for a review" in bodies(office, ref)[0]


@pytest.mark.parametrize("stage", [Stage.READY, Stage.RUNNING])
def test_what_passes_in_a_moment_is_told_by_the_next_pass(
    office: TrackerEnvironment, stage: Stage
) -> None:
    ref = office.ready()
    comment = office.writer.update_status(known(published(attempt(1)), ref)) or ""
    passing = known(case(attempt(1), stage=stage), ref, comment=comment)
    assert office.writer.update_status(passing) is None
    late = passing.status.effects.plus(StageShown(stage=None))
    still = replace(passing, status=replace(passing.status, effects=late))
    assert office.writer.update_status(still) == comment
    assert "asks for a review" not in bodies(office, ref)[0]


@pytest.mark.parametrize("stage", [Stage.READY, Stage.REVIEW, Stage.HITL, Stage.RESOLVED])
def test_where_it_comes_to_rest_first_is_told_at_once(
    office: TrackerEnvironment, stage: Stage
) -> None:
    ref = office.ready()
    comment = office.writer.update_status(known(case(), ref)) or ""
    rests = known(case(attempt(1), stage=stage, reason="It rests."), ref, comment=comment)
    office.writer.update_status(rests)
    assert "is working on this" not in bodies(office, ref)[0]


def test_what_decides_after_a_loss_is_written_at_once(office: TrackerEnvironment) -> None:
    ref = office.ready()
    comment = office.writer.update_status(known(case(), ref)) or ""
    office.clock.time += timedelta(seconds=1)
    again = known(case(attempt(1), stage=Stage.RUNNING), ref, comment=comment)
    assert office.writer.update_status(again) == comment
    (body,) = bodies(office, ref)
    record = record_in(body)
    assert record
    assert [note.outcome for note in record.attempts] == [Outcome.CHECKS_FAILED]
    assert (record.epoch, record.act) == (1, "labeled:77")
