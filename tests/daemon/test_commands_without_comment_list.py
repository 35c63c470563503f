"""A server that does not list all comments of a repository is asked issue by issue (COMMAND-1)."""

from collections.abc import Generator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.domain.events import HumanResponded
from mulligan.domain.issue import IssueRef
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

LIST = f"/repos/{NAME}/issues/comments"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.desk.hub.world.faults = lambda _, path: Fault(404) if path == LIST else None
        yield made


def do(here: WorkerEnvironment) -> None:
    assert run_once((NAME,), here.context(fix_the_bug)).problems == ()


def answered(here: WorkerEnvironment, ref: IssueRef) -> list[str]:
    return [each.key for each in here.events(ref) if isinstance(each, HumanResponded)]


def test_commands_on_issue_and_pull_request_are_heard(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    do(here)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    keys = [
        f"comment:{here.desk.hub.world.comment(place, '/mulligan status', 'wes')}"
        for place in (ref, IssueRef(NAME, pull.number))
    ]
    do(here)
    assert answered(here, ref) == keys


@pytest.mark.parametrize("how", ["deleted", "transferred"])
def test_an_issue_that_is_gone_keeps_nobody_from_being_heard(
    here: WorkerEnvironment, how: str
) -> None:
    gone, ref = here.desk.ready(), here.desk.ready()
    do(here)
    if how == "deleted":
        here.desk.hub.world.delete(gone)
    else:
        here.desk.hub.world.add_repository("acme/other", here.desk.hub.bare)
        here.desk.hub.world.transfer(gone, "acme/other", "ada")
    key = f"comment:{here.desk.hub.world.comment(ref, '/mulligan status', 'wes')}"
    do(here)
    assert answered(here, ref) == [key]
