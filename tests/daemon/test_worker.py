"""A visit works an issue until it rests, can be stopped, and never raises."""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings, Limits
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import BUG_MESSAGE, Worker
from mulligan.domain.attempt import SHUTDOWN as SHUT_DOWN
from mulligan.domain.errors import UnavailableError
from mulligan.domain.events import AttemptStarted, Decided
from mulligan.domain.issue import AuthorisingAct, IssueRef, OperatorAct, Stage
from mulligan.domain.outcome import Outcome, StandDown
from mulligan.domain.status import IssueStatus
from mulligan.implement.decide import EndedAttempt, RetryPolicy, count_spent
from mulligan.implement.issue_snapshot import load_context
from mulligan.sandbox.cancellation import SHUTDOWN
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from world.behaviours import AgentInput, crash
from world.processes import processes_in, wait_until
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.workers import (
    PATH,
    WorkerEnvironment,
    fail_once_changed,
    fix_the_bug,
    worker_environment,
)

MAINTAINER = "wes"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


@pytest.fixture
def shutdown() -> Generator[Callable[[], None]]:
    yield SHUTDOWN.set
    SHUTDOWN.clear()


def endless(directory: Path) -> CommandAgent:
    """An agent that is a real process, and works until it is stopped."""
    line = f"echo changed > src/tool.py; touch {directory}/begun; sleep 60"
    return CommandAgent(AgentSettings(command=("sh", "-c", line)), PATH)


def spent(here: WorkerEnvironment, ref: IssueRef) -> int:
    case = load_context(here.desk.tracker.read(ref), here.context(fix_the_bug))
    policy = RetryPolicy()
    assert case.counted == count_spent([EndedAttempt.of(meta) for meta in case.history], policy)
    return case.counted


def take_the_label_off(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.unlabel(ref, "mulligan", MAINTAINER)


def close(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.close(ref, MAINTAINER)


WITHDRAWALS = pytest.mark.parametrize(
    ("withdraw", "words"),
    [(take_the_label_off, "Its label was removed."), (close, "The issue was closed.")],
)
Withdraw = Callable[[WorkerEnvironment, IssueRef], None]


@WITHDRAWALS
def test_a_withdrawal_ends_the_agent_costs_nothing_and_leaves_nothing(
    here: WorkerEnvironment, tmp_path: Path, withdraw: Withdraw, words: str
) -> None:
    ref = here.desk.ready()
    worker = Worker(here.context(endless(tmp_path)))
    with ThreadPoolExecutor(1) as pool:
        visit = pool.submit(worker.visit, ref)
        wait_until((tmp_path / "begun").exists)
        worker.watch()
        assert not visit.done()
        withdraw(here, ref)
        worker.watch()
        assert visit.result(timeout=120).attempts == 1
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, meta.error) == (Outcome.CANCELLED, words)
    assert Decided(decision=StandDown(reason=words)) in here.events(ref)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert spent(here, ref) == 0
    assert here.pushed(ref) is None
    assert here.desk.hub.world.pulls_of(NAME) == []
    assert here.labels(ref) == []
    assert [path for path in tmp_path.rglob("tree") if processes_in(path)] == []


@WITHDRAWALS
def test_what_was_withdrawn_before_the_agent_starts_never_runs(
    here: WorkerEnvironment, withdraw: Withdraw, words: str
) -> None:
    ref, ran = here.desk.ready(), list[AgentInput]()

    def fault(method: str, path: str) -> Fault | None:
        if path.endswith("/comments") and method == "POST":
            withdraw(here, ref)
        return None

    here.desk.hub.world.faults = fault
    Worker(here.context(ran.append)).visit(ref)
    assert ran == []
    assert [meta.error for meta in here.ledger.history(ref)] == [words]
    assert here.labels(ref) == []


@WITHDRAWALS
def test_what_was_withdrawn_while_it_was_checked_is_not_published(
    here: WorkerEnvironment, withdraw: Withdraw, words: str
) -> None:
    ref = here.desk.ready()
    here.check(lambda tree: withdraw(here, ref))
    Worker(here.context(fix_the_bug)).visit(ref)
    (meta,) = here.ledger.history(ref)
    assert meta.outcome is Outcome.SUCCEEDED
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert here.ledger.status(ref).reason == words
    assert (here.pushed(ref), here.labels(ref)) == (None, [])
    assert here.desk.hub.world.pulls_of(NAME) == []


@WITHDRAWALS
def test_nobody_is_asked_about_what_was_withdrawn_during_the_last_attempt(
    here: WorkerEnvironment, withdraw: Withdraw, words: str
) -> None:
    ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)

    def verdict(tree: Path) -> str | None:
        if len(agent.tasks) == 3:
            withdraw(here, ref)
        return fail_once_changed(tree)

    here.check(verdict)
    visit = Worker(here.context(agent)).visit(ref)
    assert (visit.attempts, visit.escalated) == (3, False)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert here.ledger.status(ref).reason == words
    assert (len(here.said(ref)), here.labels(ref)) == (1, [])


def test_a_withdrawal_that_cannot_be_read_now_is_read_later(
    here: WorkerEnvironment, tmp_path: Path
) -> None:
    ref = here.desk.ready()
    worker = Worker(here.context(endless(tmp_path)))
    with ThreadPoolExecutor(1) as pool:
        visit = pool.submit(worker.visit, ref)
        wait_until((tmp_path / "begun").exists)
        take_the_label_off(here, ref)
        here.github_answers(Fault(502))
        worker.watch()
        assert not visit.done()
        here.github_answers(None)
        worker.watch()
        visit.result(timeout=120)
    assert here.ledger.status(ref).outcome is Outcome.CANCELLED


def test_a_database_that_is_away_stops_nothing_and_is_one_line(
    here: WorkerEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    is_away = [False]

    class Ledger(MemoryLedger):
        def status(self, ref: IssueRef) -> IssueStatus:
            if is_away[0]:
                message = "The database cannot be reached."
                raise UnavailableError(message)
            return super().status(ref)

    def agent(given: AgentInput) -> None:
        is_away[0] = True
        worker.watch()
        is_away[0] = False
        fix_the_bug(given)

    clock, leases = here.desk.clock, MemoryLeases(here.desk.clock)
    ledger = Ledger(clock, leases)
    worker = Worker(replace(here.context(agent), ledger=ledger, leases=leases))
    ref = here.desk.ready()
    assert not worker.visit(ref).problem
    logged = capfd.readouterr()
    assert (logged.out + logged.err).count("The database cannot be reached.") == 1
    assert ledger.status(ref).stage is Stage.REVIEW


def test_there_may_be_nothing_to_watch(here: WorkerEnvironment) -> None:
    Worker(here.context(fix_the_bug)).watch()
    assert here.desk.requests() == []


def test_an_issue_that_somebody_is_on_is_left_alone(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    assert here.leases.claim(ref, "two")
    visit = Worker(here.context(fix_the_bug)).visit(ref)
    assert (visit.attempts, visit.skipped) == (0, "Another worker has it.")
    assert here.events(ref) == []


def test_no_more_issues_are_worked_than_the_fleet_may(here: WorkerEnvironment) -> None:
    ref, elsewhere, context = here.desk.ready(), here.desk.ready(), here.context(fix_the_bug)
    worker = Worker(replace(context, limits=Limits(fleet=1)))
    held = here.leases.claim(elsewhere, "two")
    assert held
    assert "limits.fleet" in worker.visit(ref).skipped
    assert worker.visit(elsewhere).skipped == "Another worker has it."
    assert here.events(ref) == []
    here.leases.release(held)
    assert worker.visit(ref).attempts == 1


def test_what_was_left_half_done_is_put_right_though_the_fleet_is_full(
    here: WorkerEnvironment,
) -> None:
    ref, elsewhere, context = here.desk.ready(), here.desk.ready(), here.context(fix_the_bug)
    context = replace(context, limits=Limits(fleet=1))
    assert here.leases.claim(elsewhere, "two")
    here.ledger.append(ref, AttemptStarted(attempt=1, number=1, worker="two"))
    assert recover(context, Worker(context)).failed == {}
    assert here.ledger.status(ref).stage is not Stage.RUNNING


def test_the_lease_is_given_back_however_a_visit_ends(here: WorkerEnvironment) -> None:
    rests, fails, breaks = (here.desk.ready(title) for title in ("one", "two", "three"))
    assert Worker(here.context(fix_the_bug)).visit(rests).attempts == 1
    here.github_answers(Fault(502))
    assert "GitHub failed" in Worker(here.context(fix_the_bug)).visit(fails).problem
    here.github_answers(None)
    assert Worker(here.context(break_down)).visit(breaks).problem == BUG_MESSAGE
    assert [here.leases.holder(ref) for ref in (rests, fails, breaks)] == [None] * 3


def break_down(given: AgentInput) -> None:
    raise RuntimeError(given.directory)


def test_an_attempt_that_a_bug_ended_is_recovered_and_made_again(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    assert Worker(here.context(break_down)).visit(ref).problem == BUG_MESSAGE
    context = here.context(fix_the_bug)
    assert recover(context, Worker(context)).failed == {}
    assert Worker(context).visit(ref).attempts == 1
    outcomes = [meta.outcome for meta in here.ledger.history(ref)]
    assert outcomes == [Outcome.INTERRUPTED, Outcome.SUCCEEDED]
    assert spent(here, ref) == 1


def test_a_visit_goes_on_until_the_issue_rests(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    visit = Worker(here.context(crash)).visit(ref)
    assert (visit.attempts, visit.escalated, visit.problem) == (3, True, "")
    again = Worker(here.context(fix_the_bug)).visit(ref)
    assert again.attempts == 0
    assert "hitl" in again.skipped or "label" in again.skipped


def test_a_visit_makes_no_more_attempts_than_it_may(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    for number in (1, 2):
        visit = Worker(here.context(crash), max_attempts=1).visit(ref)
        assert (visit.attempts, visit.escalated) == (1, False)
        assert here.ledger.status(ref).attempt == number
    assert Worker(here.context(crash), max_attempts=1).visit(ref).escalated


def test_a_fault_around_the_agent_is_told_and_waited_out(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    here.policy["setup"] = ["install"]
    here.lines["install"] = lambda tree: "no network"
    visit = Worker(here.context(fix_the_bug)).visit(ref)
    assert visit.attempts == 1
    assert "The setup command 'install' failed with exit code 1." in visit.problem
    assert visit.due == here.ledger.status(ref).due
    failed = here.ledger.history(ref)[0].set_up
    assert failed
    assert (failed.command, failed.digest) == ("install", "no network")
    assert Worker(here.context(fix_the_bug)).visit(ref).attempts == 0
    here.lines["install"] = lambda tree: None
    here.desk.clock.time += timedelta(seconds=1)
    assert Worker(here.context(fix_the_bug)).visit(ref).attempts == 1
    assert spent(here, ref) == 1


def test_a_shutdown_ends_the_agent_and_costs_nothing(
    here: WorkerEnvironment, tmp_path: Path, shutdown: Callable[[], None]
) -> None:
    ref = here.desk.ready()
    with ThreadPoolExecutor(1) as pool:
        visit = pool.submit(Worker(here.context(endless(tmp_path))).visit, ref)
        wait_until((tmp_path / "begun").exists)
        shutdown()
        assert visit.result(timeout=120).attempts == 1
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, meta.failure_reason) == (Outcome.INTERRUPTED, SHUT_DOWN)
    assert here.ledger.status(ref).stage is Stage.READY
    assert spent(here, ref) == 0


def test_nothing_begins_after_a_shutdown(
    here: WorkerEnvironment, shutdown: Callable[[], None]
) -> None:
    ref = here.desk.ready()
    shutdown()
    assert Worker(here.context(fix_the_bug)).visit(ref).attempts == 0
    assert here.events(ref) == []


def test_an_operator_needs_no_label(here: WorkerEnvironment) -> None:
    ref = here.desk.hub.issue()
    act = AuthorisingAct(OperatorAct("now"), "", here.desk.clock.time, trusted=True)
    assert Worker(here.context(fix_the_bug)).visit(ref, act).attempts == 1
    assert here.labels(ref) == ["mulligan:review"]


def test_a_start_trees_failures_are_kept_for_a_day_and_one_toolchain(
    here: WorkerEnvironment,
) -> None:
    asked = list[Path]()

    def red_as_before(tree: Path) -> str:
        if (tree / "src/tool.py").read_text() == "X = 1\n":
            asked.append(tree)
        return "It is red."

    here.check(red_as_before)
    here.policy["max_issue_attempts"] = 1
    told = list[int]()
    for later, programs in ((0, "old"), (0, "old"), (0, "new"), (1, "new")):
        here.desk.clock.time += timedelta(days=later)
        here.programs = programs
        Worker(here.context(fix_the_bug)).visit(here.desk.ready())
        told.append(len(asked))
    assert told == [2, 2, 4, 6]
