"""What the Action is given becomes a configuration; nothing that an event brings along does."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.operator import Operator
from mulligan.domain.errors import ConfigError, UsageError
from mulligan.interfaces.action.inputs import (
    bootstrap_operator,
    inputs_of,
    operator_of,
    runner_of,
)

RUN = {
    "GITHUB_REPOSITORY": "acme/tools",
    "RUNNER_TEMP": "/runner/temp",
    "GITHUB_EVENT_NAME": "issue_comment",
    "GITHUB_RUN_ID": "9001",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_API_URL": "https://ghe.acme.example/api/v3",
    "GITHUB_OUTPUT": "/runner/temp/output",
    "INPUT_GITHUB_TOKEN": "token-of-the-job",
}

pytestmark = pytest.mark.pure


def read(variables: Mapping[str, str], text: bytes | None = None) -> Operator:
    runner = runner_of(variables, "ab12")
    return operator_of(inputs_of(variables, runner), runner, variables, text)


def test_the_runner_says_where_it_is() -> None:
    runner = runner_of(RUN, "ab12")
    assert (runner.repository, runner.event) == ("acme/tools", "issue_comment")
    assert runner.worker == "run-9001.2-ab12"
    assert (runner.output, runner.summary) == (Path("/runner/temp/output"), None)
    assert runner.server == "https://github.com"


@pytest.mark.parametrize("change", [{"GITHUB_REPOSITORY": "../.."}, {"RUNNER_TEMP": ""}])
def test_outside_a_workflow_another_command_is_named(change: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="mulligan once"):
        runner_of({**RUN, **change}, "ab12")


def test_strange_values_of_the_runner_reach_nothing() -> None:
    strange = {
        **RUN,
        "GITHUB_EVENT_NAME": "`x`\n",
        "GITHUB_RUN_ID": "1; rm",
        "GITHUB_RUN_ATTEMPT": "",
    }
    runner = runner_of(strange, "ab12")
    assert (runner.event, runner.worker) == ("an event", "run-0.0-ab12")


def test_inputs_alone_are_enough() -> None:
    inputs = {"INPUT_AGENT": "claude", "INPUT_MODEL": "best", "INPUT_AGENT_ENV": "A B"}
    operator = read({**RUN, **inputs, "INPUT_SANDBOX": "off"})
    assert (operator.agent.kind, operator.agent.model) == ("claude", "best")
    assert operator.agent.env == ("A", "B")
    assert operator.sandbox.mode == "off"
    assert [each.name for each in operator.repositories] == ["acme/tools"]
    assert operator.github.api_url == "https://ghe.acme.example/api/v3"
    assert operator.github.token
    assert operator.github.token.get_secret_value() == "token-of-the-job"
    assert operator.state.url == "sqlite:////runner/temp/mulligan-state/mulligan.db"
    assert operator.workspace.root == Path("/runner/temp/mulligan-state/work")


def test_a_file_of_the_base_branch_says_the_rest() -> None:
    text = b"""
    github: {token: $NOT_SET_HERE}
    repositories:
      - {name: other/one, base_branch: no}
      - {name: ACME/Tools, base_branch: develop}
    agent: {kind: claude, timeout: 5m}
    limits: {interruptions: 1}
    state: {url: sqlite:////elsewhere/mulligan.db}
    """
    operator = read({**RUN, "INPUT_MODEL": "best"}, text)
    assert (operator.agent.kind, operator.agent.model) == ("claude", "best")
    assert operator.agent.timeout == timedelta(minutes=5)
    assert operator.limits.interruptions == 1
    (repository,) = operator.repositories
    assert (repository.name, repository.base_branch) == ("acme/tools", "develop")
    assert operator.state.url.endswith("mulligan-state/mulligan.db")


def test_a_file_may_name_an_app_and_an_authority() -> None:
    text = b"""
    github:
      api_url: https://elsewhere.example
      app: {id: 7, private_key: $MULLIGAN_APP_KEY}
      ca_file: /etc/ca.pem
    agent: {kind: claude}
    """
    github = read({**RUN, "MULLIGAN_APP_KEY": "the key"}, text).github
    assert github.app
    assert github.app.private_key
    assert github.app.private_key.get_secret_value() == "the key"
    assert (github.token, github.ca_file) == (None, Path("/etc/ca.pem"))
    assert github.api_url == "https://ghe.acme.example/api/v3"


def test_an_authority_leaves_the_token_of_the_run_as_it_is() -> None:
    text = b"github: {ca_file: /etc/ca.pem, token_file: /elsewhere}\nagent: {kind: claude}\n"
    github = read(RUN, text).github
    assert github.token
    assert (github.token_file, github.ca_file) == (None, Path("/etc/ca.pem"))


@pytest.mark.parametrize(
    ("github", "said"),
    [
        ("{app: {id: 7, private_key: $NOT_SET}}", "line 1: github.app.private_key needs the"),
        ("{app: {id: 7}}", "line 1: github.app"),
        ("7", ""),
    ],
)
def test_a_mistake_in_what_the_file_adds_is_told(github: str, said: str) -> None:
    variables = {**RUN, "INPUT_AGENT": "claude", "INPUT_CONFIG": "m.yml"}
    text = f"github: {github}\n".encode()
    if not said:
        assert read(variables, text).github.token
        return
    with pytest.raises(ConfigError, match=said):
        read(variables, text)


def test_a_command_is_split_as_a_shell_does() -> None:
    operator = read({**RUN, "INPUT_COMMAND": "python3 'my agent.py' --fast"})
    assert operator.agent.command == ("python3", "my agent.py", "--fast")


def test_without_an_agent_it_is_said_what_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"the inputs of the Action.*agent"):
        read(RUN)


def test_a_mistake_in_the_file_is_told_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"ops/mulligan.yml, line 2: limit is an unknown key"):
        read({**RUN, "INPUT_CONFIG": "ops/mulligan.yml"}, b"agent: {kind: claude}\nlimit: {}\n")


def test_numbers_and_times_are_read() -> None:
    given = {"INPUT_ATTEMPTS": "1", "INPUT_LIMIT": " 20 ", "INPUT_LEASE": "90s"}
    inputs = inputs_of({**RUN, **given}, runner_of(RUN, "ab12"))
    assert (inputs.attempts, inputs.limit, inputs.lease) == (1, 20, timedelta(seconds=90))
    nothing = inputs_of(RUN, runner_of(RUN, "ab12"))
    assert (nothing.attempts, nothing.limit, nothing.lease) == (None, None, None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"INPUT_ATTEMPTS": "0"},
            "The input `attempts` is '0'; write a whole number of at least 1.",
        ),
        (
            {"INPUT_LIMIT": "many"},
            "The input `limit` is 'many'; write a whole number of at least 1.",
        ),
        ({"INPUT_LEASE": "soon"}, "The input `lease` is 'soon'; write it like 30s, 10m or 1h."),
        ({"INPUT_LEASE": "59s"}, "The input `lease` is '59s'; write 60s or more"),
        ({"INPUT_COMMAND": "a 'b"}, "The input `command` is not a valid command line"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        inputs_of({**RUN, **given}, runner_of(RUN, "ab12"))
    assert str(refused.value).startswith(said)


def test_the_base_branch_is_read_before_an_agent_is_known() -> None:
    runner = runner_of(RUN, "ab12")
    operator = bootstrap_operator(inputs_of(RUN, runner), runner, RUN)
    assert [each.name for each in operator.repositories] == ["acme/tools"]


def test_no_token_is_no_token() -> None:
    assert read({**RUN, "INPUT_AGENT": "claude", "INPUT_GITHUB_TOKEN": ""}).github.token is None


def test_the_inputs_do_not_show_the_token() -> None:
    assert "token-of-the-job" not in repr(inputs_of(RUN, runner_of(RUN, "ab12")))


@pytest.mark.parametrize(
    ("asked", "text", "mode", "network"),
    [
        ("", b"sandbox: {network: open}", "auto", "open"),
        ("auto", b"sandbox: {network: open}", "auto", "open"),
        ("", b"sandbox: {mode: auto, network: none}", "auto", "none"),
        ("required", b"sandbox: {mode: auto, network: none}", "required", "none"),
    ],
)
def test_agents_are_confined_unless_somebody_says_otherwise(
    asked: str, text: bytes, mode: str, network: str
) -> None:
    variables = {**RUN, "INPUT_AGENT": "claude", "INPUT_SANDBOX": asked}
    sandbox = read(variables, text).sandbox
    assert (sandbox.mode, sandbox.network) == (mode, network)


def test_without_a_word_a_sandbox_is_required() -> None:
    variables = {**RUN, "INPUT_AGENT": "claude"}
    assert read(variables).sandbox.mode == "required"
    assert (
        read({**variables, "INPUT_SANDBOX": "required"}, b"sandbox: off").sandbox.mode == "required"
    )
