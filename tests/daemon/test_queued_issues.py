"""An issue that waits behind others is in the ledger, and says so, from the first poll on."""

from collections.abc import Generator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.explain import explain
from mulligan.daemon.once import PassLimits, run_once
from mulligan.daemon.poll import MAX_ADMITTED, poll
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import IssueRef, Stage
from world.behaviours import AgentInput
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

QUEUED = "This issue is queued. Mulligan starts work when a worker is free."


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def test_what_waits_behind_another_is_queued_and_says_so(here: WorkerEnvironment) -> None:
    refs = [here.desk.ready() for _ in range(3)]
    seen = list[list[tuple[Stage, int, bool]]]()

    def look(given: AgentInput) -> None:
        if not seen:
            statuses = [here.ledger.status(ref) for ref in refs[1:]]
            seen.append(
                [(each.stage, each.epoch, QUEUED in here.said(each.issue)[0]) for each in statuses]
            )
        fix_the_bug(given)

    assert run_once([NAME], here.context(look)).problems == ()
    assert seen == [[(Stage.READY, 1, True)] * 2]
    assert [here.ledger.status(ref).stage for ref in refs] == [Stage.REVIEW] * 3
    assert [len(here.said(ref)) for ref in refs] == [1] * 3
    assert [len(here.ledger.history(ref)) for ref in refs] == [1] * 3


def test_what_is_not_visited_in_this_pass_is_queued_too(here: WorkerEnvironment) -> None:
    first, second = here.desk.ready(), here.desk.ready()
    run_once([NAME], here.context(fix_the_bug), PassLimits(issues=1))
    assert here.ledger.status(first).stage is Stage.REVIEW
    assert here.ledger.status(second).epoch == 1
    assert QUEUED in here.said(second)[0]
    writes = here.writes()
    assert poll((NAME,), here.context(fix_the_bug), Worker(here.context(fix_the_bug)))[0] == [
        second
    ]
    assert here.writes() == writes


def test_an_issue_that_may_not_start_is_not_queued(here: WorkerEnvironment) -> None:
    here.desk.ready()
    stranger = here.desk.ready(by="rea")
    run_once([NAME], here.context(fix_the_bug), PassLimits(issues=1))
    assert here.ledger.status(stranger).epoch == 0
    assert here.said(stranger) == []


def test_many_are_queued_a_few_at_a_time(here: WorkerEnvironment) -> None:
    refs = [here.desk.ready() for _ in range(MAX_ADMITTED + 3)]
    context = here.context(fix_the_bug)
    run_once([NAME], context, PassLimits(issues=1))
    assert known(here, refs) == 1 + MAX_ADMITTED
    run_once([NAME], context, PassLimits(issues=1))
    assert known(here, refs) == len(refs)


def known(here: WorkerEnvironment, refs: list[IssueRef]) -> int:
    return sum(here.ledger.status(ref).epoch for ref in refs)


def test_one_that_cannot_be_read_now_holds_up_no_other(here: WorkerEnvironment) -> None:
    refs = [here.desk.ready() for _ in range(3)]
    here.desk.hub.world.faults = lambda _, path: (
        Fault(500) if path.endswith(f"/issues/{refs[1].number}/events") else None
    )
    run_once([NAME], here.context(fix_the_bug), PassLimits(issues=1))
    assert [here.ledger.status(ref).epoch for ref in refs] == [1, 0, 1]


def test_explain_says_that_it_waits(here: WorkerEnvironment) -> None:
    here.desk.ready()
    second = here.desk.ready()
    run_once([NAME], here.context(fix_the_bug), PassLimits(issues=1))
    assert "next pass" in explain(second, here.context(fix_the_bug), None).summary
