"""A better wording is no migration: what is stored as a sentence is for people only."""

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import pytest
from pydantic import JsonValue, TypeAdapter

from mulligan.domain.events import (
    EVENTS,
    AttemptCompleted,
    Authorised,
    Decided,
    Event,
    RecordedEvent,
    Resolution,
    Resolved,
    Waiting,
)
from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Decision, OpenPullRequest, Outcome
from mulligan.domain.recorded_effects import BlockShown, Obstacle
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.decide import RetryPolicy, decide, epoch_of
from mulligan.implement.prompt.outcome_text import NO_CHECK, status_title
from mulligan.storage.serialization import Row, recorded_of
from world.ledgers import completed

pytestmark = pytest.mark.pure

DUMP = (Path(__file__).parent / "golden" / "ledger.sql").read_text("utf-8")
SENTENCE = re.compile(r"[A-Z][^\n]* [^\n]*\.")
JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
STATUS = TypeAdapter(IssueStatus)


REF, START = IssueRef("acme/calculator", 99), datetime(2026, 11, 27, tzinfo=UTC)
REST = "No agent can work."
HELD = [
    RecordedEvent(seq=1000 + number, at=START, issue=REF, epoch=1, attempt=None, event=event)
    for number, event in enumerate(
        (
            Authorised(act="labeled:9", actor="ada", act_at=START),
            Waiting(until=None, reason=REST, obstacle=Obstacle.ALL_AGENTS),
            BlockShown(obstacle=Obstacle.ALL_AGENTS, epoch=1, reason=REST),
            completed(REF, 1, Outcome.SUCCEEDED),
            Decided(decision=OpenPullRequest(reason=NO_CHECK)),
            Resolved(
                resolution=Resolution.MERGED,
                reason="It was merged.",
                total_attempts=0,
                total_duration_ms=0,
            ),
        )
    )
]
"""An issue that waits for an agent, then gets a change that nothing verified, and is merged."""


def recorded() -> list[RecordedEvent]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(DUMP)
        rows = connection.execute("SELECT * FROM events ORDER BY repository, number, seq")
        names = [column[0] for column in rows.description]
        stored = [Row(**dict(zip(names, row, strict=True))) for row in rows]
    return [recorded_of(row) for row in stored] + HELD


def in_other_words(value: JsonValue) -> JsonValue:
    """Replace every sentence of a record."""
    match value:
        case str() if SENTENCE.fullmatch(value):
            return "These are other words."
        case dict():
            return {key: in_other_words(each) for key, each in value.items()}
        case list():
            return [in_other_words(each) for each in value]
        case _:
            return value


def reworded(event: Event) -> Event:
    return EVENTS.validate_python(in_other_words(JSON.validate_json(EVENTS.dump_json(event))))


def written(status: IssueStatus) -> JsonValue:
    return in_other_words(JSON.validate_json(STATUS.dump_json(status)))


def decision_of(status: IssueStatus, history: list[WorkerResultMeta]) -> Decision:
    *earlier, last = epoch_of(status, history)
    return decide(last, earlier, RetryPolicy(3))


def test_the_ledger_has_sentences_of_many_kinds() -> None:
    changed = {each.event.kind for each in recorded() if reworded(each.event) != each.event}
    assert {"resolved", "escalated", "decided", "attempt_completed", "retry_scheduled"} <= changed


def test_a_status_and_each_decision_are_the_same_in_other_words() -> None:
    for ref, events in groupby(recorded(), key=lambda each: each.issue):
        status = other = IssueStatus(ref)
        history, other_history = list[WorkerResultMeta](), list[WorkerResultMeta]()
        for each in events:
            changed = reworded(each.event)
            status = advance(status, each.event, each.at)
            other = advance(other, changed, each.at)
            assert written(status) == written(other)
            assert (status.is_held, status.is_shown) == (other.is_held, other.is_shown)
            assert status_title(status) == status_title(other)
            if isinstance(each.event, AttemptCompleted) and isinstance(changed, AttemptCompleted):
                history.append(each.event.meta)
                other_history.append(changed.meta)
                decided = decision_of(status, history), decision_of(other, other_history)
                assert type(decided[0]) is type(decided[1])
