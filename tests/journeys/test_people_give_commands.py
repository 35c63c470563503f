"""People answer in comments and on the command line, beside a Mulligan that is at work."""

import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.samples import is_as_documented

FAIL = "sys.exit(1)\n"
WRITE = "pathlib.Path('notes.txt').write_text('two')\n"
WAIT = WRITE + "(pathlib.Path.home() / 'started').touch()\nimport time\ntime.sleep(60)\n"


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}, max_issue_attempts=1) as made:
        made.configure(poll={"interval": "300ms"})
        yield made


def until(happened: Callable[[], bool]) -> None:
    timeout = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < timeout
        time.sleep(0.05)


def test_an_abort_and_a_fix_reach_a_daemon_from_the_command_line(
    here: MulliganInstallation,
) -> None:
    here.agent(
        f"if 'Write two.' not in prompt:\n    {WAIT.replace(chr(10), chr(10) + '    ')}\n{WRITE}"
    )
    daemon = here.start("run")
    try:
        ref = here.issue()
        until(here.agent_started)
        done = here.run("debug", "abort", str(ref))
        assert (done.returncode, is_as_documented("abort", done.stdout)) == (0, True)
        until(lambda: here.world.labels_of(ref) == [])
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.CANCELLED
        assert "two" in here.run("inspect", str(ref), "--diff").stdout
        assert here.run("fix", str(ref), "Write", "two.").returncode == 0
        until(lambda: here.world.labels_of(ref) == ["mulligan:review"])
    finally:
        daemon.kill()
        daemon.communicate()
    assert len(here.world.pulls_of(NAME)) == 1


@pytest.mark.parametrize("verb", ["skip", "abort"])
def test_a_stop_on_the_command_line_before_the_first_visit_starts_nothing(
    here: MulliganInstallation, verb: str
) -> None:
    here.agent(WRITE)
    ref = here.issue()
    assert here.run(verb, str(ref)).returncode == 0
    done = here.run("once")
    assert done.returncode == 0, done.stderr
    assert (here.attempts(ref), here.world.labels_of(ref)) == ([], [])
    assert "attempt" not in done.stdout
    daemon = here.start("run")
    try:
        time.sleep(1.5)
    finally:
        daemon.kill()
        daemon.communicate()
    assert here.attempts(ref) == []


@pytest.mark.deep
def test_commands_wait_for_whoever_comes_to_work_next(here: MulliganInstallation) -> None:
    here.agent(FAIL)
    ref = here.issue()
    assert here.run("once").returncode == 3
    here.agent(WRITE)
    told = here.ask("retry", str(ref))
    assert isinstance(told, dict)
    assert (told["command"], told["at_work"]) == ("retry", None)
    assert here.run("pause", str(ref)).returncode == 0
    assert here.run("once").returncode == 0
    assert len(here.attempts(ref)) == 1
    assert here.run("resume", str(ref)).returncode == 0
    assert here.run("once").returncode == 0
    assert here.world.labels_of(ref) == ["mulligan:review"]
    assert here.run("skip", str(ref), "not", "now").returncode == 0
    assert here.run("once").returncode == 0
    assert here.world.labels_of(ref) == []
    assert "An operator skipped it: not now" in here.comments(ref)[0]


def test_what_cannot_be_a_command_is_refused(here: MulliganInstallation) -> None:
    done = here.run("fix", f"{NAME}#1", " ")
    assert (done.returncode, "needs an instruction after it" in done.stderr) == (2, True)


def test_a_command_for_what_is_no_issue_is_refused_and_not_recorded(
    here: MulliganInstallation,
) -> None:
    nobody = here.run("pause", f"{NAME}#99")
    assert (nobody.returncode, nobody.stdout) == (1, "")
    assert f"Issue {NAME}#99 not found on GitHub." in nobody.stderr
    here.agent(WRITE)
    here.issue()
    assert here.run("once").returncode == 0
    (pull,) = here.world.pulls_of(NAME)
    wrong = here.run("skip", f"{NAME}#{pull.number}")
    assert (wrong.returncode, "is a pull request" in wrong.stderr) == (2, True)
    rows = here.ask("status")
    assert isinstance(rows, list)
    assert len(rows) == 1
