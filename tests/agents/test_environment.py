"""What an agent gets of Mulligan's environment, and what Mulligan adds."""

from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.environment import (
    PLACEHOLDER,
    direct_model_access,
    missing_variables,
    model_access,
    names_read,
    passed_variables,
    secrets_given,
    task_variables,
    variables_inside,
    variables_of_run,
)
from mulligan.config.adapters import Adapter
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import Task
from mulligan.domain.errors import MisconfiguredError

pytestmark = pytest.mark.pure

PORT = 3128
INSIDE = f"http://127.0.0.1:{PORT}"
CLAUDE, MINI = BUILT_IN["claude"], BUILT_IN["mini"]
ANTHROPIC = "https://api.anthropic.com"


def settings(*env: str) -> AgentSettings:
    return AgentSettings(kind="mini", env=env)


def test_of_variables_with_one_name_the_last_one_counts() -> None:
    adapter = Adapter(program="x", variables={"A": "adapter", "B": "adapter", "C": "adapter"})
    machine = {"PATH": "/bin", "A": "machine", "HOME": "/root"}
    given = variables_of_run(machine, Path("/home"), adapter, {"B": "p", "C": "p"}, {"C": "task"})
    assert given == {"PATH": "/bin", "HOME": "/home", "A": "adapter", "B": "p", "C": "task"}
    assert variables_of_run({}, Path("/home"), Adapter(program="x")) == {"HOME": "/home"}


def test_only_the_variables_of_the_adapter_and_the_operator_are_passed() -> None:
    outer = {"OPENAI_API_KEY": "sk", "NAMED": "1", "GITHUB_TOKEN": "t", "HOME": "/root"}
    assert passed_variables(settings("NAMED"), MINI, outer) == {
        "OPENAI_API_KEY": "sk",
        "NAMED": "1",
    }


def test_a_variable_that_is_not_set_is_named() -> None:
    assert missing_variables(settings("A", "B"), {"A": ""}) == ("B",)
    with pytest.raises(MisconfiguredError, match=r"agent\.env names B, which is not set"):
        passed_variables(settings("A", "B"), MINI, {"A": ""})
    with pytest.raises(MisconfiguredError, match=r"agent\.env names A, B, which are not set"):
        passed_variables(settings("A", "B"), MINI, {})


def test_an_account_depends_on_all_that_is_passed_or_added_outside() -> None:
    assert names_read(settings("NAMED"), MINI) >= {"NAMED", "OPENAI_API_KEY", "OPENAI_API_BASE"}


def test_the_task_is_described() -> None:
    task = Task("octo/calc#1", 2, 0, "Fix it.", Path("/tree"), Path("/own"), Path("/log"), "")
    told = task_variables(task, Path("/own/report.json"))
    assert told["MULLIGAN_ISSUE"] == "octo/calc#1"
    assert (told["MULLIGAN_ATTEMPT"], told["MULLIGAN_FIX_ROUND"]) == ("2", "0")
    assert told["MULLIGAN_REPORT"] == "/own/report.json"
    assert not {"MULLIGAN_PREVIOUS_DIFF", "MULLIGAN_ATTACHMENTS"} & told.keys()
    files = replace(task, previous_diff=Path("/diff"), attachments=Path("/files"))
    assert task_variables(files, Path("/r")).items() >= {
        ("MULLIGAN_PREVIOUS_DIFF", "/diff"),
        ("MULLIGAN_ATTACHMENTS", "/files"),
    }


def test_without_a_sandbox_another_command_gets_the_key() -> None:
    outer = {"ANTHROPIC_API_KEY": "sk", "ANTHROPIC_BASE_URL": "http://m", "ANTHROPIC_MODEL": "m"}
    access = direct_model_access(CLAUDE, outer)
    assert access.routes == ()
    assert access.variables == {"ANTHROPIC_API_KEY": "sk", "ANTHROPIC_BASE_URL": "http://m"}


def test_inside_are_placeholders_and_addresses_of_the_proxy() -> None:
    outer = {"OPENAI_API_KEY": "sk", "OPENAI_API_BASE": "https://gw.example/openai/v1", "A": "b"}
    given = variables_inside(MINI, {**outer, "ANTHROPIC_API_KEY": "sk"}, outer, PORT)
    assert given["OPENAI_API_KEY"] == given["ANTHROPIC_API_KEY"] == PLACEHOLDER
    assert given["OPENAI_API_BASE"] == f"{INSIDE}/openai/openai/v1"
    assert (given["A"], given["https_proxy"], given["NO_PROXY"].split(",")[0]) == (
        "b",
        INSIDE,
        "127.0.0.1",
    )
    assert "ANTHROPIC_API_BASE" not in given


def test_another_command_gets_the_model_without_the_key_and_the_other_variables() -> None:
    outer = {"ANTHROPIC_API_KEY": "sk", "ANTHROPIC_MODEL": "m", "HOME": "/root"}
    access = model_access(CLAUDE, outer, PORT)
    assert [(each.origin, each.key) for each in access.routes] == [(ANTHROPIC, "sk")]
    assert access.variables["ANTHROPIC_API_KEY"] == PLACEHOLDER
    assert access.variables["ANTHROPIC_BASE_URL"] == f"{INSIDE}/anthropic"
    assert not {"ANTHROPIC_MODEL", "HOME", "ANTHROPIC_AUTH_TOKEN"} & access.variables.keys()


def test_the_secrets_of_an_agent_are_known() -> None:
    outer = {"OPENAI_API_KEY": "sk", "OPENAI_API_BASE": "https://gw.example/v1", "A_KEY": "x"}
    assert secrets_given(MINI, outer) == ("sk",)
