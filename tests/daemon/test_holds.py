"""What holds work is found before an issue is touched, told once, and over by itself."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.daemon.daemon import Daemon, Runtime
from mulligan.daemon.once import run_once
from mulligan.daemon.worker import Worker
from mulligan.domain.hold import Hold, Pause
from mulligan.domain.issue import IssueRef, Stage
from mulligan.implement.ports import BotContext
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

FAULT = Hold("No attempt begins: The agent was not found.", is_fault=True)
PAUSE = Hold("Everything is paused.")


class SetHolds:
    """Holds that a test sets."""

    def __init__(self, hold: Hold | None) -> None:
        self.hold = hold

    def on(self, repository: str) -> Hold | None:
        del repository
        return self.hold

    def pauses(self) -> Sequence[Pause]:
        return ()


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def held(here: WorkerEnvironment, hold: Hold | None) -> BotContext:
    return replace(here.context(fix_the_bug), holds=SetHolds(hold))


@pytest.mark.parametrize("hold", [FAULT, PAUSE])
def test_a_pass_that_is_held_touches_no_issue_and_says_so_once(
    here: WorkerEnvironment, hold: Hold
) -> None:
    refs = [here.desk.ready() for _ in range(3)]
    done = run_once([NAME], held(here, hold))
    told = (done.problems, done.paused)
    assert told == (((FAULT.reason,), ()) if hold.is_fault else ((), (PAUSE.reason,)))
    assert (done.visits, here.writes(), here.ledger.statuses()) == ((), [], [])
    assert len(run_once([NAME], held(here, None)).visits) == 3
    assert {here.ledger.status(ref).stage for ref in refs} == {Stage.REVIEW}


def test_an_issue_that_was_queued_before_is_not_begun(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    context = held(here, PAUSE)
    context.worktrees.fetch_base(NAME)
    visit = Worker(context).visit(ref)
    assert (visit.attempts, visit.skipped) == (0, PAUSE.reason)
    assert here.writes() == []


def test_the_daemon_tells_of_a_fault_once_and_goes_on_when_it_is_over(
    here: WorkerEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    ref = here.desk.ready()
    context, woken = held(here, FAULT), list[list[IssueRef]]()
    runtimes = [Runtime((NAME,), context, Worker(context))]
    daemon = Daemon(lambda: runtimes.pop() if runtimes else None)
    daemon.poll(woken.append)
    daemon.poll(woken.append)
    assert (woken, here.writes()) == ([[], []], [])
    assert daemon.pulse.snapshot.faults == (FAULT.reason,)
    assert isinstance(context.holds, SetHolds)
    context.holds.hold = None
    daemon.poll(woken.append)
    assert (woken[-1], daemon.pulse.snapshot.faults) == ([ref], ())
    logged = capfd.readouterr()
    assert (logged.out + logged.err).count("The agent was not found") == 1
