"""Whatever becomes of an issue or its repository ends in the ledger, with a reason (LABEL-7)."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mulligan.config.operator import RepositorySettings
from mulligan.daemon.explain import explain
from mulligan.daemon.once import PassLimits, PassResult, run_once
from mulligan.domain.explanation import LOCKED, Explanation
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import Phase
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.github.tracker import FACTS_TTL
from mulligan.implement.ports import CodingAgent
from world.behaviours import AgentInput, Behaviour, crash
from world.checkouts import FixedToken
from world.plain_worktrees import Clones
from world.repositories import commit_to, git
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.workers import PATH, WorkerEnvironment, fix_the_bug, worker_environment

MAINTAINER = "wes"
ASKED, DONE = "It needs human review: ", "It is resolved: "
LEFT = "It will not be worked on: "


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def delete(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.delete(ref)


def transfer(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.add_repository("acme/other", here.desk.hub.bare)
    here.desk.hub.world.transfer(ref, "acme/other", "ada")


def convert(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.convert(ref, MAINTAINER)


def lock(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.set_lock(ref, MAINTAINER, locked=True)


def reopen(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.close(ref, MAINTAINER)
    here.desk.hub.world.reopen(ref, MAINTAINER)


def delete_label(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.delete_label(NAME, "mulligan")


def archive(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.archive(NAME)


def rename_repository(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.rename_repository(NAME, "gadgets")


def rename_branch(here: WorkerEnvironment, ref: IssueRef) -> None:
    git(here.desk.hub.bare, "branch", "-m", "main", "trunk")


@dataclass(frozen=True)
class Row:
    """What happens, where the issue then stands and why, and what `explain` says of it."""

    happen: Callable[[WorkerEnvironment, IssueRef], None]
    stage: Stage
    reason: str
    said: str


QUEUED = [
    Row(delete, Stage.RESOLVED, "was deleted", LEFT),
    Row(transfer, Stage.RESOLVED, "was transferred", LEFT),
    Row(convert, Stage.RESOLVED, "converted to a discussion", f"{LEFT}The issue is closed"),
    Row(lock, Stage.REVIEW, "", "It is in review: http"),
    Row(reopen, Stage.REVIEW, "", "It is in review: http"),
    Row(delete_label, Stage.RESOLVED, "was deleted or renamed", DONE),
    Row(archive, Stage.RESOLVED, "was archived", f"{LEFT}The repository is archived"),
    Row(rename_repository, Stage.RESOLVED, f"{NAME} was renamed", f"{LEFT}{NAME} was renamed"),
    Row(rename_branch, Stage.HITL, "has no branch 'main'", f"{ASKED}acme/tools has no branch"),
]
UNDER_WAY = [
    *QUEUED[:-1],
    Row(
        rename_branch,
        Stage.HITL,
        "could not publish",
        f"{ASKED}Mulligan could not publish",
    ),
]


def worktrees(here: WorkerEnvironment, row: Row | None) -> Clones | None:
    """Take those that run git where it is git that tells of the change."""
    if row is None or row.happen is not rename_branch:
        return None
    bare = str(here.desk.hub.bare)
    settings = RepositorySettings(name=NAME, clone_url=bare, base_branch="main")
    facts = here.desk.tracker.repository
    return GitWorktrees(here.directory / "work", {NAME: settings}, FixedToken(None), facts, PATH)


def make_pass(
    here: WorkerEnvironment,
    agent: CodingAgent | Behaviour,
    attempts: int | None = None,
    row: Row | None = None,
) -> PassResult:
    context = here.context(agent, worktrees=worktrees(here, row))
    return run_once([NAME], context, PassLimits(attempts=attempts))


def explained(here: WorkerEnvironment, ref: IssueRef, row: Row | None = None) -> Explanation:
    return explain(ref, here.context(fix_the_bug, worktrees=worktrees(here, row)), at_work="it")


def assert_ended(here: WorkerEnvironment, ref: IssueRef, row: Row) -> None:
    """See that the issue rests, that everything is told, and that nothing comes of another pass."""
    status = here.ledger.status(ref)
    assert (status.stage, status.phase) == (row.stage, Phase.IDLE), status
    assert row.reason in status.reason
    assert explained(here, ref, row).summary.startswith(row.said)
    idle, before = ScriptedAgent(fix_the_bug), (here.events(ref), here.writes())
    make_pass(here, idle, row=row)
    assert idle.tasks == []
    assert (here.events(ref), here.writes()) == before


@pytest.mark.parametrize("row", QUEUED, ids=lambda row: row.happen.__name__)
def test_while_it_is_queued(here: WorkerEnvironment, row: Row) -> None:
    ref = here.desk.ready()
    make_pass(here, crash, attempts=1, row=row)
    row.happen(here, ref)
    here.desk.clock.time += FACTS_TTL
    make_pass(here, fix_the_bug, row=row)
    assert_ended(here, ref, row)


@pytest.mark.parametrize("row", UNDER_WAY, ids=lambda row: row.happen.__name__)
def test_while_an_agent_is_at_it(here: WorkerEnvironment, row: Row) -> None:
    ref = here.desk.ready()

    def work(given: AgentInput) -> None:
        row.happen(here, ref)
        fix_the_bug(given)

    make_pass(here, work, attempts=1, row=row)
    assert_ended(here, ref, row)


def test_a_branch_in_the_way_is_named_before_an_agent_is_paid(here: WorkerEnvironment) -> None:
    ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)
    git(here.desk.hub.bare, "branch", "mulligan", "main")
    assert "Delete or rename that branch" in explained(here, ref).summary
    make_pass(here, agent)
    status = here.ledger.status(ref)
    assert (agent.tasks, status.stage) == ([], Stage.HITL)
    assert "Delete or rename that branch" in here.said(ref)[-1]
    git(here.desk.hub.bare, "branch", "-D", "mulligan")
    here.desk.hub.advance_one_second()
    here.desk.hub.world.comment(ref, "/mulligan retry", MAINTAINER)
    make_pass(here, agent)
    assert here.ledger.status(ref).stage is Stage.REVIEW


@pytest.mark.parametrize("name", ["mulligan/issue-1/x", "mulligan/issue-1"])
def test_a_branch_in_the_way_of_one_issue_is_named_before_an_agent_is_paid(
    here: WorkerEnvironment, name: str
) -> None:
    ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)
    assert ref.branch == "mulligan/issue-1"
    commit_to(here.desk.hub.bare, {"mine": "1\n"}, name)
    assert "rename that branch" in explained(here, ref).summary
    make_pass(here, agent)
    assert (agent.tasks, here.ledger.status(ref).stage) == ([], Stage.HITL)
    assert name in here.said(ref)[-1]
    git(here.desk.hub.bare, "branch", "-D", name)
    here.desk.hub.advance_one_second()
    here.desk.hub.world.comment(ref, "/mulligan retry", MAINTAINER)
    make_pass(here, agent)
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_a_branch_that_appears_meanwhile_reaches_a_person(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()

    def work(given: AgentInput) -> None:
        git(here.desk.hub.bare, "branch", "mulligan", "main")
        fix_the_bug(given)

    bare = str(here.desk.hub.bare)
    settings = RepositorySettings(name=NAME, clone_url=bare, base_branch="main")
    facts = here.desk.tracker.repository
    trees = GitWorktrees(here.directory / "work", {NAME: settings}, FixedToken(None), facts, PATH)
    run_once([NAME], here.context(work, worktrees=trees))
    assert here.ledger.status(ref).stage is Stage.HITL
    assert "delete or rename the branch" in here.said(ref)[-1]


def test_a_locked_conversation_is_told_of(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    lock(here, ref)
    assert explained(here, ref).notes == (LOCKED,)


def test_an_issue_that_was_reopened_is_asked_for_anew(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    make_pass(here, crash, attempts=1)
    here.desk.hub.world.close(ref, MAINTAINER)
    make_pass(here, fix_the_bug)
    here.desk.hub.world.reopen(ref, MAINTAINER)
    assert_ended(here, ref, Row(reopen, Stage.RESOLVED, "closed", f"{DONE}The issue was closed."))
    here.desk.hub.world.label(ref, "mulligan", MAINTAINER)
    make_pass(here, fix_the_bug)
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert here.ledger.status(ref).epoch == 2


def test_a_label_on_a_pull_request_is_ignored(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    make_pass(here, fix_the_bug)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    label_on = IssueRef(NAME, pull.number)
    here.desk.hub.world.label(label_on, "mulligan", MAINTAINER)
    before = here.writes()
    assert make_pass(here, fix_the_bug) == PassResult()
    assert (here.events(label_on), here.writes()) == ([], before)
    assert explained(here, label_on).summary == (
        f"{LEFT}It is a pull request; add the label to an issue."
    )
    assert here.ledger.status(ref).stage is Stage.REVIEW
