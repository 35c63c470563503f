"""Whatever people do with labels, in any stage, means what they expect (LABEL-5, LABEL-6)."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mulligan.daemon.explain import explain
from mulligan.daemon.once import run_once
from mulligan.daemon.worker import Worker
from mulligan.domain.events import Decided
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Escalate, Outcome
from mulligan.domain.status import STATUS_EDIT_INTERVAL
from world.behaviours import AgentInput, Behaviour
from world.ledgers import completed
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

READY, RUNNING, REVIEW, HITL = "mulligan", "mulligan:running", "mulligan:review", "mulligan:hitl"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def do(here: WorkerEnvironment, agent: Behaviour = fix_the_bug) -> None:
    run_once((NAME,), here.context(agent))


def queued(here: WorkerEnvironment) -> IssueRef:
    """Give an issue whose first attempt was cut off, and which waits for the second."""
    ref = here.desk.ready()
    here.lines["setup"] = lambda _: "The network is away."
    here.policy["setup"] = ["setup"]
    do(here)
    here.policy.clear()
    assert here.ledger.status(ref).due
    here.desk.clock.time = here.ledger.status(ref).due or here.desk.clock.time
    return ref


def reviewed(here: WorkerEnvironment) -> IssueRef:
    ref = here.desk.ready()
    do(here)
    assert here.labels(ref) == [REVIEW]
    return ref


def asked(here: WorkerEnvironment) -> IssueRef:
    ref = here.desk.ready()
    here.policy["max_issue_attempts"] = 1
    do(here, lambda given: 1)
    assert here.labels(ref) == [HITL]
    return ref


def resolved(here: WorkerEnvironment) -> IssueRef:
    ref = asked(here)
    here.desk.hub.world.comment(ref, "/mulligan skip", "wes")
    do(here)
    assert here.labels(ref) == []
    here.desk.hub.advance_one_second()
    return ref


def on(label: str) -> Callable[[WorkerEnvironment, IssueRef], None]:
    return lambda here, ref: here.desk.hub.world.label(ref, label, "wes")


def off(label: str) -> Callable[[WorkerEnvironment, IssueRef], None]:
    return lambda here, ref: here.desk.hub.world.unlabel(ref, label, "wes")


def again(here: WorkerEnvironment, ref: IssueRef) -> None:
    off(READY)(here, ref)
    on(READY)(here, ref)


def swapped(here: WorkerEnvironment, ref: IssueRef) -> None:
    """Do as with columns of a board: one label goes, another comes."""
    off(HITL)(here, ref)
    on(READY)(here, ref)


@dataclass(frozen=True)
class Row:
    """What is done in which stage, and where the issue is after the next pass, in which epoch."""

    begin: Callable[[WorkerEnvironment], IssueRef]
    move: Callable[[WorkerEnvironment, IssueRef], None]
    stage: Stage
    epoch: int
    labels: tuple[str, ...]


ROWS = {
    "taken off while queued": Row(queued, off(READY), Stage.RESOLVED, 1, ()),
    "off and on while queued": Row(queued, again, Stage.REVIEW, 2, (REVIEW,)),
    "running put on while queued": Row(queued, on(RUNNING), Stage.REVIEW, 1, (REVIEW,)),
    "ready put on in review": Row(reviewed, on(READY), Stage.REVIEW, 2, (REVIEW,)),
    "review taken off": Row(reviewed, off(REVIEW), Stage.REVIEW, 1, ()),
    "ready put on with a person": Row(asked, on(READY), Stage.REVIEW, 2, (REVIEW,)),
    "hitl taken off": Row(asked, off(HITL), Stage.HITL, 1, ()),
    "hitl becomes ready": Row(asked, swapped, Stage.REVIEW, 2, (REVIEW,)),
    "ready put on when resolved": Row(resolved, on(READY), Stage.REVIEW, 2, (REVIEW,)),
    "review put on when resolved": Row(resolved, on(REVIEW), Stage.RESOLVED, 1, (REVIEW,)),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_label_moved_by_hand_means_what_people_expect(here: WorkerEnvironment, row: Row) -> None:
    ref = row.begin(here)
    row.move(here, ref)
    here.policy.clear()
    do(here)
    status = here.ledger.status(ref)
    assert (status.stage, status.epoch) == (row.stage, row.epoch)
    assert tuple(here.labels(ref)) == row.labels
    assert status.stage is not Stage.HITL or "add the label" in explained(here, ref)


def explained(here: WorkerEnvironment, ref: IssueRef) -> str:
    found = explain(ref, here.context(fix_the_bug), None)
    return next(rule.refusal for rule in found.rules if rule.rule == "stage")


@pytest.mark.parametrize("label", [READY, RUNNING])
def test_taken_off_while_an_attempt_runs_it_ends_that(here: WorkerEnvironment, label: str) -> None:
    ref = here.desk.ready()

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        off(label)(here, ref)

    do(here, work)
    status = here.ledger.status(ref)
    assert (status.stage, status.reason) == (Stage.RESOLVED, "Its label was removed.")
    assert (here.labels(ref), here.pushed(ref)) == ([], None)


@pytest.mark.parametrize("label", [READY, REVIEW, HITL])
def test_put_on_while_an_attempt_runs_it_changes_nothing(
    here: WorkerEnvironment, label: str
) -> None:
    ref = here.desk.ready()

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        on(label)(here, ref)

    do(here, work)
    status = here.ledger.status(ref)
    assert (status.stage, status.epoch, here.labels(ref)) == (Stage.REVIEW, 1, [REVIEW])


@pytest.mark.parametrize("most", [None, 1])
def test_off_and_on_while_an_attempt_runs_is_a_new_request(
    here: WorkerEnvironment, most: int | None
) -> None:
    ref, runs = here.desk.ready(), list[int]()

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        runs.append(here.ledger.status(ref).epoch)
        if len(runs) == 1:
            again(here, ref)

    Worker(here.context(work), most).visit(ref)
    do(here, work)
    status = here.ledger.status(ref)
    assert (status.stage, status.epoch, here.labels(ref)) == (Stage.REVIEW, 2, [REVIEW])
    assert runs == [1, 2]


def test_a_decision_that_was_left_open_does_not_take_a_new_label_off(
    here: WorkerEnvironment,
) -> None:
    ref = here.desk.ready()
    worker = Worker(here.context(lambda given: 1), max_attempts=1)
    worker.visit(ref)
    here.ledger.append(ref, completed(ref, 2, outcome=Outcome.CHECKS_FAILED))
    here.ledger.append(ref, Decided(decision=Escalate(reason="It did not work out.")))
    again(here, ref)
    do(here)
    do(here)
    status = here.ledger.status(ref)
    assert (status.stage, status.epoch, here.labels(ref)) == (Stage.REVIEW, 2, [REVIEW])


def test_a_label_on_the_pull_request_is_ignored_with_a_reason(here: WorkerEnvironment) -> None:
    ref = reviewed(here)
    pull = IssueRef(NAME, here.desk.hub.world.pulls_of(NAME)[0].number)
    on(READY)(here, pull)
    do(here)
    assert here.ledger.status(ref).epoch == 1
    assert "pull request" in explain(pull, here.context(fix_the_bug), None).summary
    assert [each.issue for each in here.ledger.statuses()] == [ref]


def unasked(here: WorkerEnvironment) -> IssueRef:
    return here.desk.hub.issue()


@pytest.mark.parametrize("stage", [unasked, asked, resolved, reviewed])
def test_a_label_on_an_issue_that_rests_by_a_pause_opens_an_epoch_that_waits(
    here: WorkerEnvironment, stage: Callable[[WorkerEnvironment], IssueRef]
) -> None:
    ref = stage(here)
    here.desk.hub.world.comment(ref, "/mulligan pause", "wes")
    do(here)
    attempts = here.ledger.history(ref)
    on(READY)(here, ref)
    here.desk.clock.time += STATUS_EDIT_INTERVAL
    do(here)
    status = here.ledger.status(ref)
    assert (status.stage, status.epoch) == (Stage.READY, 1 if stage is unasked else 2)
    assert here.ledger.history(ref) == attempts
    assert here.labels(ref) == [READY]
    here.desk.clock.time += STATUS_EDIT_INTERVAL
    do(here)
    assert "wes has paused work on this issue" in here.said(ref)[0]
    here.desk.hub.world.comment(ref, "/mulligan resume", "wes")
    do(here)
    do(here)
    assert len(here.ledger.history(ref)) == len(attempts) + 1
