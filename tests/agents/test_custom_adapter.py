"""A coding agent that nobody built in is described in `mulligan.yml` alone."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter
from mulligan.config.load import load_operator
from mulligan.config.operator import Operator
from mulligan.domain.attempt import AgentRun, AttemptState, Change, Meter, TimeLimit, classify
from mulligan.domain.outcome import Outcome
from mulligan.domain.spending import Allowance, spent_in
from world.replayed_agents import task_in

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
PROGRAM = """
import json, sys, time
task, model = open(sys.argv[2]).read(), sys.argv[4]
def say(**line): print(json.dumps(line), flush=True)
say(kind="hello", version="3.1", session=7)
say(kind="step", doing=f"reading {task!r}", usage=dict(prompt=900, answer=50, usd=0.02))
if "refuse" in task: say(kind="tool", name="write_file", allowed=False)
if "fail" in task: sys.exit(say(kind="end", ok=False, http=503, why="overloaded"))
if "limit" in task: sys.exit(say(kind="end", ok=False, why="too many steps"))
if "cut" in task: sys.exit(0)
time.sleep(20 if "slowly" in task else 0)
say(kind="step", doing="writing", usage=dict(prompt=1100, answer=50, usd=0.03))
say(kind="end", ok=True, summary=f"Done with {model}.")
"""

UNLIMITED = Allowance()


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    """Take the configuration that the page shows, with our program for the one it names."""
    (shown,) = [
        block
        for block in re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        if "adapters:" in block
    ]
    given = yaml.safe_load(shown)
    program = tmp_path / "tinker.py"
    program.write_text(PROGRAM)
    given["agent"]["command"] = [sys.executable, str(program)]
    given["repositories"] = [{"name": "o/r"}]
    file = tmp_path / "mulligan.yml"
    file.write_text(yaml.safe_dump(given))
    return load_operator(file, {})


def run(
    operator: Operator, prompt: str, tmp_path: Path, allowance: Allowance = UNLIMITED
) -> AgentRun:
    agent = CommandAgent(
        operator.agent, {"PATH": "/usr/bin:/bin"}, own=OperatorAgents(operator.adapters, {})
    )
    task = task_in(tmp_path)
    meter = held_to(allowance)
    return agent.run(replace(task, prompt=prompt, meter=meter))


def held_to(allowance: Allowance) -> Meter:
    return lambda usage: allowance.covers(spent_in(usage))


def outcome(run: AgentRun) -> Outcome:
    return classify(AttemptState(run=run, change=Change("5ta27", None, 0)))


def test_what_it_says_is_read(operator: Operator, tmp_path: Path) -> None:
    told = run(operator, "Do it.", tmp_path)
    facts = told.facts
    assert (told.summary, facts.kind) == ("Done with m-1.", "tinker")
    assert (facts.version, facts.session_id, facts.model) == ("3.1", "7", "m-1")
    assert (facts.input_tokens, facts.output_tokens, facts.cost_usd) == (2000, 100, 0.05)
    assert facts.last_activity == "writing"
    assert outcome(told) is Outcome.ZERO_COMMIT


def test_a_refused_tool_is_told_with_the_fix_that_the_page_shows(
    operator: Operator, tmp_path: Path
) -> None:
    told = run(operator, "refuse", tmp_path)
    assert outcome(told) is Outcome.MISCONFIGURED
    assert told.refusal == "The agent was refused write_file; start tinker with --trust."


def test_a_service_that_fails_costs_no_attempt(operator: Operator, tmp_path: Path) -> None:
    told = run(operator, "fail", tmp_path)
    assert told.fault
    assert told.fault.reason == "The model's service failed: overloaded (HTTP 503)."
    assert outcome(told) is Outcome.INFRASTRUCTURE


def test_a_limit_of_its_own_is_a_time_out(operator: Operator, tmp_path: Path) -> None:
    told = run(operator, "limit", tmp_path)
    assert told.stopped_by is TimeLimit.OWN_LIMIT
    assert outcome(told) is Outcome.AGENT_TIMED_OUT


def test_without_its_last_record_it_was_cut_off(operator: Operator, tmp_path: Path) -> None:
    told = run(operator, "cut", tmp_path)
    assert told.is_cut_off
    assert outcome(told) is Outcome.AGENT_CRASHED


@pytest.mark.parametrize("allowance", [Allowance(usd=0.01), Allowance(tokens=949)])
def test_a_budget_stops_it_at_the_first_report_that_passes_it(
    allowance: Allowance, operator: Operator, tmp_path: Path
) -> None:
    told = run(operator, "Do it slowly.", tmp_path, allowance)
    assert told.stopped_by is TimeLimit.BUDGET
    assert told.duration.total_seconds() < 19
    facts = told.facts
    assert (facts.input_tokens, facts.output_tokens, facts.cost_usd) == (900, 50, 0.02)
    assert facts.stop_reason == "budget"
    assert outcome(told) is Outcome.AGENT_TIMED_OUT


@pytest.mark.parametrize("allowance", [Allowance(usd=0.05), Allowance(tokens=2100)])
def test_a_budget_that_is_not_passed_stops_nothing(
    allowance: Allowance, operator: Operator, tmp_path: Path
) -> None:
    assert run(operator, "Do it.", tmp_path, allowance).stopped_by is None


@pytest.mark.parametrize("name", ["*", "*.py", "..", ".", "/etc", "a/b", "!x", "#x", "a b", ""])
def test_what_would_hide_more_than_an_agents_own_is_no_litter(name: str) -> None:
    with pytest.raises(ValidationError):
        Adapter(program="x", litter=(name,))


def test_litter_is_a_name_or_a_directorys(operator: Operator) -> None:
    assert operator.adapters["tinker"].litter == (".tinker/",)
    assert Adapter(program="x", litter=(".x*", "x.log", "tmp/")).litter
