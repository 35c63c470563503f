"""One pass recovers, publishes what is pending, and works what is due."""

from collections.abc import Generator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import PassLimits, run_once
from mulligan.domain.events import Authorised, Decided
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Escalate, Outcome
from world.behaviours import crash
from world.ledgers import completed
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def test_every_due_issue_is_worked_and_told_of_in_order(here: WorkerEnvironment) -> None:
    refs = [here.desk.ready() for _ in range(3)]
    done = run_once([NAME], here.context(fix_the_bug))
    assert [visit.issue for visit in done.visits] == refs
    assert (done.problems, done.escalated) == ((), False)
    assert {here.ledger.status(ref).stage for ref in refs} == {Stage.REVIEW}


def test_a_pass_may_be_limited_to_some_issues(here: WorkerEnvironment) -> None:
    refs = [here.desk.ready() for _ in range(3)]
    assert len(run_once([NAME], here.context(fix_the_bug), PassLimits(issues=2)).visits) == 2
    assert here.ledger.history(refs[2]) == ()


def test_a_pass_may_be_limited_to_some_attempts(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    run_once([NAME], here.context(crash), PassLimits(attempts=2))
    assert here.ledger.status(ref).attempt == 2
    assert run_once([NAME], here.context(crash)).escalated


def test_a_pass_without_work_says_what_waits(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    here.lines["install"] = lambda _: "no network"
    here.policy["setup"] = ["install"]
    assert run_once([NAME], here.context(fix_the_bug)).waiting == ()
    (said,) = run_once([NAME], here.context(fix_the_bug)).waiting
    assert said.startswith(f"{ref}: It waits until 20")
    assert f"run: mulligan inspect {ref} --log setup" in said
    assert run_once([], here.context(fix_the_bug)).waiting == ()


def test_whatever_failed_is_told_with_its_name(here: WorkerEnvironment) -> None:
    broken, waiting = here.desk.ready(), here.desk.ready()
    now = here.desk.clock.time
    here.ledger.append(broken, Authorised(act="labeled:1", actor="wes", act_at=now))
    here.ledger.append(broken, completed(broken, 1, Outcome.BLOCKED))
    here.lines["install"] = lambda tree: "no network"
    here.policy["setup"] = ["install"]
    path = f"/repos/{NAME}/issues/{broken.number}"

    def fault(method: str, asked: str) -> Fault | None:
        return Fault(502) if asked == path else None

    here.desk.hub.world.faults = fault
    done = run_once(["acme/gone", NAME], here.context(fix_the_bug))
    named = [problem.partition(": ")[0] for problem in done.problems]
    assert named == ["acme/gone", str(broken), str(waiting)]
    assert [visit.issue for visit in done.visits] == [waiting]


def test_an_escalation_that_was_pending_counts_for_the_pass(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    here.ledger.append(ref, completed(ref, 1))
    here.ledger.append(ref, Decided(decision=Escalate(reason="It did not work out.")))
    done = run_once([NAME], here.context(fix_the_bug))
    assert (done.visits, done.escalated) == ((), True)
    assert here.labels(ref) == ["mulligan:hitl"]
