"""Two workers of a fleet hear one comment at the same time; it is obeyed and answered once."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.daemon.commands import known_of, record_commands
from mulligan.daemon.once import run_once
from mulligan.domain.events import CommandReceived, HumanResponded
from mulligan.domain.issue import Stage
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


def test_what_both_record_is_obeyed_once(here: WorkerEnvironment) -> None:
    ref, context = here.desk.ready(), here.context(fix_the_bug)
    assert run_once((NAME,), context).problems == ()
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")
    record_commands(NAME, known_of(NAME, context.ledger), context)
    heard = [each for each in here.events(ref) if isinstance(each, CommandReceived)]
    here.ledger.append(ref, *heard)
    assert run_once((NAME,), here.context(fix_the_bug, "two")).problems == ()
    here.ledger.append(ref, *heard)
    assert run_once((NAME,), context).problems == ()
    told = [type(each) for each in here.events(ref)]
    assert (told.count(CommandReceived), told.count(HumanResponded)) == (3, 1)
    status = here.ledger.status(ref)
    assert (status.epoch, status.number, status.stage) == (2, 2, Stage.REVIEW)
