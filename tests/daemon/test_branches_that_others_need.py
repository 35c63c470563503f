"""A branch is not deleted under another open pull request, which GitHub would close (PR-5)."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.reply import Json
from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.domain.issue import IssueRef, Stage
from world.behaviours import AgentInput
from world.repositories import commit_to
from world.simulated import NAME
from world.workers import (
    WorkerEnvironment,
    fail_once_changed,
    fix_the_bug,
    worker_environment,
)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def make_pass(here: WorkerEnvironment) -> tuple[str, ...]:
    here.desk.clock.time += timedelta(hours=1)
    return run_once([NAME], here.context(fix_the_bug)).problems


def published(here: WorkerEnvironment) -> tuple[IssueRef, IssueRef]:
    ref = here.desk.ready()
    assert make_pass(here) == ()
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    return ref, IssueRef(NAME, pull.number)


def open_theirs(here: WorkerEnvironment, ref: IssueRef, *, onto: bool) -> IssueRef:
    """Have a person open a pull request from, or onto, the issue's branch."""
    commit_to(here.desk.hub.bare, {"c": "1\n"}, "release")
    commit_to(here.desk.hub.bare, {"d": "1\n"}, "topic")
    ends = ("topic", ref.branch) if onto else (ref.branch, "release")
    body: Json = {"title": "Ours", "head": ends[0], "base": ends[1]}
    opened = here.desk.hub.post("pulls", body)
    assert opened.ok
    return IssueRef(NAME, opened.json()["number"])


def retry(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.advance_one_second()
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")


@pytest.mark.parametrize("onto", [True, False])
@pytest.mark.parametrize("merges", [True, False])
def test_another_pull_request_keeps_the_branch_and_is_named(
    here: WorkerEnvironment,
    onto: bool,  # noqa: FBT001
    merges: bool,  # noqa: FBT001
) -> None:
    ref, pull = published(here)
    theirs = open_theirs(here, ref, onto=onto)
    if merges:
        here.desk.hub.world.merge(pull, "wes")
    else:
        here.desk.hub.world.close(pull, "wes")
    assert make_pass(here) == ()
    assert here.pushed(ref)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert here.desk.hub.get(f"pulls/{theirs.number}").json()["state"] == "open"
    (told,) = here.said(ref)
    assert f"`{ref.branch}` stays" in told
    assert f"`#{theirs.number}`" in told


def test_nothing_is_pushed_under_another_pull_request(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    theirs = open_theirs(here, ref, onto=False)
    here.desk.hub.world.close(pull, "wes")
    assert make_pass(here) == ()
    head = here.pushed(ref)
    commit_to(here.desk.hub.bare, {"e": "1\n"})
    retry(here, ref)
    assert make_pass(here) == ()
    assert here.pushed(ref) == head
    assert here.labels(ref) == ["mulligan:hitl"]
    assert (
        f"The pull request `#{theirs.number}` of a person comes from {ref.branch}"
        in here.said(ref)[-1]
    )
    here.desk.hub.world.close(theirs, "wes")
    retry(here, ref)
    assert make_pass(here) == ()
    assert here.pushed(ref) != head
    assert len(here.ledger.history(ref)) == 2
    assert here.desk.hub.world.pulls_of(NAME)[-1].state == "open"


def test_a_review_is_answered_beside_another_pull_request(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    theirs = open_theirs(here, ref, onto=False)
    head = here.pushed(ref)
    here.desk.hub.world.review(pull, "wes", "REQUEST_CHANGES", "More, please.")

    def answer(given: AgentInput) -> None:
        given.write("src/tool.py", "X = 3\n")

    here.desk.clock.time += timedelta(hours=1)
    assert run_once([NAME], here.context(answer)).problems == ()
    assert here.pushed(ref) != head
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert here.desk.hub.get(f"pulls/{theirs.number}").json()["head"]["sha"] == here.pushed(ref)


def test_no_draft_is_pushed_under_another_pull_request(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    open_theirs(here, ref, onto=False)
    here.desk.hub.world.close(pull, "wes")
    assert make_pass(here) == ()
    head = here.pushed(ref)
    here.policy |= {"max_issue_attempts": 1, "escalation": {"draft_pr": True}}
    here.check(fail_once_changed)
    commit_to(here.desk.hub.bare, {"e": "1\n"})
    retry(here, ref)
    assert make_pass(here) == ()
    assert here.labels(ref) == ["mulligan:hitl"]
    assert here.pushed(ref) == head


def test_a_closed_pull_request_needs_no_branch(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    here.desk.hub.world.close(open_theirs(here, ref, onto=False), "wes")
    here.desk.hub.world.close(pull, "wes")
    assert make_pass(here) == ()
    assert here.pushed(ref) is None


@pytest.mark.parametrize("fault", [Fault(502), Fault(403, '{"message": "No."}'), Fault(200, "{}")])
def test_where_the_pull_requests_cannot_be_read_the_branch_stays(
    here: WorkerEnvironment, fault: Fault
) -> None:
    ref, pull = published(here)
    open_theirs(here, ref, onto=True)
    here.desk.hub.world.close(pull, "wes")
    ends = list[str]()

    def refuse(_method: str, path: str) -> Fault | None:
        if path.endswith(f"/pulls/{pull.number}"):
            ends.append(path)
        return fault if ends and path.endswith("/pulls") else None

    here.desk.hub.world.faults = refuse
    make_pass(here)
    assert ends
    assert here.pushed(ref)
