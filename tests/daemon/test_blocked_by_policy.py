"""An issue whose repository's policy is invalid is told so once, whatever fails meanwhile."""

from collections.abc import Generator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.events import Waiting
from mulligan.domain.issue import IssueRef, Stage
from world.simulated import push
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

FILE = ".github/mulligan.yml"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        policy(made, "max_issue_attempts: many\n")
        yield made


def policy(here: WorkerEnvironment, text: str) -> None:
    push(here.desk.hub.bare, "main", {FILE: text})


def visit(here: WorkerEnvironment, ref: IssueRef) -> Visit:
    context = here.context(fix_the_bug)
    context.worktrees.fetch_base(ref.repository)
    return Worker(context, max_attempts=1).visit(ref)


def test_it_is_told_once_and_spends_nothing(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    first, second = visit(here, ref), visit(here, ref)
    assert first == second
    assert "max_issue_attempts is 'many'" in first.skipped
    (said,) = here.said(ref)
    assert "cannot start work yet" in said
    assert len(here.writes()) == 1
    assert [event for event in here.events(ref) if isinstance(event, Waiting)] != []
    status = here.ledger.status(ref)
    assert (status.stage, status.number, status.due) == (Stage.READY, 0, None)


def test_a_pattern_that_finds_nothing_blocks_no_work(here: WorkerEnvironment) -> None:
    here.lines["check"] = lambda _: None
    policy(here, "checks: [{name: tests, run: check, patterns: ['(?=x)', '(']}]\n")
    ref = here.desk.ready()
    assert visit(here, ref).attempts == 1
    assert here.labels(ref) == ["mulligan:review"]


@pytest.mark.parametrize("key", ["allow", "deny", "allow_secrets"])
def test_a_path_pattern_that_would_open_a_guard_blocks_all(
    here: WorkerEnvironment, key: str
) -> None:
    policy(here, f"scope: {{{key}: ['a\\', b]}}\n")
    ref = here.desk.ready()
    assert f"scope.{key}.0" in visit(here, ref).skipped
    (said,) = here.said(ref)
    assert "write a pattern as in .gitignore; this one is invalid" in said


def test_what_github_could_not_be_told_is_told_later(here: WorkerEnvironment) -> None:
    ref, asked = here.desk.ready(), 0

    def refuse_writes(method: str, path: str) -> Fault | None:
        nonlocal asked
        writes = method == "POST" and path != "/graphql"
        asked += writes
        return Fault(502) if writes else None

    here.desk.hub.world.faults = refuse_writes
    assert visit(here, ref).problem
    assert (asked, here.said(ref)) == (1, [])
    here.github_answers(None)
    visit(here, ref)
    assert len(here.said(ref)) == 1
    waits = [event for event in here.events(ref) if isinstance(event, Waiting)]
    assert len(waits) == 1


def test_another_mistake_is_told_in_the_same_comment_and_mending_starts_the_work(
    here: WorkerEnvironment,
) -> None:
    ref = here.desk.ready()
    visit(here, ref)
    policy(here, "nonsense: 1\n")
    visit(here, ref)
    (said,) = here.said(ref)
    assert "nonsense" in said
    policy(here, "max_issue_attempts: 2\n")
    assert visit(here, ref).attempts == 1
    assert here.labels(ref) == ["mulligan:review"]
    assert len(here.said(ref)) == 1
