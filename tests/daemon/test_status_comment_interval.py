"""The status comment is changed at a pace that people can follow, and is never left behind."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.daemon.recovery import write_deferred_comments
from mulligan.daemon.worker import Worker
from mulligan.domain.command import Verb
from mulligan.domain.errors import ShutdownError
from mulligan.domain.events import CommandReceived, Waiting
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import STATUS_EDIT_INTERVAL
from mulligan.implement.ports import BotContext
from world.behaviours import AgentInput, Behaviour, crash
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Iterator[WorkerEnvironment]:
    with worker_environment(tmp_path) as found:
        yield found


def told(here: WorkerEnvironment, ref: IssueRef) -> str:
    (status,) = [text for text in here.said(ref) if "<!-- mulligan:status" in text]
    return status


def put_off(here: WorkerEnvironment) -> tuple[IssueRef, BotContext]:
    """Have an issue skipped in the very moment in which a person was asked."""
    ref, context = here.desk.ready(), here.context(crash)
    run_once([NAME], context)
    skip = CommandReceived(
        key="command:2026", command=Verb.SKIP, text="too old", at=here.desk.clock.now()
    )
    here.ledger.append(ref, skip)
    run_once([NAME], context)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert here.labels(ref) == []
    assert "needs human review (HITL)" in told(here, ref)
    return ref, context


def test_what_was_put_off_is_written_by_the_next_pass(here: WorkerEnvironment) -> None:
    ref, context = put_off(here)
    here.desk.clock.time += STATUS_EDIT_INTERVAL
    run_once([NAME], context)
    assert "too old" in told(here, ref)
    assert here.ledger.status(ref).is_shown


def test_a_label_that_a_person_moved_meanwhile_stays(here: WorkerEnvironment) -> None:
    ref, context = put_off(here)
    here.desk.hub.world.label(ref, "mulligan:review", "wes")
    here.desk.clock.time += STATUS_EDIT_INTERVAL
    run_once([NAME], context)
    assert here.labels(ref) == ["mulligan:review"]


def test_the_last_pass_waits_for_what_it_put_off(here: WorkerEnvironment) -> None:
    ref, context = put_off(here)
    waited = list[float]()

    def wait(seconds: float) -> None:
        waited.append(seconds)
        here.desk.clock.time += STATUS_EDIT_INTERVAL

    write_deferred_comments(context, Worker(context), [NAME], wait)
    write_deferred_comments(context, Worker(context), [NAME], wait)
    assert waited == [15]
    assert "too old" in told(here, ref)


def test_a_shutdown_leaves_it_to_the_next_start(here: WorkerEnvironment) -> None:
    ref, context = put_off(here)

    def wait(_seconds: float) -> None:
        raise ShutdownError

    write_deferred_comments(context, Worker(context), [NAME], wait)
    assert here.ledger.status(ref).has_deferred_comment


def test_an_attempt_that_lasts_is_told_while_it_runs(here: WorkerEnvironment) -> None:
    ref, context = put_off(here)
    here.desk.clock.time += STATUS_EDIT_INTERVAL
    here.desk.hub.advance_one_second()
    here.desk.hub.world.label(ref, "mulligan", "wes")
    said = list[str]()

    def look_on(given: AgentInput) -> int:
        for _ in range(2):
            worker.watch()
            said.append(told(here, ref))
            here.desk.clock.time += STATUS_EDIT_INTERVAL
        return crash(given)

    worker = Worker(here.context(crash_first(look_on)), max_attempts=2)
    worker.visit(ref)
    assert ["is working on this" in text for text in said] == [False, True]
    del context


def crash_first(then: Behaviour) -> Behaviour:
    """Give an agent that crashes at once, and does something else in the next attempt."""
    runs = list[int]()

    def work(given: AgentInput) -> int | None:
        runs.append(1)
        return crash(given) if len(runs) == 1 else then(given)

    return work


def long_attempt(here: WorkerEnvironment, ref: IssueRef, look_on: Callable[[Worker], None]) -> None:
    """Have an attempt run so long that its comment is late, and look on."""
    here.desk.clock.time += STATUS_EDIT_INTERVAL
    here.desk.hub.world.label(ref, "mulligan", "wes")

    def work(given: AgentInput) -> int:
        here.desk.clock.time += STATUS_EDIT_INTERVAL
        look_on(worker)
        return crash(given)

    worker = Worker(here.context(crash_first(work)), max_attempts=2)
    assert not worker.visit(ref).problem


def test_an_attempt_that_ends_while_it_is_told_of_is_told_of_again(here: WorkerEnvironment) -> None:
    ref, _ = put_off(here)

    def look_on(worker: Worker) -> None:
        def end(method: str, path: str) -> Fault | None:
            if method == "PATCH" and "/comments/" in path:
                here.ledger.append(ref, Waiting(until=None, reason="It ended."))
            return None

        here.desk.hub.world.faults = end
        worker.watch()
        here.desk.hub.world.faults = None
        assert "is working on this" in told(here, ref)
        assert not here.ledger.status(ref).is_shown

    long_attempt(here, ref, look_on)


def test_who_has_lost_the_issue_tells_nothing(here: WorkerEnvironment) -> None:
    ref, _ = put_off(here)

    def look_on(worker: Worker) -> None:
        here.let_leases_run_out()
        assert here.leases.claim(ref, "two")
        writes = here.writes()
        worker.watch()
        assert here.writes() == writes
        assert here.ledger.status(ref).has_deferred_comment

    long_attempt(here, ref, look_on)


@pytest.mark.parametrize("end", ["gone", "archived"])
def test_what_can_be_told_nowhere_is_let_be(here: WorkerEnvironment, end: str) -> None:
    ref, context = put_off(here)
    if end == "gone":
        here.desk.hub.world.delete(ref)
    else:
        here.desk.hub.world.archive(NAME)
    here.desk.clock.time += STATUS_EDIT_INTERVAL
    run_once([NAME], context)
    assert not here.ledger.status(ref).has_deferred_comment
