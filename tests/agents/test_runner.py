"""A program is run as the coding agent: what it is given, and what is believed of it."""

import os
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter, Fact, Rule
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentReport, ReportedStatus, Task, TimeLimit
from mulligan.domain.errors import MisconfiguredError, ShutdownError, UnavailableError
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import RestKind
from mulligan.sandbox.cancellation import SHUTDOWN
from world.processes import processes_in

HERE = {"PATH": "/usr/bin:/bin", "HOME": "/root", "GITHUB_TOKEN": "ghp_secret", "KEY": "k", "E": ""}


@pytest.fixture
def task(tmp_path: Path) -> Task:
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    return Task(
        issue="o/r#1",
        attempt=1,
        fix_round=0,
        prompt="Do it.",
        directory=worktree,
        private=tmp_path / "private",
        log=tmp_path / "agent.log",
        manifest_hash="",
    )


def agent(line: str, *env: str, stall: float = 20) -> CommandAgent:
    settings = AgentSettings(
        command=("/bin/sh", "-c", line),
        env=env,
        timeout=timedelta(seconds=20),
        stall_timeout=timedelta(seconds=stall),
    )
    return CommandAgent(settings, HERE)


def environment(task: Task, *env: str) -> dict[str, str]:
    agent("cat /proc/$$/environ > environment", *env).run(task)
    entries = (task.directory / "environment").read_text().split("\0")[:-1]
    return dict(entry.split("=", 1) for entry in entries)


def test_it_sees_what_is_for_it_and_nothing_of_mulligans(task: Task) -> None:
    assert environment(task).keys() == {
        "PATH",
        "HOME",
        "MULLIGAN_ISSUE",
        "MULLIGAN_ATTEMPT",
        "MULLIGAN_FIX_ROUND",
        "MULLIGAN_REPORT",
    }


def test_it_finds_the_version_managers_of_mulligans_home(task: Task, tmp_path: Path) -> None:
    for name in (".pyenv/shims", ".rustup"):
        (tmp_path / name).mkdir(parents=True)
    outer = {"PATH": f"{tmp_path}/.pyenv/shims:/usr/bin:/bin", "HOME": str(tmp_path)}
    settings = AgentSettings(command=("sh", "-c", "echo $PYENV_ROOT; echo $RUSTUP_HOME"))
    assert CommandAgent(settings, outer).run(task).summary == f"{tmp_path}/.pyenv"


def test_its_home_and_its_report_lie_in_the_private_directory(task: Task) -> None:
    given = environment(task)
    for name in ("HOME", "MULLIGAN_REPORT"):
        assert Path(given[name]).is_relative_to(task.private)


@pytest.mark.parametrize("is_linked", [False, True])
def test_the_record_of_a_run_is_not_read_through_a_link(task: Task, *, is_linked: bool) -> None:
    """It can replace its HOME by a link to a directory of others."""
    place = task.directory / "elsewhere"
    place.mkdir()
    (place / "run.json").write_text('{"version": "3.1"}')
    adapter = Adapter(
        program="/bin/sh",
        arguments=("-c", f"rm -rf $HOME; {'ln -s' if is_linked else 'cp -r'} {place} $HOME"),
        record="run.json",
        reads=(Rule(matching={"version": "."}, take={Fact.VERSION: ("version",)}),),
    )
    own = OperatorAgents({"recording": adapter}, {}, ())
    run = CommandAgent(AgentSettings(kind="recording"), HERE, own=own).run(task)
    assert run.facts.version == (None if is_linked else "3.1")


def test_it_sees_the_variables_that_the_operator_names(task: Task) -> None:
    given = environment(task, "KEY", "E")
    assert (given["KEY"], given["E"], given["PATH"]) == ("k", "", "/usr/bin:/bin")
    assert "GITHUB_TOKEN" not in given


def test_a_home_that_the_operator_names_is_his_own(task: Task) -> None:
    assert environment(task, "HOME")["HOME"] == "/root"


def test_what_mulligan_tells_goes_before_what_is_named(task: Task) -> None:
    settings = AgentSettings(
        command=("/bin/sh", "-c", "echo $MULLIGAN_ISSUE"), env=("MULLIGAN_ISSUE",)
    )
    run = CommandAgent(settings, {"MULLIGAN_ISSUE": "mine"}).run(task)
    assert run.summary == "o/r#1"


def test_without_a_path_the_usual_one_is_given(task: Task) -> None:
    settings = AgentSettings(command=("sh", "-c", "echo $PATH"))
    assert CommandAgent(settings, {}).run(task).summary == os.defpath


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (("NO", "KEY"), "names NO, which is not set"),
        (("NO", "NOR"), "names NO, NOR, which are not"),
    ],
)
def test_a_variable_that_is_not_set_is_named(env: tuple[str, ...], words: str, task: Task) -> None:
    with pytest.raises(MisconfiguredError, match=words):
        agent("true", *env).run(task)


def test_a_program_that_is_missing_is_named(task: Task) -> None:
    run = CommandAgent(AgentSettings(command=("no-such-agent",)), HERE).run(task)
    assert run.fault
    assert "The program 'no-such-agent' cannot be started" in run.fault.reason
    assert (run.fault.outcome, run.fault.rest) == (Outcome.MISCONFIGURED, RestKind.NOT_STARTED)


def test_a_program_of_the_repository_that_is_missing_is_the_fault_of_its_issue(task: Task) -> None:
    with pytest.raises(MisconfiguredError, match=r"The program './agent' cannot be started"):
        CommandAgent(AgentSettings(command=("./agent",)), HERE).run(task)


def test_a_home_that_cannot_be_made_is_the_machines_fault(task: Task) -> None:
    with pytest.raises(
        UnavailableError, match="No home for the agent could be created in /proc/none"
    ):
        agent("true").run(replace(task, private=Path("/proc/none")))


def test_what_it_leaves_running_is_ended(task: Task) -> None:
    run = agent("setsid sleep 30 & echo done").run(task)
    assert (run.exit_code, run.summary, processes_in(task.directory)) == (0, "done", [])


def test_it_may_say_a_last_word_at_a_limit(task: Task) -> None:
    run = agent("trap 'echo bye; exit 0' TERM; echo hi; sleep 9 & wait", stall=0.3).run(task)
    assert (run.stopped_by, run.exit_code, run.summary) == (TimeLimit.STALL_TIMEOUT, 0, "hi\nbye")


def test_it_is_stopped_when_mulligan_is(task: Task) -> None:
    stopper = threading.Timer(0.3, SHUTDOWN.set)
    stopper.start()
    try:
        with pytest.raises(ShutdownError):
            agent("sleep 30").run(task)
    finally:
        stopper.join()
        SHUTDOWN.clear()
    assert processes_in(task.directory) == []


def test_nothing_it_started_is_alive_when_it_was_stopped(task: Task) -> None:
    daemon = "setsid -f sh -c 'setsid sleep 30 & sleep 30'"
    run = agent(f"sleep 30 & {daemon}; sleep 30", stall=0.4).run(task)
    assert run.stopped_by is TimeLimit.STALL_TIMEOUT
    assert processes_in(task.directory) == []


# Its report


def test_a_report_counts_however_the_agent_ended(task: Task) -> None:
    line = """echo '{"status": "blocked", "reason": "why"}' > $MULLIGAN_REPORT; kill -9 $$"""
    run = agent(line).run(task)
    assert (run.exit_code, run.report) == (-9, AgentReport(ReportedStatus.BLOCKED, "why"))


def test_no_report_is_no_reason_to_warn(task: Task) -> None:
    with capture_logs() as logs:
        assert agent("true").run(task).report is None
    assert logs == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("echo nonsense > $MULLIGAN_REPORT", "it: Invalid JSON"),
        (": > $MULLIGAN_REPORT", "it: Invalid JSON"),
        ("mkdir $MULLIGAN_REPORT", "it is not a file"),
        ("mkfifo $MULLIGAN_REPORT", "it is not a file"),
        ("ln -s /dev/zero $MULLIGAN_REPORT", "Too many levels of symbolic links"),
        ('echo "$GOOD" > good; ln -s $PWD/good $MULLIGAN_REPORT', "Too many levels of"),
        ("ln -s nowhere $MULLIGAN_REPORT", "Too many levels of symbolic links"),
        ("head -c 70000 /dev/zero | tr '\\0' ' ' > $MULLIGAN_REPORT", "larger than 65536 bytes"),
        ("truncate -s 1G $MULLIGAN_REPORT", "larger than 65536 bytes"),
        ("d=${MULLIGAN_REPORT%/*}; rm -r $d; touch $d", "Not a directory"),
    ],
)
def test_a_report_that_is_a_trap_is_ignored_and_told(line: str, why: str, task: Task) -> None:
    good = """GOOD='{"status": "blocked", "reason": "why"}'; """
    with capture_logs() as logs:
        run = agent(good + line).run(task)
    assert (run.exit_code, run.report) == (0, None)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("report_ignored", "warning")
    ]
    assert why in logs[0]["reason"]
    assert (logs[0]["issue"], logs[0]["attempt"]) == ("o/r#1", 1)


def test_reading_reports_leaves_nothing_open(task: Task) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(5):
        agent("echo '{}' > $MULLIGAN_REPORT").run(task)
        agent("mkfifo $MULLIGAN_REPORT").run(task)
    # One that stayed open at each run would be five; other parts of this process open one or two.
    assert len([*Path("/proc/self/fd").iterdir()]) - before < 5


def test_a_report_of_the_largest_size_is_read(task: Task) -> None:
    text = '{"status": "blocked", "reason": "why"}'
    line = f"printf '%-65536s' '{text}' > $MULLIGAN_REPORT"
    assert agent(line).run(task).report == AgentReport(ReportedStatus.BLOCKED, "why")


def test_a_report_of_an_earlier_run_is_not_read_again(task: Task) -> None:
    good = """echo '{"status": "blocked", "reason": "why"}' > $MULLIGAN_REPORT"""
    forgetful = agent(f"[ -e seen ] || {good}; touch seen")
    assert forgetful.run(task).report is not None
    assert forgetful.run(task).report is None
