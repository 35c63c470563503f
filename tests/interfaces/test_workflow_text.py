"""What a repository calls Mulligan with is pinned, asks for little, and stands up to an audit."""

import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pydantic import JsonValue, TypeAdapter

from mulligan.agents.adapters import BUILT_IN_AGENTS
from mulligan.domain.errors import UsageError
from mulligan.interfaces.action.workflow import WorkflowSettings, workflow_text
from world.place import BIN

ROOT = Path(__file__).parents[2]
CLAUDE = BUILT_IN_AGENTS["claude"]
CALLER = WorkflowSettings(
    source="acme/mulligan",
    sha="0123456789" * 4,
    version="v1.0.0",
    agent="claude",
    install=CLAUDE.install,
    secret=CLAUDE.secret,
)
READ: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])

STEPS: TypeAdapter[list[dict[str, JsonValue]]] = TypeAdapter(list[dict[str, JsonValue]])


def read(text: str) -> dict[str, JsonValue]:
    # YAML 1.1 takes a bare `on` for true.
    return READ.validate_python(yaml.safe_load(text.replace("\non:", '\n"on":')))


def events(text: str) -> dict[str, JsonValue]:
    return READ.validate_python(read(text)["on"])


def job(text: str) -> dict[str, JsonValue]:
    return READ.validate_python(READ.validate_python(read(text)["jobs"])["mulligan"])


@pytest.mark.parametrize("agent", [*BUILT_IN_AGENTS, "command"])
def test_nothing_is_found_by_an_audit(agent: str, tmp_path: Path) -> None:
    known = BUILT_IN_AGENTS.get(agent)
    caller = replace(
        CALLER,
        agent=agent,
        model="best",
        command="a b",
        install=known.install if known else "",
        secret=known.secret if known else "",
    )
    place = tmp_path / ".github" / "workflows" / "mulligan.yml"
    place.parent.mkdir(parents=True)
    place.write_text(workflow_text(caller))
    audit = ("--offline", "--quiet", "--no-progress", "--persona", "pedantic")
    done = subprocess.run(
        [BIN / "zizmor", *audit, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_event_wakes_one_run_at_a_time() -> None:
    text = workflow_text(CALLER)
    assert set(events(text)) == {
        *("issues", "issue_comment", "pull_request_review", "check_suite"),
        *("schedule", "workflow_dispatch"),
    }
    assert events(text)["issues"] == {"types": ["labeled"]}
    assert read(text)["concurrency"] == {"group": "mulligan", "cancel-in-progress": False}


def test_the_called_workflow_installs_an_agent_as_a_user_that_changes_nothing_later() -> None:
    text = (ROOT / ".github" / "workflows" / "mulligan.yml").read_text()
    assert read(text)["permissions"] == {}
    one = READ.validate_python(READ.validate_python(read(text)["jobs"])["pass"])
    assert "env" not in {*read(text), *one}
    install, checkout, run, _ = STEPS.validate_python(one["steps"])
    given = READ.validate_python(install["env"])
    assert given["INSTALL"] == "${{ inputs.install }}"
    assert "--no-new-privs env --ignore-environment" in " ".join(
        str(given["CONFINE"]).replace("\\\n", " ").split()
    )
    lines = str(install["run"]).replace("\\\n", " ").splitlines()
    (line,) = (line for line in lines if '"$INSTALL"' in line)
    assert line.startswith("sudo unshare --mount --pid --fork --kill-child --mount-proc")
    after = lines[lines.index(line) + 1 :]
    assert [line.split()[1] for line in after] == ["userdel", "chown", "chmod"]
    # Found last, so that nothing of it is taken for git or bwrap.
    assert READ.validate_python(run["env"])["AGENT_PATH"] == "/opt/agent/.local/bin"
    action = (ROOT / "action.yml").read_text()
    assert 'PATH="$PATH${AGENT_PATH:+:$AGENT_PATH}"' in action
    assert READ.validate_python(checkout["with"]) == {
        "repository": "${{ job.workflow_repository }}",
        "ref": "${{ job.workflow_sha }}",
        "path": ".mulligan",
        "persist-credentials": False,
    }
    assert run["uses"] == "./.mulligan"
    assert not any("secrets." in str(step) or "token" in str(step) for step in (install, checkout))


def test_it_asks_for_what_it_needs_alone() -> None:
    text = workflow_text(CALLER)
    assert read(text)["permissions"] == {}
    wanted = ("contents", "issues", "pull-requests")
    assert job(text)["permissions"] == dict.fromkeys(wanted, "write")
    assert job(text)["secrets"] == {"anthropic-api-key": "${{ secrets.ANTHROPIC_API_KEY }}"}
    assert job(text)["uses"] == (f"acme/mulligan/.github/workflows/mulligan.yml@{CALLER.sha}")


def test_an_agent_without_a_secret_is_given_none() -> None:
    command = 'python3 "a b.py" # no'
    text = workflow_text(replace(CALLER, agent="command", command=command, install="", secret=""))
    assert job(text)["with"] == {"agent": "command", "command": 'python3 "a b.py" # no'}
    assert "secrets" not in job(text)
    assert 'cron: "17-59/30 * * * *"' in text


def test_no_value_becomes_an_expression() -> None:
    text = workflow_text(replace(CALLER, model="${{ secrets.X }}", version="v1\n  evil: 1"))
    assert "${{ secrets.X" not in text
    assert "evil" not in text


@pytest.mark.parametrize("change", [{"sha": "main"}, {"source": "acme"}, {"sha": "A" * 40}])
def test_what_is_not_pinned_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="40 hexadecimal digits"):
        workflow_text(replace(CALLER, **change))


def test_the_documentation_shows_what_is_written() -> None:
    page = (ROOT / "docs" / "action.md").read_text()
    shown = replace(CALLER, source="OWNER/mulligan", sha="0" * 40)
    assert textwrap.indent(workflow_text(shown), "   ") in page


def test_the_reusable_workflow_has_the_outputs_of_the_action() -> None:
    own = READ.validate_python(read((ROOT / "action.yml").read_text())["outputs"])
    workflow = (ROOT / ".github" / "workflows" / "mulligan.yml").read_text()
    call = READ.validate_python(events(workflow)["workflow_call"])
    # A directory of the runner is gone when the caller could read it.
    assert READ.validate_python(call["outputs"]).keys() == own.keys() - {"artifacts"}
