"""Which agent makes an attempt: a label, the repository, and what was tried before decide."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.load import load_operator
from mulligan.config.operator import AgentSettings, Operator
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import ConfigError
from mulligan.domain.events import AgentStarted
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.implement.ports import AgentRegistry
from mulligan.implement.prompt.manifest import MANIFEST
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.workers import WorkerEnvironment, fail_once_changed, fix_the_bug, worker_environment


class Named(ScriptedAgent):
    def __init__(self, name: str) -> None:
        super().__init__(fix_the_bug)
        self.name = name


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def work(
    here: WorkerEnvironment, ref: IssueRef, fallback: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Visit an issue; name the agents that ran."""
    named = {name: Named(name) for name in ("strong", "other")}
    context = replace(
        here.context(fix_the_bug), agents=AgentRegistry(Named("first"), named, fallback or {})
    )
    context.worktrees.fetch_base(NAME)
    Worker(context).visit(ref)
    return [event.agent for event in here.events(ref) if isinstance(event, AgentStarted)]


def labelled(here: WorkerEnvironment, *labels: str) -> IssueRef:
    ref = here.desk.ready()
    for label in labels:
        here.desk.hub.world.label(ref, label, "wes")
    return ref


def test_without_a_word_it_is_the_operators_own(here: WorkerEnvironment) -> None:
    assert work(here, labelled(here)) == ["first"]


def test_a_repository_may_choose_one_that_the_operator_named(here: WorkerEnvironment) -> None:
    here.policy["agent"] = "other"
    assert work(here, labelled(here)) == ["other"]


def test_a_label_goes_before_that_and_of_two_the_one_named_first(here: WorkerEnvironment) -> None:
    here.policy |= {"agent": "other", "labels": {"agents": {"use:Strong": "strong", "x": "other"}}}
    assert work(here, labelled(here, "x", "use:strong")) == ["strong"]


def test_an_agent_that_the_operator_does_not_know_reaches_a_person_with_the_fix(
    here: WorkerEnvironment,
) -> None:
    here.policy["agent"] = "nobody"
    ref = labelled(here)
    assert work(here, ref) == []
    (meta,) = here.ledger.history(ref)
    assert meta.outcome is Outcome.MISCONFIGURED
    assert meta.failure_reason == (
        "The repository's policy chooses the agent 'nobody', and mulligan.yml knows strong, other;"
        " name it under `agents` there, or fix the policy."
    )


def test_what_failed_is_given_to_the_next_agent_and_the_last_one_stays(
    here: WorkerEnvironment,
) -> None:
    here.check(fail_once_changed)
    ref = labelled(here)
    assert work(here, ref, {"": ["strong"]}) == ["first", "strong", "strong"]
    for number, name in ((1, "first"), (2, "strong")):
        place = here.context(fix_the_bug).artifacts.path(ref, number, MANIFEST)
        assert f'"agent":"{name}"' in place.read_text().replace(" ", "")


def test_an_attempt_that_does_not_count_changes_no_agent(here: WorkerEnvironment) -> None:
    here.policy["setup"] = ["fails"]
    here.lines["fails"] = lambda _tree: "no network" if len(here.ledger.history(ref)) == 0 else None
    ref = labelled(here)
    assert work(here, ref, {"": ["strong"]}) == []
    assert here.ledger.history(ref)[0].outcome is Outcome.INFRASTRUCTURE
    here.desk.clock.time = here.ledger.status(ref).due or here.desk.clock.time
    assert work(here, ref, {"": ["strong"]}) == ["first"]


def test_a_fallback_has_to_be_named(tmp_path: Path) -> None:
    file = tmp_path / "mulligan.yml"
    file.write_text(
        "repositories: [{name: o/r}]\n"
        "agent: {kind: claude, fallback: [strong, weak]}\n"
        "agents: {strong: {kind: claude, model: opus}}\n"
    )
    with pytest.raises(
        ConfigError, match=r"agent\.fallback names 'weak'; the names in `agents`: s"
    ):
        load_operator(file, {})


def test_agents_by_name_are_read(tmp_path: Path) -> None:
    file = tmp_path / "mulligan.yml"
    file.write_text(
        "repositories: [{name: o/r}]\n"
        "agent: {kind: claude, fallback: [strong]}\n"
        "agents: {strong: {kind: codex}}\n"
    )
    operator: Operator = load_operator(file, {})
    assert operator.agents == {"strong": AgentSettings(kind="codex")}
