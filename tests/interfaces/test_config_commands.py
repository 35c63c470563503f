"""`mulligan debug config`: both files are checked, shown and described, without any GitHub."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from mulligan.config.schema import File
from mulligan.interfaces.cli.app import app
from world.deployment import judge
from world.samples import is_as_documented

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
FILE = """\
github: {token: $TOKEN}
repositories:
  - {name: acme/tools, policy: {max_issue_attempts: 4}}
agent: {command: [agent]}
poll: {interval: "${EVERY}"}
limits: {concurrency: $MANY}
sandbox: off
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MULLIGAN_CONFIG", raising=False)
    for name, value in {"TOKEN": "hunter2", "EVERY": "5s", "MANY": "3"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "mulligan.yml").write_text(FILE)
    (tmp_path / "policy.yml").write_text("checks: [{name: tests, run: make test}]\n")
    return tmp_path


def config(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["debug", "config", *arguments])
    assert done.exit_code == code, done.output
    return done


def test_a_file_that_holds_is_said_to(here: Path) -> None:
    said = config("check").stdout
    assert said == "mulligan.yml is valid; it names 1 repository.\n"
    assert is_as_documented("config check", said)
    assert json.loads(config("check", "--json").stdout) == {"valid": True, "mistakes": []}


def test_every_mistake_is_listed_and_the_code_is_two(here: Path) -> None:
    (here / "mulligan.yml").write_text(FILE + "agnet: {}\nstate: {url: 1}\n")
    done = config("check", code=2)
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "mulligan: mulligan.yml has 2 mistakes:",
        "  line 8: agnet is an unknown key; did you mean agent?",
        "  line 9: state.url is 1; write text.",
    ]
    told = json.loads(config("check", "--json", code=2).stdout)
    assert (told["valid"], len(told["mistakes"])) == (False, 2)
    assert told["mistakes"][0] == {
        "file": "mulligan.yml",
        "line": 8,
        "key": "agnet",
        "message": "agnet is an unknown key; did you mean agent?",
    }
    named = json.loads(config("check", "--config", "none.yml", "--json", code=2).stdout)
    assert "No configuration at none.yml" in named["mistakes"][0]["message"]


def test_a_policy_is_checked_without_an_operator(here: Path) -> None:
    (here / "mulligan.yml").unlink()
    assert config("check", "--policy", "policy.yml").stdout == (
        "policy.yml is valid; it names 1 check.\n"
    )
    (here / "policy.yml").write_text("max_issue_attempts: x\n")
    assert "policy.yml, line 1: max" in config("check", "--policy", "policy.yml", code=2).stderr
    assert "Name the policy file" in config("check", "--policy", str(here), code=2).stderr


def test_a_pattern_that_finds_nothing_is_a_mistake_with_its_line(here: Path) -> None:
    (here / "policy.yml").write_text(
        "checks:\n- name: tests\n  run: make\n  patterns:\n  - 'ok: (.*)'\n  - '(?<=at )x'\n"
        "scope:\n  deny:\n  - 'a\\'\n  - 'b[c'\n"
    )
    said = config("check", "--policy", "policy.yml", code=2).stderr.splitlines()
    advice = "write a pattern as in .gitignore; this one"
    assert said[0] == "mulligan: policy.yml has 3 mistakes:"
    assert said[1] == (
        "  line 6: checks.0.patterns.1 is '(?<=at )x'; write a regular expression that RE2 can read"
        " (invalid perl operator: (?<=); RE2 has no look-around, no back-references and no"
        " possessive repetition."
    )
    assert said[2] == f"  line 9: scope.deny.0 is 'a\\'; {advice} is invalid."
    assert said[3] == f"  line 10: scope.deny.1 is 'b[c'; {advice} matches no path."
    many = ", ".join(["a"] * 101)
    (here / "policy.yml").write_text(f"checks: [{{name: a, run: b, patterns: [{many}]}}]\n")
    said = config("check", "--policy", "policy.yml", code=2).stderr
    assert said.endswith("checks.0.patterns is wrong: write at most 100 patterns for a check.\n")


def test_the_operators_keys_go_over_a_policy(here: Path) -> None:
    named = ("--policy", "policy.yml", "--repository", "Acme/Tools")
    assert len(config("check", *named).stdout.splitlines()) == 2
    shown = yaml.safe_load(config("show", *named).stdout)
    assert (shown["max_issue_attempts"], shown["checks"][0]["timeout"]) == (4, "10m")
    assert yaml.safe_load(config("show", *named[:2]).stdout)["max_issue_attempts"] == 3


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (("--repository", "acme/tools"), "Name it with --policy FILE."),
        (
            ("--policy", "policy.yml", "--repository", "acme/other"),
            "acme/other is not in the configuration",
        ),
        (("--policy", "policy.yml", "--repository", "tools"), "write OWNER/NAME."),
    ],
)
def test_a_question_that_means_nothing_is_one_sentence(
    here: Path, named: tuple[str, ...], said: str
) -> None:
    assert said in config("check", *named, code=2).stderr


def test_what_is_in_force_is_shown_and_no_value_of_the_environment(here: Path) -> None:
    done = config("show")
    shown = yaml.safe_load(done.stdout)
    assert shown["github"]["token"] == "*** (from $TOKEN)"
    assert shown["poll"]["interval"] == "*** (from $EVERY)"
    assert shown["agent"]["stall_timeout"] == "15m"
    assert shown["sandbox"]["mode"] == "off"
    assert "hunter2" not in done.output
    assert json.loads(config("show", "--json").stdout) == shown


@pytest.mark.parametrize("file", File)
def test_the_published_schema_is_the_one_of_the_settings(file: File) -> None:
    page = (SCHEMAS / f"{file}.json").read_text()
    assert config("schema", file).stdout == page, "run: make docs"


def test_the_schemas_accept_what_is_right_and_nothing_else(here: Path) -> None:
    judge("check-jsonschema", "--check-metaschema", *sorted(SCHEMAS.glob("*.json")))
    files = {"operator": here / "mulligan.yml", "policy": here / "policy.yml"}
    for name, path in files.items():
        judge("check-jsonschema", "--schemafile", SCHEMAS / f"{name}.json", path)
        path.write_text(path.read_text() + "nonsense: 1\n")
        with pytest.raises(AssertionError, match="nonsense"):
            judge("check-jsonschema", "--schemafile", SCHEMAS / f"{name}.json", path)
