"""An issue that needs human review is done once it is closed or gone (LABEL-5, LABEL-7)."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.domain.issue import IssueRef, Stage
from world.simulated import NAME
from world.workers import WorkerEnvironment, fail_once_changed, fix_the_bug, worker_environment

HITL = "mulligan:hitl"
LIST, ISSUE = f"/repos/{NAME}/issues", f"/repos/{NAME}/issues/1"

Act = Callable[[WorkerEnvironment, IssueRef], object]


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def do(here: WorkerEnvironment) -> None:
    here.desk.hub.advance_one_second()
    assert run_once((NAME,), here.context(fix_the_bug)).problems == ()


def escalated(here: WorkerEnvironment) -> IssueRef:
    ref = here.desk.ready()
    here.policy["max_issue_attempts"] = 1
    here.check(fail_once_changed)
    do(here)
    assert here.ledger.status(ref).stage is Stage.HITL
    here.check(lambda _: None)
    return ref


def close(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.close(ref, "wes")


def delete(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.delete(ref)


def transfer(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.add_repository("acme/other", here.desk.hub.bare)
    here.desk.hub.world.transfer(ref, "acme/other", "ada")


@pytest.mark.parametrize(
    ("end", "reason"),
    [(close, "was closed"), (delete, "was deleted"), (transfer, "was transferred")],
)
def test_its_record_ends_and_nothing_is_written_again(
    here: WorkerEnvironment, end: Act, reason: str
) -> None:
    ref = escalated(here)
    end(here, ref)
    do(here)
    status = here.ledger.status(ref)
    assert (status.stage, reason in status.reason) == (Stage.RESOLVED, True)
    do(here)
    before = (here.writes(), here.events(ref))
    do(here)
    assert (here.writes(), here.events(ref)) == before


def test_its_label_goes_and_its_comment_says_why(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    close(here, ref)
    do(here)
    do(here)
    assert here.labels(ref) == []
    assert any("**Answered:** The issue was closed." in text for text in here.said(ref))


def test_a_request_after_it_was_opened_again_starts_new_attempts(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    close(here, ref)
    do(here)
    here.desk.hub.world.reopen(ref, "wes")
    here.desk.hub.world.label(ref, "mulligan", "wes")
    do(here)
    assert (here.ledger.status(ref).stage, here.ledger.status(ref).epoch) == (Stage.REVIEW, 2)


@pytest.mark.parametrize("fault", [Fault(404), Fault(502), Fault(200, "[]")])
def test_absence_ends_nothing(here: WorkerEnvironment, fault: Fault) -> None:
    ref = escalated(here)
    events = here.events(ref)
    here.desk.hub.world.unlabel(ref, HITL, "wes")
    here.desk.hub.world.faults = lambda _, path: fault if path == ISSUE else None
    do(here)
    assert here.ledger.status(ref).stage is Stage.HITL
    here.desk.hub.world.faults = None
    do(here)
    assert here.ledger.status(ref).stage is Stage.HITL
    assert here.said(ref)
    assert len(here.events(ref)) >= len(events)


def test_a_list_without_it_ends_nothing(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    here.desk.hub.world.faults = lambda _, path: Fault(200, "[]") if path == LIST else None
    do(here)
    assert here.ledger.status(ref).stage is Stage.HITL
    assert here.labels(ref) == [HITL]


def test_a_draft_decides_as_long_as_it_is_open(here: WorkerEnvironment) -> None:
    here.policy["escalation"] = {"draft_pr": True}
    ref = escalated(here)
    pull = IssueRef(NAME, here.ledger.status(ref).pull.number or 0)
    close(here, ref)
    do(here)
    assert here.ledger.status(ref).stage is Stage.HITL
    close(here, pull)
    do(here)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
