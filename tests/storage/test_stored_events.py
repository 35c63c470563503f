"""What earlier versions stored stays readable; what later ones add is passed over or explained."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue, TypeAdapter
from sqlalchemy import insert, select, update

from mulligan.domain.errors import ConfigError
from mulligan.domain.events import EVENT_TYPES, AttemptCompleted
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.recorded_effects import EFFECT_KINDS
from mulligan.domain.status import IssueStatus
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.old_events import upgraded
from mulligan.storage.schema import EVENTS_TABLE, ISSUES_TABLE
from world.ledgers import open_ledger_at, rebuild

GOLDEN = Path(__file__).parent / "golden" / "events-v1.jsonl"
REF = IssueRef("octo/hello", 12)
Stored = dict[str, JsonValue]
STORED: TypeAdapter[Stored] = TypeAdapter(Stored)
ROWS = [STORED.validate_json(line) for line in GOLDEN.read_text("utf-8").splitlines()]


@pytest.fixture
def ledger(tmp_path: Path) -> Generator[SqlLedger]:
    with open_ledger_at(tmp_path / "ledger.db") as kept:
        yield kept


def store(ledger: SqlLedger, rows: list[Stored]) -> None:
    with ledger.database.write() as connection:
        for row in rows:
            values = {**row, "body": json.dumps(row["body"], ensure_ascii=False)}
            connection.execute(insert(EVENTS_TABLE).values(values))


def grown(value: JsonValue) -> JsonValue:
    """Give every object a field that this version does not know."""
    if isinstance(value, dict):
        inner = {key: grown(each) for key, each in value.items()}
        return {"from_the_future": {"x": 1}, **inner}
    return [grown(each) for each in value] if isinstance(value, list) else value


def shrunk(value: JsonValue, known: JsonValue) -> JsonValue:
    """Keep what `known` has, so that fields that came later do not count."""
    if isinstance(value, dict) and isinstance(known, dict):
        return {key: shrunk(value[key], inner) for key, inner in known.items()}
    if isinstance(value, list) and isinstance(known, list) and len(value) == len(known):
        return [shrunk(*pair) for pair in zip(value, known, strict=True)]
    return value


def test_version_1_has_every_kind_of_event() -> None:
    kinds = {kind.model_fields["kind"].default for kind in EVENT_TYPES} - {*EFFECT_KINDS}
    later = {"attempt_context_assembled", "forgotten", "learnings_accepted", "learnings_dropped"}
    later |= {"check_skipped", "proof_finished", "restored", "reviews_withdrawn"}
    assert {str(row["kind"]) for row in ROWS} == kinds - later | {"effect_done"}


def test_events_of_version_1_are_read_as_they_were_written(ledger: SqlLedger) -> None:
    store(ledger, ROWS)
    read = ledger.events(REF)
    assert [each.seq for each in read] == [row["seq"] for row in ROWS]
    assert [each.at.isoformat(timespec="microseconds") for each in read] == [
        row["at"] for row in ROWS
    ]
    assert [(each.epoch, each.attempt) for each in read] == [
        (row["epoch"], row["attempt"]) for row in ROWS
    ]
    for each, row in zip(read, ROWS, strict=True):
        body = STORED.validate_json(each.event.model_dump_json())
        if row["kind"] != "effect_done":  # test_old_events.py reads those.
            expected = upgraded(row["body"])
            assert shrunk(body, expected) == expected


def test_the_status_follows_from_events_of_version_1(ledger: SqlLedger) -> None:
    store(ledger, ROWS)
    rebuild(ledger)
    status = ledger.status(REF)
    assert (status.text.title, status.request.actor) == ("Add is wrong – mend it", "ada")
    assert (status.stage, status.epoch, status.attempt) == (Stage.RESOLVED, 1, 2)
    assert status.pull.url == "https://github.com/octo/hello/pull/13"
    assert [meta.number for meta in ledger.history(REF)] == [1, 2]


def test_fields_of_a_later_version_are_passed_over(ledger: SqlLedger) -> None:
    store(ledger, [{**row, "body": grown(row["body"])} for row in ROWS])
    grown_events = [each.event for each in ledger.events(REF)]
    with ledger.database.write() as connection:
        connection.execute(EVENTS_TABLE.delete())
    store(ledger, ROWS)
    assert [each.event for each in ledger.events(REF)] == grown_events


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 3},
        {"kind": "told_by_a_later_version", "body": {"kind": "told_by_a_later_version"}},
        {"body": {"kind": "issue_seen"}},
    ],
)
def test_an_event_that_cannot_be_read_is_named_with_what_to_do(
    ledger: SqlLedger, change: Stored
) -> None:
    store(ledger, [{**ROWS[0], **change}])
    with pytest.raises(ConfigError, match=r"^Event 1 of the ledger, .* of octo/hello#12, cannot"):
        ledger.events(REF)


def test_an_unknown_kind_of_a_later_version_does_not_stop_the_work(ledger: SqlLedger) -> None:
    later: Stored = {"kind": "told_by_a_later_version", "seq": 999}
    store(ledger, [*ROWS, {**ROWS[0], **later}])
    assert len(ledger.history(REF)) == 2
    event = ledger.events(REF, after=9)
    assert event
    assert isinstance(event[0].event, AttemptCompleted)


def test_fields_of_a_later_version_in_a_status_are_passed_over(ledger: SqlLedger) -> None:
    store(ledger, ROWS)
    rebuild(ledger)
    known = ledger.status(REF)
    with ledger.database.write() as connection:
        stored = STORED.validate_json(
            connection.execute(select(ISSUES_TABLE.c.status)).scalar_one()
        )
        connection.execute(update(ISSUES_TABLE).values(status=json.dumps(grown(stored))))
    assert ledger.status(REF) == known


def test_a_status_that_cannot_be_read_is_a_sentence_and_can_be_rebuilt(ledger: SqlLedger) -> None:
    store(ledger, ROWS)
    rebuild(ledger)
    known = ledger.status(REF)
    with ledger.database.write() as connection:
        connection.execute(update(ISSUES_TABLE).values(status='{"stage": "on holiday"}'))
    with pytest.raises(ConfigError, match="cannot read a status"):
        ledger.statuses()
    rebuild(ledger)
    assert ledger.status(REF) == known


def test_a_rebuilt_ledger_of_nothing_holds_nothing(ledger: SqlLedger) -> None:
    with ledger.database.write() as connection:
        stale = {
            "repository": "a/b",
            "number": 1,
            "stage": "ready",
            "phase": "idle",
            "status": "{}",
        }
        connection.execute(insert(ISSUES_TABLE).values(stale))
    rebuild(ledger)
    assert ledger.status(IssueRef("a/b", 1)) == IssueStatus(IssueRef("a/b", 1))
    assert list(ledger.statuses()) == []
