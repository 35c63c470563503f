"""Both configuration files: what is read, and what is said of everything that cannot be."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.document import MistakesError, split_mistakes
from mulligan.config.load import (
    load_operator,
    load_policy,
    load_valid_part,
    read_operator,
    variables,
)
from mulligan.config.operator import Engine, SandboxMode
from mulligan.config.policy import Baseline
from mulligan.domain.errors import ConfigError
from mulligan.domain.issue import Issue, IssueRef

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
    operator = load_operator(written(tmp_path, text), {"GITHUB_TOKEN": "ghp_abc"})
    assert operator.github.token is not None
    assert operator.github.token.get_secret_value() == "ghp_abc"
    assert "ghp_abc" not in repr(operator)
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


def test_a_missing_file_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config FILE"):
        load_operator(tmp_path / "none.yml", {})


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file_says_how_to_write_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="the file is empty; run `mulligan init` to write one"):
        load_operator(written(tmp_path, text), {})


def test_a_directory_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"is a directory, not a configuration file. Name a file with --config FILE\.",
    ):
        load_operator(tmp_path, {})


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_what_cannot_be_the_name_of_a_file_is_refused(name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"cannot read .* \(.*\)\. Correct its permissions, or name"
    ):
        load_operator(Path(name), {})


def test_text_that_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mulligan.yml"
    path.write_bytes(b"agent: {}\nname: caf\xe9\n")
    with pytest.raises(ConfigError, match=r"yml, line 2: this is not UTF-8 text; save the file"):
        load_operator(path, {})
    path.write_bytes(b"\xef\xbb\xbf" + SMALLEST.encode())
    assert load_operator(path, {}).repositories


def test_no_message_shows_what_came_from_the_environment(tmp_path: Path) -> None:
    text = SMALLEST + "poll: {interval: $SECRET}\nlimits: {concurrency: $SECRET}\n"
    with pytest.raises(ConfigError) as caught:
        load_operator(written(tmp_path, text), {"SECRET": "hunter2"})
    assert "'$SECRET'" in str(caught.value)
    assert "hunter2" not in f"{caught.value}{caught.value.__cause__}"


@pytest.mark.pure
def test_many_mistakes_are_listed_by_line_and_not_without_end() -> None:
    text = SMALLEST + "".join(f"key{number}: 1\n" for number in range(30))
    with pytest.raises(MistakesError) as caught:
        read_operator(text.encode(), {}, "mulligan.yml", {})
    first, *lines = str(caught.value).splitlines()
    assert first.endswith("has 30 mistakes:")
    assert lines[0].startswith("  line 3: key0 ")
    assert lines[20:] == ["  and 10 more."]
    assert len(split_mistakes(caught.value)) == 30
    other = ConfigError("The token is missing.")
    assert split_mistakes(other) == (other,)


def test_the_variables_of_a_file_are_named_with_their_places(tmp_path: Path) -> None:
    text = SMALLEST + "github: {token: '${TOKEN}'}\nsandbox: {read: [$CACHE, /opt]}\n"
    expected = {("github", "token"): "TOKEN", ("sandbox", "read", 0): "CACHE"}
    assert variables(written(tmp_path, text)) == expected


@pytest.mark.pure
def test_a_repository_without_a_policy_has_the_defaults() -> None:
    policy = load_policy(None, {}, "here")
    assert policy.max_issue_attempts == 3
    assert policy.labels.ready == "mulligan"
    assert policy.checks == ()


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "enabled", "attempts"),
    [
        (b"{}", False, 2),
        (b"watch_ci: true", True, 2),
        (b"watch_ci: false", False, 2),
        (b"watch_ci: {max_attempts: 1}", True, 1),
        (b"watch_ci: {enabled: false}", False, 2),
    ],
)
def test_checks_on_github_are_watched_where_that_is_said(
    text: bytes,
    enabled: bool,  # noqa: FBT001
    attempts: int,
) -> None:
    found = load_policy(text, {}, "the policy").watch_ci
    assert (found.enabled, found.max_attempts) == (enabled, attempts)


@pytest.mark.pure
def test_what_watch_ci_may_be_is_told() -> None:
    with pytest.raises(ConfigError, match="write a mapping of keys to values or true or false"):
        load_policy(b"watch_ci: 3", {}, "the policy")


@pytest.mark.pure
def test_the_operator_replaces_whole_keys_of_the_policy() -> None:
    text = b"max_issue_attempts: 5\nchecks: [{name: a, run: a}, {name: b, run: b}]\n"
    policy = load_policy(text, {"checks": [{"name": "c", "run": "c"}]}, "here")
    assert policy.max_issue_attempts == 5
    assert [check.name for check in policy.checks] == ["c"]


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "ready", "attempts"),
    [
        (b"labels: {ready: bot}\nmax_issue_attempts: 2\n", "bot", 2),
        (b"labels: {ready: bot}\nmax_issue_attempts: many\nnonsense: 1\n", "bot", 3),
        (b"labels: {raedy: bot}\nmax_issue_attempts: 2\n", "mulligan", 2),
        (b"labels: [", "mulligan", 3),
        (b"\xff", "mulligan", 3),
        (None, "mulligan", 3),
    ],
)
def test_what_holds_of_a_policy_is_kept(text: bytes | None, ready: str, attempts: int) -> None:
    policy = load_valid_part(text, {"escalation": {"mention": ["ada"]}})
    assert (policy.labels.ready, policy.max_issue_attempts) == (ready, attempts)
    assert policy.escalation.mention == ("ada",)


def test_the_job_engine_of_a_fleet_needs_a_database_that_workers_share(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a fleet needs state\.url: postgresql://"):
        load_operator(written(tmp_path, f"{SMALLEST}engine: fleet\n"), {})
    shared = f"{SMALLEST}state: {{url: postgresql://db/mulligan}}\nengine: fleet\n"
    assert load_operator(written(tmp_path, shared), {}).engine is Engine.FLEET


@pytest.mark.parametrize(
    ("word", "baseline"),
    [
        ("on", Baseline.ON),
        ("true", Baseline.ON),
        ("'on'", Baseline.ON),
        ("on-failure", Baseline.ON_FAILURE),
        ("off", Baseline.OFF),
        ("false", Baseline.OFF),
    ],
)
def test_the_baseline_may_be_a_word_or_yes_or_no(word: str, baseline: Baseline) -> None:
    assert load_policy(f"baseline: {word}".encode(), {}, "policy").baseline is baseline


def test_another_word_for_the_baseline_is_refused() -> None:
    with pytest.raises(ConfigError, match="baseline is 'beside'; write on, on-failure or off"):
        load_policy(b"baseline: beside", {}, "policy")


@pytest.mark.parametrize("wanted", ["reproduce: required", "labels: {reproduce: [bug]}"])
@pytest.mark.parametrize(
    "rest", ["checks: [{name: lint, run: lint, kind: lint}]", "proof: off", "checks: []"]
)
def test_a_proof_needs_a_check_of_tests(wanted: str, rest: str) -> None:
    text = f"{wanted}\n{rest}\n"
    if rest == "checks: []":
        assert load_policy(text.encode(), {}, "here").checks == ()
        return
    with pytest.raises(ConfigError, match="needs a required check with `kind: test`"):
        load_policy(text.encode(), {}, "here")


def test_a_label_that_wants_a_proof_is_found_in_any_case() -> None:
    checks = "checks: [{name: tests, run: tests, kind: test}]"
    policy = load_policy(f"labels: {{reproduce: [Bug]}}\n{checks}\n".encode(), {}, "here")
    issue = Issue(IssueRef("a/b", 1), "It breaks", "")
    assert not policy.needs_proof(issue)
    assert policy.needs_proof(replace(issue, labels=frozenset({"bug"})))
    required = load_policy(f"reproduce: required\n{checks}\n".encode(), {}, "here")
    assert required.needs_proof(issue)
