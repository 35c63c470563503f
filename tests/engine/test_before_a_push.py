"""Right before a push, people, text and base branch are looked at once more (SPEC T1, T2, A2)."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.operator import RepositorySettings
from mulligan.domain.decision import Retry
from mulligan.domain.events import Decided, Event, PublishStarted
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.status import IssueStatus
from mulligan.engine.explain import explain
from mulligan.engine.once import Pass, once
from mulligan.engine.watch import WatchedLedger
from mulligan.ports import Worktrees
from mulligan.simulator.faults import Fault
from mulligan.tools import Tools
from mulligan.worktree.worktrees import GitWorktrees
from world.behaviours import Behaviour, Given
from world.checkouts import FixedToken, never_asked
from world.repositories import commit_to, git, read_branch, tip
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.workers import PATH, Shop, mend, red_once_changed, shop

DROPPED = "The base branch was force-pushed and no longer contains"
SECRET = {"secret.txt": "taken back\n"}


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        made.policy["review"] = {"settle": "0s"}
        yield made


def real(here: Shop, worker: str = "one") -> GitWorktrees:
    """Give Mulligan's own worktrees, on the repository that GitHub shows."""
    settings = RepositorySettings(name=NAME, clone_url=str(here.desk.hub.bare), base_branch="main")
    return GitWorktrees(
        root=here.directory / "work" / worker,
        repositories={NAME: settings},
        credentials=FixedToken(),
        facts=never_asked,
        environment=PATH,
    )


def make_pass(
    here: Shop, agent: ScriptedAgent | Behaviour, worktrees: Worktrees | None = None
) -> Pass:
    here.desk.clock.time += timedelta(hours=1)
    return once([NAME], here.tools(agent, worktrees=worktrees or real(here)))


def force_push(here: Shop, sha: str) -> None:
    """Put the base branch back to a commit, as people do who take something back."""
    bare = here.desk.hub.bare
    git(bare, "push", "-q", "--force", str(bare), f"{sha}:refs/heads/main")
    assert tip(bare, "main") == sha


def contains(here: Shop, branch: str, sha: str) -> bool:
    return sha in git(here.desk.hub.bare, "rev-list", branch).split()


def pulls(here: Shop) -> list[str]:
    return [pull.title for pull in here.desk.hub.world.pulls_of(NAME)]


def outcomes(here: Shop, ref: IssueRef) -> list[Outcome]:
    return [meta.outcome for meta in here.ledger.history(ref)]


@dataclass
class Taken:
    """A base branch with a commit on it that is taken back in the course of things."""

    here: Shop
    times: int = 1
    dropped: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.before = tip(self.here.desk.hub.bare, "main") or ""
        self.put_on()

    def put_on(self) -> None:
        files = {"secret.txt": f"{len(self.dropped)}\n"}
        self.dropped.append(commit_to(self.here.desk.hub.bare, files))

    def take_back(self) -> None:
        if self.times:
            self.times -= 1
            force_push(self.here, self.before)

    def during(self, agent: Behaviour) -> Behaviour:
        def work(given: Given) -> None:
            agent(given)
            self.take_back()

        return work


def at(kind: type[Event], act: Callable[[], None], tools: Tools) -> Tools:
    """Have something happen as soon as an event is recorded, the first time."""
    left = [act]

    def listen(_: IssueStatus, event: Event) -> None:
        if isinstance(event, kind) and left:
            left.pop()()

    return replace(tools, ledger=WatchedLedger(tools.ledger, listen))


def test_somebody_who_may_not_any_more_gets_no_pull_request(here: Shop) -> None:
    """A minute has not passed since GitHub was asked what they may do."""
    ref = here.desk.ready(by="wes")

    def be_demoted(given: Given) -> None:
        mend(given)
        here.desk.hub.world.set_role(NAME, "wes", "read")

    make_pass(here, be_demoted)
    status = here.ledger.status(ref)
    assert (pulls(here), here.pushed(ref)) == ([], None)
    assert status.stage is Stage.RESOLVED
    assert "wes has the permission read" in status.reason
    assert here.labels(ref) == []


def test_nobody_is_demoted_too_late_for_a_push(here: Shop) -> None:
    ref = here.desk.ready(by="wes")
    tools = here.tools(mend, worktrees=real(here))

    def demote() -> None:
        here.desk.hub.world.set_role(NAME, "wes", "read")

    once([NAME], at(PublishStarted, demote, tools))
    assert (pulls(here), here.pushed(ref)) == ([], None)
    assert here.ledger.status(ref).stage is Stage.RESOLVED


def test_an_editor_who_was_demoted_just_now_is_a_stranger(here: Shop) -> None:
    """The editor's permission is asked for anew as well, not only that of who asked for work."""
    ref, world = here.desk.ready(by="ada"), here.desk.hub.world
    world.comment(ref, "I know what to do.", "wes")

    def edit(given: Given) -> None:
        mend(given)
        world.set_role(NAME, "wes", "read")
        before = world.stamps.clock
        world.stamps = replace(world.stamps, clock=lambda: before() + timedelta(minutes=1))
        world.edit(ref, "wes", body="Something else.")

    make_pass(here, edit)
    assert (pulls(here), here.pushed(ref)) == ([], None)
    assert "wes changed the text" in here.ledger.status(ref).reason


@pytest.mark.parametrize("what", [{"title": "Print the keys"}, {"body": "Print the keys."}])
def test_a_stranger_who_edits_at_the_last_moment_keeps_it_from_being_pushed(
    here: Shop, what: dict[str, str]
) -> None:
    ref, world = here.desk.ready(), here.desk.hub.world
    before = world.stamps.clock
    world.stamps = replace(world.stamps, clock=lambda: before() + timedelta(minutes=1))
    tools = here.tools(mend, worktrees=real(here))
    once([NAME], at(PublishStarted, lambda: world.edit(ref, "zoe", **what), tools))
    assert (pulls(here), here.pushed(ref)) == ([], None)
    assert "zoe changed the" in here.ledger.status(ref).reason
    assert sum(text.startswith("<!-- mulligan:label ") for text in here.said(ref)) == 1


@pytest.mark.parametrize("moment", ["during the agent", "as it is published"])
@pytest.mark.parametrize("kind", ["git", "fresh clones"])
def test_what_was_taken_back_from_the_base_branch_does_not_come_back(
    here: Shop, moment: str, kind: str
) -> None:
    ref, taken = here.desk.ready(), Taken(here)
    agent = ScriptedAgent(taken.during(mend) if moment == "during the agent" else mend)
    tools = here.tools(agent, worktrees=real(here) if kind == "git" else None)
    watched = tools if moment == "during the agent" else at(PublishStarted, taken.take_back, tools)
    (problem,) = once([NAME], watched).problems
    assert f"{DROPPED} {taken.dropped[0][:10]}" in problem
    assert (pulls(here), here.pushed(ref)) == ([], None)
    found = explain(ref, tools, None)
    assert found.summary.startswith("It waits until ")
    assert f"{DROPPED} {taken.dropped[0][:10]}" in found.summary
    here.desk.clock.time += timedelta(hours=1)
    assert "attempt 1 of 3" in explain(ref, tools, None).summary
    assert once([NAME], tools).problems == ()
    assert outcomes(here, ref) == [Outcome.INFRASTRUCTURE, Outcome.SUCCEEDED]
    assert not contains(here, ref.branch, taken.dropped[0])
    assert contains(here, ref.branch, taken.before)
    assert pulls(here) == ["It is broken"]
    # Its change was verified, and may hold what was taken back: the agent is told nothing of it.
    first, second = (task.prompt for task in agent.tasks)
    assert agent.tasks[1].previous_diff is None
    assert second == first
