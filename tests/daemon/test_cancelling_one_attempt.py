"""What ends an attempt ends that one, and not the next asked for with it (COMMAND-1)."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.daemon.commands import known_of, record_commands
from mulligan.daemon.worker import Worker
from mulligan.domain.outcome import Outcome
from mulligan.domain.status import Phase
from world.processes import wait_until
from world.simulated import NAME
from world.workers import PATH, WorkerEnvironment, worker_environment

WRITES_OR_WAITS = """\
if grep -q integers; then echo X = 2 > src/tool.py; else touch {begun}; sleep 60; fi
"""


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def test_new_guidance_ends_the_attempt_that_ran_and_not_its_own(
    here: WorkerEnvironment, tmp_path: Path
) -> None:
    ref, begun = here.desk.ready(), tmp_path / "begun"
    script = WRITES_OR_WAITS.format(begun=begun)
    context = here.context(CommandAgent(AgentSettings(command=("sh", "-c", script)), PATH))
    worker, polled = Worker(context), list[int]()

    def poll_meanwhile(method: str, path: str) -> Fault | None:
        """Be a poll that comes just as the command is carried out."""
        status = here.ledger.status(ref)
        if status.pending and status.phase is Phase.IDLE and worker.running:
            polled.append(len(here.ledger.history(ref)))
            worker.cancel_commanded([ref])
            worker.watch()
        return None

    with ThreadPoolExecutor(1) as pool:
        visit = pool.submit(worker.visit, ref)
        wait_until(begun.exists)
        here.desk.hub.world.comment(ref, "/mulligan fix: Use integers.", "wes")
        record_commands(NAME, known_of(NAME, context.ledger), context)
        here.desk.hub.world.faults = poll_meanwhile
        worker.cancel_commanded([ref])
        assert not visit.result(timeout=120).problem
    assert 1 in polled
    assert [meta.outcome for meta in here.ledger.history(ref)] == [
        Outcome.CANCELLED,
        Outcome.SUCCEEDED,
    ]
    assert here.labels(ref) == ["mulligan:review"]
