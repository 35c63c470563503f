"""Every repository is asked; one that cannot be asked does not stop the others."""

from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.poll import LONGEST, Freshness, poll
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import A_BUG, Worker
from mulligan.domain.errors import (
    MisconfiguredError,
    MulliganError,
    ShutdownError,
    UnavailableError,
)
from mulligan.domain.events import AttemptStarted, RetryScheduled
from mulligan.domain.issue import Stage
from mulligan.implement.ports import Tools, Worktrees
from mulligan.sandbox.cancellation import SHUTDOWN
from world.behaviours import crash
from world.simulated import NAME, push
from world.workers import Shop, mend, shop


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        yield made


def test_the_issues_that_ask_for_work_are_found_oldest_first(here: Shop) -> None:
    refs, tools = [here.desk.ready() for _ in range(3)], here.tools(mend)
    here.desk.hub.issue()
    assert poll([NAME], tools, Worker(tools)) == (refs, {})


def test_an_issue_that_waits_is_found_when_its_time_has_come(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(mend)
    due = here.desk.clock.time + timedelta(minutes=1)
    here.ledger.append(ref, RetryScheduled(due=due, reason="GitHub is away."))
    assert poll([NAME], tools, Worker(tools)) == ([], {})
    here.desk.clock.time = due
    assert poll([NAME], tools, Worker(tools)) == ([ref], {})


def test_a_queued_issue_that_was_withdrawn_is_let_go(here: Shop) -> None:
    ref = here.desk.ready()
    Worker(here.tools(crash), most=1).visit(ref)
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    tools = here.tools(mend)
    assert poll([NAME], tools, Worker(tools)) == ([], {})
    assert here.ledger.status(ref).stage is Stage.RESOLVED


def test_a_repository_that_cannot_be_asked_is_named(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(mend)
    found, failed = poll(["acme/gone", NAME], tools, Worker(tools))
    assert found == [ref]
    assert list(failed) == ["acme/gone"]
    assert "acme/gone" in failed["acme/gone"]
    here.github_answers(Fault(502))
    assert list(poll([NAME], tools, Worker(tools))[1]) == [NAME]


def test_a_bug_at_one_repository_does_not_stop_the_others(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(mend)

    class Broken:
        def current(self, repository: str) -> object:
            if repository == NAME:
                return tools.policies.current(repository)
            raise RuntimeError(repository)

        at = tools.policies.at

    broken = replace(tools, policies=Broken())  # pyright: ignore[reportArgumentType] - a bug
    assert poll(["acme/odd", NAME], broken, Worker(broken)) == ([ref], {"acme/odd": A_BUG})


def test_what_somebody_is_working_on_is_not_found(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(mend)
    here.ledger.append(ref, AttemptStarted(attempt=1, number=1, worker="two"))
    assert poll([NAME], tools, Worker(tools)) == ([], {})


class Counted:
    """Counts how often a repository is fetched."""

    def __init__(self, inner: Worktrees, fault: MulliganError | None = None) -> None:
        self.inner, self.fault, self.fetches = inner, fault, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def refresh(self, repository: str) -> None:
        self.fetches += 1
        if self.fault:
            raise self.fault
        self.inner.refresh(repository)


def counting(here: Shop, fault: MulliganError | None = None) -> tuple[Tools, Counted]:
    tools = here.tools(mend)
    counted = Counted(tools.worktrees, fault)
    worktrees = counted  # pyright: ignore[reportUnknownVariableType] - the rest is passed on
    return replace(tools, worktrees=worktrees), counted  # pyright: ignore[reportArgumentType]


def test_a_repository_without_work_is_fetched_once_in_a_while(here: Shop) -> None:
    tools, counted = counting(here)
    freshness = Freshness()
    for minutes, fetches in ((0, 1), (1, 1), (3, 1), (1, 2), (4, 2), (1, 3)):
        here.desk.clock.time += timedelta(minutes=minutes)
        assert poll([NAME], tools, Worker(tools), freshness) == ([], {})
        assert counted.fetches == fetches


def test_a_clock_that_was_set_back_keeps_nothing_from_being_fetched(here: Shop) -> None:
    tools, counted = counting(here)
    freshness = Freshness()
    for _ in range(2):
        poll([NAME], tools, Worker(tools), freshness)
        here.desk.clock.time -= timedelta(days=1)
    assert counted.fetches == 2


def test_a_repository_is_fetched_before_it_is_worked_on(here: Shop) -> None:
    tools, counted = counting(here)
    freshness = Freshness()
    poll([NAME], tools, Worker(tools), freshness)
    here.desk.clock.time += timedelta(seconds=30)
    ref = here.desk.ready()
    assert poll([NAME], tools, Worker(tools), freshness) == ([ref], {})
    assert counted.fetches == 2


def test_a_policy_that_was_changed_is_seen_within_five_minutes(here: Shop) -> None:
    ref, tools = here.desk.hub.issue(), here.tools(mend)
    here.desk.hub.world.label(ref, "bot", "wes")
    freshness, worker = Freshness(), Worker(tools)
    assert poll([NAME], tools, worker, freshness) == ([], {})
    push(here.desk.hub.bare, "main", {".github/mulligan.yml": "labels: {ready: bot}\n"})
    assert poll([NAME], tools, worker, freshness) == ([], {})
    here.desk.clock.time += LONGEST
    assert poll([NAME], tools, worker, freshness) == ([ref], {})


def test_a_fetch_that_failed_is_repeated_at_the_next_poll(here: Shop) -> None:
    tools, counted = counting(here, UnavailableError("Git is away."))
    freshness = Freshness()
    for fetches in (1, 2):
        assert poll([NAME], tools, Worker(tools), freshness) == ([], {NAME: "Git is away."})
        assert counted.fetches == fetches


def test_a_base_branch_that_is_not_there_is_told_and_each_attempt_says_so_too(here: Shop) -> None:
    ref, wrong = here.desk.ready(), "There is no such branch."
    tools, _ = counting(here, MisconfiguredError(wrong))
    assert poll([NAME], tools, Worker(tools)) == ([ref], {NAME: wrong})


def test_a_shutdown_ends_a_poll_without_a_complaint(here: Shop) -> None:
    here.desk.ready()
    here.ledger.append(here.desk.hub.issue(), AttemptStarted(attempt=1, number=1, worker="two"))
    tools = here.tools(mend)
    SHUTDOWN.set()
    try:
        assert recover(tools, Worker(tools)).failed == {}
        assert poll([NAME], tools, Worker(tools)) == ([], {})
        tools, _ = counting(here, ShutdownError("Mulligan was told to stop."))
        SHUTDOWN.clear()
        assert poll([NAME, NAME], tools, Worker(tools)) == ([], {})
    finally:
        SHUTDOWN.clear()
