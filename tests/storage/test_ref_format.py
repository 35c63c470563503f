"""What is written on the ref can be read again, holds no secret, and does not grow for ever."""

from datetime import timedelta

import pytest
from pydantic import TypeAdapter

from mulligan.domain.errors import ConfigError
from mulligan.domain.events import (
    AgentStarted,
    AttemptStarted,
    Authorised,
    Event,
    IssueSeen,
    RecordedEvent,
    StoodDown,
    Waiting,
)
from mulligan.domain.hold import Pause
from mulligan.domain.issue import CommentAct, IssueRef
from mulligan.domain.ownership import StandBack
from mulligan.domain.recorded_effects import CommandAnswered, CommentsRead
from mulligan.domain.status import IssueStatus
from mulligan.storage.git_ref import (
    LEASES_FILE,
    RESOLVED_RETENTION,
    Snapshot,
    StoredLease,
    outdated,
    read_lines,
    shortened,
    snapshot_of,
    write_lines,
)
from mulligan.storage.serialization import (
    Row,
    checksum_of,
    folded,
    pause_of,
    projection_of,
    recorded_of,
    replay,
    stand_back_of,
    statuses_of,
    storable,
    values_of,
    written,
)
from mulligan.text.redact import Redactor
from world.ledgers import START, completed
from world.stories import attempt

REF, OTHER = IssueRef("octo/one", 1), IssueRef("octo/one", 12)
PLAIN = Redactor()
DAY = timedelta(days=1)

pytestmark = pytest.mark.pure


def recorded(*events: Event, ref: IssueRef = REF) -> list[RecordedEvent]:
    return [
        RecordedEvent(
            seq=at, at=START + timedelta(seconds=at), issue=ref, epoch=1, attempt=1, event=each
        )
        for at, each in enumerate(events, start=1)
    ]


def test_events_are_read_as_they_were_written() -> None:
    events = recorded(IssueSeen(title="l\xf6tf\xe9 \u2028 \U0001f3cc\n"), completed(REF, 1))
    text = write_lines(events, PLAIN)
    assert text.count(b"\n") == 2
    assert list(read_lines(REF, text)) == events


def test_no_secret_is_written() -> None:
    text = write_lines(
        recorded(IssueSeen(title="token-of-the-bot")), Redactor(("token-of-the-bot",))
    )
    assert b"token-of-the-bot" not in text
    assert b"[redacted]" in text


@pytest.mark.parametrize("damaged", [b"{", b"[]", b'{"at": "now"}', b"7", b"\xff"])
def test_what_cannot_be_read_is_said_in_one_sentence(damaged: bytes) -> None:
    with pytest.raises(ConfigError, match=r"The state of octo/one#1 cannot be read; use"):
        read_lines(REF, damaged)


def test_what_a_newer_version_wrote_is_refused() -> None:
    text = write_lines(recorded(IssueSeen(title="a")), PLAIN)
    newer = text.replace(b'"schema_version": 2', b'"schema_version": 99')
    with pytest.raises(ConfigError, match="newer version"):
        read_lines(REF, newer)


def test_a_snapshot_is_its_files() -> None:
    lines = write_lines(recorded(IssueSeen(title="a")), PLAIN)
    tenures = {REF: StoredLease(3, "run-7", START), OTHER: StoredLease(1)}
    snapshot = Snapshot(None, {REF: lines}, tenures)
    assert set(snapshot.files) == {"octo/one/1.jsonl", LEASES_FILE}
    assert snapshot_of("c0ffee", snapshot.files) == Snapshot("c0ffee", {REF: lines}, tenures)
    assert snapshot_of("c0ffee", {"README": b"hello", "a/b/0.jsonl": b""}) == Snapshot("c0ffee")


def test_leases_that_cannot_be_read_are_not_taken_for_none() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        snapshot_of("c0ffee", {LEASES_FILE: b'{"octo/one#1": {"fence": "many"}}'})


def test_a_long_issue_loses_its_story_first_and_then_its_old_findings() -> None:
    story = [AgentStarted(agent="x" * 100)] * 20
    attempts = [
        completed(REF, number).model_copy(update={"meta": attempt(number)}) for number in (1, 2)
    ]
    events = recorded(AttemptStarted(attempt=1, number=1, worker="w"), *story, *attempts)
    text = write_lines(events, PLAIN)
    assert shortened(REF, text, PLAIN) == text
    without_story = shortened(REF, text, PLAIN, most=len(text) - 1)
    assert read_lines(REF, without_story)[1].event == attempts[0]
    lean = read_lines(REF, shortened(REF, text, PLAIN, most=1))
    assert [each.event.kind for each in lean] == ["attempt_started", *["attempt_completed"] * 2]
    assert lean[2].event == attempts[1]
    assert b"AssertionError" not in write_lines(lean[:2], PLAIN)
    assert folded(REF, lean) == folded(REF, events)


def test_an_issue_without_a_completed_attempt_is_shortened_too() -> None:
    text = write_lines(recorded(AgentStarted(agent="x")), PLAIN)
    assert shortened(REF, text, PLAIN, most=1) == b""


def test_of_how_far_comments_were_read_a_long_issue_keeps_the_last() -> None:
    marks = [CommentsRead(read_to=n) for n in range(9)]
    answered = [CommandAnswered(act=CommentAct(n), comment=f"{n}") for n in (1, 2)]
    events = recorded(IssueSeen(title="a"), *marks, *answered)
    text = write_lines(events, PLAIN)
    shorter = read_lines(REF, shortened(REF, text, PLAIN, most=len(text) - 1))
    assert [each.event for each in shorter] == [events[0].event, marks[-1], *answered]
    assert folded(REF, shorter) == folded(REF, events)


def test_the_issue_that_holds_how_far_comments_were_read_stays() -> None:
    mark = CommentsRead(read_to=7)
    stood = {REF: recorded(StoodDown(reason="a"), mark), OTHER: recorded(StoodDown(reason="a"))}
    assert outdated(stood, dict.fromkeys(stood, 1), START + RESOLVED_RETENTION + DAY) == {OTHER}


def test_resolved_issues_go_after_their_time() -> None:
    resolved = recorded(IssueSeen(title="a"), StoodDown(reason="Closed."))
    issues, sizes = (
        {REF: resolved, OTHER: recorded(IssueSeen(title="b"), ref=OTHER)},
        {REF: 9, OTHER: 9},
    )
    last = resolved[-1].at
    assert outdated(issues, sizes, last + RESOLVED_RETENTION) == frozenset()
    assert outdated(issues, sizes, last + RESOLVED_RETENTION + DAY) == {REF}


def test_where_there_is_no_room_the_oldest_resolved_ones_go_sooner() -> None:
    third = IssueRef("octo/one", 13)
    issues = {
        REF: recorded(IssueSeen(title="a")),
        OTHER: recorded(StoodDown(reason="Closed."), ref=OTHER),
        third: recorded(IssueSeen(title="c"), StoodDown(reason="Closed."), ref=third),
    }
    sizes = dict.fromkeys(issues, 10)
    assert outdated(issues, sizes, START, most=20) == {OTHER}
    assert outdated(issues, sizes, START, most=5) == {OTHER, third}
    assert outdated({REF: []}, {REF: 0}, START) == frozenset()


def test_a_tenure_is_good_until_it_expires() -> None:
    assert StoredLease(1, "w", START).is_good(START - DAY)
    assert not StoredLease(1, "w", START).is_good(START)
    assert not StoredLease(1).is_good(START)


# The rows of a database.


def row_of(event: Event) -> Row:
    (known,) = recorded(event)
    return TypeAdapter(Row).validate_python({"seq": 1, **values_of(known)})


SEEN = IssueSeen(title="Mend it")


def test_a_row_is_read_as_it_was_written() -> None:
    assert [recorded_of(row_of(SEEN))] == recorded(SEEN)
    assert [recorded_of(row_of(SEEN)._replace(checksum=None))] == recorded(SEEN)


def test_a_row_that_was_damaged_is_named() -> None:
    damaged = row_of(SEEN)._replace(body='{"kind": "issue_seen", "title": "Mend this"}')
    with pytest.raises(ConfigError, match="Event 1 of the ledger, of octo/one#1, is damaged"):
        recorded_of(damaged)


@pytest.mark.parametrize("change", [{"schema_version": 3}, {"body": '{"kind": "of_later"}'}])
def test_a_row_of_a_newer_version_is_named(change: dict[str, str | int]) -> None:
    later = row_of(SEEN)._replace(**change)
    later = later._replace(checksum=checksum_of(later))
    with pytest.raises(ConfigError, match="'issue_seen' of octo/one#1, cannot be read by this"):
        recorded_of(later)


def test_half_a_character_becomes_a_question_mark() -> None:
    assert storable(SEEN) is SEEN
    assert storable(IssueSeen(title="a\ud83d b")) == IssueSeen(title="a? b")


def test_a_replay_gives_every_status_and_how_far_comments_were_read() -> None:
    cursors = [CommentsRead(read_to=number) for number in (5, 9, 7)]
    events = [*recorded(SEEN, *cursors[:2]), *recorded(SEEN, *cursors[2:], ref=OTHER)]
    statuses, read_to = replay(events)
    assert statuses == {ref: folded(ref, recorded(SEEN, ref=ref)) for ref in (REF, OTHER)}
    assert read_to == {"octo/one": 9}


def test_a_status_is_stored_with_what_lists_are_sorted_by() -> None:
    status = folded(REF, recorded(SEEN, Waiting(until=START, reason="No disk.")))
    assert projection_of(status) == {
        "repository": "octo/one",
        "number": 1,
        "stage": "ready",
        "phase": "idle",
        "due": "2025-03-01T12:00:00.000000+00:00",
        "status": written(status),
    }
    assert projection_of(IssueStatus(REF))["due"] is None
    asked = folded(REF, recorded(Authorised(act="labeled:7", actor="ada", act_at=START)))
    assert statuses_of([written(status), written(asked)]) == [status, asked]


def test_a_status_of_a_newer_version_is_told() -> None:
    with pytest.raises(ConfigError, match="install a newer version"):
        statuses_of(['{"issue": {"repository": "octo/one", "number": 1}, "stage": "later"}'])


def test_pauses_and_owners_are_read_from_their_rows() -> None:
    since = START.isoformat()
    assert pause_of("octo/one", since) == Pause("octo/one", START)
    found = stand_back_of("octo/one", "mulligan", "93f5a1c07b2e", since)
    assert found == StandBack("octo/one", "mulligan", "93f5a1c07b2e", START)
