"""The built-in agents are listed once; what is derived from the list names all of them."""

import re
from pathlib import Path

import pytest

from mulligan.agents.adapters import BUILT_IN, BUILT_IN_AGENTS
from mulligan.config.load import load_operator
from mulligan.config.policy import CommitSettings
from mulligan.interfaces.bootstrap.clone import agent_here
from mulligan.interfaces.bootstrap.container import open_git, open_github
from mulligan.text.redact import Redactor
from world.checkouts import REF, REPOSITORY, TEXT, calc_remote, run_in_worktree
from world.real_agents import PACKAGES

ROOT = Path(__file__).parents[2]
LEFT_BEHIND = [
    (kind, pattern.replace("*", "x"))
    for kind, adapter in BUILT_IN.items()
    for pattern in adapter.litter
]


@pytest.mark.parametrize(("kind", "litter"), LEFT_BEHIND)
def test_the_litter_of_a_built_in_agent_is_no_work(kind: str, litter: str, tmp_path: Path) -> None:
    remote, config = calc_remote(tmp_path / "remote.git"), tmp_path / "mulligan.yml"
    config.write_text(
        f"""
repositories: [{{name: {REPOSITORY}, clone_url: {remote}, base_branch: main}}]
agent: {{kind: {kind}}}
workspace: {{root: {tmp_path / "work"}}}
"""
    )
    operator = load_operator(config, {}, needs_token=False)
    file = f"{litter}left" if litter.endswith("/") else litter
    with open_github(operator, {}, Redactor()) as github:
        worktrees, _ = open_git(operator, github, {})
        with worktrees.open(REF) as tree:
            run_in_worktree(tree, f"mkdir -p $(dirname {file}); touch {file}")
            assert tree.capture(TEXT, CommitSettings()).head_sha is None


@pytest.mark.parametrize("kind", BUILT_IN)
def test_init_finds_every_built_in_agent(kind: str, tmp_path: Path) -> None:
    program = tmp_path / BUILT_IN[kind].program
    program.touch(mode=0o755)
    assert agent_here({"PATH": str(tmp_path)}) == kind


def test_init_proposes_the_first_agent_where_none_is_installed(tmp_path: Path) -> None:
    assert agent_here({"PATH": str(tmp_path)}) == "claude"


@pytest.mark.parametrize(
    "page",
    [
        *("action.yml", ".github/workflows/mulligan.yml", "docs/action.md"),
        *("docs/configuration.md", "src/mulligan/interfaces/cli/app.py"),
    ],
)
def test_every_list_of_agents_names_those_that_are_built_in(page: str) -> None:
    text = (ROOT / page).read_text()
    lists = re.findall(r"claude`?, .*", text)
    assert lists
    for found in lists:
        assert re.findall(r"\w+", found)[: len(BUILT_IN)] == list(BUILT_IN)


def test_the_agents_that_are_tried_are_those_that_the_workflow_installs() -> None:
    assert [package.kind for package in PACKAGES] == list(BUILT_IN)
    for package in PACKAGES:
        assert package.wanted in BUILT_IN_AGENTS[package.kind].install
