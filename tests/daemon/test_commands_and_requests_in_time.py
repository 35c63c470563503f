"""A command and the request that it answers are ordered by time (COMMAND-1, LABEL-6)."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.daemon.once import PassLimits, run_once
from mulligan.daemon.poll import poll
from mulligan.daemon.worker import Worker
from mulligan.domain.command import Verb
from mulligan.domain.events import CommandReceived
from mulligan.domain.issue import Stage
from mulligan.implement.ports import CodingAgent
from world.behaviours import AgentInput
from world.processes import wait_until
from world.simulated import NAME
from world.workers import PATH, WorkerEnvironment, fix_the_bug, worker_environment

BY_COMMENT, BY_OPERATOR = "in a comment", "on the command line"
ONCE, DAEMON = "once", "daemon"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


class Story:
    """An issue, commands and labels at known times, and passes over it."""

    def __init__(self, here: WorkerEnvironment, way: str) -> None:
        self.here, self.way = here, way
        world, clock = here.desk.hub.world, here.desk.clock
        world.stamps = replace(world.stamps, clock=clock.now)
        self.ref = here.desk.hub.issue()
        self.runs = 0
        self.context = here.context(self._agent)

    def _agent(self, given: AgentInput) -> None:
        self.runs += 1
        fix_the_bug(given)

    def wait(self) -> None:
        """Let some seconds pass on GitHub and on this machine."""
        self.here.desk.clock.time += timedelta(seconds=10)

    def label(self) -> None:
        if "mulligan" in self.here.labels(self.ref):
            self.here.desk.hub.world.unlabel(self.ref, "mulligan", "wes")
        self.here.desk.hub.world.label(self.ref, "mulligan", "wes")
        self.wait()

    def command(self, verb: Verb, late: timedelta = timedelta()) -> None:
        """Give a command; an operator's clock may be late."""
        if self.way == BY_COMMENT:
            self.here.desk.hub.world.comment(self.ref, f"/mulligan {verb}", "wes")
        else:
            at = self.here.desk.clock.now() - late
            received = CommandReceived(key=f"command:{at.isoformat()}", command=verb, at=at)
            self.here.ledger.append(self.ref, received)
        self.wait()

    def make_pass(self, how: str) -> None:
        self.wait()
        if how == ONCE:
            assert run_once((NAME,), self.context).problems == ()
            return
        worker = Worker(self.context)
        due, failed = poll((NAME,), self.context, worker)
        assert failed == {}
        for ref in due:
            assert not worker.visit(ref).problem

    @property
    def stage(self) -> Stage:
        return self.here.ledger.status(self.ref).stage


@pytest.fixture(params=[BY_COMMENT, BY_OPERATOR])
def story(here: WorkerEnvironment, request: pytest.FixtureRequest) -> Story:
    return Story(here, request.param)


STOPS = pytest.mark.parametrize("verb", [Verb.SKIP, Verb.ABORT])
PASSES = pytest.mark.parametrize("how", [ONCE, DAEMON])


@STOPS
@PASSES
def test_a_stop_before_the_first_visit_starts_nothing(story: Story, verb: Verb, how: str) -> None:
    story.label()
    story.command(verb)
    for _ in range(3):
        story.make_pass(how)
    assert (story.runs, story.stage, story.here.labels(story.ref)) == (0, Stage.RESOLVED, [])


@STOPS
@PASSES
def test_a_stop_while_it_is_queued_starts_nothing(story: Story, verb: Verb, how: str) -> None:
    story.here.desk.hub.world.label(before := story.ref, "mulligan", "wes")
    story.ref = story.here.desk.hub.issue()
    story.label()
    run_once((NAME,), story.context, PassLimits(issues=1))
    assert (story.here.ledger.status(before).stage, story.runs) == (Stage.REVIEW, 1)
    assert (story.here.ledger.status(story.ref).epoch, story.stage) == (1, Stage.READY)
    story.command(verb)
    for _ in range(3):
        story.make_pass(how)
    assert (story.runs, story.stage, story.here.labels(story.ref)) == (1, Stage.RESOLVED, [])


@STOPS
def test_a_label_after_the_stop_is_a_new_request(story: Story, verb: Verb) -> None:
    story.label()
    story.command(verb)
    story.label()
    story.make_pass(DAEMON)
    assert (story.runs, story.stage) == (1, Stage.REVIEW)


@STOPS
def test_a_stop_of_a_queued_issue_is_about_its_newer_label_too(story: Story, verb: Verb) -> None:
    story.label()
    story.here.policy["max_issue_attempts"] = 1
    story.here.check(lambda _: "It is red.")
    story.make_pass(DAEMON)
    assert story.stage is Stage.HITL
    story.label()
    story.command(verb)
    for _ in range(2):
        story.make_pass(DAEMON)
    assert story.runs == 1
    assert "mulligan" not in story.here.labels(story.ref)


def test_a_stop_that_github_showed_late_does_not_end_newer_work(here: WorkerEnvironment) -> None:
    story = Story(here, BY_COMMENT)
    story.command(Verb.SKIP)
    story.label()
    here.desk.hub.world.faults = lambda _, path: (
        Fault(500) if path.endswith("/issues/comments") else None
    )
    story.make_pass(DAEMON)
    here.desk.hub.world.faults = None
    story.make_pass(DAEMON)
    assert (story.runs, story.stage) == (1, Stage.REVIEW)


def test_a_retry_that_is_read_after_a_newer_skip_starts_nothing(here: WorkerEnvironment) -> None:
    story = Story(here, BY_COMMENT)
    story.label()
    story.command(Verb.RETRY)
    story.way = BY_OPERATOR
    story.command(Verb.SKIP)
    for _ in range(2):
        story.make_pass(DAEMON)
    assert (story.runs, story.stage) == (0, Stage.RESOLVED)


def test_a_pause_that_is_read_after_a_newer_end_of_it_pauses_nothing(
    here: WorkerEnvironment,
) -> None:
    story = Story(here, BY_COMMENT)
    story.label()
    story.command(Verb.PAUSE)
    story.way = BY_OPERATOR
    story.command(Verb.RESUME)
    story.make_pass(DAEMON)
    assert (story.runs, story.stage) == (1, Stage.REVIEW)


def endless(here: WorkerEnvironment) -> CodingAgent:
    script = f"touch {here.directory}/begun; sleep 60"
    return CommandAgent(AgentSettings(command=("sh", "-c", script)), PATH)


@STOPS
def test_an_operators_clock_that_is_late_does_not_keep_an_agent_running(
    here: WorkerEnvironment, verb: Verb
) -> None:
    story = Story(here, BY_OPERATOR)
    story.label()
    context = here.context(endless(here))
    worker = Worker(context)
    with ThreadPoolExecutor(1) as pool:
        visit = pool.submit(worker.visit, story.ref)
        wait_until((here.directory / "begun").exists)
        story.command(verb, late=timedelta(hours=1))
        assert poll((NAME,), context, worker) == ([], {})
        assert not visit.result(timeout=120).problem
    story.make_pass(DAEMON)
    assert (story.runs, story.stage, here.labels(story.ref)) == (0, Stage.RESOLVED, [])
