"""`mulligan run` can be left alone: it serves, stops, lets go and reads its settings again."""

import ctypes
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from world.fork_server import ForkedProcess
from world.place import BIN, MAINTAINER, NAME, MulliganInstallation, mulligan_installation
from world.processes import said_until, wait_until
from world.pseudo_terminal import on_a_terminal

WRITE = "pathlib.Path('notes.txt').write_text('two')\n"
WAIT = "(pathlib.Path.home() / 'started').touch()\nimport time\ntime.sleep(60)\n"


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}) as made:
        made.configure(poll={"interval": "300ms"})
        yield made


@contextmanager
def running(here: MulliganInstallation) -> Generator[ForkedProcess]:
    daemon = here.start("run")
    try:
        yield daemon
    finally:
        daemon.kill()
        daemon.communicate()


@pytest.mark.deep
def test_an_issue_that_is_labelled_while_it_runs_becomes_a_pull_request(
    here: MulliganInstallation,
) -> None:
    here.agent(WRITE)
    with running(here) as daemon:
        ref = here.issue()
        wait_until(lambda: here.world.labels_of(ref) == ["mulligan:review"])
        daemon.send_signal(signal.SIGTERM)
        _, said = daemon.communicate(timeout=120)
    assert daemon.returncode == 0
    assert "action=published" in said
    assert "action=attempt_started" in said


@pytest.mark.deep
def test_on_a_terminal_it_shows_what_it_does_in_sentences(here: MulliganInstallation) -> None:
    here.agent(f"import time\nprint('Reading the notes.', flush=True)\ntime.sleep(3)\n{WRITE}")
    command = [BIN / "mulligan", "run", "--config", here.config]
    home = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(here.directory)}
    with on_a_terminal(command, here.directory, {**home, **here.environment}) as shown:
        shown.wait_for(r"Waiting for work\. Press Ctrl-C to stop\.")
        ref = here.issue()
        shown.wait_for(rf"{ref}  attempt 1 of 3 · agent [12]s · Reading the notes")
        shown.wait_for(r"→ pull request http")
        wait_until(lambda: here.world.labels_of(ref) == ["mulligan:review"])
        shown.press("\x03")
        assert shown.end() == 0, shown.text
    assert "mulligan: started (repositories 1)" in shown.text
    assert "timestamp=" not in shown.text


def test_taking_the_label_off_ends_the_agent_and_costs_nothing(here: MulliganInstallation) -> None:
    here.agent(WAIT)
    with running(here):
        ref = here.issue()
        wait_until(here.agent_started)
        here.world.unlabel(ref, "mulligan", MAINTAINER)
        wait_until(lambda: here.world.labels_of(ref) == [])
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.CANCELLED
    assert here.world.pulls_of(NAME) == []


@pytest.mark.deep
def test_a_queued_issue_that_is_closed_is_let_go(here: MulliganInstallation) -> None:
    here.agent("sys.exit(1)")
    ref = here.issue()
    here.run("once", "--attempts", "1")
    here.world.close(ref, MAINTAINER)
    with running(here):
        wait_until(lambda: here.world.labels_of(ref) == [])
    found = here.ask("status")
    assert isinstance(found, list)
    assert isinstance(found[0], dict)
    assert (found[0]["stage"], found[0]["reason"]) == ("resolved", "The issue was closed.")


def test_running_attempts_have_their_grace_and_are_then_interrupted(
    here: MulliganInstallation,
) -> None:
    here.agent(WAIT)
    here.configure(limits={"shutdown_grace": "500ms"})
    with running(here) as daemon:
        ref = here.issue()
        wait_until(here.agent_started)
        signal_another_thread(daemon.pid, signal.SIGTERM)
        daemon.communicate(timeout=120)
    assert daemon.returncode == 0
    (meta,) = here.attempts(ref)
    assert (meta.outcome, meta.failure_reason) == (Outcome.INTERRUPTED, "shutdown")


def signal_another_thread(pid: int, number: signal.Signals) -> None:
    """Send a signal as the system may, to a thread in which Python runs no handler (tgkill(2))."""
    others = [int(each.name) for each in Path(f"/proc/{pid}/task").iterdir()]
    assert len(others) > 1
    assert ctypes.CDLL(None).tgkill(pid, max(others), number) == 0


def test_a_mistake_in_the_configuration_is_reported_and_the_last_good_one_kept(
    here: MulliganInstallation,
) -> None:
    here.agent(WRITE)
    with running(here) as daemon:
        first = here.issue()
        wait_until(lambda: here.world.labels_of(first) == ["mulligan:review"])
        good = here.config.read_text()
        here.config.write_text("nonsense: [")
        said = said_until(daemon, "configuration_refused")
        second = here.issue("Another")
        wait_until(lambda: here.world.labels_of(second) == ["mulligan:review"])
        here.config.write_text(good.replace("300ms", "200ms"))
        said += said_until(daemon, "event=configuration_loaded")
        daemon.send_signal(signal.SIGTERM)
        said += daemon.communicate(timeout=120)[1]
    assert said.count("configuration_refused") == 1
    assert "is not YAML" in said
    assert "event=restart_needed keys=poll.interval" in said
    assert said.count("event=configuration_loaded") == 2
