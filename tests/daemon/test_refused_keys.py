"""An agent whose account or program fails is started once, and rests for all issues (OUTCOME-6)."""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter, Fact, Meaning, Rule
from mulligan.config.operator import AgentSettings
from mulligan.daemon.explain import explain
from mulligan.daemon.once import PassResult, run_once
from mulligan.daemon.poll import poll
from mulligan.daemon.recovery import write_deferred_comments
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.attempt import AgentRun, Fault, Task
from mulligan.domain.issue import AuthorisingAct, IssueRef, OperatorAct, Stage
from mulligan.domain.outcome import Outcome, Retry
from mulligan.implement.decide import EndedAttempt, RetryPolicy, count_spent
from mulligan.implement.ports import AgentRegistry, BotContext
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
    Rule(where={"kind": "done"}, means=Meaning.RESULT),
)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


@dataclass(frozen=True)
class Theirs:
    """An agent that fails in one way until the file `mended` is there; it notes its starts."""

    here: WorkerEnvironment
    fails: str
    reads: tuple[Rule, ...] = READS
    needs_result: bool = False

    @property
    def program(self) -> Path:
        return self.here.directory / "theirs"

    def agent(self, environment: Mapping[str, str] | None = None) -> CommandAgent:
        done = '{"type":"result","kind":"done"}'
        text = (
            f"#!/bin/sh\necho start >> {self.here.directory}/starts\n"
            f"test -e {self.here.directory}/mended || {{ {self.fails}; }}\n"
            f"echo 'Y = 1' >> src/tool.py\necho '{done}'\n"
        )
        if not self.program.exists() or self.program.read_bytes() != text.encode():
            self.program.write_text(text)
            self.program.chmod(0o755)
        adapter = Adapter(
            program=str(self.program),
            reads=self.reads,
            needs_result=self.needs_result,
            environment=("THEIR_KEY",),
        )
        known = {"PATH": "/usr/bin:/bin", **(environment or {})}
        return CommandAgent(
            AgentSettings(kind="theirs"), known, own=OperatorAgents({"theirs": adapter}, {})
        )

    def context(self, environment: Mapping[str, str] | None = None) -> BotContext:
        context = self.here.context(self.agent(environment))
        registry = AgentRegistry(context.agents.default, {"other": ScriptedAgent(fix_the_bug)})
        return replace(context, agents=registry)

    @property
    def starts(self) -> int:
        place = self.here.directory / "starts"
        return len(place.read_text().splitlines()) if place.exists() else 0

    def mend(self) -> None:
        (self.here.directory / "mended").touch()


CLAUDE = BUILT_IN["claude"].reads


def said(text: str, **more: object) -> str:
    message = {"content": [{"type": "text", "text": text}]}
    return f"echo '{json.dumps({'type': 'assistant', 'message': message, **more})}'; exit 1"


def result(text: str, **more: object) -> str:
    record = {"type": "result", "subtype": "success", "is_error": True, "result": text, **more}
    return f"echo '{json.dumps(record)}'; exit 1"


HALF = "echo '# half' >> src/tool.py; "
LOGIN = {
    "a structured answer": (f"echo '{REFUSED}'; exit 1", READS),
    "a line": ("echo authentication_error >&2; exit 1", CLAUDE),
    "a line after a message": (said("Working.")[:-8] + "; echo ExpiredToken >&2; exit 1", CLAUDE),
    "a message": (said("Please run /login"), CLAUDE),
    "a message of its own": (said("Not here", error="authentication_failed"), CLAUDE),
    "a result without a status": (result("Invalid API key · Please run /login"), CLAUDE),
    "a spend limit": (result("You have hit your monthly spend limit"), CLAUDE),
    "a half change": (f"{HALF}echo ExpiredToken >&2; exit 1", CLAUDE),
    "without rules": ("echo 'error: OAuth token has expired'; exit 1", ()),
    "an organization's rule": (result("Your organization has disabled API key access"), CLAUDE),
    "a 403": (result('API Error: 403 {"error":{"message":"Request not allowed"}}'), CLAUDE),
    "an unknown model": (result("The model x does not exist", api_error_status=404), CLAUDE),
}
LIMIT = {
    "a result": (result("session limit · resets 6:30pm"), CLAUDE),
    "extra usage": (result("You are out of extra usage · resets 6pm"), CLAUDE),
    "overload": (result('API Error: 529 {"error":{"type":"overloaded_error"}}'), CLAUDE),
    "a status": (result("Rate limit reached", api_error_status=429), CLAUDE),
    "a message": (said("5-hour limit reached ∙ resets 2pm"), CLAUDE),
    "a line": ('echo "You\'ve hit your usage limit, try again at 3 PM"; exit 1', CLAUDE),
    "without rules": ("echo 'Error: rate_limit_error'; exit 1", ()),
    "an unknown host": ("echo 'Error: getaddrinfo ENOTFOUND api.x' >&2; exit 1", CLAUDE),
    "a half change": (f"{HALF}{result('session limit · resets 6:30pm')}", CLAUDE),
}
ACCOUNT = [
    *(pytest.param(*each, Outcome.DENIED, id=f"login, {name}") for name, each in LOGIN.items()),
    *(
        pytest.param(*each, Outcome.INFRASTRUCTURE, id=f"limit, {name}")
        for name, each in LIMIT.items()
    ),
]


def passes(here: WorkerEnvironment, context: BotContext, number: int) -> PassResult:
    """Make passes 40 seconds apart; give the last one's result."""
    done = PassResult()
    for _ in range(number):
        done = run_once([NAME], context)
        here.desk.clock.time += timedelta(seconds=40)
    return done


@pytest.mark.parametrize(("fails", "reads", "outcome"), ACCOUNT)
def test_an_account_that_fails_is_found_once_and_all_issues_go_on_after_it(
    here: WorkerEnvironment, fails: str, reads: tuple[Rule, ...], outcome: Outcome
) -> None:
    theirs = Theirs(here, fails, reads, needs_result=reads is CLAUDE)
    refs = [here.desk.ready() for _ in range(3)]
    done = passes(here, theirs.context(), 5)
    assert theirs.starts == 1
    assert (done.visits, len(done.problems), done.escalated) == ((), 1, False)
    assert "The agent 'theirs' has failed since" in done.problems[0]
    told = explain(refs[2], theirs.context(), None).summary
    assert f"{done.problems[0]} The next try starts after" in told
    (meta,) = here.ledger.history(refs[0])
    assert meta.outcome is (Outcome.MISCONFIGURED if 'api_error_status": 404' in fails else outcome)
    assert_told_once(here, refs)
    assert count_spent([EndedAttempt.of(meta)], RetryPolicy()) == 0
    theirs.mend()
    here.desk.clock.time += timedelta(hours=1)
    assert len(run_once([NAME], theirs.context()).visits) == 3
    assert {here.ledger.status(ref).stage for ref in refs} == {Stage.REVIEW}


def assert_told_once(here: WorkerEnvironment, refs: Sequence[IssueRef]) -> None:
    """See that each issue has one comment, which says what it waits for, once."""
    assert [len(here.said(ref)) for ref in refs] == [1, 1, 1]
    rest = here.accounts.rest("theirs")
    assert rest
    assert f"continues after {rest.until:%Y-%m-%d %H:%M} UTC" in here.said(refs[0])[0]
    for ref in refs[1:]:
        assert "cannot start work yet" in here.said(ref)[0]
        assert "The agent 'theirs' has failed since" in here.said(ref)[0]
        assert [event.kind for event in here.events(ref)].count("waiting") == 1
        assert "has failed since" in here.ledger.status(ref).reason


def visit(theirs: Theirs, ref: IssueRef, act: AuthorisingAct | None = None) -> Visit:
    """Visit with a worker that knows nothing of those before it, as after a restart."""
    context = theirs.context()
    context.worktrees.fetch_base(NAME)
    return Worker(context, max_attempts=1).visit(ref, act)


KEY = f"echo '{REFUSED}'; exit 1"
SESSION = result("session limit · resets 6:30pm")


def test_the_waits_of_a_limit_grow_to_an_hour_and_call_nobody(here: WorkerEnvironment) -> None:
    theirs, ref = Theirs(here, SESSION, CLAUDE), here.desk.ready()
    for minutes in (5, 10, 20, 40, 60, 60, 60, 60):
        assert visit(theirs, ref).attempts == 1
        here.desk.clock.time += timedelta(minutes=minutes, seconds=-1)
        assert visit(theirs, ref).attempts == 0
        here.desk.clock.time += timedelta(seconds=1)
    status = here.ledger.status(ref)
    assert (status.stage, len(here.ledger.history(ref)), theirs.starts) == (Stage.READY, 8, 8)
    theirs.mend()
    assert visit(theirs, ref).attempts == 1
    assert here.accounts.rest("theirs") is None


def test_an_issue_says_what_it_waits_for_until_the_agent_works(here: WorkerEnvironment) -> None:
    theirs, refs = Theirs(here, KEY), [here.desk.ready() for _ in range(3)]
    passes(here, theirs.context(), 3)
    here.desk.clock.time += timedelta(hours=1)
    passes(here, theirs.context(), 1)
    assert theirs.starts == 2
    assert ["has failed since" in here.ledger.status(ref).reason for ref in refs[1:]] == [True] * 2
    theirs.mend()
    here.desk.clock.time += timedelta(hours=1)
    context = theirs.context()
    context.worktrees.fetch_base(NAME)
    assert Worker(context, max_attempts=1).visit(refs[0]).attempts == 1
    worker = Worker(context)
    assert poll((NAME,), context, worker)[0] == refs[1:]
    assert [here.ledger.status(ref).reason for ref in refs[1:]] == ["", ""]
    here.desk.clock.time += timedelta(minutes=1)
    poll((NAME,), context, worker)
    write_deferred_comments(context, worker, [NAME], lambda _: None)
    assert all("is queued" in here.said(ref)[0] for ref in refs[1:])


def test_a_new_issue_says_that_the_agent_rests(here: WorkerEnvironment) -> None:
    theirs = Theirs(here, KEY)
    here.desk.ready()
    passes(here, theirs.context(), 1)
    ref = here.desk.ready()
    stranger = here.desk.ready(by="rea")
    passes(here, theirs.context(), 2)
    assert len(here.said(ref)) == 1
    assert "cannot start work yet" in here.said(ref)[0]
    assert (here.ledger.status(stranger).epoch, here.said(stranger)) == (0, [])


def test_another_agent_goes_on(here: WorkerEnvironment) -> None:
    theirs = Theirs(here, KEY)
    visit(theirs, here.desk.ready())
    here.policy["agent"] = "other"
    ref = here.desk.ready()
    assert visit(theirs, ref).attempts == 1
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_beside_another_agent_only_the_issues_of_the_one_that_rests_wait(
    here: WorkerEnvironment,
) -> None:
    here.policy["labels"] = {"agents": {"use:other": "other"}}
    theirs, refs = Theirs(here, KEY), [here.desk.ready() for _ in range(3)]
    here.desk.hub.world.label(refs[1], "use:other", "wes")
    assert [visit(theirs, ref).attempts for ref in refs] == [1, 1, 0]
    assert here.ledger.status(refs[1]).stage is Stage.REVIEW
    assert here.ledger.status(refs[2]).due == here.desk.clock.time + timedelta(hours=1)
    assert "The agent 'theirs' has failed since" in here.said(refs[2])[0]


def test_one_attempt_an_hour_tries_it_and_asks_nobody(here: WorkerEnvironment) -> None:
    theirs, refs = Theirs(here, KEY), [here.desk.ready() for _ in range(3)]
    visit(theirs, refs[0])
    here.desk.clock.time += timedelta(hours=1)
    assert visit(theirs, refs[1]).attempts == 1
    (meta,) = here.ledger.history(refs[1])
    assert meta.outcome is Outcome.DENIED
    assert isinstance(here.ledger.status(refs[1]).decision, Retry)
    assert visit(theirs, refs[2]).attempts == 0


def test_an_operators_command_tries_it_at_once(here: WorkerEnvironment) -> None:
    theirs, refs = Theirs(here, KEY), [here.desk.ready() for _ in range(3)]
    visit(theirs, refs[0])
    theirs.mend()
    assert visit(theirs, refs[1]).attempts == 0
    here.desk.clock.time += timedelta(seconds=1)
    act = AuthorisingAct(OperatorAct("1"), "ada", here.desk.clock.time, trusted=True)
    assert visit(theirs, refs[1], act).attempts == 1
    assert visit(theirs, refs[2]).attempts == 1


def test_a_new_key_or_program_is_tried_at_once(here: WorkerEnvironment) -> None:
    theirs, refs = Theirs(here, KEY), [here.desk.ready() for _ in range(2)]
    for starts, key in ((1, "one"), (1, "one"), (2, "two")):
        run_once([NAME], theirs.context({"THEIR_KEY": key}))
        assert theirs.starts == starts
        here.desk.clock.time += timedelta(minutes=1)
    repaired = Theirs(here, "true")
    assert len(run_once([NAME], repaired.context({"THEIR_KEY": "two"})).visits) == 2
    assert {here.ledger.status(ref).stage for ref in refs} == {Stage.REVIEW}


BROKEN = {
    "a missing interpreter": b"#!/nowhere/node\n",
    "another architecture": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf7\x00" + bytes(44),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_program_that_cannot_be_executed_costs_no_attempt(
    here: WorkerEnvironment, content: bytes
) -> None:
    theirs, refs = Theirs(here, "true"), [here.desk.ready() for _ in range(3)]
    context = theirs.context()
    theirs.program.write_bytes(content)
    done = passes(here, context, 3)
    assert "cannot be started" in done.problems[0]
    (meta,) = here.ledger.history(refs[0])
    assert (meta.outcome, done.visits, done.escalated) == (Outcome.MISCONFIGURED, (), False)
    assert_told_once(here, refs)
    assert len(run_once([NAME], theirs.context()).visits) == 3
    assert {here.ledger.status(ref).stage for ref in refs} == {Stage.REVIEW}


class ThrottledAgent(ScriptedAgent):
    """An agent whose model's service answers 503 and `Retry-After: 600`."""

    def run(self, task: Task) -> AgentRun:
        run = super().run(task)
        fault = Fault(Outcome.INFRASTRUCTURE, "The model's service failed: HTTP 503.")
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
        done = worker.visit(ref)
        assert (done.attempts, f"{until:%H:%M:%S}" in done.skipped) == (0, True)
    here.desk.clock.time = until
    assert worker.visit(second).attempts == 1
