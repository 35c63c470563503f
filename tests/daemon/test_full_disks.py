"""A disk that runs full: nothing begins on it, and what fills it is stopped and cleared away."""

import re
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings, RepositorySettings
from mulligan.daemon.explain import explain
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import DiskFullError
from mulligan.domain.host import MIB
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.sandbox import disk_use
from mulligan.sandbox.disk_use import Amount, DiskUse, written_since
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
    context = replace(here.context(fix_the_bug), disk_shortage=lambda: room[0] if room else "")
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


Fill = Callable[[Path], None]


def visit_while_the_disk_fills(
    here: WorkerEnvironment, line: str, others: Fill = lambda _: None
) -> tuple[WorkerResultMeta, bool]:
    """Run an agent on a disk that is full once `full` is beside its work; tell what is left."""
    root, settings = here.directory / "work", RepositorySettings(name=NAME)
    settings = settings.model_copy(update={"clone_url": str(here.desk.hub.bare)})
    facts = here.desk.tracker.repository
    mirrored = GitWorktrees(root, {NAME: settings}, FixedToken(), facts, PATH)
    ref = here.desk.ready()
    tree = root / NAME / f"issue-{ref.number}"
    full = here.directory / "full"

    def watch() -> DiskFullError | None:
        if not (tree / "done").exists():
            return None
        if not full.exists():
            others(here.directory)
            full.touch()
        return DiskFullError(f"The disk ran full. {FULL}", root)

    agent = CommandAgent(
        AgentSettings(command=("sh", "-c", f"{line}; echo > done; sleep 60")),
        PATH,
        sandbox=Unconfined(watch),
    )
    context = here.context(agent, worktrees=mirrored)
    context = replace(context, disk_shortage=lambda: FULL if full.exists() else "")
    Worker(context, max_attempts=1).visit(ref)
    (meta,) = here.ledger.history(ref)
    full.unlink()
    here.desk.clock.time += timedelta(hours=1)
    context = replace(
        here.context(fix_the_bug, worktrees=mirrored), disk_shortage=context.disk_shortage
    )
    is_left = tree.exists()
    assert not Worker(context).visit(ref).problem
    assert here.ledger.status(ref).stage is Stage.REVIEW
    return meta, is_left


@pytest.fixture
def _small(here: WorkerEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a disk of the test's own directory: other tests write to the real one."""

    def free_at(_: Path) -> Amount:
        used = [found.st_blocks for found in written_since(0, [here.directory], device)]
        return Amount(10_000 * MIB - 512 * sum(used), 1_000_000 - len(used))

    device = here.directory.stat().st_dev
    monkeypatch.setattr(disk_use, "free_at", free_at)
    monkeypatch.setattr(disk_use, "LEAST", (8 * MIB, 200))


FILL = {
    "a file": "dd if=/dev/zero of=litter bs=1M count=12",
    "its home": "dd if=/dev/zero of=$HOME/litter bs=1M count=12",
    "a closed directory": (
        "mkdir closed; dd if=/dev/zero of=closed/litter bs=1M count=12; chmod 0 closed"
    ),
    "an old date": "dd if=/dev/zero of=litter bs=1M count=12; touch -d 1990-01-01 litter",
    "an ignored file": "echo big > .gitignore; dd if=/dev/zero of=big bs=1M count=12",
}


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("way", FILL)
def test_an_agent_that_fills_the_disk_is_at_fault_and_its_files_go(
    way: str, here: WorkerEnvironment
) -> None:
    meta, is_left = visit_while_the_disk_fills(here, FILL[way])
    assert meta.outcome is Outcome.AGENT_TIMED_OUT
    assert meta.agent
    assert meta.agent.stop_reason == "disk"
    assert "filled the disk with its own files" in (meta.error or "")
    assert not is_left


def by_others(place: Path) -> None:
    (place / "of-others").write_bytes(bytes(128 * MIB))


WRITES = {
    "nothing": "true",
    "a little": "dd if=/dev/zero of=litter bs=1M count=4",
    "a sparse file": "truncate -s 100G litter",
    "what was there": "touch -c *",
}


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("what", WRITES)
def test_an_agent_is_not_at_fault_for_a_disk_that_others_filled(
    what: str, here: WorkerEnvironment
) -> None:
    meta, _ = visit_while_the_disk_fills(here, WRITES[what], by_others)
    assert (meta.outcome, meta.error) == (Outcome.INFRASTRUCTURE, f"The disk ran full. {FULL}")


@pytest.mark.usefixtures("_small")
def test_a_part_that_is_small_beside_that_of_others_is_no_fault(here: WorkerEnvironment) -> None:
    meta, _ = visit_while_the_disk_fills(here, FILL["a file"], by_others)
    assert meta.outcome is Outcome.INFRASTRUCTURE


@pytest.mark.parametrize(
    ("lacks_files", "after", "is_own"),
    [
        (False, Amount(900 * MIB, 100), True),
        (False, Amount(600 * MIB, 100), False),
        (True, Amount(900 * MIB, 100), False),
        (True, Amount(0, 60_000), True),
    ],
)
def test_what_the_end_of_a_command_frees_was_its_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    lacks_files: bool,
    after: Amount,
    is_own: bool,
) -> None:
    """It may have deleted its files, and kept them open."""
    amounts = iter([Amount(1200 * MIB, 90_000), Amount(200 * MIB, 10), after])

    def free_at(_: Path) -> Amount:
        return next(amounts)

    monkeypatch.setattr(disk_use, "free_at", free_at)
    use, error = DiskUse((tmp_path,)), DiskFullError(FULL, tmp_path, lacks_files=lacks_files)
    use.note_stop(error)
    assert use.has_filled(error) is is_own


def test_many_small_files_are_a_part_of_a_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    amounts = iter([Amount(0, 900), Amount(0, 0), Amount(0, 0)])

    def free_at(_: Path) -> Amount:
        return next(amounts)

    monkeypatch.setattr(disk_use, "free_at", free_at)
    monkeypatch.setattr(disk_use, "LEAST", (8 * MIB, 200))
    use, error = DiskUse((tmp_path,)), DiskFullError(FULL, tmp_path, lacks_files=True)
    use.note_stop(error)
    for number in range(320):
        (tmp_path / str(number)).touch()
    assert use.has_filled(error)


def test_the_disk_of_the_ledger_is_filled_by_others(tmp_path: Path) -> None:
    use, error = DiskUse((tmp_path,)), DiskFullError(FULL, Path("/proc"))
    use.note_stop(error)
    assert not use.has_filled(error)
