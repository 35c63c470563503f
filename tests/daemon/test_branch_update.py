"""The base branch is merged into a pull request that waits for nothing else (`update_branch`)."""

from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.domain.errors import DeniedError
from mulligan.domain.events import BroughtUpToDate, CiPassed, Event
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.status import IssueStatus
from world.behaviours import AgentInput
from world.ledgers import with_listener
from world.plain_worktrees import PlainWorktrees
from world.repositories import commit_to, git, read_branch
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

FILE = "src/tool.py"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy |= {"update_branch": True, "watch_ci": True, "review": {"settle": "0s"}}
        made.desk.hub.world.repository(NAME).strict = True
        yield made


def count_up(given: AgentInput) -> None:
    given.write(FILE, f"X = {len(given.prompt)}\n")


def make_pass(here: WorkerEnvironment) -> None:
    here.desk.clock.time += timedelta(hours=1)
    assert run_once([NAME], here.context(count_up)).problems == ()


def published(here: WorkerEnvironment) -> IssueRef:
    ref = here.desk.ready()
    make_pass(here)
    assert here.labels(ref) == ["mulligan:review"]
    return ref


def move_base(here: WorkerEnvironment, content: str = "1\n", path: str = "new") -> str:
    return commit_to(here.desk.hub.bare, {path: content})


def updates(here: WorkerEnvironment, ref: IssueRef) -> list[BroughtUpToDate]:
    return [each for each in here.events(ref) if isinstance(each, BroughtUpToDate)]


def parents(here: WorkerEnvironment, ref: IssueRef) -> list[str]:
    return git(here.desk.hub.bare, "show", "-s", "--format=%P", ref.branch).split()


def test_a_base_that_moved_is_merged_once_and_costs_no_attempt(here: WorkerEnvironment) -> None:
    ref = published(here)
    head, base = here.pushed(ref), move_base(here)
    for _ in range(3):
        make_pass(here)
    assert parents(here, ref) == [head, base]
    assert read_branch(here.desk.hub.bare, ref.branch, "new") == "1"
    (update,) = updates(here, ref)
    assert (update.base_sha, update.head_sha) == (base, here.pushed(ref))
    assert f"at {base[:10]}, into the pull request" in here.said(ref)[0]
    assert len(here.ledger.history(ref)) == 1
    assert here.ledger.status(ref).stage is Stage.REVIEW
    second = move_base(here, "2\n")
    make_pass(here)
    make_pass(here)
    assert [each.base_sha for each in updates(here, ref)] == [base, second]


@pytest.mark.parametrize("why", ["not wanted", "not needed", "draft", "somebody else's head"])
def test_it_is_left_as_it_is(here: WorkerEnvironment, why: str) -> None:
    if why == "not wanted":
        here.policy["update_branch"] = False
    if why == "draft":
        here.policy["pull_request"] = {"draft": True}
    here.desk.hub.world.repository(NAME).strict = why != "not needed"
    ref = published(here)
    if why == "somebody else's head":
        commit_to(here.desk.hub.bare, {"b": "by hand\n"}, ref.branch)
    head = here.pushed(ref)
    move_base(here)
    make_pass(here)
    make_pass(here)
    assert here.pushed(ref) == head


def test_the_new_head_is_mulligans_own(here: WorkerEnvironment) -> None:
    """Its checks are watched, and a review builds on the base branch as before."""
    ref = published(here)
    world, head = here.desk.hub.world, here.pushed(ref) or ""
    world.runs.check((NAME, head), "tests", "success")
    make_pass(here)
    assert "On GitHub, 1 check passed" in here.said(ref)[0]
    move_base(here)
    make_pass(here)
    make_pass(here)
    assert "On GitHub" not in here.said(ref)[0]
    merged = here.pushed(ref) or ""
    world.runs.check((NAME, merged), "tests", "success")
    make_pass(here)
    assert [each.head_sha for each in here.events(ref) if isinstance(each, CiPassed)] == [
        head,
        merged,
    ]
    (pull,) = world.pulls_of(NAME)
    world.review(IssueRef(NAME, pull.number), "wes", "REQUEST_CHANGES", "More, please.")
    make_pass(here)
    last = here.ledger.history(ref)[-1]
    assert (last.outcome, last.start_sha) == (Outcome.SUCCEEDED, last.base_sha)
    assert here.pushed(ref) == last.head_sha
    assert "was merged into" not in here.said(ref)[0]


def test_a_conflict_is_left_to_the_rule_for_conflicts(here: WorkerEnvironment) -> None:
    ref = published(here)
    head = here.pushed(ref)
    move_base(here, "X = 0\nZ = 0\n", FILE)
    make_pass(here)
    make_pass(here)
    assert here.pushed(ref) == head
    assert updates(here, ref) == []


class Refusing(PlainWorktrees):
    """Worktrees whose server takes no merge."""

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        if " " in git(self.root / "kept.git", "show", "-s", "--format=%P", head_sha):
            message = "The branch takes no merges; change the rule."
            raise DeniedError(message)
        super().push(ref, head_sha, expected)


def test_a_push_that_is_refused_is_not_tried_again(here: WorkerEnvironment, tmp_path: Path) -> None:
    ref = published(here)
    move_base(here)
    context = here.context(count_up, worktrees=Refusing(tmp_path / "one", here.desk.hub.bare))
    for _ in range(3):
        here.desk.clock.time += timedelta(hours=1)
        assert run_once([NAME], context).problems == ()
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert parents(here, ref) == [here.ledger.history(ref)[0].base_sha]


class Killed(BaseException):
    """The end of a process, as far as a test can have it."""


class Fatal(PlainWorktrees):
    """Worktrees in which the process ends right after a push."""

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        super().push(ref, head_sha, expected)
        raise Killed


@pytest.mark.parametrize("last", ["the effect", "the push", "the event"])
def test_who_is_killed_after_it_finds_the_merge_to_be_its_own(
    here: WorkerEnvironment, tmp_path: Path, last: str
) -> None:
    ref = published(here)
    base = move_base(here)

    def die(_status: IssueStatus, event: Event) -> None:
        kind = {"the effect": "base_merged", "the event": "brought_up_to_date"}.get(last)
        if event.kind == kind:
            raise Killed

    context = here.context(count_up)
    if last == "the push":
        fatal = Fatal(tmp_path / "one", here.desk.hub.bare)
        context = replace(context, worktrees=fatal, git=fatal)
    here.desk.clock.time += timedelta(hours=1)
    dying = replace(context, ledger=with_listener(context.ledger, die))
    run_once([NAME], dying)
    with pytest.raises(Killed):
        run_once([NAME], dying)
    here.let_leases_run_out()
    make_pass(here)
    make_pass(here)
    (update,) = updates(here, ref)
    assert (update.base_sha, update.head_sha) == (base, here.pushed(ref))
    assert "then merged the base branch" in here.said(ref)[0]


def test_a_github_that_is_away_is_told_of(here: WorkerEnvironment) -> None:
    ref = published(here)
    move_base(here)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    path = f"/repos/{NAME}/pulls/{pull.number}"
    here.desk.hub.world.faults = lambda _, asked: Fault(503) if asked == path else None
    (problem,) = run_once([NAME], here.context(count_up)).problems
    assert str(ref) in problem
    assert "GitHub failed" in problem
