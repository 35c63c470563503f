"""What 0.1 left, before its modules got their present places: a daemon's ledger, and the state ref.

Both are what its own processes wrote. `mulligan run` was killed over the ledger, with an issue in
review, one merged, one with a person, one verified and not published, one paused and one with its
agent at work. The ref is of four runs of the Action and one that was killed at its work.
"""

import json
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from mulligan.domain.events import EVENTS, AttemptStarted, IssueSeen
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import Effect
from mulligan.storage.fast_status import read_fast_status
from mulligan.storage.git_ref import RefLedger
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.serialization import folded
from world.ledgers import TickingClock, all_folded, completed, open_ledger_at, url_of
from world.repositories import git
from world.stores import ref_session_on, shared_remote

GOLDEN = Path(__file__).parent / "golden"
DUMP = (GOLDEN / "ledger-0.1.sql").read_text("utf-8")
FILES = TypeAdapter(dict[str, str]).validate_json((GOLDEN / "state-ref-0.1.json").read_text())
STATE_REF = "refs/mulligan/state"
STAGES = {
    1: Stage.REVIEW,
    3: Stage.RESOLVED,
    5: Stage.HITL,
    7: Stage.RUNNING,
    9: Stage.READY,
    10: Stage.RUNNING,
}
STAGES_ON_THE_REF = {1: Stage.REVIEW, 3: Stage.HITL, 4: Stage.RUNNING}
AT_WORK = IssueRef("acme/tools", 10)


def issue(number: int) -> IssueRef:
    return IssueRef("acme/tools", number)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMP)
    return path


@pytest.fixture
def ledger(path: Path) -> Generator[SqlLedger]:
    with open_ledger_at(path) as found:
        yield found


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """Put the files on the ref of a repository, in one commit without a parent."""
    bare = shared_remote(tmp_path)
    stream = [f"commit {STATE_REF}\ncommitter M <m@example.org> 0 +0000\ndata 0\n".encode()]
    for name, text in FILES.items():
        content = text.encode()
        stream.append(b"M 644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content))
    subprocess.run(
        ["git", "-C", bare, "fast-import", "--quiet"], input=b"".join(stream), check=True
    )
    return bare


def test_every_event_would_be_written_again_as_it_was(path: Path, ledger: SqlLedger) -> None:
    """Fields that later versions added are left out: an old event does not have them.

    Effects are written in another way since; test_old_events.py reads them.
    """
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT seq, body FROM events WHERE kind != 'effect_done' ORDER BY seq"
        ).fetchall()
    assert len(rows) > 75
    again = [
        (each.seq, json.loads(EVENTS.dump_json(each.event, exclude_unset=True)))
        for each in ledger.events()
        if not isinstance(each.event, Effect)
    ]
    assert again == [(seq, json.loads(body)) for seq, body in rows]


def test_every_issue_stands_where_it_stood(path: Path, ledger: SqlLedger) -> None:
    stored = ledger.statuses()
    assert {each.issue.number: each.stage for each in stored} == STAGES
    assert all_folded(iter(ledger.events())) == [*stored]
    assert read_fast_status(url_of(path)) == (stored, [])


def test_the_attempt_that_was_at_work_can_end(ledger: SqlLedger) -> None:
    assert ledger.history(AT_WORK) == ()
    ledger.append(AT_WORK, completed(AT_WORK, 1, Outcome.INTERRUPTED))
    assert [meta.outcome for meta in ledger.history(AT_WORK)] == [Outcome.INTERRUPTED]


def test_the_ref_is_read_and_carried_on(tmp_path: Path, remote: Path) -> None:
    with ref_session_on(remote, tmp_path, TickingClock()) as session:
        ledger = RefLedger(session)
        found = {each.issue.number: each.stage for each in ledger.statuses()}
        assert found == STAGES_ON_THE_REF
        for number in found:
            events = [*ledger.events(issue(number))]
            assert folded(issue(number), events) == ledger.status(issue(number))
        assert [meta.outcome for meta in ledger.history(issue(3))] == [
            Outcome.CHECKS_FAILED,
            Outcome.CHECKS_FAILED,
        ]
        assert session.leases()[issue(4)].worker.startswith("run-")
        ledger.append(issue(9), IssueSeen(title="Another"))
        ledger.append(issue(9), AttemptStarted(attempt=1, number=1, worker="w"))
        session.save()
    for name, text in FILES.items():
        if name.endswith(".jsonl"):
            assert git(remote, "show", f"{STATE_REF}:{name}") == text.rstrip("\n")
    assert "Another" in git(remote, "show", f"{STATE_REF}:acme/tools/9.jsonl")
