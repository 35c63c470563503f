"""Whoever moves from the Action to a worker and back keeps every count and all history."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.domain.events import (
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    Decided,
    RetryScheduled,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome, Retry
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.storage.database import open_database
from mulligan.storage.git_ref import RefLedger
from mulligan.storage.state_directory import locked
from mulligan.storage.usage import SqlUsageStore
from world.ledgers import START
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.repositories import git
from world.stores import ref_session_on
from world.stories import NOON, attempt

REF = IssueRef(NAME, 1)
CHECK = {"name": "two", "run": "grep -qx two notes.txt"}


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    (tmp_path / "home").mkdir()
    with mulligan_installation(tmp_path / "home", {"notes.txt": "one\n"}, [CHECK]) as made:
        yield made


def record_an_attempt(here: MulliganInstallation, act: str) -> None:
    """Have a run of the Action make the first attempt, which fails."""
    with ref_session_on(here.bare, here.directory, SystemClock()) as book:
        ledger = RefLedger(book)
        ledger.append(REF, Authorised(act=act, actor="ada", act_at=START))
        ledger.append(REF, AttemptStarted(attempt=1, number=1, worker="run-7"))
        meta = attempt(1).model_copy(update={"issue": str(REF)})
        ledger.append(REF, AttemptCompleted(meta=meta))
        ledger.append(REF, Decided(decision=Retry(reason="2 attempts left.")))
        ledger.append(REF, RetryScheduled(due=START, reason="2 attempts left."))


def outcomes_on_the_ref(here: MulliganInstallation) -> list[Outcome]:
    with ref_session_on(here.bare, here.directory, SystemClock()) as book:
        return [meta.outcome for meta in RefLedger(book).history(REF)]


@pytest.mark.deep
def test_a_worker_goes_on_where_the_action_stopped_and_back(here: MulliganInstallation) -> None:
    here.issue()
    labelled = next(event for event in here.world.events_of(REF) if event.kind == "labeled")
    record_an_attempt(here, f"labeled:{labelled.id}")
    pulled = here.run("debug", "state", "pull")
    assert (pulled.returncode, pulled.stderr) == (0, "")
    assert pulled.stdout == f"{REF}  taken over\n1 issue taken over.\n"
    with open_database(here.operator().state.url) as database:
        assert SqlUsageStore(database).used_on(NOON.date())[NAME].usd == 0.21
    here.agent("pathlib.Path('notes.txt').write_text('half\\n')")
    assert here.run("once", "--attempts", "1").returncode == 0
    assert [meta.attempt for meta in here.attempts(REF)] == [1, 2]
    pushed = here.run("debug", "state", "push")
    assert pushed.stdout == f"{REF}  handed over\n1 issue handed over.\n"
    assert outcomes_on_the_ref(here) == [Outcome.CHECKS_FAILED] * 2
    for again in ("pull", "push"):
        assert here.run("debug", "state", again).stdout.startswith("0 issues ")
    assert len(here.attempts(REF)) == 2


def test_nothing_is_moved_while_a_run_works(here: MulliganInstallation) -> None:
    record_an_attempt(here, "labeled:7")
    with ref_session_on(here.bare, here.directory, SystemClock(), timedelta(minutes=2)) as book:
        lease = book.claim(REF, "run-9")
        assert lease
        assert book.holds(lease)
        for way in ("pull", "push"):
            done = here.run("debug", "state", way)
            assert done.returncode == 2
            assert done.stderr == (
                f"mulligan: run-9 is working on {REF}; wait until that run ends.\n"
            )


def test_a_repository_that_never_had_the_action_has_nothing_to_give(
    here: MulliganInstallation,
) -> None:
    assert here.run("debug", "state", "pull").stdout == "0 issues taken over.\n"
    assert git(here.bare, "for-each-ref", "refs/mulligan") == ""


def test_a_restored_backup_repeats_nothing_that_was_done_since(here: MulliganInstallation) -> None:
    # GraphQL names a bot without the suffix that its login has; a machine user has none.
    here.world.users["mulligan-bot"].type = "User"
    ref, backup = here.issue(), here.directory / "backup.db"
    here.agent("pathlib.Path('notes.txt').write_text('half\\n')")
    assert here.run("once", "--attempts", "1").returncode == 0
    done = here.run("debug", "state", "backup", str(backup))
    assert (done.stdout, done.stderr) == (f"The ledger is backed up to {backup}.\n", "")
    here.agent("pathlib.Path('notes.txt').write_text('two\\n')")
    time.sleep(1.1)  # GitHub's times are whole seconds.
    here.world.comment(ref, "/mulligan status", "wes")
    assert here.run("once").returncode == 0
    comments = here.comments(ref)
    assert here.world.labels_of(ref) == ["mulligan:review"]
    assert here.run("debug", "state", "check").stdout.startswith("Sound: 1 issue, ")
    assert here.run("debug", "state", "check", str(backup)).stdout.startswith("Sound: 1 issue, ")
    restored = here.run("debug", "state", "restore", str(backup))
    assert restored.returncode == 0, restored.stderr
    assert f"{ref}  changed since; the next run restores it from GitHub" in restored.stdout
    here.agent("raise SystemExit('The agent must not run again.')")
    assert here.run("once").returncode == 0
    assert here.comments(ref) == comments
    assert here.world.labels_of(ref) == ["mulligan:review"]
    assert [meta.outcome for meta in here.attempts(ref)] == [
        Outcome.CHECKS_FAILED,
        Outcome.SUCCEEDED,
    ]


def test_what_is_damaged_is_named_and_can_be_restored(here: MulliganInstallation) -> None:
    ref, backup = here.issue(), here.directory / "backup.db"
    # GitHub's times are whole seconds: a change in the second of the last event counts as later.
    here.agent("import time; time.sleep(1.1); pathlib.Path('notes.txt').write_text('half\\n')")
    here.run("once", "--attempts", "1")
    assert here.run("debug", "state", "backup", str(backup)).returncode == 0
    again = here.run("debug", "state", "backup", str(backup))
    assert (again.returncode, again.stderr) == (
        2,
        f"mulligan: {backup} exists; name a new file.\n",
    )
    ledger = here.directory / "mulligan.db"
    ledger.write_bytes(b"no database" * 1000)
    for command in (
        ("debug", "state", "check"),
        ("debug", "state", "backup", str(backup) + "2"),
        ("status",),
    ):
        done = here.run(*command)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "is not a database" in done.stderr
    restored = here.run("debug", "state", "restore", str(backup))
    assert restored.returncode == 0, restored.stderr
    assert "Restored 1 issue, " in restored.stdout
    assert f"The earlier ledger is kept as {ledger}.before-" in restored.stdout
    assert [meta.outcome for meta in here.attempts(ref)] == [Outcome.CHECKS_FAILED]


def test_nothing_is_restored_while_a_worker_runs_or_github_is_away(
    here: MulliganInstallation,
) -> None:
    backup, ledger = here.directory / "backup.db", here.directory / "mulligan.db"
    here.issue()
    here.agent("pathlib.Path('notes.txt').write_text('half\\n')")
    here.run("once", "--attempts", "1")
    assert here.run("debug", "state", "backup", str(backup)).returncode == 0
    before = ledger.read_bytes()
    with locked(here.directory, what="run", since=NOON):
        done = here.run("debug", "state", "restore", str(backup))
    assert done.returncode == 2
    assert "already uses" in done.stderr
    here.world.faults = lambda _method, _path: Fault(502)
    done = here.run("debug", "state", "restore", str(backup))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert ledger.read_bytes() == before
    assert not [each for each in here.directory.iterdir() if ".before-" in each.name]


def test_a_backup_that_does_not_fit_leaves_nothing(here: MulliganInstallation) -> None:
    place = here.directory / "backup.db"
    program = [sys.executable, "-m", "mulligan"]
    command = [*program, "debug", "state", "backup", str(place), "--config", str(here.config)]
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *command],
        env={**os.environ, **here.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("mulligan: ")
    assert done.stderr.count("\n") == 1
    assert not [each.name for each in here.directory.iterdir() if "backup" in each.name]
