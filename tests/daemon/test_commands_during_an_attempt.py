"""Queries during an attempt are answered once, meanwhile; changes wait (COMMAND-1)."""

import time
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import PassLimits, run_once
from mulligan.daemon.poll import poll
from mulligan.daemon.worker import Worker
from mulligan.domain.command import Verb
from mulligan.domain.events import CommandReceived, HumanResponded
from mulligan.domain.issue import IssueRef, Stage
from world.behaviours import AgentInput
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


def answered(here: WorkerEnvironment, ref: IssueRef) -> list[Verb]:
    return [each.command for each in here.events(ref) if isinstance(each, HumanResponded)]


def say(here: WorkerEnvironment, ref: IssueRef, *words: str) -> None:
    for each in words:
        here.desk.hub.world.comment(ref, f"/mulligan {each}", "wes")


def replies(here: WorkerEnvironment, ref: IssueRef) -> list[str]:
    return [text for text in here.said(ref) if text.startswith("<!-- mulligan:reply")]


def test_questions_are_answered_and_the_rest_waits_for_the_end(here: WorkerEnvironment) -> None:
    ref, meanwhile = here.desk.ready(), list[Verb]()

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        say(here, ref, "pause", "status", "retry", "rettry")
        for _ in range(2):
            assert poll([NAME], context, worker) == ([], {})
        meanwhile.extend(answered(here, ref))

    context = here.context(work)
    worker = Worker(context)
    worker.visit(ref)
    assert meanwhile == [Verb.STATUS, Verb.RETRY, Verb.MISTYPED]
    assert answered(here, ref) == [*meanwhile, Verb.PAUSE]
    status, retry, usage = replies(here, ref)
    assert "Mulligan is working on this" in status
    assert "An attempt is already running" in retry
    assert "| comment |" in usage
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_nothing_is_said_of_an_attempt_that_is_being_ended(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        say(here, ref, "skip", "status")
        poll([NAME], context, worker)
        assert answered(here, ref) == []

    context = here.context(work)
    worker = Worker(context)
    worker.visit(ref)
    assert answered(here, ref) == [Verb.SKIP, Verb.STATUS]


def test_what_github_refuses_meanwhile_is_said_at_the_end(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        say(here, ref, "status")
        here.desk.hub.world.faults = lambda method, path: (
            Fault(503) if method == "POST" and path.endswith("/1/comments") else None
        )
        assert poll([NAME], context, worker) == ([], {})
        here.desk.hub.world.faults = None

    context = here.context(work)
    worker = Worker(context)
    worker.visit(ref)
    assert answered(here, ref) == [Verb.STATUS]
    assert len(replies(here, ref)) == 1


def test_another_worker_leaves_the_answer_to_the_one_at_work(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        say(here, ref, "status")
        other = here.context(fix_the_bug, "two")
        poll([NAME], other, Worker(other))
        heard = [each for each in here.events(ref) if isinstance(each, CommandReceived)]
        assert (len(heard), answered(here, ref)) == (1, [])

    Worker(here.context(work)).visit(ref)
    assert answered(here, ref) == [Verb.STATUS]


def test_a_single_pass_answers_meanwhile_as_well(here: WorkerEnvironment) -> None:
    ref, meanwhile = here.desk.ready(), list[Verb]()

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        say(here, ref, "status")
        end = time.monotonic() + 120
        while not answered(here, ref) and time.monotonic() < end:
            time.sleep(0.02)
        meanwhile.extend(answered(here, ref))

    run_once([NAME], here.context(work), PassLimits(watch_interval=timedelta(milliseconds=50)))
    assert meanwhile == [Verb.STATUS]
