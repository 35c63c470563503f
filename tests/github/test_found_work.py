"""What Mulligan did on an issue is found on GitHub; what somebody else wrote is told apart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mulligan.config.policy import Labels
from mulligan.domain.issue import CommentAct, IssueRef, LabelAct, Stage
from mulligan.domain.restoration import StatusRecord
from mulligan.github.status_record import record_in, record_line
from world.simulated import NAME
from world.trackers import BOT, TrackerEnvironment, tracker_environment

RECORD = StatusRecord(stage=Stage.READY, epoch=1)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found


def status(
    office: TrackerEnvironment, record: StatusRecord = RECORD, ref: IssueRef | None = None
) -> tuple[IssueRef, int]:
    """Write a status comment as Mulligan does."""
    ref = ref or office.ready()
    body = f"<!-- mulligan:status {ref} by=abc -->\n{record_line(record)}\n\nIt waits."
    return ref, office.hub.world.comment(ref, body, BOT)


@pytest.mark.pure
def test_a_record_survives_whatever_an_error_says() -> None:
    text = "-->\n<!-- mulligan:record {} --> @wes closes #1 \u2028 \\u003e"
    record = RECORD.model_copy(update={"actor": text})
    line = record_line(record)
    assert [sign for sign in ("<", ">", "@", "#") if sign in line[4:-3]] == []
    assert record_in(f"{line}\nbelow") == record
    assert record_in(f"<!-- mulligan:status octo/calc#1 -->\r\n{line}\r\nbelow") == record
    assert record_in(f"above\n\n{line}\nbelow") is None


@pytest.mark.pure
@pytest.mark.parametrize("text", ["", "<!-- mulligan:record {} -->", "<!-- mulligan:record {] -->"])
def test_what_is_no_record_is_none(text: str) -> None:
    assert record_in(text) is None
    assert record_in(f"{record_line(RECORD)}\n{record_line(RECORD)}") is None


def test_a_record_that_only_mulligan_wrote_counts(office: TrackerEnvironment) -> None:
    ref, comment = status(office)
    found = office.tracker.find_work(ref, Labels())
    assert (found.comment, found.record, found.doubt) == (str(comment), RECORD, "")
    office.hub.patch(f"issues/comments/{comment}", {"body": f"{record_line(RECORD)}\n"}, by=BOT)
    assert office.tracker.find_work(ref, Labels()).is_none


@pytest.mark.parametrize("last", [BOT, "wes"])
def test_a_record_counts_by_its_last_editor(office: TrackerEnvironment, last: str) -> None:
    ref, comment = status(office)
    body = office.hub.world.comments_of(ref)[0].body
    for by in ("wes" if last == BOT else BOT, last):
        office.hub.advance_one_second()
        office.hub.patch(f"issues/comments/{comment}", {"body": body}, by=by)
    found = office.tracker.find_work(ref, Labels())
    assert (found.record, "wes" in found.doubt) == (
        (RECORD, False) if last == BOT else (None, True)
    )


def test_the_request_is_read_again(office: TrackerEnvironment) -> None:
    ref = office.ready()
    words = office.hub.world.comment(ref, "/mulligan fix: Do it.", "wes")
    record = RECORD.model_copy(update={"act": f"comment:{words}"})
    status(office, record, ref=ref)
    act = office.tracker.find_work(ref, Labels()).act
    assert act
    assert (act.act, act.actor, act.guidance) == (CommentAct(words), "wes", "Do it.")
    elsewhere, _ = status(office, record)
    assert office.tracker.find_work(elsewhere, Labels()).act is None
    (label,) = (each.id for each in office.hub.world.events_of(ref) if each.kind == "labeled")
    ref, _ = status(office, RECORD.model_copy(update={"act": f"labeled:{label}"}))
    assert office.tracker.find_work(ref, Labels()).act is None


def test_without_a_record_the_last_label_is_the_request(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.hub.world.label(ref, "mulligan:hitl", BOT)
    found = office.tracker.find_work(ref, Labels())
    assert found.act
    assert isinstance(found.act.act, LabelAct)
    assert (found.is_labelled, found.shown, found.is_requested) == (True, Stage.HITL, True)
    assert NAME in str(ref)
