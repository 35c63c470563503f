"""While further reviews are waited for, whoever looks is told that one has come (PR-2)."""

from collections.abc import Generator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mulligan.daemon.explain import explain
from mulligan.daemon.once import PassResult, run_once
from mulligan.domain.events import ReviewReceived
from mulligan.domain.explanation import describe_review
from mulligan.domain.issue import IssueRef
from mulligan.domain.recorded_effects import Effect
from mulligan.interfaces.json_output import status_row
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

SETTLE = timedelta(minutes=10)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy["review"] = {"settle": "10m"}
        yield made


def make_pass(here: WorkerEnvironment) -> PassResult:
    done = run_once([NAME], here.context(fix_the_bug))
    assert done.problems == ()
    return done


def reviewed(here: WorkerEnvironment) -> tuple[IssueRef, IssueRef]:
    """Have changes requested of an issue's pull request a moment ago, and that be heard."""
    ref = here.desk.ready()
    make_pass(here)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    place = IssueRef(NAME, pull.number)
    object_to(here, place)
    make_pass(here)
    return ref, place


def object_to(here: WorkerEnvironment, pull: IssueRef, by: str = "wes") -> datetime:
    """Request changes; give when that settles."""
    here.desk.hub.world.review(pull, by, "REQUEST_CHANGES", "Please write 2")
    found = here.desk.hub.world.issue_of(pull).pull
    assert found
    here.desk.clock.time = found.reviews[-1].submitted_at + timedelta(seconds=1)
    return found.reviews[-1].submitted_at + SETTLE


def notes_of(here: WorkerEnvironment, ref: IssueRef) -> int:
    return len([each for each in here.events(ref) if isinstance(each, Effect)])


def test_everybody_who_looks_is_told_until_when_it_waits(here: WorkerEnvironment) -> None:
    ref, pull = reviewed(here)
    until = object_to(here, pull, "mia")
    done = make_pass(here)
    status = here.ledger.status(ref)
    assert (done.visits, done.waiting) == ((), (f"{ref}: {describe_review(status)}",))
    assert status.reviews_settle_at == until
    assert f"Mulligan acts on it after {until:%Y-%m-%d %H:%M:%S} UTC" in describe_review(status)
    assert status_row(status)["review_until"] == until.isoformat()
    assert describe_review(status) in explain(ref, here.context(fix_the_bug), at_work="one").notes


def test_it_is_recorded_once_for_each_review(here: WorkerEnvironment) -> None:
    ref, _ = reviewed(here)
    before = notes_of(here, ref)
    make_pass(here)
    assert notes_of(here, ref) == before


def test_what_is_acted_on_is_not_waited_for(here: WorkerEnvironment) -> None:
    ref, _ = reviewed(here)
    assert describe_review(here.ledger.status(ref))
    here.desk.clock.time += SETTLE
    make_pass(here)
    assert any(isinstance(each, ReviewReceived) for each in here.events(ref))
    assert describe_review(here.ledger.status(ref)) == ""
    assert status_row(here.ledger.status(ref))["review_until"] is None


def test_a_review_that_is_dismissed_is_not_waited_for(here: WorkerEnvironment) -> None:
    ref, pull = reviewed(here)
    with here.desk.hub.world.lock:
        found = here.desk.hub.world.issue(pull).pull
        assert found
        found.reviews.clear()
    make_pass(here)
    assert describe_review(here.ledger.status(ref)) == ""


def test_a_pull_request_that_is_merged_is_not_waited_for(here: WorkerEnvironment) -> None:
    ref, pull = reviewed(here)
    here.desk.hub.world.merge(pull, "wes")
    make_pass(here)
    assert describe_review(here.ledger.status(ref)) == ""
