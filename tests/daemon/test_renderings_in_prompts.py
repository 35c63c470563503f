"""The agent reads the texts as GitHub renders them (TRUST-4)."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.daemon.worker import Worker
from mulligan.domain.issue import Issue
from mulligan.github.tracker import GitHubTracker
from world.behaviours import AgentInput
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def prompt_of(here: WorkerEnvironment) -> str:
    prompts = list[str]()

    def agent(given: AgentInput) -> None:
        prompts.append(given.prompt)
        fix_the_bug(given)

    assert not Worker(here.context(agent), 1).visit(here.desk.ready()).problem
    return prompts[0]


def test_githubs_own_rendering_is_read(
    here: WorkerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rendered(_tracker: GitHubTracker, issue: Issue) -> Issue:
        return replace(issue, html="<h2>Steps</h2><p>As <em>GitHub</em> shows it.</p>")

    monkeypatch.setattr(GitHubTracker, "with_renderings", rendered)
    assert "## Steps\n\nAs *GitHub* shows it." in prompt_of(here)


def test_a_poll_never_asks_for_a_rendering(
    here: WorkerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Issue]()
    ask = GitHubTracker.with_renderings

    def counted(tracker: GitHubTracker, issue: Issue) -> Issue:
        asked.append(issue)
        return ask(tracker, issue)

    monkeypatch.setattr(GitHubTracker, "with_renderings", counted)
    prompt_of(here)
    assert len(asked) == 1
