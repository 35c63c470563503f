"""What happens when something is killed, taken or not there."""

import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.repositories import branch_head, commit_to

FILES = {"notes.txt": "one\n"}
WAIT = "(pathlib.Path.home() / 'started').touch()\nimport time\ntime.sleep(60)\n"
WRITE = "pathlib.Path('notes.txt').write_text('two')\n"


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES) as made:
        yield made


def until(happened: Callable[[], bool]) -> None:
    timeout = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < timeout
        time.sleep(0.02)


def test_a_killed_pass_is_taken_up_by_the_next(here: MulliganInstallation) -> None:
    here.agent(WAIT)
    ref = here.issue()
    killed = here.start("once")
    until(here.agent_started)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    here.agent(WRITE)
    assert here.run("once").returncode == 0
    first, second = here.attempts(ref)
    assert (first.outcome, second.outcome) == (Outcome.INTERRUPTED, Outcome.SUCCEEDED)
    assert len(here.world.pulls_of(NAME)) == 1
    assert here.world.labels_of(ref) == ["mulligan:review"]


def test_an_interrupt_ends_the_agent_and_costs_nothing(here: MulliganInstallation) -> None:
    here.agent(WAIT)
    ref = here.issue()
    stopped = here.start("once")
    until(here.agent_started)
    stopped.send_signal(signal.SIGINT)
    _, said = stopped.communicate(timeout=120)
    assert stopped.returncode == 130
    assert "SIGINT" in said
    (meta,) = here.attempts(ref)
    assert (meta.outcome, meta.failure_reason) == (Outcome.INTERRUPTED, "shutdown")


@pytest.mark.deep
def test_a_second_pass_at_the_same_time_is_refused_by_name(here: MulliganInstallation) -> None:
    here.agent(WAIT)
    here.issue()
    first = here.start("once")
    until(here.agent_started)
    second = here.run("once")
    assert second.returncode == 2
    assert "mulligan once" in second.stderr
    assert str(first.pid) in second.stderr
    assert here.run("status").returncode == 0
    first.kill()
    first.communicate()


def test_a_persons_commits_on_the_branch_are_never_overwritten(here: MulliganInstallation) -> None:
    here.agent(WRITE)
    ref = here.issue()
    theirs = commit_to(here.bare, {"mine.txt": "by hand"}, ref.branch)
    assert here.run("once").returncode == 3
    assert branch_head(here.bare, ref.branch) == theirs
    assert here.world.labels_of(ref) == ["mulligan:hitl"]
    assert "has commits that Mulligan did not make" in here.comments(ref)[-1]


def test_a_missing_agent_is_said_once_and_on_the_issues_without_its_path(
    here: MulliganInstallation,
) -> None:
    here.agent(WRITE)
    agent = here.settings["agent"]
    here.configure(agent={"command": ["/nowhere/agent"]})
    refs = [here.issue(), here.issue()]
    done = here.run("once")
    assert done.returncode == 1
    assert done.stdout.count("  waiting: The agent cannot start where Mulligan runs") == len(refs)
    assert "/nowhere/agent" not in done.stdout
    assert done.stderr.count("The agent's program '/nowhere/agent' was not found") == 1
    for ref in refs:
        (comment,) = here.comments(ref)
        assert "The agent cannot start where Mulligan runs" in comment
        assert "/nowhere" not in comment
    assert here.run("status").stdout.count("The agent cannot start") == 2
    assert {*map(tuple, map(here.world.labels_of, refs))} == {("mulligan",)}
    here.configure(agent=agent)
    assert here.run("once").returncode == 0
    assert len(here.world.pulls_of(NAME)) == 2


@pytest.mark.deep
def test_nothing_begins_while_everything_is_paused(here: MulliganInstallation) -> None:
    here.agent(WRITE)
    ref = here.issue()
    assert "Everything has been paused since" in here.run("pause").stdout
    assert "To resume: `" in here.run("status").stdout
    done = here.run("once")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Everything has been paused since" in done.stdout
    (comment,) = here.comments(ref)
    assert "An operator paused everything at" in comment
    assert here.run("pause", "nobody/here").returncode == 2
    assert f"{NAME} has been paused since" in here.run("pause", NAME.upper()).stdout
    assert f"{NAME} has been paused" in here.run("doctor").stdout
    assert "Nothing is paused" in here.run("resume").stdout
    assert here.run("once").returncode == 0
    assert len(here.world.pulls_of(NAME)) == 1
    here.run("pause")
    assert '"scope": "everything"' in here.run("status", "--json").stdout


def test_a_repository_that_cannot_be_fetched_does_not_stop_the_others(
    here: MulliganInstallation,
) -> None:
    here.agent(WRITE)
    here.issue()
    good = here.settings["repositories"]
    assert isinstance(good, list)
    here.configure(repositories=[{"name": "acme/gone", "clone_url": "/nowhere.git"}, *good])
    done = here.run("once")
    assert done.returncode == 1
    assert "acme/gone" in done.stderr
    assert len(here.world.pulls_of(NAME)) == 1


@pytest.mark.deep
def test_a_refused_token_is_one_sentence(here: MulliganInstallation) -> None:
    here.environment["GITHUB_TOKEN"] = "not-a-token"
    here.issue()
    done = here.run("once")
    assert done.returncode == 1
    assert "token" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.deep
def test_a_timed_out_agent_is_tried_once_more_and_then_a_person_is_asked(
    here: MulliganInstallation,
) -> None:
    here.agent("print('thinking', flush=True)\nimport time\ntime.sleep(60)\n")
    agent = here.settings["agent"]
    assert isinstance(agent, dict)
    here.configure(agent={**agent, "timeout": "1s"})
    ref = here.issue()
    assert here.run("once").returncode == 3
    assert [meta.outcome for meta in here.attempts(ref)] == [Outcome.AGENT_TIMED_OUT] * 2
    assert "thinking" in here.prompt(ref, 2)
