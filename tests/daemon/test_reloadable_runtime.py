"""A crew that was replaced is closed once its work has ended, and not before."""

import threading
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.daemon.daemon import Daemon, Runtime
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import Stage
from world.behaviours import AgentInput, Behaviour
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def crew(here: WorkerEnvironment, behaviour: Behaviour, closed: list[str]) -> Runtime:
    name = behaviour.__name__
    context = here.context(behaviour, name)
    return Runtime((NAME,), context, Worker(context), close=lambda: closed.append(name))


def test_it_is_closed_when_its_last_visit_has_ended(here: WorkerEnvironment) -> None:
    begun, go_on, closed = threading.Event(), threading.Event(), list[str]()

    def old(given: AgentInput) -> None:
        begun.set()
        assert go_on.wait(120)
        fix_the_bug(given)

    first, second = here.desk.ready(), here.desk.ready()
    crews = [crew(here, behaviour, closed) for behaviour in (old, fix_the_bug)]
    daemon = Daemon(lambda: crews.pop(0) if crews else None)
    daemon.poll(lambda refs: None)
    visit = threading.Thread(target=daemon.visit, args=(first,))
    visit.start()
    assert begun.wait(120)
    daemon.poll(lambda refs: None)
    daemon.visit(second)
    daemon.watch()
    assert closed == []
    go_on.set()
    visit.join()
    assert closed == ["old"]
    assert here.ledger.status(first).stage is Stage.REVIEW
    daemon.close()
    assert closed == ["old", "fix_the_bug"]
    assert daemon.context is None


def test_one_that_has_nothing_to_do_is_closed_at_once(here: WorkerEnvironment) -> None:
    closed, made = list[str](), 0

    def reload() -> Runtime:
        nonlocal made
        made += 1
        number = made
        return replace(crew(here, fix_the_bug, closed), close=lambda: closed.append(str(number)))

    daemon = Daemon(reload)
    daemon.heartbeat()
    daemon.clean_up()
    daemon.poll(lambda refs: None)
    assert closed == ["1", "2"]
    assert daemon.repositories == 1
