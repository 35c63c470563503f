"""What an attempt left can be fetched by people, but not what a guard stopped (SPEC H3)."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.daemon.once import once
from world.behaviours import Behaviour
from world.repositories import git
from world.simulated import NAME
from world.workers import Shop, mend, red_once_changed, shop


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        made.policy |= {"max_issue_attempts": 1, "escalation": {"push_work": True}}
        yield made


def asked_for_help(here: Shop, agent: Behaviour) -> str:
    ref = here.desk.ready()
    assert once((NAME,), here.tools(agent)).problems == ()
    assert here.labels(ref) == ["mulligan:hitl"]
    return here.said(ref)[-1]


def refs(here: Shop) -> set[str]:
    return set(git(here.desk.hub.bare, "for-each-ref", "--format=%(refname)").splitlines())


def test_the_last_attempt_can_be_fetched_as_the_comment_says(here: Shop) -> None:
    here.check(red_once_changed)
    told = asked_for_help(here, mend)
    assert "git fetch origin refs/mulligan/attempts/1-1" in told
    shown = git(here.desk.hub.bare, "show", "refs/mulligan/attempts/1-1:src/tool.py")
    assert shown == "X = 2"
    assert refs(here) == {"refs/heads/main", "refs/mulligan/attempts/1-1"}


def test_what_a_guard_stopped_does_not_leave_the_machine(here: Shop) -> None:
    here.policy["scope"] = {"deny": ["src/**"]}
    told = asked_for_help(here, mend)
    assert "git fetch" not in told
    assert refs(here) == {"refs/heads/main"}


def test_without_any_work_nothing_is_pushed(here: Shop) -> None:
    assert "git fetch" not in asked_for_help(here, lambda given: 1)
    assert refs(here) == {"refs/heads/main"}
