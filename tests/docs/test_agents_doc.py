"""The agent that docs/agents.md shows does what the page says."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.output import Usage, read_learned, read_output, read_report, read_title
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter, Fact
from mulligan.config.operator import AgentSettings, Operator
from mulligan.config.policy import Policy
from mulligan.config.settings import Budget
from mulligan.domain.attempt import AgentReport, ReportedStatus, Task
from mulligan.domain.issue import Issue, IssueRef
from mulligan.implement.change_title import PLAIN, fitting_title

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
TABLE = PAGE.partition("## What")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    found = re.search(rf"^### {title}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def agent(tmp_path: Path) -> CommandAgent:
    (program,) = blocks("python")
    (tmp_path / "agent.py").write_text(program)
    settings = AgentSettings(command=(sys.executable, str(tmp_path / "agent.py")))
    return CommandAgent(settings, {"PATH": "/usr/bin:/bin"})


@pytest.fixture
def task(tmp_path: Path) -> Task:
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    return Task(
        issue="o/r#1",
        attempt=1,
        fix_round=0,
        prompt="Do this.\n\nNote: cafés close at eight\n",
        directory=worktree,
        private=tmp_path / "private",
        log=tmp_path / "agent.log",
        manifest_hash="",
    )


def test_the_agent_does_the_work(agent: CommandAgent, task: Task) -> None:
    run = agent.run(task)
    assert (run.exit_code, run.report) == (0, None)
    assert (task.directory / "NOTES.md").read_text() == "- cafés close at eight\n"
    assert (run.summary, run.facts.turns) == ("Noted: cafés close at eight", 1)
    assert run.facts.last_activity == f"{len(task.prompt)} characters about o/r#1"


def test_the_agent_reads_the_previous_diff(agent: CommandAgent, task: Task, tmp_path: Path) -> None:
    diff = tmp_path / "previous.diff"
    diff.write_text("--- a/x\n+++ b/x\n+1\n")
    agent.run(replace(task, previous_diff=diff))
    assert "The last attempt changed 1 files." in task.log.read_text()


def test_the_agent_says_that_it_is_blocked(agent: CommandAgent, task: Task) -> None:
    run = agent.run(replace(task, prompt="Do something."))
    reason = "The issue has no line that starts with `Note:`; what is to be noted?"
    assert run.report == AgentReport(ReportedStatus.BLOCKED, reason)
    assert [*task.directory.iterdir()] == []


def test_the_agent_says_that_there_is_nothing_to_do(agent: CommandAgent, task: Task) -> None:
    agent.run(task)
    again = agent.run(task)
    expected = AgentReport(ReportedStatus.NOTHING_TO_DO, "It is noted already.", "NOTES.md")
    assert again.report == expected


def test_the_environment_is_the_one_that_the_page_lists(task: Task) -> None:
    listed = set(
        re.findall(r"^\| `([A-Z_]+)` \|", section("What the agent is given"), re.MULTILINE)
    )
    settings = AgentSettings(command=("/bin/cat", "/proc/self/environ"))
    CommandAgent(settings, {"X": "x"}).run(
        replace(task, previous_diff=task.log, attachments=task.log.parent)
    )
    entries = task.log.read_text().split("\0")[:-1]
    assert {entry.partition("=")[0] for entry in entries} == listed


def test_the_shown_json_is_read_in_full() -> None:
    report, noted, titled, usage = blocks("json")
    read = read_report(report.encode())
    assert read_learned(noted.encode())
    assert fitting_title(read_title(titled.encode()), Issue(IssueRef("o/r", 1), "", ""), PLAIN)
    assert read
    assert read.status is ReportedStatus.BLOCKED
    shown = json.loads(usage)
    assert read_output(usage.encode()).usage.model_dump(exclude_none=True) == shown


def test_every_key_of_the_last_line_is_listed() -> None:
    table = section("What the agent gives back").split("| key |")[1]
    listed = {
        key
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for key in re.findall(r"`(\w+)`", row)
    }
    assert listed == set(Usage.model_fields)


def test_the_shown_configuration_is_one() -> None:
    first, budget, several, policy, described, own = map(yaml.safe_load, blocks("yaml"))
    operator = Operator.model_validate({"repositories": [{"name": "o/r"}], **several})
    assert operator.agent.fallback == tuple(operator.agents)
    chosen = Policy.model_validate(policy)
    assert {chosen.agent, *chosen.labels.agents.values()} <= operator.agents.keys()
    assert Budget.model_validate(budget["budget"]).issue.usd == 6
    assert AgentSettings.model_validate(first["agent"]).kind == "claude"
    assert Adapter.model_validate(described["adapters"]["tinker"]).needs_result
    assert AgentSettings.model_validate(own["agent"]).env == ("MODEL_API_KEY",)


def test_every_agent_is_listed_with_the_variables_of_its_key() -> None:
    rows = {
        row[0]: set(re.findall(r"`([A-Z_]+)`", row[1]))
        for row in re.findall(
            r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE.partition("## What")[0], re.MULTILINE
        )
    }
    assert rows.keys() == {"kind", *BUILT_IN, "command"}
    for kind, adapter in BUILT_IN.items():
        assert rows[kind] <= {*adapter.environment}


def test_every_fact_is_listed() -> None:
    listed = PAGE.partition("Facts are ")[2].partition("[configuration.md]")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == {*Fact}
