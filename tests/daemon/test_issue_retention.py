"""What was recorded of an issue long resolved goes, and nothing that is asked later suffers."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from mulligan.daemon.cleanup import RetentionPlan, clean_up
from mulligan.daemon.once import run_once
from mulligan.daemon.worker import Worker
from mulligan.domain.events import Forgotten, HumanResponded
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.recorded_effects import Effect
from mulligan.storage.ledger import SqlLedger
from world.behaviours import AgentInput
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

LONG = timedelta(days=91)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


def do(here: WorkerEnvironment) -> None:
    assert run_once((NAME,), here.context(fix_the_bug)).problems == ()


def merged(here: WorkerEnvironment) -> IssueRef:
    """Give an issue whose pull request was merged just now."""
    ref = here.desk.ready()
    do(here)
    pull = here.ledger.status(ref).pull.number
    assert pull
    here.desk.hub.world.merge(IssueRef(NAME, pull), "wes")
    do(here)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    return ref


def tidy(here: WorkerEnvironment, later: timedelta = LONG) -> None:
    here.desk.clock.time += later
    context = here.context(fix_the_bug)
    assert clean_up(context, Worker(context), RetentionPlan(histories=here.attic)) == {}


def rows(here: WorkerEnvironment, table: str) -> int:
    assert isinstance(here.ledger, SqlLedger)
    with here.ledger.database.read() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())  # noqa: S608


def test_an_issue_is_forgotten_when_it_was_resolved_for_long(here: WorkerEnvironment) -> None:
    ref = merged(here)
    tidy(here, LONG - timedelta(days=2))
    assert len(here.events(ref)) > 10
    assert rows(here, "runs") == 1
    tidy(here, timedelta(days=2))
    (kept,) = here.events(ref)
    assert isinstance(kept, Forgotten)
    assert (kept.number, kept.reason) == (1, "Its pull request was merged.")
    assert rows(here, "runs") == 0
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert list(here.context(fix_the_bug).artifacts.attempts()) == []
    before = rows(here, "events")
    tidy(here)
    assert rows(here, "events") == before


def test_one_that_is_labelled_again_is_worked_on_from_the_first_attempt(
    here: WorkerEnvironment,
) -> None:
    ref = merged(here)
    old, comment = here.pushed(ref), here.said(ref)[0]
    tidy(here)
    here.desk.hub.world.reopen(ref, "wes")
    do(here)
    assert here.ledger.status(ref).epoch == 0
    here.desk.hub.world.label(ref, "mulligan", "wes")
    do_more = run_once((NAME,), here.context(lambda given: given.write("src/tool.py", "X = 3\n")))
    assert do_more.problems == ()
    status = here.ledger.status(ref)
    assert (status.epoch, status.attempt, status.stage) == (1, 1, Stage.REVIEW)
    assert here.pushed(ref) != old
    assert len(here.said(ref)) == 1
    assert here.said(ref)[0] != comment


def test_a_person_is_asked_anew_and_not_in_a_comment_of_long_ago(here: WorkerEnvironment) -> None:
    ref, asked = here.desk.ready(), "<!-- mulligan:hitl"

    def nothing(given: AgentInput) -> None:
        given.write("src/tool.py", "X = 1\n")

    def give_up() -> list[str]:
        assert run_once((NAME,), here.context(nothing)).problems == ()
        assert here.ledger.status(ref).stage is Stage.HITL
        return [text for text in here.said(ref) if asked in text]

    (old,) = give_up()
    here.desk.hub.world.comment(ref, "/mulligan skip", "wes")
    do(here)
    tidy(here)
    assert isinstance(here.events(ref)[0], Forgotten)
    here.desk.hub.world.label(ref, "mulligan", "wes")
    new = give_up()
    assert len(new) == 2
    assert new[0].partition("\n### ")[2][:200] == old.partition("\n### ")[2][:200]
    here.desk.hub.world.comment(ref, "/mulligan skip", "wes")
    do(here)
    tidy(here)
    here.desk.hub.world.label(ref, "mulligan", "wes")
    assert len(give_up()) == 3


def test_who_speaks_while_nobody_listens_for_days_is_heard(here: WorkerEnvironment) -> None:
    ref = merged(here)
    tidy(here)
    here.desk.hub.world.comment(ref, "/mulligan status", "wes")
    here.desk.clock.time += timedelta(days=2)
    do(here)
    assert [each.command for each in here.events(ref) if isinstance(each, HumanResponded)]


def test_commands_that_were_obeyed_are_not_obeyed_again(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    do(here)
    here.desk.hub.world.comment(ref, "/mulligan skip", "wes")
    do(here)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    tidy(here)
    # Its pull request is open still.
    assert not isinstance(here.events(ref)[0], Forgotten)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    here.desk.hub.world.close(IssueRef(NAME, pull.number), "wes")
    do(here)
    tidy(here)
    assert isinstance(here.events(ref)[0], Forgotten)
    here.desk.ready("Another")
    do(here)
    told = [each for each in here.events(ref) if not isinstance(each, Effect)]
    assert [type(each) for each in told] == [Forgotten]
