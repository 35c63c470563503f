"""Where an issue stands is what its events come to: stored, folded, replayed, or in memory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from mulligan.domain.events import Event
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta, latest_records
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.memory import MemoryLedger
from mulligan.storage.schema import ISSUES_TABLE
from world.ledgers import (
    ISSUES,
    TickingClock,
    all_folded,
    events,
    folded,
    open_ledger_at,
    opened_copy,
    rebuild,
)

Happened = list[tuple[IssueRef, Event]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    with open_ledger_at(path):
        pass
    return path


def columns(ledger: SqlLedger) -> list[tuple[str, int, str, str, bool]]:
    table = ISSUES_TABLE.c
    wanted = select(table.repository, table.number, table.stage, table.phase, table.due)
    with ledger.database.read() as connection:
        rows = connection.execute(wanted.order_by(table.repository, table.number)).all()
    return [(row[0], row[1], row[2], row[3], row[4] is not None) for row in rows]


@given(happened=st.lists(st.tuples(st.sampled_from(ISSUES), events()), max_size=15))
def test_projection_fold_replay_and_memory_agree_whatever_happens(
    happened: Happened, template: Path, tmp_path: Path
) -> None:
    memory = MemoryLedger(TickingClock())
    with opened_copy(template, tmp_path / "copy.db") as ledger:
        for ref, event in happened:
            assert ledger.append(ref, event) == memory.append(ref, event) == ledger.status(ref)
        kept = ledger.statuses()
        recorded = ledger.events()
        assert [each.event for each in recorded] == [event for _, event in happened]
        assert recorded == memory.events()
        assert kept == memory.statuses() == all_folded(iter(recorded))
        for ref in ISSUES:
            assert ledger.status(ref) == folded(ledger, ref)
            assert ledger.history(ref) == memory.history(ref) == metas(happened, ref)
        before = columns(ledger)
        rebuild(ledger)
        assert ledger.statuses() == kept
        assert columns(ledger) == before
        assert before == [
            (each.issue.repository, each.issue.number, each.stage, each.phase, each.due is not None)
            for each in kept
        ]


def metas(happened: Happened, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
    of_issue = [event for issue, event in happened if issue == ref]
    return latest_records(event.meta for event in of_issue if event.kind == "attempt_completed")
