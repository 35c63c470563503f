"""What people do while a review is pending: neither their word nor the reviewer's is lost."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.pulls import LineComment
from github_simulator.world import Fault
from mulligan.daemon.commands import known_of, record_commands
from mulligan.daemon.explain import preview
from mulligan.daemon.once import run_once
from mulligan.daemon.poll import poll
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.implement.ports import CodingAgent
from world.behaviours import AgentInput, Behaviour
from world.repositories import commit_to, read_branch
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

FILE = "src/tool.py"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy["review"] = {"settle": "1m"}
        yield made


def do(here: WorkerEnvironment, agent: CodingAgent | Behaviour = fix_the_bug) -> None:
    here.desk.clock.time += timedelta(hours=1)
    assert run_once([NAME], here.context(agent)).problems == ()


def published(here: WorkerEnvironment) -> tuple[IssueRef, IssueRef]:
    """Have an issue worked on; give it and its pull request."""
    ref = here.desk.ready()
    do(here)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    return ref, IssueRef(NAME, pull.number)


def review(
    here: WorkerEnvironment, pull: IssueRef, body: str, *notes: LineComment, by: str = "wes"
) -> None:
    here.desk.hub.world.review(pull, by, "REQUEST_CHANGES", body, notes)


def idle(given: AgentInput) -> None:
    given.say("I leave it.")


def last(here: WorkerEnvironment, ref: IssueRef) -> tuple[int, Outcome]:
    meta = here.ledger.history(ref)[-1]
    return meta.epoch, meta.outcome


def test_a_label_put_on_again_counts_though_work_on_a_review_failed(
    here: WorkerEnvironment,
) -> None:
    here.policy["max_issue_attempts"] = 1
    ref, pull = published(here)
    review(here, pull, "Another way, please")
    for _ in range(2):
        do(here, idle)
        assert here.labels(ref) == ["mulligan:hitl"]
        here.desk.hub.advance_one_second()
        here.desk.hub.world.label(ref, "mulligan", "wes")
    do(here, lambda given: given.write(FILE, "X = 3\n"))
    assert last(here, ref) == (4, Outcome.SUCCEEDED)


def test_new_guidance_while_a_review_is_worked_on_keeps_the_review(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    review(here, pull, "", LineComment(FILE, 1, "Please write 3"))
    told = list[str]()

    def be_told_otherwise(given: AgentInput) -> None:
        told.append(given.prompt)
        if len(told) == 1:
            here.desk.hub.world.comment(ref, "/mulligan fix: Keep it short.", "wes")
            record_commands(NAME, known_of(NAME, context.ledger), context)
        given.write(FILE, f"X = {len(told) + 1}\n")

    context = here.context(be_told_otherwise)
    here.desk.clock.time += timedelta(hours=1)
    run_once([NAME], context)
    assert last(here, ref) == (2, Outcome.SUCCEEDED)
    assert "Please write 3" in told[1]
    assert "Keep it short." in told[1]
    found = here.desk.hub.world.issue_of(pull).pull
    assert found
    assert len([note for note in found.notes if note.in_reply_to]) == 1


def test_a_pull_request_closed_before_a_retry_does_not_end_the_retry(
    here: WorkerEnvironment,
) -> None:
    ref, pull = published(here)
    here.desk.hub.world.close(pull, "wes")
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")
    do(here, lambda given: given.write(FILE, "X = 3\n"))
    assert last(here, ref) == (2, Outcome.SUCCEEDED)
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_a_reviewer_who_cannot_be_judged_now_is_judged_later(here: WorkerEnvironment) -> None:
    here.policy["max_issue_attempts"] = 1
    ref, pull = published(here)
    review(here, pull, "Please write 3", by="mia")
    context = here.context(lambda given: given.write(FILE, "X = 3\n"))
    here.desk.clock.time += timedelta(hours=1)
    worker = Worker(context)
    assert poll([NAME], context, worker)[0] == [ref]
    here.desk.clock.time += timedelta(hours=1)
    here.desk.hub.world.faults = lambda _, path: Fault(503) if "permission" in path else None
    assert "/permission" in worker.visit(ref).problem
    assert last(here, ref)[0] == 1
    here.desk.hub.world.faults = None
    here.desk.clock.time += timedelta(hours=1)
    worker.visit(ref)
    assert last(here, ref) == (2, Outcome.SUCCEEDED)


def test_a_review_of_an_issue_that_was_closed_is_let_go(here: WorkerEnvironment) -> None:
    here.policy["max_issue_attempts"] = 1
    ref, pull = published(here)
    review(here, pull, "Please write 3")
    here.desk.hub.world.close(ref, "wes")
    do(here)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert here.labels(ref) == []


@pytest.mark.parametrize("words", ["", "/mulligan fix: Keep it short."])
def test_the_prompt_of_a_review_can_be_seen_before_it_is_given(
    here: WorkerEnvironment, words: str
) -> None:
    ref, pull = published(here)
    review(here, pull, "Please write 3", LineComment(FILE, 1, "Here."))
    if words:
        here.desk.hub.world.comment(ref, words, "wes")
    told = list[str]()
    context = here.context(lambda given: told.append(given.prompt))
    here.desk.clock.time += timedelta(hours=1)
    worker = Worker(context, max_attempts=1)
    assert poll([NAME], context, worker)[0] == [ref]
    seen = preview(ref, context)
    worker.visit(ref)
    assert told == [seen.prompt]


def test_who_makes_only_the_same_change_on_a_newer_base_is_told_so(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    review(here, pull, "Another way, please")
    commit_to(here.desk.hub.bare, {"new.txt": "1\n"})

    def listen(given: AgentInput) -> None:
        told = "the change that the pull request has already" in given.prompt
        given.write(FILE, "X = 3\n" if told else "X = 2\n")

    do(here, listen)
    found = [meta.outcome for meta in here.ledger.history(ref)]
    assert found == [Outcome.SUCCEEDED, Outcome.ZERO_DIFF, Outcome.SUCCEEDED]
    assert read_branch(here.desk.hub.bare, ref.branch, FILE) == "X = 3"
