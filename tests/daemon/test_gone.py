"""An issue that is gone is left, whatever Mulligan was about to do with it (SPEC L7)."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from mulligan.daemon.once import Extent, Pass, once
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import Phase
from world.behaviours import Given, crash
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.trackers import BOT
from world.workers import Shop, mend, red_once_changed, shop

Lose = Callable[[Shop, IssueRef], object]


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        yield made


def delete(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.delete(ref)


def transfer(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.add_repository("acme/other", here.desk.hub.bare)
    here.desk.hub.world.transfer(ref, "acme/other", "ada")


WAYS = pytest.mark.parametrize("lose", [delete, transfer])


def assert_left(here: Shop, ref: IssueRef, attempts: int) -> None:
    status = here.ledger.status(ref)
    assert (status.stage, status.phase) == (Stage.RESOLVED, Phase.IDLE)
    assert "gone" in status.reason
    assert len(here.ledger.history(ref)) == attempts
    assert here.pushed(ref) is None
    assert here.desk.hub.world.pulls_of(NAME) == []
    writes, events = here.writes(), here.events(ref)
    assert once([NAME], here.tools(mend)) == Pass()
    assert (here.writes(), here.events(ref)) == (writes, events)


@WAYS
def test_while_it_waits(here: Shop, lose: Lose) -> None:
    ref, other = here.desk.ready(), here.desk.ready()
    once([NAME], here.tools(crash), Extent(attempts=1, issues=1))
    lose(here, ref)
    assert once([NAME], here.tools(mend)).problems == ()
    assert here.ledger.status(other).stage is Stage.REVIEW
    here.desk.hub.world.close(other, "ada")
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert "gone" in here.ledger.status(ref).reason


@WAYS
def test_while_the_agent_is_at_it(here: Shop, lose: Lose) -> None:
    ref = here.desk.ready()

    def work(given: Given) -> None:
        lose(here, ref)
        mend(given)

    assert once([NAME], here.tools(work)).problems == ()
    assert_left(here, ref, attempts=1)


@WAYS
def test_while_the_last_attempt_is_checked(here: Shop, lose: Lose) -> None:
    ref, agent = here.desk.ready(), ScriptedAgent(mend)

    def verdict(tree: Path) -> str | None:
        if len(agent.tasks) == 3:
            lose(here, ref)
        return red_once_changed(tree)

    here.check(verdict)
    assert once([NAME], here.tools(agent)).problems == ()
    assert_left(here, ref, attempts=3)


def test_a_repository_that_is_gone_takes_nothing_back(here: Shop) -> None:
    ref = here.desk.ready()
    once([NAME], here.tools(crash), Extent(attempts=1))
    here.desk.hub.world.repositories[NAME].private = True
    here.desk.hub.world.set_role(NAME, BOT, "none")
    done = once([NAME], here.tools(mend))
    assert [problem.partition(": ")[0] for problem in done.problems] == [NAME, str(ref)]
    assert here.ledger.status(ref).stage is Stage.READY
