"""A pull request whose base somebody changed is not worked on, which is told (PR-8)."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.daemon.explain import explain
from mulligan.daemon.once import run_once
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from world.behaviours import AgentInput, Behaviour
from world.repositories import commit_to, git
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

FILE = "src/tool.py"
DONE = Outcome.SUCCEEDED
TOLD = (
    "The pull request's base is `release/1.x`; Mulligan works on `main` only. Retarget it to "
    "`main`, or finish it by hand."
)


def write_more(given: AgentInput) -> None:
    """Write what no attempt before has written."""
    given.write(FILE, (given.directory / FILE).read_text() + f"Y = {len(given.prompt)}\n")


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy["review"] = {"settle": "0s"}
        git(made.desk.hub.bare, "branch", "release/1.x", "main")
        yield made


def make_pass(here: WorkerEnvironment, agent: Behaviour = write_more) -> None:
    here.desk.clock.time += timedelta(hours=1)
    assert run_once([NAME], here.context(agent)).problems == ()


def published(here: WorkerEnvironment) -> tuple[IssueRef, IssueRef]:
    ref = here.desk.ready()
    make_pass(here)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    return ref, IssueRef(NAME, pull.number)


def retarget(here: WorkerEnvironment, pull: IssueRef, base: str = "release/1.x") -> None:
    assert here.desk.hub.patch(f"pulls/{pull.number}", {"base": base}).ok


def object_to(here: WorkerEnvironment, pull: IssueRef) -> None:
    here.desk.hub.world.review(pull, "wes", "REQUEST_CHANGES", "Please write more.")


def outcomes(here: WorkerEnvironment, ref: IssueRef) -> list[Outcome]:
    return [meta.outcome for meta in here.ledger.history(ref)]


def test_a_review_starts_nothing_until_the_base_is_changed_back(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    commit_to(here.desk.hub.bare, {"c": "1\n"})
    head = here.pushed(ref)
    retarget(here, pull)
    object_to(here, pull)
    make_pass(here)
    assert (outcomes(here, ref), here.pushed(ref)) == ([DONE], head)
    assert here.ledger.status(ref).stage is Stage.REVIEW
    (told,) = here.said(ref)
    assert TOLD in told
    assert TOLD in explain(ref, here.context(write_more), at_work="one").notes
    writes = len(here.writes())
    make_pass(here)
    assert len(here.writes()) == writes
    retarget(here, pull, "main")
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    assert TOLD not in here.said(ref)[0]


def test_a_command_waits_for_the_base_and_is_told_why(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    head = here.pushed(ref)
    retarget(here, pull)
    here.desk.hub.world.comment(ref, "/mulligan fix: Write more.", "wes")
    make_pass(here)
    make_pass(here)
    assert (outcomes(here, ref), here.pushed(ref)) == ([DONE], head)
    assert here.said(ref)[0].count("Retarget it") == 1
    assert TOLD in here.said(ref)[0]
    assert explain(ref, here.context(write_more), at_work="one").summary == TOLD
    retarget(here, pull, "main")
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]


def test_nothing_is_pushed_after_a_change_of_the_base_during_an_attempt(
    here: WorkerEnvironment,
) -> None:
    ref, pull = published(here)
    head = here.pushed(ref)
    object_to(here, pull)

    def be_retargeted(given: AgentInput) -> None:
        write_more(given)
        retarget(here, pull)

    make_pass(here, be_retargeted)
    assert (outcomes(here, ref), here.pushed(ref)) == ([DONE, DONE], head)
    assert here.labels(ref) == ["mulligan:hitl"]
    assert "The pull request's base is" in here.said(ref)[-1]
    retarget(here, pull, "main")
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    assert here.pushed(ref) == here.ledger.history(ref)[-1].head_sha


@pytest.mark.parametrize("wish", [{"update_branch": True}, {"on_conflict": "rebuild"}])
def test_the_base_branch_is_not_brought_into_it(
    here: WorkerEnvironment, wish: dict[str, str | bool]
) -> None:
    here.policy |= wish
    here.desk.hub.world.repository(NAME).strict = True
    ref, pull = published(here)
    head = here.pushed(ref)
    retarget(here, pull)
    commit_to(here.desk.hub.bare, {FILE if "on_conflict" in wish else "c": "X = 0\n"})
    for _ in range(3):
        make_pass(here)
    assert (outcomes(here, ref), here.pushed(ref)) == ([DONE], head)


def test_a_draft_whose_base_was_changed_is_left_as_it_is(here: WorkerEnvironment) -> None:
    here.policy |= {"max_issue_attempts": 1, "escalation": {"draft_pr": True}}
    here.check(lambda _: "It is red.")
    ref = here.desk.ready()
    make_pass(here)
    head = here.pushed(ref)
    assert head
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")

    def be_retargeted(given: AgentInput) -> None:
        write_more(given)
        retarget(here, IssueRef(NAME, pull.number))

    make_pass(here, be_retargeted)
    assert len(outcomes(here, ref)) == 2
    assert here.pushed(ref) == head
