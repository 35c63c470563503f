"""The daemon serves its newest configuration, and lets nothing that fails stop it."""

import threading
from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from github_simulator.world import Fault
from mulligan.config.operator import Limits
from mulligan.daemon.daemon import Daemon, Runtime, serving
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import IssueRef, Stage
from mulligan.implement.ports import BotContext
from mulligan.storage.database import open_database
from mulligan.storage.leases import SqlLeases
from mulligan.storage.ledger import SqlLedger
from world.behaviours import AgentInput, Behaviour
from world.postgres import server
from world.processes import wait_until
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

SOON = timedelta(milliseconds=50)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


def crew(context: BotContext, *repositories: str) -> Runtime:
    return Runtime(repositories or (NAME,), context, Worker(context))


class Reloads:
    """Hands out crews, each once; nothing changed in between."""

    def __init__(self, *crews: Runtime | None) -> None:
        self.crews = list(crews)

    def __call__(self) -> Runtime | None:
        return self.crews.pop(0) if self.crews else None


def test_it_works_what_it_finds_at_once_and_what_comes_later(here: WorkerEnvironment) -> None:
    first = here.desk.ready()
    daemon = Daemon(Reloads(crew(here.context(fix_the_bug))))
    with serving(daemon, SOON, Limits(), here.desk.clock):
        wait_until(lambda: here.ledger.status(first).stage is Stage.REVIEW)
        second = here.desk.ready()
        wait_until(lambda: here.ledger.status(second).stage is Stage.REVIEW)
    assert len(here.desk.hub.world.pulls_of(NAME)) == 2


def test_a_hint_has_one_repository_polled_at_once(here: WorkerEnvironment) -> None:
    daemon = Daemon(Reloads(crew(here.context(fix_the_bug), NAME, "acme/quiet")))
    with pytest.raises(UnavailableError):
        Daemon(Reloads()).hint(NAME)
    with serving(daemon, timedelta(hours=1), Limits(), here.desk.clock):
        wait_until(lambda: daemon.pulse.snapshot.polls == 1)
        here.desk.requests()
        ref = here.desk.ready()
        assert not daemon.hint("acme/strange")
        assert all(daemon.hint(NAME.upper()) for _ in range(9))
        wait_until(lambda: here.ledger.status(ref).stage is Stage.REVIEW)
    asked = here.desk.requests()
    assert not any("acme/quiet" in path for path in asked)
    assert daemon.pulse.snapshot.polls == 1


def test_nothing_is_asked_before_there_is_a_configuration(here: WorkerEnvironment) -> None:
    here.desk.ready()
    woken = list[list[IssueRef]]()
    daemon = Daemon(Reloads(None, crew(here.context(fix_the_bug))))
    here.desk.requests()
    daemon.poll(woken.append)
    daemon.watch()
    assert (woken, here.desk.requests()) == ([], [])
    daemon.poll(woken.append)
    assert len(woken) == 1


def patient_with_nothing(_error: Exception) -> bool:
    return False


def test_a_ledger_that_is_away_for_a_while_stops_nothing(
    here: WorkerEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    with server() as own, own.fresh() as url, open_database(url) as database:
        impatient, clock = replace(database, is_away=patient_with_nothing), here.desk.clock
        ledger, leases = SqlLedger(impatient, clock), SqlLeases(impatient, clock)
        context = replace(here.context(fix_the_bug), ledger=ledger, leases=leases)
        daemon = Daemon(Reloads(crew(context)))
        with serving(daemon, SOON, Limits(), here.desk.clock):
            own.stop()
            wait_until(lambda: "cannot be reached" in capfd.readouterr().out)
            own.start()
            ref = here.desk.ready()
            wait_until(lambda: ledger.status(ref).stage is Stage.REVIEW)


def test_a_visit_that_fails_is_made_again_at_the_next_poll(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    path, failed = f"/repos/{NAME}/pulls", list[str]()

    def fault(method: str, asked: str) -> Fault | None:
        if (method, asked) != ("POST", path) or len(failed) == 3:
            return None
        failed.append(asked)
        return Fault(502)

    here.desk.hub.world.faults = fault
    with serving(Daemon(Reloads(crew(here.context(fix_the_bug)))), SOON, Limits(), here.desk.clock):
        wait_until(lambda: here.ledger.status(ref).stage is Stage.REVIEW)
    assert len(failed) == 3
    assert len(here.ledger.history(ref)) == 1


def test_a_repository_that_fails_does_not_stop_the_others(
    here: WorkerEnvironment,
) -> None:
    ref, woken = here.desk.ready(), list[list[IssueRef]]()
    daemon = Daemon(Reloads(crew(here.context(fix_the_bug), "acme/gone", NAME)))
    with capture_logs() as logs:
        for _ in range(3):
            daemon.poll(woken.append)
    assert woken == [[ref]] * 3
    failed = [each["repository"] for each in logs if each["event"] == "not_polled"]
    assert failed == ["acme/gone"] * 3


def test_a_new_configuration_serves_the_next_visit_and_the_old_one_ends_its_own(
    here: WorkerEnvironment,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def old(given: AgentInput) -> None:
        begun.set()
        assert go_on.wait(120)
        fix_the_bug(given)

    first, second = here.desk.ready(), here.desk.ready()
    daemon = Daemon(Reloads(*(crew(context(here, how)) for how in (old, fix_the_bug))))
    daemon.poll(lambda refs: None)
    visit = threading.Thread(target=daemon.visit, args=(first,))
    visit.start()
    assert begun.wait(120)
    daemon.poll(lambda refs: None)
    daemon.visit(second)
    here.desk.hub.world.close(first, "ada")
    daemon.watch()
    go_on.set()
    visit.join()
    assert here.ledger.status(second).stage is Stage.REVIEW
    assert here.ledger.status(first).stage is Stage.RESOLVED
    workers = [here.ledger.history(ref)[0].worker for ref in (first, second)]
    assert workers == ["old", "fix_the_bug"]


def context(here: WorkerEnvironment, behaviour: Behaviour) -> BotContext:
    return here.context(behaviour, behaviour.__name__)


def test_the_interval_is_for_as_many_repositories_as_are_served(here: WorkerEnvironment) -> None:
    first, second = (
        crew(here.context(fix_the_bug), *names) for names in ((NAME,), (NAME, "acme/other"))
    )
    daemon = Daemon(Reloads(first, second))
    counted = [daemon.repositories]
    for _ in range(2):
        daemon.poll(lambda refs: None)
        counted.append(daemon.repositories)
    assert counted == [0, 1, 2]
