"""Every repository is asked; one that cannot be asked does not stop the others."""

import time
from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Lock

import pytest

from github_simulator.world import Fault
from mulligan.daemon.poll import MAX_POLICY_AGE, FetchCache, poll, poll_interval
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import BUG_MESSAGE, Worker
from mulligan.domain.errors import (
    MisconfiguredError,
    MulliganError,
    ShutdownError,
    UnavailableError,
)
from mulligan.domain.events import AttemptStarted, RetryScheduled
from mulligan.domain.issue import Stage
from mulligan.implement.ports import BotContext, Worktrees
from mulligan.sandbox.cancellation import SHUTDOWN
from world.behaviours import crash
from world.simulated import NAME, push
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def test_the_issues_that_ask_for_work_are_found_oldest_first(here: WorkerEnvironment) -> None:
    refs, context = [here.desk.ready() for _ in range(3)], here.context(fix_the_bug)
    here.desk.hub.issue()
    assert poll([NAME], context, Worker(context)) == (refs, {})


def test_an_issue_that_waits_is_found_when_its_time_has_come(here: WorkerEnvironment) -> None:
    ref, context = here.desk.ready(), here.context(fix_the_bug)
    due = here.desk.clock.time + timedelta(minutes=1)
    here.ledger.append(ref, RetryScheduled(due=due, reason="GitHub is away."))
    assert poll([NAME], context, Worker(context)) == ([], {})
    here.desk.clock.time = due
    assert poll([NAME], context, Worker(context)) == ([ref], {})


def test_a_queued_issue_that_was_withdrawn_is_let_go(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    Worker(here.context(crash), max_attempts=1).visit(ref)
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    context = here.context(fix_the_bug)
    assert poll([NAME], context, Worker(context)) == ([], {})
    assert here.ledger.status(ref).stage is Stage.RESOLVED


def test_a_repository_that_cannot_be_asked_is_named(here: WorkerEnvironment) -> None:
    ref, context = here.desk.ready(), here.context(fix_the_bug)
    found, failed = poll(["acme/gone", NAME], context, Worker(context))
    assert found == [ref]
    assert list(failed) == ["acme/gone"]
    assert "acme/gone" in failed["acme/gone"]
    here.github_answers(Fault(502))
    assert list(poll([NAME], context, Worker(context))[1]) == [NAME]


def test_a_bug_at_one_repository_does_not_stop_the_others(here: WorkerEnvironment) -> None:
    ref, context = here.desk.ready(), here.context(fix_the_bug)

    class Broken:
        def in_force(self, repository: str) -> object:
            if repository == NAME:
                return context.policies.in_force(repository)
            raise RuntimeError(repository)

        at = context.policies.at

    broken = replace(context, policies=Broken())  # pyright: ignore[reportArgumentType] - a bug
    assert poll(["acme/odd", NAME], broken, Worker(broken)) == ([ref], {"acme/odd": BUG_MESSAGE})


def test_what_somebody_is_working_on_is_not_found(here: WorkerEnvironment) -> None:
    ref, context = here.desk.ready(), here.context(fix_the_bug)
    here.ledger.append(ref, AttemptStarted(attempt=1, number=1, worker="two"))
    assert poll([NAME], context, Worker(context)) == ([], {})


class Counted:
    """Counts how often a repository is fetched."""

    def __init__(self, inner: Worktrees, fault: MulliganError | None = None) -> None:
        self.inner, self.fault, self.fetches = inner, fault, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def fetch_base(self, repository: str) -> None:
        self.fetches += 1
        if self.fault:
            raise self.fault
        self.inner.fetch_base(repository)


def counting(
    here: WorkerEnvironment, fault: MulliganError | None = None
) -> tuple[BotContext, Counted]:
    context = here.context(fix_the_bug)
    counted = Counted(context.worktrees, fault)
    worktrees = counted  # pyright: ignore[reportUnknownVariableType] - the rest is passed on
    return replace(context, worktrees=worktrees), counted  # pyright: ignore[reportArgumentType]


def test_a_repository_without_work_is_fetched_once_in_a_while(here: WorkerEnvironment) -> None:
    context, counted = counting(here)
    freshness = FetchCache()
    for minutes, fetches in ((0, 1), (1, 1), (3, 1), (1, 2), (4, 2), (1, 3)):
        here.desk.clock.time += timedelta(minutes=minutes)
        assert poll([NAME], context, Worker(context), freshness) == ([], {})
        assert counted.fetches == fetches


def test_a_clock_that_was_set_back_keeps_nothing_from_being_fetched(
    here: WorkerEnvironment,
) -> None:
    context, counted = counting(here)
    freshness = FetchCache()
    for _ in range(2):
        poll([NAME], context, Worker(context), freshness)
        here.desk.clock.time -= timedelta(days=1)
    assert counted.fetches == 2


def test_a_repository_is_fetched_before_it_is_worked_on(here: WorkerEnvironment) -> None:
    context, counted = counting(here)
    freshness = FetchCache()
    poll([NAME], context, Worker(context), freshness)
    here.desk.clock.time += timedelta(seconds=30)
    ref = here.desk.ready()
    assert poll([NAME], context, Worker(context), freshness) == ([ref], {})
    assert counted.fetches == 2


def test_a_policy_that_was_changed_is_seen_within_five_minutes(here: WorkerEnvironment) -> None:
    ref, context = here.desk.hub.issue(), here.context(fix_the_bug)
    here.desk.hub.world.label(ref, "bot", "wes")
    freshness, worker = FetchCache(), Worker(context)
    assert poll([NAME], context, worker, freshness) == ([], {})
    push(here.desk.hub.bare, "main", {".github/mulligan.yml": "labels: {ready: bot}\n"})
    assert poll([NAME], context, worker, freshness) == ([], {})
    here.desk.clock.time += MAX_POLICY_AGE
    assert poll([NAME], context, worker, freshness) == ([ref], {})


def test_a_fetch_that_failed_is_repeated_at_the_next_poll(here: WorkerEnvironment) -> None:
    context, counted = counting(here, UnavailableError("Git is away."))
    freshness = FetchCache()
    for fetches in (1, 2):
        assert poll([NAME], context, Worker(context), freshness) == ([], {NAME: "Git is away."})
        assert counted.fetches == fetches


def test_a_base_branch_that_is_not_there_is_told_and_each_attempt_says_so_too(
    here: WorkerEnvironment,
) -> None:
    ref, wrong = here.desk.ready(), "There is no such branch."
    context, _ = counting(here, MisconfiguredError(wrong))
    assert poll([NAME], context, Worker(context)) == ([ref], {NAME: wrong})


def test_a_shutdown_ends_a_poll_without_a_complaint(here: WorkerEnvironment) -> None:
    here.desk.ready()
    here.ledger.append(here.desk.hub.issue(), AttemptStarted(attempt=1, number=1, worker="two"))
    context = here.context(fix_the_bug)
    SHUTDOWN.set()
    try:
        assert recover(context, Worker(context)).failed == {}
        assert poll([NAME], context, Worker(context)) == ([], {})
        context, _ = counting(here, ShutdownError("Mulligan is stopping."))
        SHUTDOWN.clear()
        assert poll([NAME, NAME], context, Worker(context)) == ([], {})
    finally:
        SHUTDOWN.clear()


def test_repositories_are_polled_at_the_same_time(here: WorkerEnvironment) -> None:
    context, meeting = here.context(fix_the_bug), Barrier(2)

    class Meeting(Counted):
        def fetch_base(self, repository: str) -> None:
            meeting.wait(20)

    worktrees = Meeting(context.worktrees)
    context = replace(context, worktrees=worktrees)  # pyright: ignore[reportArgumentType]
    assert poll([NAME, "acme/gone"], context, Worker(context))[0] == []
    assert not meeting.broken


def test_one_repository_is_polled_by_one_thread_at_a_time(here: WorkerEnvironment) -> None:
    context, freshness = here.context(fix_the_bug), FetchCache()
    polling, overlaps = Lock(), list[str]()

    class Alone(Counted):
        def fetch_base(self, repository: str) -> None:
            if not polling.acquire(blocking=False):
                overlaps.append(repository)
                return
            time.sleep(0.05)
            polling.release()
            raise UnavailableError("Git is away.")

    worktrees = Alone(context.worktrees)
    context = replace(context, worktrees=worktrees)  # pyright: ignore[reportArgumentType]
    assert poll([NAME] * 4, context, Worker(context), freshness) == ([], {NAME: "Git is away."})
    assert overlaps == []


def test_the_polls_of_many_repositories_are_spread_over_the_interval(
    here: WorkerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, _ = counting(here, UnavailableError("Git is away."))
    waits = list[float]()
    monkeypatch.setattr("mulligan.daemon.poll.sleep_until_cancelled", waits.append)
    names = [f"acme/tool-{number}" for number in range(100)]
    poll(names, context, Worker(context))
    interval = poll_interval(timedelta(), len(names)).total_seconds()
    assert sum(wait > 0 for wait in waits) in range(50, 100)
    assert 0.5 * interval < waits[-1] < 0.9 * interval
