"""Two workers of a fleet hear one comment at the same time; it is obeyed and answered once."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.daemon.commands import known_of, listen
from mulligan.daemon.once import once
from mulligan.domain.events import CommandReceived, HumanResponded
from mulligan.domain.issue import Stage
from world.simulated import NAME
from world.workers import Shop, mend, shop


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        yield made


def test_what_both_record_is_obeyed_once(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(mend)
    assert once((NAME,), tools).problems == ()
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")
    listen(NAME, known_of(NAME, tools), tools)
    heard = [each for each in here.events(ref) if isinstance(each, CommandReceived)]
    here.ledger.append(ref, *heard)
    assert once((NAME,), here.tools(mend, "two")).problems == ()
    here.ledger.append(ref, *heard)
    assert once((NAME,), tools).problems == ()
    told = [type(each) for each in here.events(ref)]
    assert (told.count(CommandReceived), told.count(HumanResponded)) == (3, 1)
    status = here.ledger.status(ref)
    assert (status.epoch, status.number, status.stage) == (2, 2, Stage.REVIEW)
