"""`mulligan init` proposes the workflow that calls the Action, pinned to a commit of Mulligan."""

import subprocess
from pathlib import Path

import pytest

from mulligan.interfaces.action.workflow import WORKFLOW_FILE, minute_of
from mulligan.interfaces.bootstrap.clone import installed_from
from mulligan.interfaces.onboarding.proposal import ActionSource
from world.place import BIN
from world.repositories import git
from world.starts import clone, run_mulligan

COMMIT = "0123456789" * 4
MULLIGAN = f"acme/mulligan@{COMMIT}"
GITHUB = "git@github.com:octocat/hello.git"
LEFT_OUT = "No workflow is proposed: this installation does not know its commit"
PATH = {"PATH": "/usr/bin:/bin"}


def test_the_workflow_is_shown_and_written_and_the_second_run_has_nothing_to_do(
    tmp_path: Path,
) -> None:
    here = clone(tmp_path, "node-npm", GITHUB)
    done = run_mulligan(here, "init", "--yes", "--action", MULLIGAN)
    assert (done.returncode, done.stderr) == (0, "")
    called = f"uses: acme/mulligan/.github/workflows/mulligan.yml@{COMMIT} # a commit"
    assert f"+    {called}" in done.stdout
    text = (here / WORKFLOW_FILE).read_text()
    assert called in text
    assert f'cron: "{minute_of("octocat/hello")}-59/30 * * * *"' in text
    assert "secrets.ANTHROPIC_API_KEY" in text
    assert "add the secret ANTHROPIC_API_KEY to the repository" in done.stdout
    again = run_mulligan(
        here, "init", "--yes", "--action", MULLIGAN, "--config", str(tmp_path / "mulligan.yml")
    )
    assert f"{WORKFLOW_FILE} already exists." in again.stdout
    assert again.stdout.splitlines()[-1] == "Nothing to do."
    audit = ("--offline", "--quiet", "--no-progress", "--persona", "pedantic")
    audited = subprocess.run(
        [BIN / "zizmor", *audit, str(here)], capture_output=True, text=True, check=False
    )
    assert audited.returncode == 0, audited.stdout


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("{kind: codex, model: best}", ("agent: codex", "model: best", "secrets.OPENAI_API_KEY")),
        ("{command: [python3, a b.py]}", ("agent: command", "command: \"python3 'a b.py'\"")),
    ],
)
def test_the_agent_is_the_configured_one(
    agent: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    here, config = clone(tmp_path, "go", GITHUB), tmp_path / "mulligan.yml"
    config.write_text(f"repositories: [{{name: octocat/hello}}]\nagent: {agent}\n")
    done = run_mulligan(here, "init", "--yes", "--action", MULLIGAN, "--config", str(config))
    assert done.returncode == 0
    text = (here / WORKFLOW_FILE).read_text()
    assert [word for word in words if word not in text] == []


def test_an_agent_that_only_the_operator_knows_keeps_it_out(tmp_path: Path) -> None:
    here, config = clone(tmp_path, "go", GITHUB), tmp_path / "mulligan.yml"
    config.write_text(
        "repositories: [{name: octocat/hello}]\nagent: {kind: own}\n"
        "adapters: {own: {program: own, arguments: []}}\n"
    )
    done = run_mulligan(here, "init", "--yes", "--action", MULLIGAN, "--config", str(config))
    assert "since mulligan.yml alone describes the agent 'own'" in done.stdout
    assert not (here / WORKFLOW_FILE).exists()


@pytest.mark.parametrize("given", ["acme/mulligan", "acme/mulligan@main", f"acme@{COMMIT}"])
def test_what_is_not_pinned_is_refused(given: str, tmp_path: Path) -> None:
    done = run_mulligan(clone(tmp_path, "go", GITHUB), "init", "--yes", "--action", given)
    assert done.returncode == 2
    assert "write OWNER/NAME@COMMIT, with all 40 digits of the commit" in done.stderr


def test_it_may_be_left_out(tmp_path: Path) -> None:
    here = clone(tmp_path, "go", GITHUB)
    done = run_mulligan(here, "init", "--yes", "--no-workflow", "--action", MULLIGAN)
    assert done.returncode == 0
    assert WORKFLOW_FILE not in done.stdout
    assert not (here / WORKFLOW_FILE).exists()


def test_a_server_that_does_not_have_mulligan_is_told_what_to_name(tmp_path: Path) -> None:
    here = clone(tmp_path, "go", "https://ghe.acme.example/octocat/hello.git")
    done = run_mulligan(here, "init", "--yes")
    assert LEFT_OUT in done.stdout
    assert "add --action OWNER/NAME@COMMIT" in done.stdout
    assert not (here / WORKFLOW_FILE).exists()


def checkout(tmp_path: Path, url: str) -> Path:
    here = clone(tmp_path, "go", url)
    git(here, "add", ".")
    git(here, "commit", "--quiet", "-m", "one")
    return here


def test_a_checkout_tells_its_commit_once_that_is_on_github(tmp_path: Path) -> None:
    here = checkout(tmp_path, "https://github.com/acme/mulligan.git")
    head = git(here, "rev-parse", "HEAD").strip()
    assert installed_from(PATH, here) is None
    git(here, "update-ref", "refs/remotes/origin/main", head)
    assert installed_from(PATH, here) == ActionSource("acme/mulligan", head, "github.com")
    git(here, "remote", "remove", "origin")
    git(here, "update-ref", "refs/remotes/other/main", head)
    assert installed_from(PATH, here) is None
    assert installed_from(PATH, tmp_path) is None
