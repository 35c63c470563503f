"""An issue that is gone is left, whatever Mulligan was about to do with it (LABEL-7)."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from mulligan.daemon.once import PassLimits, PassResult, run_once
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import Phase
from world.behaviours import AgentInput, crash
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.trackers import BOT
from world.workers import WorkerEnvironment, fail_once_changed, fix_the_bug, worker_environment

Lose = Callable[[WorkerEnvironment, IssueRef], object]


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def delete(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.delete(ref)


def transfer(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.add_repository("acme/other", here.desk.hub.bare)
    here.desk.hub.world.transfer(ref, "acme/other", "ada")


WAYS = pytest.mark.parametrize("lose", [delete, transfer])


def assert_left(here: WorkerEnvironment, ref: IssueRef, attempts: int) -> None:
    status = here.ledger.status(ref)
    assert (status.stage, status.phase) == (Stage.RESOLVED, Phase.IDLE)
    assert any(how in status.reason for how in ("was deleted", "was transferred"))
    assert len(here.ledger.history(ref)) == attempts
    assert here.pushed(ref) is None
    assert here.desk.hub.world.pulls_of(NAME) == []
    writes, events = here.writes(), here.events(ref)
    assert run_once([NAME], here.context(fix_the_bug)) == PassResult()
    assert (here.writes(), here.events(ref)) == (writes, events)


@WAYS
def test_while_it_waits(here: WorkerEnvironment, lose: Lose) -> None:
    ref, other = here.desk.ready(), here.desk.ready()
    run_once([NAME], here.context(crash), PassLimits(attempts=1, issues=1))
    lose(here, ref)
    assert run_once([NAME], here.context(fix_the_bug)).problems == ()
    assert here.ledger.status(other).stage is Stage.REVIEW
    here.desk.hub.world.close(other, "ada")
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert any(how in here.ledger.status(ref).reason for how in ("was deleted", "was transferred"))


@WAYS
def test_while_the_agent_is_at_it(here: WorkerEnvironment, lose: Lose) -> None:
    ref = here.desk.ready()

    def work(given: AgentInput) -> None:
        lose(here, ref)
        fix_the_bug(given)

    assert run_once([NAME], here.context(work)).problems == ()
    assert_left(here, ref, attempts=1)


@WAYS
def test_while_the_last_attempt_is_checked(here: WorkerEnvironment, lose: Lose) -> None:
    ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)

    def verdict(tree: Path) -> str | None:
        if len(agent.tasks) == 3:
            lose(here, ref)
        return fail_once_changed(tree)

    here.check(verdict)
    assert run_once([NAME], here.context(agent)).problems == ()
    assert_left(here, ref, attempts=3)


def test_a_repository_that_is_gone_takes_nothing_back(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    run_once([NAME], here.context(crash), PassLimits(attempts=1))
    here.desk.hub.world.repositories[NAME].private = True
    here.desk.hub.world.set_role(NAME, BOT, "none")
    done = run_once([NAME], here.context(fix_the_bug))
    assert [problem.partition(": ")[0] for problem in done.problems] == [NAME, str(ref)]
    assert here.ledger.status(ref).stage is Stage.READY
