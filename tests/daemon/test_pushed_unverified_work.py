"""What an attempt left can be fetched by people, but not what a guard stopped (ESCALATION-3)."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.daemon.once import run_once
from world.behaviours import Behaviour
from world.repositories import git
from world.simulated import NAME
from world.workers import WorkerEnvironment, fail_once_changed, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy |= {"max_issue_attempts": 1, "escalation": {"push_work": True}}
        yield made


def asked_for_help(here: WorkerEnvironment, agent: Behaviour) -> str:
    ref = here.desk.ready()
    assert run_once((NAME,), here.context(agent)).problems == ()
    assert here.labels(ref) == ["mulligan:hitl"]
    return here.said(ref)[-1]


def refs(here: WorkerEnvironment) -> set[str]:
    return set(git(here.desk.hub.bare, "for-each-ref", "--format=%(refname)").splitlines())


def test_the_last_attempt_can_be_fetched_as_the_comment_says(here: WorkerEnvironment) -> None:
    here.check(fail_once_changed)
    told = asked_for_help(here, fix_the_bug)
    assert "git fetch origin refs/mulligan/attempts/1-1" in told
    shown = git(here.desk.hub.bare, "show", "refs/mulligan/attempts/1-1:src/tool.py")
    assert shown == "X = 2"
    assert refs(here) == {"refs/heads/main", "refs/mulligan/attempts/1-1"}


def test_what_a_guard_stopped_does_not_leave_the_machine(here: WorkerEnvironment) -> None:
    here.policy["scope"] = {"deny": ["src/**"]}
    told = asked_for_help(here, fix_the_bug)
    assert "git fetch" not in told
    assert refs(here) == {"refs/heads/main"}


def test_without_any_work_nothing_is_pushed(here: WorkerEnvironment) -> None:
    assert "git fetch" not in asked_for_help(here, lambda given: 1)
    assert refs(here) == {"refs/heads/main"}
