"""Whoever moves from one worker to a fleet and back keeps every count, all history and all work."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.stores import open_records
from mulligan.storage.database import open_database
from mulligan.storage.leases import SqlLeases
from world.place import NAME, MulliganInstallation, mulligan_installation

CHECK = {"name": "two", "run": "grep -qx two notes.txt"}


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}, [CHECK]) as made:
        yield made


def other_configuration(here: MulliganInstallation) -> str:
    kept = here.directory / "other.yml"
    kept.write_bytes(here.config.read_bytes())
    return str(kept)


def test_a_worker_becomes_a_fleet_and_a_worker_again(
    here: MulliganInstallation, postgres_url: str
) -> None:
    here.agent("pathlib.Path('notes.txt').write_text('half\\n')")
    ref = here.issue()
    here.run("once", "--attempts", "1")
    alone = other_configuration(here)
    here.configure(state={"url": postgres_url}, workspace={"root": str(here.directory / "new")})
    copied = here.run("debug", "state", "copy", "--from", alone)
    assert (copied.stdout, copied.stderr) == (f"{ref}  taken over\n1 issue taken over.\n", "")
    with open_records(here.operator()) as (_, artifacts):
        assert b"+half" in artifacts.read(f"{NAME}/1/1/changes.diff")
    here.agent("pathlib.Path('notes.txt').write_text('two\\n')")
    assert here.run("once").returncode == 0
    assert "+half" in here.prompt(ref, 2)
    several = other_configuration(here)
    here.configure(
        state={"url": f"sqlite:///{here.directory}/again.db"},
        workspace={"root": str(here.directory / "again")},
    )
    assert here.run("debug", "state", "copy", "--from", several).returncode == 0
    outcomes = [meta.outcome for meta in here.attempts(ref)]
    assert outcomes == [Outcome.CHECKS_FAILED, Outcome.SUCCEEDED]
    assert here.run("debug", "state", "copy", "--from", several).stdout == "0 issues taken over.\n"


def test_nothing_is_copied_from_itself(here: MulliganInstallation) -> None:
    done = here.run("debug", "state", "copy", "--from", other_configuration(here))
    assert done.returncode == 2
    assert "there is nothing to copy" in done.stderr


def test_nothing_is_copied_while_somebody_works(
    here: MulliganInstallation, postgres_url: str
) -> None:
    from_alone = other_configuration(here)
    here.configure(state={"url": postgres_url})
    with open_database(postgres_url) as database:
        SqlLeases(database, SystemClock()).heartbeat("vm:7")
    for moving in (("copy", "--from", from_alone), ("pull",), ("push",)):
        done = here.run("debug", "state", *moving)
        assert done.returncode == 2
        told = "mulligan: The worker vm:7 is running. Stop it, then repeat this command.\n"
        assert done.stderr == told
