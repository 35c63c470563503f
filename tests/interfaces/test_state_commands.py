"""Whoever moves from the Action to a worker and back keeps every count and all history."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.events import (
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    Decided,
    RetryScheduled,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome, Retry
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.storage.database import open_database
from mulligan.storage.git_ref import RefLeases, RefLedger
from mulligan.storage.usage import SqlUsageStore
from world.ledgers import START
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.repositories import git
from world.stores import ref_session_on
from world.stories import NOON, attempt

REF = IssueRef(NAME, 1)
CHECK = {"name": "two", "run": "grep -qx two notes.txt"}


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    (tmp_path / "home").mkdir()
    with mulligan_installation(tmp_path / "home", {"notes.txt": "one\n"}, [CHECK]) as made:
        yield made


def record_an_attempt(here: MulliganInstallation, act: str) -> None:
    """Have a run of the Action make the first attempt, which fails."""
    with ref_session_on(here.bare, here.directory, SystemClock()) as book:
        ledger = RefLedger(book)
        ledger.append(REF, Authorised(act=act, actor="ada", act_at=START))
        ledger.append(REF, AttemptStarted(attempt=1, number=1, worker="run-7"))
        meta = attempt(1).model_copy(update={"issue": str(REF)})
        ledger.append(REF, AttemptCompleted(meta=meta))
        ledger.append(REF, Decided(decision=Retry(reason="2 attempts left.")))
        ledger.append(REF, RetryScheduled(due=START, reason="2 attempts left."))


def outcomes_on_the_ref(here: MulliganInstallation) -> list[Outcome]:
    with ref_session_on(here.bare, here.directory, SystemClock()) as book:
        return [meta.outcome for meta in RefLedger(book).history(REF)]


def test_a_worker_goes_on_where_the_action_stopped_and_back(here: MulliganInstallation) -> None:
    here.issue()
    labelled = next(event for event in here.world.events_of(REF) if event.kind == "labeled")
    record_an_attempt(here, f"labeled:{labelled.id}")
    pulled = here.run("state", "pull")
    assert (pulled.returncode, pulled.stderr) == (0, "")
    assert pulled.stdout == f"{REF}  taken over\n1 issue taken over.\n"
    with open_database(here.operator().state.url) as database:
        assert SqlUsageStore(database).used_on(NOON.date())[NAME].usd == 0.21
    here.agent("pathlib.Path('notes.txt').write_text('half\\n')")
    assert here.run("once", "--attempts", "1").returncode == 0
    assert [meta.attempt for meta in here.attempts(REF)] == [1, 2]
    pushed = here.run("state", "push")
    assert pushed.stdout == f"{REF}  handed over\n1 issue handed over.\n"
    assert outcomes_on_the_ref(here) == [Outcome.CHECKS_FAILED] * 2
    for again in ("pull", "push"):
        assert here.run("state", again).stdout.startswith("0 issues ")
    assert len(here.attempts(REF)) == 2


def test_nothing_is_moved_while_a_run_works(here: MulliganInstallation) -> None:
    record_an_attempt(here, "labeled:7")
    with ref_session_on(here.bare, here.directory, SystemClock(), timedelta(minutes=2)) as book:
        lease = RefLeases(book).claim(REF, "run-9")
        assert lease
        assert RefLeases(book).holds(lease)
        for way in ("pull", "push"):
            done = here.run("state", way)
            assert done.returncode == 2
            assert done.stderr == (
                f"mulligan: run-9 is working on {REF}; wait until that run ends.\n"
            )


def test_a_repository_that_never_had_the_action_has_nothing_to_give(
    here: MulliganInstallation,
) -> None:
    assert here.run("state", "pull").stdout == "0 issues taken over.\n"
    assert git(here.bare, "for-each-ref", "refs/mulligan") == ""
