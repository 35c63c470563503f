"""A disk that runs full: nothing begins on it, and what fills it is stopped and cleared away."""

import re
from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings, RepositorySettings
from mulligan.daemon.explain import explain
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Outcome
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.sandbox.sandbox import Unconfined
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from mulligan.text.redact import Redactor
from world.checkouts import FixedToken
from world.simulated import NAME
from world.workers import PATH, WorkerEnvironment, fix_the_bug, worker_environment

FULL = "Less than 512 MiB are free for /work. Free some space on that disk."


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def test_nothing_begins_on_a_full_disk_and_all_goes_on_by_itself(here: WorkerEnvironment) -> None:
    ref, room = here.desk.ready(), [FULL]
    context = replace(here.context(fix_the_bug), disk_shortage=lambda: room[0] if room else None)
    for _ in range(2):
        assert Worker(context).visit(ref).skipped == FULL
    status = here.ledger.status(ref)
    assert (status.number, status.stage, status.reason) == (0, Stage.READY, FULL)
    assert [event.kind for event in here.events(ref)].count("waiting") == 1
    assert explain(ref, context, None).summary == f"It cannot be worked on now: {FULL}"
    room.clear()
    assert Worker(context).visit(ref).attempts == 1
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_a_reason_is_recorded_once_though_the_ledger_redacts_it(here: WorkerEnvironment) -> None:
    ref, redactor = here.desk.ready(), Redactor(places=((re.compile("/work"), "$WORKSPACE"),))
    leases = MemoryLeases(here.desk.clock)
    ledger = MemoryLedger(here.desk.clock, leases, redactor)
    context = replace(here.context(fix_the_bug), disk_shortage=lambda: FULL)
    context = replace(context, ledger=ledger, leases=leases, redactor=redactor)
    for _ in range(3):
        assert Worker(context).visit(ref).skipped == FULL
    assert ledger.status(ref).reason == FULL.replace("/work", "$WORKSPACE")
    assert [each.event.kind for each in ledger.events(ref)].count("waiting") == 1


def test_workers_whose_disks_are_full_do_not_take_turns_in_saying_so(
    here: WorkerEnvironment,
) -> None:
    ref, other = here.desk.ready(), FULL.replace("/work", "/elsewhere")
    for _ in range(2):
        for name, short in (("one", FULL), ("two", other)):
            context = replace(
                here.context(fix_the_bug, name), disk_shortage=lambda short=short: short
            )
            assert Worker(context).visit(ref).skipped == short
    assert here.ledger.status(ref).reason == FULL
    assert [event.kind for event in here.events(ref)].count("waiting") == 1
    assert Worker(here.context(fix_the_bug, "three")).visit(ref).attempts == 1


def test_an_agent_that_fills_the_disk_is_stopped_and_its_files_go(here: WorkerEnvironment) -> None:
    """What an agent of this issue left is what fills the disk: the next pass clears it away."""
    root, settings = here.directory / "work", RepositorySettings(name=NAME)
    settings = settings.model_copy(update={"clone_url": str(here.desk.hub.bare)})
    facts = here.desk.tracker.repository
    mirrored = GitWorktrees(root, {NAME: settings}, FixedToken(), facts, PATH)
    ref = here.desk.ready()
    litter = root / NAME / f"issue-{ref.number}" / "litter"

    def watch() -> UnavailableError | None:
        return UnavailableError(f"The disk ran full. {FULL}") if litter.exists() else None

    settings_of_agent = AgentSettings(command=("sh", "-c", "echo x > litter; sleep 60"))
    agent = CommandAgent(settings_of_agent, PATH, sandbox=Unconfined(watch))
    context = here.context(agent, worktrees=mirrored)
    context = replace(context, disk_shortage=lambda: FULL if litter.exists() else None)
    done = Worker(context).visit(ref)
    assert done.problem
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, meta.error) == (
        Outcome.INFRASTRUCTURE,
        f"The disk ran full. {FULL}",
    )
    assert litter.exists()
    here.desk.clock.time += timedelta(hours=1)
    context = replace(
        here.context(fix_the_bug, worktrees=mirrored), disk_shortage=context.disk_shortage
    )
    assert Worker(context).visit(ref).problem is None
    assert here.ledger.status(ref).stage is Stage.REVIEW
