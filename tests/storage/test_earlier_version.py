"""What 10b90f43 left, the oldest version that is upgraded: a ledger, and an Action's state ref.

Its own code wrote both. The ledger is of `mulligan demo`, with three more issues: an agent is at
work on one, one is verified and not published, one waits for a retry. The ref has three of them.
"""

import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import JsonValue, TypeAdapter

from mulligan.config.policy import Policy
from mulligan.domain.errors import ConfigError
from mulligan.domain.events import EVENTS, AttemptStarted, IssueSeen
from mulligan.domain.issue import Issue, IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import Effect
from mulligan.domain.result import WorkerResultMeta
from mulligan.implement.prompt.compose import Previous, compose
from mulligan.implement.prompt.manifest import verify_manifests
from mulligan.implement.prompt.prompt import WorktreeBase
from mulligan.storage.database import open_database
from mulligan.storage.fast_status import read_fast_status
from mulligan.storage.git_ref import RefLedger
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.serialization import folded
from mulligan.text.redact import Redactor
from world.ledgers import TickingClock, all_folded, completed, open_ledger_at, rebuild, url_of
from world.repositories import git
from world.stores import ref_session_on, shared_remote

GOLDEN = Path(__file__).parent / "golden"
DUMP = (GOLDEN / "ledger.sql").read_text("utf-8")
FILES = TypeAdapter(dict[str, str]).validate_json((GOLDEN / "state-ref.json").read_text("utf-8"))
JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
STATE_REF = "refs/mulligan/state"
STAGES = {
    1: Stage.REVIEW,
    2: Stage.REVIEW,
    3: Stage.HITL,
    5: Stage.RESOLVED,
    7: Stage.RUNNING,
    8: Stage.RUNNING,
    9: Stage.READY,
}
STAGES_ON_THE_REF = {2: Stage.REVIEW, 3: Stage.HITL, 7: Stage.RUNNING}


def issue(number: int) -> IssueRef:
    return IssueRef("acme/calculator", number)


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


def lost(written: JsonValue, read: JsonValue, at: str = "") -> list[str]:
    """Name what was written and is not read as it was; what this version adds does not count."""
    if isinstance(written, dict) and isinstance(read, dict):
        pairs = [(key, each, read.get(key)) for key, each in written.items()]
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        pairs = [(str(key), *pair) for key, pair in enumerate(zip(written, read, strict=True))]
    else:
        return [] if written == read else [f"{at}: {written!r} is read as {read!r}"]
    return [said for key, each, found in pairs for said in lost(each, found, f"{at}.{key}")]


def test_every_event_is_read_as_it_was_written(path: Path, ledger: SqlLedger) -> None:
    """Effects are written in another way since; test_old_events.py reads them."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT kind, body FROM events ORDER BY seq").fetchall()
    assert len(rows) > 100
    for (kind, body), each in zip(rows, ledger.events(), strict=True):
        assert (kind == "effect_done") == isinstance(each.event, Effect)
        if kind != "effect_done":
            written = JSON.validate_json(body)
            assert lost(written, JSON.validate_json(EVENTS.dump_json(each.event))) in (
                [],
                [".meta.probe: False is read as None"],
            )
    assert lost(["a"], ["b"]) == [".0: 'a' is read as 'b'"]


def test_every_issue_stands_where_it_stood(path: Path, ledger: SqlLedger) -> None:
    stored = ledger.statuses()
    assert {each.issue.number: each.stage for each in stored} == STAGES
    assert all_folded(iter(ledger.events())) == [*stored]
    assert read_fast_status(url_of(path)) == (stored, [])
    rebuild(ledger)
    assert ledger.statuses() == stored


def test_the_attempt_that_was_at_work_can_end(ledger: SqlLedger) -> None:
    assert ledger.history(issue(7)) == ()
    ledger.append(issue(7), completed(issue(7), 1, Outcome.INTERRUPTED))
    assert [meta.outcome for meta in ledger.history(issue(7))] == [Outcome.INTERRUPTED]


def test_the_next_attempt_learns_from_it(ledger: SqlLedger) -> None:
    history = ledger.history(issue(2))
    assert [meta.outcome for meta in history] == [Outcome.CHECKS_FAILED, Outcome.SUCCEEDED]
    assert all(
        WorkerResultMeta.model_validate_json(meta.model_dump_json()) == meta for meta in history
    )
    case = IssueContext(
        Issue(issue(2), "The average of no values", ""),
        ledger.status(issue(2)),
        history[:1],
        max_attempts=3,
        counted=1,
    )
    told = compose(case, Policy(), Previous(b""), WorktreeBase.BASE, Redactor())
    assert history[0].error in told.prompt


def test_what_was_kept_of_it_is_still_looked_for(ledger: SqlLedger) -> None:
    (first, _) = verify_manifests(ledger.history(issue(2)), lambda _number, _name: None)
    assert first.broken == ("manifest.json is gone.",)


def test_the_ref_is_read_and_carried_on(tmp_path: Path, remote: Path) -> None:
    with ref_session_on(remote, tmp_path, TickingClock()) as session:
        ledger = RefLedger(session)
        found = {each.issue.number: each.stage for each in ledger.statuses()}
        assert found == STAGES_ON_THE_REF
        for number in found:
            events = [*ledger.events(issue(number))]
            assert folded(issue(number), events) == ledger.status(issue(number))
        assert [meta.outcome for meta in ledger.history(issue(2))] == [
            Outcome.CHECKS_FAILED,
            Outcome.SUCCEEDED,
        ]
        assert session.leases()[issue(7)].worker.startswith("run-")
        ledger.append(issue(9), IssueSeen(title="Another"))
        ledger.append(issue(9), AttemptStarted(attempt=1, number=1, worker="w"))
        session.save()
    for name, text in FILES.items():
        if name.endswith(".jsonl"):
            assert git(remote, "show", f"{STATE_REF}:{name}") == text.rstrip("\n")
    assert "Another" in git(remote, "show", f"{STATE_REF}:acme/calculator/9.jsonl")


@pytest.mark.parametrize("revision", ["0001", "0015", "0017", "0019"])
def test_what_was_never_released_is_refused_with_a_way_out(path: Path, revision: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE mulligan_version SET version_num = ?", [revision])
        connection.commit()
    with pytest.raises(ConfigError) as refused:
        open_database(url_of(path))
    assert str(refused.value) == (
        f"{path} was written by a version that was never released; name another database in "
        "state.url, and Mulligan restores the issues from GitHub."
    )
