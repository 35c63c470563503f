"""Nothing is kept or read back but redacted."""

from pathlib import Path

import pytest

from mulligan.domain.events import Event, IssueSeen
from mulligan.domain.issue import IssueRef
from mulligan.implement.ports import Ledger
from mulligan.storage.artifacts import FileArtifacts, scratch_artifacts
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.memory import MemoryLedger
from mulligan.text.redact import Redactor
from world.ledgers import TickingClock, url_of

REF = IssueRef("acme/tools", 1)
SECRET = "token-of-the-bot"
FILTER = Redactor((SECRET,))
HEADER = '-----BEGIN PRIVATE KEY-----", "'
SEEN = IssueSeen(title=f'A "{SECRET}" {HEADER}', url=f"https://x:{SECRET}@host")
STORED = IssueSeen(title='A "[redacted]" [redacted]', url="https://x:[redacted]@host")


def told_by(ledger: Ledger) -> tuple[str, list[Event]]:
    """Record an event; give the status's title, and the events that are read back."""
    status = ledger.append(REF, SEEN)
    return status.text.title, [each.event for each in ledger.events(REF)]


@pytest.mark.pure
def test_a_ledger_in_memory_keeps_no_secret() -> None:
    ledger = MemoryLedger(TickingClock(), redactor=FILTER)
    assert told_by(ledger) == (STORED.title, [STORED])


def test_a_database_keeps_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with open_database(url_of(path)) as database:
        ledger = SqlLedger(database, TickingClock(), redactor=FILTER)
        assert told_by(ledger) == (STORED.title, [STORED])
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_an_artifact_holds_no_secret(tmp_path: Path) -> None:
    with scratch_artifacts(FILTER) as scratch:
        for artifacts in (FileArtifacts(tmp_path, FILTER), scratch):
            name = artifacts.write(REF, 1, "changes.diff", f"+key = {SECRET}\xff".encode())
            assert artifacts.read(name) == "+key = [redacted]\xff".encode()
