"""Everybody who waits sees how long, and for what: the parts of an attempt, and all runs."""

from collections.abc import Callable, Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.daemon.worker import Worker
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AttemptTimes, SetUpFiles, WorkerResultMeta
from world.behaviours import AgentInput
from world.scripted_verifier import Verdict
from world.simulated import NAME
from world.workers import (
    WorkerEnvironment,
    fail_once_changed,
    fix_the_bug,
    worker_environment,
)

REF = IssueRef(NAME, 1)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        # What is kept for a day is kept through the whole test.
        made.desk.clock.time = made.desk.clock.time.replace(hour=12) + timedelta(days=1)
        yield made


def takes(here: WorkerEnvironment, seconds: float, verdict: Verdict) -> Verdict:
    """Let the clock go on while a command runs."""

    def run(tree: Path) -> str | None:
        here.desk.clock.time += timedelta(seconds=seconds)
        return verdict(tree)

    return run


def passes(_: Path) -> None:
    """Pass."""


def approves(_: Path) -> str:
    """Answer as a reviewer command."""
    return '{"verdict": "PASS"}'


def text_of(tree: Path) -> str:
    return (tree / "src/tool.py").read_text()


def works_for(here: WorkerEnvironment, seconds: float) -> Callable[[AgentInput], None]:
    def work(given: AgentInput) -> None:
        here.desk.clock.time += timedelta(seconds=seconds)
        fix_the_bug(given)

    return work


def one_attempt(here: WorkerEnvironment) -> WorkerResultMeta:
    ref = here.desk.ready()
    Worker(here.context(works_for(here, 12)), 1).visit(ref)
    return here.ledger.history(ref)[-1]


def test_the_parts_of_an_attempt_are_measured_and_add_up(here: WorkerEnvironment) -> None:
    here.check(takes(here, 2, passes))
    here.lines |= {"prepare": takes(here, 6, passes), "judge": takes(here, 3, approves)}
    here.policy |= {"setup": {"run": ["prepare"]}, "reviewer": {"run": "judge"}}
    meta = one_attempt(here)
    assert meta.outcome is Outcome.SUCCEEDED
    assert meta.times
    assert meta.times == AttemptTimes(
        waited_ms=meta.times.waited_ms,
        set_up_ms=6000,
        agent_ms=12_000,
        checks_ms=2000,
        reviewer_ms=3000,
    )
    assert meta.set_up_files == SetUpFiles()
    assert meta.duration_ms == 23_000
    requested = here.ledger.status(REF).request.at
    assert requested
    assert meta.times.waited_ms == (meta.started_at - requested) // timedelta(milliseconds=1)
    assert meta.times.waited_ms > 0


def test_a_failed_setup_command_has_taken_its_time_too(here: WorkerEnvironment) -> None:
    here.lines["prepare"] = takes(here, 6, lambda _: "no network")
    here.policy["setup"] = {"run": ["prepare"]}
    meta = one_attempt(here)
    assert meta.outcome is Outcome.INFRASTRUCTURE
    assert meta.times
    assert (meta.times.set_up_ms, meta.times.agent_ms) == (6000, 0)
    assert meta.set_up_files is None


def test_all_runs_of_a_check_are_counted_with_those_on_the_start_tree(
    here: WorkerEnvironment,
) -> None:
    here.check(takes(here, 2, fail_once_changed))
    here.policy["checks"] = [{"name": "check", "run": "check", "kind": "test"}]
    meta = one_attempt(here)
    (check,) = meta.checks
    # Twice on the change, once on the start tree, where it passes.
    assert (check.runs, check.wall_ms, check.took_ms) == (3, 6000, 6000)
    assert meta.times
    assert meta.times.checks_ms == 6000
    second = one_attempt(here)
    # The result on the start tree is kept for the day.
    assert [(each.runs, each.wall_ms) for each in second.checks] == [(2, 4000)]


def test_each_run_on_a_start_tree_that_fails_is_counted(here: WorkerEnvironment) -> None:
    here.check(takes(here, 2, lambda _: "It is red."))
    meta = one_attempt(here)
    assert [(each.runs, each.wall_ms) for each in meta.checks] == [(3, 6000)]


def test_the_second_attempt_waited_since_the_end_of_the_first(here: WorkerEnvironment) -> None:
    here.check(takes(here, 2, lambda tree: None if "X = 3" in text_of(tree) else "It is red."))
    first = one_attempt(here)
    assert first.outcome is Outcome.CHECKS_FAILED
    here.desk.clock.time += timedelta(minutes=20)
    Worker(here.context(lambda given: given.write("src/tool.py", "X = 3\n")), 2).visit(REF)
    second = here.ledger.history(REF)[-1]
    assert second.times
    assert second.times.waited_ms == (second.started_at - first.finished_at).seconds * 1000
    assert second.times.waited_ms >= 1_200_000
