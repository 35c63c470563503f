"""The Action's own steps, run by run, with nothing in common but the repository on GitHub."""

import os
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pydantic import JsonValue

from mulligan.config.policy import Baseline
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import ignore_event
from mulligan.interfaces.action.inputs import inputs_of, operator_of, runner_of
from mulligan.interfaces.bootstrap.action_state import build_shared
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.storage.git_ref import STATE_REF, RefLedger
from world.place import MAINTAINER, NAME, TOKEN, MulliganInstallation, mulligan_installation
from world.processes import wait_until
from world.repositories import commit_to, git
from world.runner import ROOT, Job, commented, labelled, write_event
from world.stores import ref_session_on
from world.webhook_receiver import webhook_receiver

FILES = {"notes.txt": "one\n"}
CHECK = {
    "name": "two",
    "run": "v=$(cat notes.txt); [ $v = two ] || { echo notes.txt:1: error: $v, not two; exit 1; }",
}
BAD = "pathlib.Path('notes.txt').write_text('half\\n'); print('::error::not from me')"
GOOD = "pathlib.Path('notes.txt').write_text('two\\n')"
SECOND = f"""
if 'half, not two' in prompt:
    {GOOD}
else:
    {BAD}
"""


@dataclass
class Hosted:
    """A repository whose workflow calls the Action; every job is on a machine of its own."""

    here: MulliganInstallation
    directory: Path
    jobs: int = 0

    def job(
        self,
        event: str = "schedule",
        payload: Mapping[str, JsonValue] | None = None,
        *,
        cold: bool = False,
        **inputs: str,
    ) -> Job:
        """Make a job; a cold one starts Mulligan itself, so that it can be killed, or not alone."""
        self.jobs += 1
        home = self.directory / f"runner-{self.jobs}"
        variables = {
            "GITHUB_REPOSITORY": NAME,
            "GITHUB_API_URL": self.here.url,
            "GITHUB_RUN_ID": f"{9000 + self.jobs}",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(write_event(home, payload or {})),
            "TOKEN_OF_THE_JOB": TOKEN,
        }
        agent = f"{sys.executable} {self.here.directory / 'agent.py'}"
        given = {"agent": "command", "command": agent, "sandbox": "off", **inputs}
        named = {name.replace("_", "-"): text for name, text in given.items()}
        return Job(home, variables, named, cold=cold)

    @contextmanager
    def job_at_work(self) -> Generator[tuple[IssueRef, Job]]:
        """Give an issue, and a job whose agent works on it until the block ends."""
        at_work, may_end = self.directory / "at work", self.directory / "may end"
        waits = f"while not pathlib.Path({str(may_end)!r}).exists(): time.sleep(0.05)"
        self.here.agent(f"import time\npathlib.Path({str(at_work)!r}).touch()\n{waits}\n{BAD}")
        ref, job = self.here.issue(), self.job(attempts="1", cold=True)
        thread = threading.Thread(target=job.run)
        thread.start()
        wait_until(at_work.exists)
        yield ref, job
        may_end.touch()
        thread.join()

    def stands(self, ref: IssueRef) -> tuple[IssueStatus, tuple[WorkerResultMeta, ...]]:
        """Say where an issue stands, by the ref alone."""
        with ref_session_on(self.here.bare, self.directory, SystemClock()) as book:
            ledger = RefLedger(book)
            return ledger.status(ref), ledger.history(ref)

    def end_leases(self) -> None:
        """Do as time does that nobody waits for here."""
        with ref_session_on(self.here.bare, self.directory, SystemClock()) as book:
            book.release_all()

    def refs(self) -> list[str]:
        return git(self.here.bare, "for-each-ref", "--format=%(refname)", "refs/mulligan").split()


@pytest.fixture
def hosted(tmp_path: Path) -> Generator[Hosted]:
    home = tmp_path / "home"
    home.mkdir()
    with mulligan_installation(home, FILES) as here:
        policy = {"checks": [CHECK], "max_issue_attempts": 3}
        commit_to(here.bare, {".github/mulligan.yml": yaml.safe_dump(policy)})
        yield Hosted(here, tmp_path)


@pytest.mark.deep
def test_three_runs_make_three_attempts_and_then_a_person_is_asked(hosted: Hosted) -> None:
    here = hosted.here
    here.agent(BAD)
    ref = here.issue(title="::error::from the title")
    asking = labelled(NAME, ref.number, "mulligan")
    hostile = commented(NAME, ref.number, "::warning::me")
    jobs = [
        hosted.job("issues", asking, attempts="1").run(),
        hosted.job("issue_comment", hostile, attempts="1").run(),
        hosted.job(attempts="1").run(),
    ]
    assert [job.code for job in jobs] == [0, 0, 0], [job.said for job in jobs]
    assert [job.outputs["stage"] for job in jobs] == ["ready", "ready", "hitl"]
    assert [job.outputs["attempts"] for job in jobs] == ["1", "2", "3"]
    assert [job.outputs["outcome"] for job in jobs] == ["CHECKS_FAILED"] * 3
    assert here.world.labels_of(ref) == ["mulligan:hitl"]
    asked, status_comment = sorted(here.comments(ref))
    assert "<!-- mulligan:status" in status_comment
    assert "All 3 attempts failed" in asked
    assert [meta.attempt for meta in hosted.stands(ref)[1]] == [1, 2, 3]
    assert hosted.refs() == [STATE_REF]
    # All that is told of the issue stands where no command is obeyed; findings are annotations.
    opening, told = jobs[-1].said.split("\n", 1)
    token = opening.removeprefix("::stop-commands::")
    assert "::error::from the title" in told.partition(f"::{token}::")[0]
    what = "file=notes.txt,line=1::notes.txt:1: error: half, not two"
    first, second = jobs[-1].annotations
    assert first == f"::error title={NAME}#1%2C attempt 3%3A two,{what}"
    assert second.startswith(f"::warning title={NAME}#1 needs human review::All 3")
    assert "| 3 |" in jobs[-1].summary


def test_a_check_runs_on_the_base_only_after_a_failure_unless_the_policy_asks(
    hosted: Hosted,
) -> None:
    here = hosted.here
    variables = {
        "GITHUB_REPOSITORY": NAME,
        "GITHUB_API_URL": here.url,
        "RUNNER_TEMP": str(hosted.directory),
        "INPUT_GITHUB_TOKEN": TOKEN,
        "INPUT_AGENT": "command",
        "INPUT_COMMAND": "true",
        "INPUT_SANDBOX": "off",
        "PATH": os.environ["PATH"],
    }
    runner = runner_of(variables, "ab12")
    operator = operator_of(inputs_of(variables, runner), runner, variables, None)
    with build_shared(operator, variables, ignore_event, runner.worker, None) as built:
        context = built.context
        for text, expected in (("", Baseline.ON_FAILURE), ("baseline: on\n", Baseline.ON)):
            commit_to(here.bare, {".github/mulligan.yml": text})
            context.worktrees.fetch_base(NAME)
            assert context.policies.in_force(NAME).baseline is expected


@pytest.mark.deep
def test_an_issue_at_rest_is_left_alone_by_the_next_run(hosted: Hosted) -> None:
    hosted.here.agent(GOOD)
    ref = hosted.here.issue()
    hosted.job().run()
    before, state = hosted.stands(ref), git(hosted.here.bare, "rev-parse", STATE_REF)
    for number in (ref.number, 99):
        git(hosted.here.bare, "update-ref", f"refs/mulligan/verified/{number}", "main")
    job = hosted.job().run()
    assert (job.code, job.outputs["issue"], job.outputs["results"]) == (0, "", "[]")
    assert "No issue is due." in job.summary
    assert hosted.stands(ref) == before
    assert git(hosted.here.bare, "rev-parse", STATE_REF) == state
    assert hosted.refs() == [STATE_REF]


@pytest.mark.deep
def test_two_runs_at_once_make_one_attempt(hosted: Hosted) -> None:
    hosted.here.agent(f"import time; time.sleep(1)\n{BAD}")
    ref = hosted.here.issue()
    jobs = [hosted.job(attempts="1", cold=True) for _ in range(2)]
    threads = [threading.Thread(target=job.run) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [job.code for job in jobs] == [0, 0], [job.said for job in jobs]
    assert sorted(job.outputs["attempts"] for job in jobs) == ["", "1"]
    _, history = hosted.stands(ref)
    assert [meta.outcome for meta in history] == [Outcome.CHECKS_FAILED]


@pytest.mark.deep
def test_a_run_leaves_a_command_to_the_run_that_works_on_the_issue(hosted: Hosted) -> None:
    with hosted.job_at_work() as (ref, _):
        hosted.here.world.comment(ref, "/mulligan abort", MAINTAINER)
        assert hosted.job().run().outputs["issue"] == ""
    assert hosted.job().run().outputs["stage"] == "resolved"
    status, history = hosted.stands(ref)
    assert status.reason == f"{MAINTAINER} stopped it."
    assert [meta.number for meta in history] == [1]


def test_a_run_that_is_killed_loses_nothing_and_costs_nothing(hosted: Hosted) -> None:
    here, at_work = hosted.here, hosted.directory / "at work"
    here.agent(f"import time; pathlib.Path({str(at_work)!r}).touch(); time.sleep(60)")
    ref = here.issue()
    killed = hosted.job(lease="60s", cold=True)
    thread = threading.Thread(target=killed.run)
    thread.start()
    wait_until(at_work.exists)
    killed.kill()
    thread.join()
    assert killed.code == -9
    here.agent(SECOND)
    assert hosted.job().run().outputs["issue"] == ""
    hosted.end_leases()
    last = hosted.job().run()
    status, history = hosted.stands(ref)
    outcomes = [meta.outcome for meta in history]
    assert outcomes == [Outcome.INTERRUPTED, Outcome.CHECKS_FAILED, Outcome.SUCCEEDED]
    assert (last.outputs["stage"], last.outputs["outcome"]) == ("review", "SUCCEEDED")
    assert last.outputs["attempts"] == "2"
    assert last.outputs["pull-request"] == status.pull.url
    assert last.annotations == [f"::notice title={NAME}#1 is in review::{status.pull.url}"]
    assert git(here.bare, "cat-file", "blob", f"{ref.branch}:notes.txt") == "two"
    assert here.world.labels_of(ref) == ["mulligan:review"]
    assert len(here.world.pulls_of(NAME)) == 1
    assert hosted.refs() == [STATE_REF]


@pytest.mark.deep
def test_a_command_is_heard_once_by_runs_that_share_no_disk(hosted: Hosted) -> None:
    here = hosted.here
    policy = {"checks": [CHECK], "max_issue_attempts": 1}
    commit_to(here.bare, {".github/mulligan.yml": yaml.safe_dump(policy)})
    here.agent(BAD)
    ref = here.issue()
    here.world.comment(ref, "Good morning", MAINTAINER)
    hosted.job().run()
    here.world.comment(ref, "/mulligan retry", MAINTAINER)
    here.world.comment(ref, "/mulligan status", MAINTAINER)
    jobs = [hosted.job().run() for _ in range(2)]
    assert [job.code for job in jobs] == [0, 0], [job.said for job in jobs]
    assert [job.outputs["attempts"] for job in jobs] == ["1", ""]
    status, history = hosted.stands(ref)
    assert (status.epoch, len(history), status.pending) == (2, 2, ())
    assert sum("mulligan:reply" in said for said in here.comments(ref)) == 1


@pytest.mark.deep
def test_whoever_is_to_be_notified_hears_of_an_escalation(hosted: Hosted) -> None:
    here = hosted.here
    policy = {"checks": [CHECK], "max_issue_attempts": 1}
    with webhook_receiver() as (url, heard):
        written = yaml.safe_dump({"notify": {"url": url}})
        files = {".github/mulligan.yml": yaml.safe_dump(policy), "ops/mulligan.yml": written}
        commit_to(here.bare, files)
        here.agent(BAD)
        ref = here.issue()
        job = hosted.job(config="ops/mulligan.yml").run()
    assert job.outputs["stage"] == "hitl", job.said
    assert [(each["event"], each["issue"]) for each in heard] == [("escalated", str(ref))]


@pytest.mark.deep
def test_what_one_run_verified_another_publishes(hosted: Hosted) -> None:
    """The operator's own file says which agent works; only the base branch's counts."""
    here = hosted.here
    command = [sys.executable, str(here.directory / "agent.py")]
    commit_to(here.bare, {"ops/mulligan.yml": yaml.safe_dump({"agent": {"command": command}})})
    here.agent(GOOD)
    ref = here.issue()
    hook = here.bare / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ncase $1 in refs/heads/*) kill -9 $PPID ;; esac\n")
    hook.chmod(0o755)
    first = hosted.job(agent="", command="", config="ops/mulligan.yml").run()
    assert first.code == 1
    assert hosted.refs() == [STATE_REF, "refs/mulligan/verified/1"]
    hook.unlink()
    here.agent("sys.exit('no agent is needed any more')")
    second = hosted.job(agent="", command="", config="ops/mulligan.yml").run()
    assert (second.code, second.outputs["stage"]) == (0, "review"), second.said
    assert [meta.outcome for meta in hosted.stands(ref)[1]] == [Outcome.SUCCEEDED]
    assert git(here.bare, "cat-file", "blob", f"{ref.branch}:notes.txt") == "two"
    assert hosted.refs() == [STATE_REF]


def test_it_is_installed_from_its_own_files_with_hashes(hosted: Hosted) -> None:
    job = hosted.job(sandbox="", config="nowhere.yml").run()
    assert job.code == 2
    message = f"There is no file nowhere.yml on the base branch of {NAME}."
    assert job.annotations == [f"::error title=Mulligan::{message}"]
    assert "nowhere.yml" in job.summary
    pip = next(call for call in job.calls if call.startswith("pip"))
    assert pip.endswith(f"--require-hashes -r {ROOT}/requirements/runtime.txt")
    assert any("kernel.apparmor_restrict_unprivileged_userns=0" in call for call in job.calls)
