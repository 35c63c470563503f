"""What holds work is found before an issue is touched, told once, and over by itself."""

from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.load import load_operator
from mulligan.daemon.daemon import Daemon, Runtime
from mulligan.daemon.explain import explain
from mulligan.daemon.once import run_once
from mulligan.daemon.worker import Worker
from mulligan.domain.hold import AGENTS_MISSING, Hold, Pause
from mulligan.domain.issue import IssueRef, Stage
from mulligan.implement.ports import AgentRegistry, BotContext
from mulligan.interfaces.bootstrap.machine import MachineHolds, MachineProbes
from mulligan.sandbox.sandbox import Unconfined
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.workers import PATH, WorkerEnvironment, fix_the_bug, worker_environment

FAULT = Hold("Mulligan starts no attempt. The agent was not found.", is_fault=True)
PAUSE = Hold("Everything is paused.")


class SetHolds:
    """Holds that a test sets."""

    def __init__(self, hold: Hold | None) -> None:
        self.hold = hold

    def on(self, repository: str, agents: Collection[str]) -> Hold | None:
        del repository, agents
        return self.hold

    def is_missing(self, agent: str) -> bool:
        del agent
        return False

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


class Named(ScriptedAgent):
    def __init__(self, name: str) -> None:
        super().__init__(fix_the_bug)
        self.name = name


def test_only_the_issue_whose_label_chooses_a_missing_agent_waits(
    here: WorkerEnvironment, tmp_path: Path
) -> None:
    program, config = tmp_path / "strong", tmp_path / "mulligan.yml"
    config.write_text(
        f"repositories: [{{name: {NAME}}}]\nagent: {{command: [sh]}}\nsandbox: off\n"
        f"agents: {{strong: {{command: [{program}]}}}}\nworkspace: {{root: {tmp_path}}}\n"
    )
    probes = MachineProbes(load_operator(config, {}), PATH)
    here.policy["labels"] = {"agents": {"use:strong": "strong"}}
    context = replace(
        here.context(fix_the_bug),
        agents=AgentRegistry(Named("first"), {"strong": Named("strong")}, {}),
        holds=MachineHolds(probes, lambda: (), here.desk.clock),
    )
    chosen, other = here.desk.ready(), here.desk.ready()
    here.desk.hub.world.label(chosen, "use:strong", "wes")
    for visits in ([0, 1], [0]):
        assert [done.attempts for done in run_once([NAME], context).visits] == visits
    assert here.ledger.status(other).stage is Stage.REVIEW
    assert "The agent 'strong' is not installed" in here.ledger.status(chosen).reason
    assert [event.kind for event in here.events(chosen)].count("waiting") == 1
    assert len(here.said(chosen)) == 1
    assert "The agent 'strong' is not installed" in explain(chosen, context, None).summary
    program.touch(0o755)
    assert [done.attempts for done in run_once([NAME], context).visits] == [1]
    assert here.ledger.status(chosen).stage is Stage.REVIEW


def test_a_repository_is_held_once_all_its_agents_are_missing(
    here: WorkerEnvironment, tmp_path: Path
) -> None:
    config = tmp_path / "mulligan.yml"
    config.write_text(
        f"repositories: [{{name: {NAME}}}]\nagent: {{command: [/nowhere/a], fallback: [other]}}\n"
        "agents: {other: {command: [/nowhere/b]}, unused: {command: [sh]}}\n"
        f"sandbox: off\nworkspace: {{root: {tmp_path}}}\n"
    )
    probes = MachineProbes(load_operator(config, {}), PATH)
    named = {name: Named(name) for name in ("other", "unused")}
    context = replace(
        here.context(fix_the_bug),
        agents=AgentRegistry(Named("first"), named, {"": ["other"]}),
        holds=MachineHolds(probes, lambda: (), here.desk.clock),
    )
    ref = here.desk.ready()
    done = run_once([NAME], context)
    assert (done.visits, len(done.problems)) == ((), 1)
    assert AGENTS_MISSING in here.said(ref)[0]
    assert "'/nowhere/a' was not found" in done.problems[0]
    assert "'/nowhere/b' was not found" in done.problems[0]
    assert "'/nowhere/a' was not found" in explain(ref, context, None).summary


STARTS = {
    "it fails at once": "#!/bin/sh\necho start >> {starts}\necho 'node: too old' >&2; exit 1\n",
    "its interpreter is missing": "#!/nowhere/node\n",
    "it is no program": "\x7fELF\x02\x01\x01" + "\0" * 57,
}


@pytest.mark.parametrize("content", STARTS.values(), ids=STARTS)
def test_an_agent_whose_program_does_not_start_holds_all_its_issues(
    here: WorkerEnvironment, tmp_path: Path, content: str
) -> None:
    program, config, starts = tmp_path / "theirs", tmp_path / "mulligan.yml", tmp_path / "starts"
    config.write_text(
        f"repositories: [{{name: {NAME}}}]\nagent: {{kind: theirs}}\nsandbox: off\n"
        f"adapters: {{theirs: {{program: {program}, version_arguments: [--version]}}}}\n"
        f"workspace: {{root: {tmp_path}}}\n"
    )
    program.write_text(content.format(starts=starts))
    program.chmod(0o755)
    probes = MachineProbes(load_operator(config, {}), PATH, sandbox=Unconfined())
    context = replace(
        here.context(fix_the_bug), holds=MachineHolds(probes, lambda: (), here.desk.clock)
    )
    refs = [here.desk.ready() for _ in range(3)]

    def started() -> int:
        return len(starts.read_text().splitlines()) if starts.exists() else 0

    for _ in range(3):
        done = run_once([NAME], context)
        assert (done.visits, len(done.problems)) == ((), 1)
        assert "The agent's program" in done.problems[0]
        assert "start" in done.problems[0]
    for ref in refs:
        assert "cannot start work yet" in here.said(ref)[0]
        assert str(program) not in here.said(ref)[0]
        assert here.ledger.status(ref).reason == AGENTS_MISSING
        assert [event.kind for event in here.events(ref)].count("waiting") == 1
    before = started()
    assert before == ("exit 1" in content)
    here.desk.clock.time += timedelta(minutes=1)
    assert run_once([NAME], context).visits == ()
    assert started() == 2 * before
    program.write_text(f"#!/bin/sh\necho start >> {starts}\necho 1.2\n")
    assert len(run_once([NAME], context).visits) == 3
    here.desk.clock.time += timedelta(hours=1)
    run_once([NAME], context)
    assert started() == 2 * before + 1
    assert {here.ledger.status(ref).stage for ref in refs} == {Stage.REVIEW}
