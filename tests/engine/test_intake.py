"""Every repository is asked; one that cannot be asked does not stop the others."""

from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.events import RetryScheduled
from mulligan.domain.issue import Stage
from mulligan.engine.intake import poll
from mulligan.engine.worker import A_BUG, Worker
from mulligan.simulator.faults import Fault
from world.behaviours import crash
from world.simulated import NAME
from world.workers import Shop, mend, shop


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        yield made


def test_the_issues_that_ask_for_work_are_found_oldest_first(here: Shop) -> None:
    refs, tools = [here.desk.ready() for _ in range(3)], here.tools(mend)
    here.desk.hub.issue()
    assert poll([NAME], tools, Worker(tools)) == (refs, {})


def test_an_issue_that_waits_is_found_when_its_time_has_come(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(mend)
    due = here.desk.clock.time + timedelta(minutes=1)
    here.ledger.append(ref, RetryScheduled(due=due, reason="GitHub is away."))
    assert poll([NAME], tools, Worker(tools)) == ([], {})
    here.desk.clock.time = due
    assert poll([NAME], tools, Worker(tools)) == ([ref], {})


def test_a_queued_issue_that_was_withdrawn_is_let_go(here: Shop) -> None:
    ref = here.desk.ready()
    Worker(here.tools(crash), most=1).visit(ref)
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    tools = here.tools(mend)
    assert poll([NAME], tools, Worker(tools)) == ([], {})
    assert here.ledger.status(ref).stage is Stage.RESOLVED


def test_a_repository_that_cannot_be_asked_is_named(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(mend)
    found, failed = poll(["acme/gone", NAME], tools, Worker(tools))
    assert found == [ref]
    assert list(failed) == ["acme/gone"]
    assert "acme/gone" in failed["acme/gone"]
    here.github_answers(Fault(502))
    assert list(poll([NAME], tools, Worker(tools))[1]) == [NAME]


def test_a_bug_at_one_repository_does_not_stop_the_others(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(mend)

    class Broken:
        def current(self, repository: str) -> object:
            if repository == NAME:
                return tools.policies.current(repository)
            raise RuntimeError(repository)

        at = tools.policies.at

    broken = replace(tools, policies=Broken())  # pyright: ignore[reportArgumentType] - a bug
    assert poll(["acme/odd", NAME], broken, Worker(broken)) == ([ref], {"acme/odd": A_BUG})
