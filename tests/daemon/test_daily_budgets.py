"""What may be spent in a day is held to by everybody together, and is there again the next day."""

import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.config.settings import AllowanceSettings, Budget
from mulligan.daemon.explain import explain
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.attempt import AgentRun, Task
from mulligan.domain.host import AgentIdentity
from mulligan.domain.image import Image
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run, spent_by
from mulligan.implement.ports import BotContext, CodingAgent
from mulligan.sandbox.egress_rules import NO_MODEL
from world.metered_agent import STEP, metered_agent
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

TEN = datetime(2030, 5, 6, 10, tzinfo=UTC)
MIDNIGHT = datetime(2030, 5, 7, tzinfo=UTC)
DAY = Budget(day=AllowanceSettings(usd=1))
REPOSITORY_DAY = Budget(repository_day=AllowanceSettings(tokens=1000))


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.desk.clock.time = TEN
        yield made


def tools_of(
    here: WorkerEnvironment, agent: CodingAgent, budget: Budget, worker: str = "one"
) -> BotContext:
    return replace(here.context(agent, worker), budget=budget)


def visit(
    here: WorkerEnvironment, ref: IssueRef, budget: Budget, steps: int = 2, worker: str = "one"
) -> Visit:
    agent = metered_agent(here.directory, steps)
    context = tools_of(here, agent, budget, worker)
    context.worktrees.fetch_base(ref.repository)
    return Worker(context, max_attempts=1).visit(ref)


def spent(here: WorkerEnvironment) -> float:
    return sum(each.usd or 0 for each in here.accounts.used_on(TEN.date()).values())


@pytest.mark.parametrize("budget", [DAY, REPOSITORY_DAY])
def test_two_agents_at_once_are_stopped_by_one_budget(
    here: WorkerEnvironment, budget: Budget
) -> None:
    refs = [here.desk.ready(), here.desk.ready()]
    with ThreadPoolExecutor() as pool:
        working = [
            pool.submit(visit, here, ref, budget, 200, worker)
            for ref, worker in zip(refs, ("one", "two"), strict=True)
        ]
        visits = [each.result() for each in working]
    assert [each.attempts for each in visits] == [1, 1]
    last = [here.ledger.history(ref)[-1] for ref in refs]
    assert {meta.outcome for meta in last} == {Outcome.OVER_BUDGET}
    # Both would spend 40 together; what they print before they end counts, too.
    assert 1 + STEP <= round(spent(here), 6) < 3
    assert spent_by(last).usd == pytest.approx(spent(here))
    for ref in refs:
        status = here.ledger.status(ref)
        assert (status.stage, status.due) == (Stage.READY, MIDNIGHT)
        assert "for the day is used up" in status.reason or "of the day is used up" in status.reason


def test_what_is_used_up_starts_nothing_until_the_next_day(here: WorkerEnvironment) -> None:
    first, second = here.desk.ready(), here.desk.ready()
    assert visit(here, first, DAY, steps=10).attempts == 1
    assert here.ledger.status(first).stage is Stage.REVIEW
    waiting = visit(here, second, DAY)
    assert waiting.attempts == 0
    assert waiting.skipped == (
        "The budget of the day is used up: $1.00 and 1,000 tokens of $1.00."
        " The next day begins at midnight UTC; budget.day in mulligan.yml sets the limit."
    )
    status = here.ledger.status(second)
    assert (status.stage, status.number, status.due) == (Stage.READY, 0, MIDNIGHT)
    assert "The budget of the day is used up" in here.said(second)[0]
    here.desk.clock.time = MIDNIGHT + timedelta(seconds=1)
    assert visit(here, second, DAY).attempts == 1
    assert here.ledger.status(second).stage is Stage.REVIEW


CLAIM = """echo '{"cost_usd": 999, "input_tokens": 999999999}'"""
BOUNDED = Budget(
    attempt=AllowanceSettings(usd=0.3, tokens=5000), day=AllowanceSettings(usd=1, tokens=20_000)
)


def claiming(line: str) -> CommandAgent:
    return CommandAgent(AgentSettings(command=("sh", "-c", line)), {"PATH": os.environ["PATH"]})


def test_what_an_agent_claims_does_not_use_up_the_day(here: WorkerEnvironment) -> None:
    """It claims once at its end; a day without a limit for an attempt is its own to use."""
    first, second = here.desk.ready(), here.desk.ready()
    context = tools_of(here, claiming(CLAIM), BOUNDED)
    context.worktrees.fetch_base(first.repository)
    assert Worker(context, max_attempts=1).visit(first).attempts == 1
    (meta,) = here.ledger.history(first)
    assert (meta.outcome, meta.agent and meta.agent.cost_usd) == (Outcome.ZERO_COMMIT, 0.3)
    assert here.ledger.status(first).attempt == 1
    assert round(spent(here), 6) == 0.3
    assert visit(here, second, BOUNDED).attempts == 1


def test_an_agent_that_claims_more_than_its_budget_stops_only_itself(
    here: WorkerEnvironment,
) -> None:
    ref = here.desk.ready()
    agent = metered_agent(here.directory, 60, cost=99)
    context = tools_of(here, agent, BOUNDED)
    context.worktrees.fetch_base(ref.repository)
    assert Worker(context, max_attempts=1).visit(ref).attempts == 1
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, meta.agent and meta.agent.cost_usd) == (Outcome.AGENT_TIMED_OUT, 0.3)
    assert round(spent(here), 6) == 0.3
    assert here.ledger.status(ref).stage is not Stage.HITL


def test_explain_says_what_is_waited_for(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    here.accounts.record(Run(here.desk.ready(), 1, 0, TEN), AgentFacts(kind="x", cost_usd=2))
    visit(here, ref, DAY)
    told = explain(ref, here.context(fix_the_bug), at_work="somebody")
    assert told.summary.startswith("It waits until 2030-05-07 00:00:00 UTC: The budget of the day")


def test_another_repositorys_spending_counts_for_the_day_alone(here: WorkerEnvironment) -> None:
    elsewhere = Run(IssueRef("o/elsewhere", 1), 1, 0, TEN)
    here.accounts.record(elsewhere, AgentFacts(kind="x", cost_usd=5, input_tokens=5000))
    ref = here.desk.ready()
    assert visit(here, ref, DAY).attempts == 0
    here.desk.clock.time = TEN
    assert visit(here, here.desk.ready(), REPOSITORY_DAY).attempts == 1


def test_a_run_that_goes_on_past_midnight_counts_for_its_own_day(here: WorkerEnvironment) -> None:
    """It is stopped by the budget of yesterday, but today's is there: the issue goes on at once."""
    ref, clock = here.desk.ready(), here.desk.clock
    clock.time = MIDNIGHT - timedelta(seconds=10)
    here.accounts.record(Run(here.desk.ready(), 1, 0, TEN), AgentFacts(kind="x", cost_usd=0.9))

    class PastMidnight:
        name = "late"
        identity = AgentIdentity(name, None, "off")
        limits = None
        account = ""
        model = NO_MODEL

        def runs_in(self, image: Image) -> bool:
            raise NotImplementedError

        def run(self, task: Task) -> AgentRun:
            clock.time = MIDNIGHT + timedelta(seconds=5)
            return metered_agent(here.directory, 200).run(task)

    context = tools_of(here, PastMidnight(), DAY)
    context.worktrees.fetch_base(ref.repository)
    Worker(context, max_attempts=1).visit(ref)
    status = here.ledger.status(ref)
    assert here.ledger.history(ref)[-1].outcome is Outcome.OVER_BUDGET
    assert (status.stage, status.due) == (Stage.READY, clock.time)
    assert here.accounts.used_on(MIDNIGHT.date()) == {}


def test_an_issue_that_no_day_is_enough_for_comes_to_a_person(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    for day in range(2):
        here.desk.clock.time = TEN + timedelta(days=day)
        assert visit(here, ref, DAY, steps=200).attempts == 1
    status = here.ledger.status(ref)
    assert status.stage is Stage.HITL
    assert "used up most of budget.day on 2 days" in status.reason
    here.desk.clock.time = TEN + timedelta(days=2)
    assert visit(here, ref, DAY, steps=200).attempts == 0
