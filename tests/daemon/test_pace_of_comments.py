"""The status comment is changed at a pace that people can follow, and is never left behind."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import once
from mulligan.daemon.recovery import catch_up
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import ShutdownError
from mulligan.domain.events import Waiting
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import BETWEEN_EDITS
from mulligan.implement.ports import Tools
from world.behaviours import Given, crash
from world.simulated import NAME
from world.workers import Shop, shop


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Shop]:
    with shop(tmp_path) as found:
        yield found


def told(here: Shop, ref: IssueRef) -> str:
    (status,) = [text for text in here.said(ref) if "<!-- mulligan:status" in text]
    return status


def put_off(here: Shop) -> tuple[IssueRef, Tools]:
    """Have an issue skipped in the very moment in which a person was asked."""
    ref, tools = here.desk.ready(), here.tools(crash)
    once([NAME], tools)
    here.desk.hub.world.comment(ref, "/mulligan skip too old", "wes")
    once([NAME], tools)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert here.labels(ref) == []
    assert "handed this issue to a person" in told(here, ref)
    return ref, tools


def test_what_was_put_off_is_written_by_the_next_pass(here: Shop) -> None:
    ref, tools = put_off(here)
    here.desk.clock.time += BETWEEN_EDITS
    once([NAME], tools)
    assert "too old" in told(here, ref)
    assert here.ledger.status(ref).is_shown


def test_a_label_that_a_person_moved_meanwhile_stays(here: Shop) -> None:
    ref, tools = put_off(here)
    here.desk.hub.world.label(ref, "mulligan:review", "wes")
    here.desk.clock.time += BETWEEN_EDITS
    once([NAME], tools)
    assert here.labels(ref) == ["mulligan:review"]


def test_the_last_pass_waits_for_what_it_put_off(here: Shop) -> None:
    ref, tools = put_off(here)
    waited = list[float]()

    def wait(seconds: float) -> None:
        waited.append(seconds)
        here.desk.clock.time += BETWEEN_EDITS

    catch_up(tools, Worker(tools), [NAME], wait)
    catch_up(tools, Worker(tools), [NAME], wait)
    assert waited == [15]
    assert "too old" in told(here, ref)


def test_a_shutdown_leaves_it_to_the_next_start(here: Shop) -> None:
    ref, tools = put_off(here)

    def wait(_seconds: float) -> None:
        raise ShutdownError

    catch_up(tools, Worker(tools), [NAME], wait)
    assert here.ledger.status(ref).is_late


def test_an_attempt_that_lasts_is_told_while_it_runs(here: Shop) -> None:
    ref, tools = put_off(here)
    here.desk.clock.time += BETWEEN_EDITS
    here.desk.hub.world.label(ref, "mulligan", "wes")
    said = list[str]()

    def look_on(given: Given) -> int:
        for _ in range(2):
            worker.watch()
            said.append(told(here, ref))
            here.desk.clock.time += BETWEEN_EDITS
        return crash(given)

    worker = Worker(here.tools(look_on), most=1)
    worker.visit(ref)
    assert ["is working on this" in text for text in said] == [False, True]
    del tools


def long_attempt(here: Shop, ref: IssueRef, look_on: Callable[[Worker], None]) -> None:
    """Have an attempt run so long that its comment is late, and look on."""
    here.desk.clock.time += BETWEEN_EDITS
    here.desk.hub.world.label(ref, "mulligan", "wes")

    def work(given: Given) -> int:
        here.desk.clock.time += BETWEEN_EDITS
        look_on(worker)
        return crash(given)

    worker = Worker(here.tools(work), most=1)
    assert worker.visit(ref).problem is None


def test_an_attempt_that_ends_while_it_is_told_of_is_told_of_again(here: Shop) -> None:
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


def test_who_has_lost_the_issue_tells_nothing(here: Shop) -> None:
    ref, _ = put_off(here)

    def look_on(worker: Worker) -> None:
        here.let_leases_run_out()
        assert here.leases.claim(ref, "two")
        writes = here.writes()
        worker.watch()
        assert here.writes() == writes
        assert here.ledger.status(ref).is_late

    long_attempt(here, ref, look_on)


@pytest.mark.parametrize("end", ["gone", "archived"])
def test_what_can_be_told_nowhere_is_let_be(here: Shop, end: str) -> None:
    ref, tools = put_off(here)
    if end == "gone":
        here.desk.hub.world.delete(ref)
    else:
        here.desk.hub.world.archive(NAME)
    here.desk.clock.time += BETWEEN_EDITS
    once([NAME], tools)
    assert not here.ledger.status(ref).is_late
