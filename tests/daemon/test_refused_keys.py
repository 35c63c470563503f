"""A model's service that refuses a key, or asks for a wait, stops the work with that agent."""

import json
from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter, Fact, Meaning, Rule
from mulligan.config.operator import AgentSettings
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.attempt import AgentRun, Fault, Task
from mulligan.domain.issue import AuthorisingAct, IssueRef, OperatorAct, Stage
from mulligan.domain.outcome import Outcome, Retry
from mulligan.implement.ports import AgentRegistry
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

REFUSED = json.dumps({"kind": "end", "http": 401, "why": "invalid key"})
READS = (
    Rule(
        where={"kind": "end"},
        means=Meaning.FAILED,
        take={Fact.STATUS: ("http",), Fact.MESSAGE: ("why",)},
    ),
)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def agent(here: WorkerEnvironment) -> CommandAgent:
    """Give an agent whose key is refused until the file `mended` is there."""
    line = f"test -e {here.directory}/mended && echo 'Y = 1' >> src/tool.py || echo '{REFUSED}'"
    adapter = Adapter(program="/bin/sh", arguments=("-c", line), reads=READS)
    own = OperatorAgents({"theirs": adapter}, {})
    return CommandAgent(AgentSettings(kind="theirs"), {"PATH": "/usr/bin:/bin"}, own=own)


def visit(here: WorkerEnvironment, ref: IssueRef, act: AuthorisingAct | None = None) -> Visit:
    """Visit with a worker that knows nothing of those before it, as after a restart."""
    other = ScriptedAgent(fix_the_bug)
    context = here.context(agent(here))
    registry = AgentRegistry(context.agents.default, {"other": other})
    context = replace(context, agents=registry)
    context.worktrees.fetch_base(NAME)
    return Worker(context, max_attempts=1).visit(ref, act)


def test_the_first_refusal_asks_a_person_and_other_issues_wait(here: WorkerEnvironment) -> None:
    first, second = here.desk.ready(), here.desk.ready()
    assert visit(here, first).escalated
    assert here.ledger.history(first)[0].outcome is Outcome.DENIED
    waiting = visit(here, second)
    assert (waiting.attempts, here.ledger.status(second).number) == (0, 0)
    assert "refused the key of the agent 'theirs'" in str(waiting.skipped)
    status = here.ledger.status(second)
    assert (status.stage, status.due) == (Stage.READY, here.desk.clock.time + timedelta(hours=1))
    assert "refused the key of the agent 'theirs'" in here.said(second)[0]


def test_another_agent_goes_on(here: WorkerEnvironment) -> None:
    visit(here, here.desk.ready())
    here.policy["agent"] = "other"
    ref = here.desk.ready()
    assert visit(here, ref).attempts == 1
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_one_attempt_an_hour_tries_it_and_asks_nobody_again(here: WorkerEnvironment) -> None:
    refs = [here.desk.ready() for _ in range(3)]
    visit(here, refs[0])
    here.desk.clock.time += timedelta(hours=1)
    assert visit(here, refs[1]).attempts == 1
    (meta,) = here.ledger.history(refs[1])
    assert (meta.outcome, meta.probe) == (Outcome.DENIED, True)
    assert isinstance(here.ledger.status(refs[1]).decision, Retry)
    assert visit(here, refs[2]).attempts == 0


def test_it_goes_on_by_itself_when_the_key_is_mended(here: WorkerEnvironment) -> None:
    refs = [here.desk.ready() for _ in range(3)]
    visit(here, refs[0])
    (here.directory / "mended").touch()
    assert visit(here, refs[1]).attempts == 0
    here.desk.clock.time += timedelta(hours=1)
    for ref in refs[1:]:
        assert visit(here, ref).attempts == 1
        assert here.ledger.status(ref).stage is Stage.REVIEW


def test_an_operators_command_tries_it_at_once(here: WorkerEnvironment) -> None:
    refs = [here.desk.ready() for _ in range(3)]
    visit(here, refs[0])
    (here.directory / "mended").touch()
    here.desk.clock.time += timedelta(seconds=1)
    act = AuthorisingAct(OperatorAct("1"), "ada", here.desk.clock.time, trusted=True)
    assert visit(here, refs[1], act).attempts == 1
    assert visit(here, refs[2]).attempts == 1


class ThrottledAgent(ScriptedAgent):
    """An agent whose model's service answers 429 and `Retry-After: 600`."""

    def run(self, task: Task) -> AgentRun:
        run = super().run(task)
        fault = Fault(Outcome.INFRASTRUCTURE, "The model's service failed: HTTP 429.")
        return replace(run, fault=fault, retry_after=timedelta(minutes=10))


def test_no_issue_asks_a_service_again_before_the_time_that_it_named(
    here: WorkerEnvironment,
) -> None:
    first, second = here.desk.ready(), here.desk.ready()
    context = here.context(ThrottledAgent(fix_the_bug))
    context.worktrees.fetch_base(NAME)
    worker = Worker(context, max_attempts=1)
    assert worker.visit(first).attempts == 1
    assert here.ledger.history(first)[0].outcome is Outcome.INFRASTRUCTURE
    until = here.desk.clock.time + timedelta(minutes=10)
    assert here.ledger.status(first).due == until
    here.desk.clock.time += timedelta(minutes=1)
    for ref in (first, second):
        assert worker.visit(ref).attempts == 0
        assert here.ledger.status(ref).due == until
    here.desk.clock.time = until
    assert worker.visit(second).attempts == 1
