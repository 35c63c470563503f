"""Both configuration files: what is read, and the sentence for everything that cannot be."""

from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.load import load_operator, load_policy
from mulligan.config.operator import SandboxMode
from mulligan.errors import ConfigError

SMALLEST = "repositories: [{name: octocat/hello}]\nagent: {command: [agent]}\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mulligan.yml"
    path.write_text(text)
    return path


def test_the_smallest_file_has_every_default(tmp_path: Path) -> None:
    operator = load_operator(written(tmp_path, SMALLEST), {})
    assert operator.github.api_url == "https://api.github.com"
    assert operator.limits.concurrency == 2
    assert operator.limits.per_repository == 1
    assert operator.agent.timeout == timedelta(hours=1)
    assert operator.agent.stall_timeout == timedelta(minutes=15)
    assert operator.poll.interval == timedelta(seconds=30)
    assert operator.state.url.startswith("sqlite:///")


def test_the_example_of_the_design_is_read(tmp_path: Path) -> None:
    text = """
github: {api_url: http://localhost:4901, token: $GITHUB_TOKEN}
repositories:
  - name: octocat/hello-world
    clone_url: /srv/git/hello-world.git
    policy:
      max_issue_attempts: 3
      checks: [{name: tests, run: python -m pytest -q, kind: test, timeout: 10m}]
agent: {kind: command, command: [python3, /srv/agent.py], timeout: 1h, env: [NAME_TO_PASS]}
poll: {interval: 30s}
limits: {concurrency: 2}
sandbox: auto
state: {url: "sqlite:////var/lib/mulligan/mulligan.db"}
workspace: {root: /var/lib/mulligan/work}
"""
    operator = load_operator(written(tmp_path, text), {"GITHUB_TOKEN": "secret"})
    assert operator.github.token is not None
    assert operator.github.token.get_secret_value() == "secret"
    assert "secret" not in repr(operator)
    assert operator.sandbox.mode is SandboxMode.AUTO


@pytest.mark.parametrize(("written_as", "mode"), [("off", "off"), ("required", "required")])
def test_the_sandbox_may_be_written_as_its_mode(tmp_path: Path, written_as: str, mode: str) -> None:
    operator = load_operator(written(tmp_path, f"{SMALLEST}sandbox: {written_as}\n"), {})
    assert operator.sandbox.mode == mode


def test_a_value_in_braces_comes_from_the_environment(tmp_path: Path) -> None:
    text = SMALLEST + "state: {url: '${LEDGER}'}\n"
    assert load_operator(written(tmp_path, text), {"LEDGER": "sqlite:///x"}).state.url == (
        "sqlite:///x"
    )


def test_a_shell_line_keeps_its_dollars(tmp_path: Path) -> None:
    text = """
repositories: [{name: o/r, policy: {checks: [{name: t, run: 'echo $HOME $X'}]}}]
agent: {command: [agent]}
"""
    operator = load_operator(written(tmp_path, text), {})
    assert operator.repositories[0].policy["checks"] == [{"name": "t", "run": "echo $HOME $X"}]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "line 1: this is not YAML"),
        ("\x00", "this is not YAML"),
        ("- a\n- b\n", "keys and values are expected at the top"),
        ("", "repositories is missing"),
        (SMALLEST + "agnet: {}\n", "agnet is not a key that Mulligan knows"),
        ("repositories: [{name: hello}]\nagent: {command: [a]}", "write OWNER/NAME"),
        ("repositories: [{name: o/..}]\nagent: {command: [a]}", "write OWNER/NAME"),
        ("repositories: []\nagent: {command: [a]}", "repositories: "),
        (
            "repositories: [{name: o/r}, {name: O/R}]\nagent: {command: [a]}",
            "name each repository once",
        ),
        ("repositories: [{name: o/r}]\nagent: {command: []}", "agent.command: "),
        (SMALLEST + "poll: {interval: 30}\n", "write it like 30s, 10m or 1h"),
        (SMALLEST + "poll: {interval: soon}\n", "write it like 30s, 10m or 1h"),
        (SMALLEST + "github: {token: ghp_abc}\n", "github.token is written out"),
        (SMALLEST + "github: {token: $NOT_SET}\n", "NOT_SET, which is not set"),
        (
            "repositories: [{name: o/r, policy: {max_issue_attempts: 11}}]\nagent: {command: [a]}",
            "max_issue_attempts",
        ),
        (
            "repositories: [{name: o/r, policy: {nonsense: 1}}]\nagent: {command: [a]}",
            "nonsense",
        ),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_place(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_operator(path, {})
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config FILE"):
        load_operator(tmp_path / "none.yml", {})


def test_a_directory_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_operator(tmp_path, {})


def test_a_repository_without_a_policy_has_the_defaults() -> None:
    policy = load_policy(None, {}, "here")
    assert policy.max_issue_attempts == 3
    assert policy.labels.ready == "mulligan"
    assert policy.checks == ()


def test_the_operator_replaces_whole_keys_of_the_policy() -> None:
    text = b"max_issue_attempts: 5\nchecks: [{name: a, run: a}, {name: b, run: b}]\n"
    policy = load_policy(text, {"checks": [{"name": "c", "run": "c"}]}, "here")
    assert policy.max_issue_attempts == 5
    assert [check.name for check in policy.checks] == ["c"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"checks: [{name: a, run: a}, {name: a, run: b}]", "two checks are called 'a'"),
        (b"checks: [{name: a}]", "checks.0.run is missing"),
        (b"max_issue_attempts: 0", "max_issue_attempts"),
        (b"\xff\xfe", "not UTF-8"),
        (b"max: 1\nmin: 2", "(1 more)"),
    ],
)
def test_a_mistake_in_a_policy_is_one_sentence(text: bytes, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_policy(text, {}, "o/r: .github/mulligan.yml")
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("o/r: .github/mulligan.yml")
