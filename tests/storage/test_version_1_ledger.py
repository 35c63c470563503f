"""A ledger that version 1 wrote is read, carried on and learnt from by this one.

The fixture is the dump of what its own code wrote of four issues: one that failed twice, with fix
rounds, and is with a person; one in review; one blocked; and one that is to be tried again.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import JsonValue, TypeAdapter

from mulligan.config.policy import Policy
from mulligan.domain.events import EVENTS, RetryScheduled
from mulligan.domain.issue import Issue, IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import Effect
from mulligan.domain.result import WorkerResultMeta
from mulligan.implement.prompt.compose import Previous, compose
from mulligan.implement.prompt.manifest import verify_manifests
from mulligan.implement.prompt.prompt import WorktreeBase
from mulligan.storage.ledger import SqlLedger
from mulligan.text.redact import Redactor
from world.ledgers import START, open_ledger_at, rebuild

DUMP = (Path(__file__).parent / "golden" / "ledger-v1.sql").read_text("utf-8")
FIRST_REVISION = """
DROP INDEX baselines_of_repository;
DROP TABLE leases;
UPDATE mulligan_version SET version_num = '0001';
"""
RED, REVIEWED, BLOCKED, IDLE = (IssueRef("acme/tools", number) for number in (1, 2, 4, 5))
JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


@pytest.fixture(params=["", FIRST_REVISION], ids=["head", "first revision"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Lay the ledger down as version 1 left it, or as it was before any migration."""
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMP)
        connection.executescript(request.param)
    return path


@pytest.fixture
def ledger(place: Path) -> Generator[SqlLedger]:
    with open_ledger_at(place) as found:
        yield found


def lost(written: JsonValue, read: JsonValue, at: str = "") -> list[str]:
    """Name what was written and is not read as it was; what this version adds does not count."""
    if isinstance(written, dict) and isinstance(read, dict):
        pairs = [(key, each, read.get(key)) for key, each in written.items()]
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        pairs = [(str(key), *pair) for key, pair in enumerate(zip(written, read, strict=True))]
    else:
        return [] if written == read else [f"{at}: {written!r} is read as {read!r}"]
    return [said for key, each, found in pairs for said in lost(each, found, f"{at}.{key}")]


def test_every_event_is_read_as_it_was_written(place: Path, ledger: SqlLedger) -> None:
    """Effects are written in another way since; test_old_events.py reads them."""
    with closing(sqlite3.connect(place)) as connection:
        rows = connection.execute(
            "SELECT seq, body FROM events WHERE kind != 'effect_done' ORDER BY seq"
        ).fetchall()
    read = [each for each in ledger.events() if not isinstance(each.event, Effect)]
    assert [each.seq for each in read] == [seq for seq, _ in rows]
    written = [JSON.validate_json(body) for _, body in rows]
    today = [JSON.validate_json(EVENTS.dump_json(each.event)) for each in read]
    assert lost(written, today) == []
    assert lost(["a"], ["b"]) == [".0: 'a' is read as 'b'"]


def test_every_record_of_an_attempt_is_read(ledger: SqlLedger) -> None:
    outcomes = {ref: [meta.outcome for meta in ledger.history(ref)] for ref in (RED, REVIEWED)}
    assert outcomes == {RED: [Outcome.CHECKS_FAILED] * 2, REVIEWED: [Outcome.SUCCEEDED]}
    first, _ = ledger.history(RED)
    assert [fix.checks[0].digest for fix in first.fix_rounds] == ["It is red."]
    assert (first.sketch, first.fix_rounds[0].manifest_hash) == ((), None)
    assert WorkerResultMeta.model_validate_json(first.model_dump_json()) == first


def test_every_issue_stands_where_it_stood(ledger: SqlLedger) -> None:
    stages = {status.issue: status.stage for status in ledger.statuses()}
    assert stages == {
        RED: Stage.HITL,
        REVIEWED: Stage.REVIEW,
        BLOCKED: Stage.HITL,
        IDLE: Stage.READY,
    }
    before = ledger.statuses()
    rebuild(ledger)
    assert ledger.statuses() == before


def test_it_is_carried_on(ledger: SqlLedger) -> None:
    status = ledger.append(IDLE, RetryScheduled(due=START, reason="Again."))
    assert (status.due, status.number) == (START, 1)
    assert ledger.baseline("acme/tools", "unknown") is None


def test_the_next_attempt_learns_from_it(ledger: SqlLedger) -> None:
    history = ledger.history(RED)
    case = IssueContext(
        Issue(RED, "Mend it", ""), ledger.status(RED), history, max_attempts=3, counted=2
    )
    told = compose(case, Policy(), Previous(b""), WorktreeBase.BASE, Redactor())
    assert "Check 'check' failed with exit code 1." in told.prompt
    assert "After fix round 1: Check 'check' failed" in told.prompt
    assert "The same failure occurred twice." in told.prompt


def test_what_was_kept_of_it_is_still_looked_for(ledger: SqlLedger) -> None:
    (proof, _) = verify_manifests(ledger.history(RED), lambda _number, _name: None)
    assert proof.broken == ("manifest.json is gone.",)
