"""Whatever becomes of an issue or its repository ends in the ledger, with a reason (SPEC L7)."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mulligan.config.operator import RepositorySettings
from mulligan.daemon.explain import explain
from mulligan.daemon.once import Extent, Pass, once
from mulligan.domain.explanation import LOCKED, Explanation
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import Phase
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.implement.ports import CodingAgent, Worktrees
from world.behaviours import Behaviour, Given, crash
from world.checkouts import FixedToken
from world.repositories import git
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.workers import PATH, Shop, mend, shop

MAINTAINER = "wes"
ASKED, DONE = "A person is asked: ", "It is done with: "
LEFT = "It will not be worked on: "


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        yield made


def delete(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.delete(ref)


def transfer(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.add_repository("acme/other", here.desk.hub.bare)
    here.desk.hub.world.transfer(ref, "acme/other", "ada")


def convert(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.convert(ref, MAINTAINER)


def lock(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.set_lock(ref, MAINTAINER, locked=True)


def reopen(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.close(ref, MAINTAINER)
    here.desk.hub.world.reopen(ref, MAINTAINER)


def delete_label(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.delete_label(NAME, "mulligan")


def archive(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.archive(NAME)


def rename_repository(here: Shop, ref: IssueRef) -> None:
    here.desk.hub.world.rename_repository(NAME, "gadgets")


def rename_branch(here: Shop, ref: IssueRef) -> None:
    git(here.desk.hub.bare, "branch", "-m", "main", "trunk")


@dataclass(frozen=True)
class Row:
    """What happens, where the issue then stands and why, and what `explain` says of it."""

    happen: Callable[[Shop, IssueRef], None]
    stage: Stage
    reason: str
    said: str


QUEUED = [
    Row(delete, Stage.RESOLVED, "gone: it was deleted", LEFT),
    Row(transfer, Stage.RESOLVED, "gone: it was transferred", LEFT),
    Row(convert, Stage.RESOLVED, "converted to a discussion", f"{LEFT}The issue is closed"),
    Row(lock, Stage.REVIEW, "", "It is in review: http"),
    Row(reopen, Stage.REVIEW, "", "It is in review: http"),
    Row(delete_label, Stage.RESOLVED, "it was deleted or renamed", DONE),
    Row(archive, Stage.RESOLVED, "was archived", f"{LEFT}The repository is archived"),
    Row(rename_repository, Stage.RESOLVED, f"{NAME} was renamed", f"{LEFT}{NAME} was renamed"),
    Row(rename_branch, Stage.HITL, "has no branch 'main'", f"{ASKED}acme/tools has no branch"),
]
UNDER_WAY = [
    *QUEUED[:-1],
    Row(rename_branch, Stage.HITL, "could not be published", f"{ASKED}The verified work could"),
]


def worktrees(here: Shop) -> Worktrees:
    bare = str(here.desk.hub.bare)
    settings = RepositorySettings(name=NAME, clone_url=bare, base_branch="main")
    facts = here.desk.tracker.repository
    return GitWorktrees(here.directory / "work", {NAME: settings}, FixedToken(None), facts, PATH)


def make_pass(here: Shop, agent: CodingAgent | Behaviour, attempts: int | None = None) -> Pass:
    tools = here.tools(agent, worktrees=worktrees(here))
    return once([NAME], tools, Extent(attempts=attempts))


def explained(here: Shop, ref: IssueRef) -> Explanation:
    return explain(ref, here.tools(mend, worktrees=worktrees(here)), at_work="it")


def assert_ended(here: Shop, ref: IssueRef, row: Row) -> None:
    """See that the issue rests, that everything is told, and that nothing comes of another pass."""
    status = here.ledger.status(ref)
    assert (status.stage, status.phase) == (row.stage, Phase.IDLE), status
    assert row.reason in status.reason
    assert explained(here, ref).summary.startswith(row.said)
    idle, before = ScriptedAgent(mend), (here.events(ref), here.writes())
    make_pass(here, idle)
    assert idle.tasks == []
    assert (here.events(ref), here.writes()) == before


@pytest.mark.parametrize("row", QUEUED, ids=lambda row: row.happen.__name__)
def test_while_it_is_queued(here: Shop, row: Row) -> None:
    ref = here.desk.ready()
    make_pass(here, crash, attempts=1)
    row.happen(here, ref)
    make_pass(here, mend)
    assert_ended(here, ref, row)


@pytest.mark.parametrize("row", UNDER_WAY, ids=lambda row: row.happen.__name__)
def test_while_an_agent_is_at_it(here: Shop, row: Row) -> None:
    ref = here.desk.ready()

    def work(given: Given) -> None:
        row.happen(here, ref)
        mend(given)

    make_pass(here, work, attempts=1)
    assert_ended(here, ref, row)


def test_a_locked_conversation_is_told_of(here: Shop) -> None:
    ref = here.desk.ready()
    lock(here, ref)
    assert explained(here, ref).notes == (LOCKED,)


def test_an_issue_that_was_reopened_is_asked_for_anew(here: Shop) -> None:
    ref = here.desk.ready()
    make_pass(here, crash, attempts=1)
    here.desk.hub.world.close(ref, MAINTAINER)
    make_pass(here, mend)
    here.desk.hub.world.reopen(ref, MAINTAINER)
    assert_ended(here, ref, Row(reopen, Stage.RESOLVED, "closed", f"{DONE}The issue was closed."))
    here.desk.hub.world.label(ref, "mulligan", MAINTAINER)
    make_pass(here, mend)
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert here.ledger.status(ref).epoch == 2


def test_a_label_on_a_pull_request_is_ignored(here: Shop) -> None:
    ref = here.desk.ready()
    make_pass(here, mend)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    label_on = IssueRef(NAME, pull.number)
    here.desk.hub.world.label(label_on, "mulligan", MAINTAINER)
    before = here.writes()
    assert make_pass(here, mend) == Pass()
    assert (here.events(label_on), here.writes()) == ([], before)
    assert explained(here, label_on).summary == (
        f"{LEFT}It is a pull request; put the label on an issue."
    )
    assert here.ledger.status(ref).stage is Stage.REVIEW
