"""An issue waits for somebody's pull request that closes it, until a person insists (HAND-1)."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.explain import explain
from mulligan.daemon.poll import FetchCache, poll
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import Worker
from mulligan.domain.in_hand import CHECK_INTERVAL
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from world.behaviours import AgentInput
from world.repositories import commit_to, git
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


class Daemon:
    """A daemon over many polls, with its caches."""

    def __init__(self, here: WorkerEnvironment) -> None:
        self.here, self.agent = here, ScriptedAgent(self._work)
        self.meanwhile = False
        self.context = here.context(self.agent)
        self.worker, self.cache = Worker(self.context), FetchCache()

    def _work(self, given: AgentInput) -> None:
        if self.meanwhile:
            open_pull(self.here, "Fixes #1")
        fix_the_bug(given)

    def poll(self, later: timedelta = timedelta(seconds=30)) -> None:
        self.here.desk.clock.time += later
        recover(self.context, self.worker, (NAME,))
        due, failed = poll((NAME,), self.context, self.worker, self.cache)
        assert failed == {}
        for ref in due:
            assert not self.worker.visit(ref).problem

    @property
    def runs(self) -> int:
        return len(self.agent.tasks)


def open_pull(here: WorkerEnvironment, body: str, *, draft: bool = False) -> IssueRef:
    """Have ann open a pull request of her own branch."""
    hub = here.desk.hub
    hub.world.add_user("ann", token="token-ann")
    hub.world.set_role(NAME, "ann", "write")
    number = len(hub.world.repositories[NAME].issues) + 1
    git(hub.bare, "branch", f"ann-{number}", "main")
    commit_to(hub.bare, {f"by-ann-{number}": "x\n"}, branch=f"ann-{number}")
    asked = {
        "title": "Mine",
        "head": f"ann-{number}",
        "base": "main",
        "body": body,
        "draft": draft,
    }
    answer = hub.post("pulls", asked, by="ann")
    assert answer.status_code == 201, answer.text
    return IssueRef(NAME, answer.json()["number"])


def told(here: WorkerEnvironment, ref: IssueRef) -> str:
    (comment,) = here.said(ref)
    return comment


@pytest.mark.parametrize("draft", [False, True])
def test_an_open_pull_request_that_closes_it_is_waited_for_and_named(
    here: WorkerEnvironment, *, draft: bool
) -> None:
    ref = here.desk.hub.issue()
    pull = open_pull(here, f"Fixes #{ref.number}", draft=draft)
    here.desk.hub.world.label(ref, "mulligan", "wes")
    daemon = Daemon(here)
    daemon.poll()
    daemon.poll()
    kind = "draft pull request" if draft else "pull request"
    assert daemon.runs == 0
    for text in (told(here, ref), explain(ref, daemon.context, None).summary):
        assert f"The open {kind}" in text
        assert f"/pull/{pull.number}" in text
        assert "by ann" in text
        assert "/mulligan retry" in text
    assert "/pull/" in here.ledger.status(ref).reason


@pytest.mark.parametrize("body", ["See #1", "It is like #1, which it does not fix"])
def test_a_mention_is_no_bar(here: WorkerEnvironment, body: str) -> None:
    ref = here.desk.hub.issue()
    open_pull(here, body)
    here.desk.hub.world.label(ref, "mulligan", "wes")
    daemon = Daemon(here)
    daemon.poll()
    assert daemon.runs == 1


def waiting(here: WorkerEnvironment) -> tuple[IssueRef, IssueRef, Daemon]:
    ref = here.desk.hub.issue()
    pull = open_pull(here, f"Fixes #{ref.number}")
    here.desk.hub.world.label(ref, "mulligan", "wes")
    daemon = Daemon(here)
    daemon.poll()
    daemon.poll()
    assert daemon.runs == 0
    return ref, pull, daemon


def test_it_starts_by_itself_when_that_one_is_closed_without_a_merge(
    here: WorkerEnvironment,
) -> None:
    ref, pull, daemon = waiting(here)
    here.desk.hub.world.close(pull, "ann")
    daemon.poll(CHECK_INTERVAL)
    assert (daemon.runs, here.ledger.status(ref).stage) == (1, Stage.REVIEW)


def test_one_that_was_merged_while_the_issue_is_open_is_history(here: WorkerEnvironment) -> None:
    ref, pull, daemon = waiting(here)
    here.desk.hub.world.merge(pull, "ann")
    here.desk.hub.world.reopen(ref, "wes")
    here.desk.hub.advance_one_second()
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    here.desk.hub.world.label(ref, "mulligan", "wes")
    daemon.poll(CHECK_INTERVAL)
    assert daemon.runs == 1


def test_a_command_insists(here: WorkerEnvironment) -> None:
    ref, _, daemon = waiting(here)
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")
    daemon.poll()
    assert (daemon.runs, here.ledger.status(ref).stage) == (1, Stage.REVIEW)


def test_a_new_label_insists_for_all_its_attempts(here: WorkerEnvironment) -> None:
    ref, _, daemon = waiting(here)
    here.desk.hub.advance_one_second()
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    here.desk.hub.world.label(ref, "mulligan", "wes")
    here.policy["max_issue_attempts"] = 2
    here.check(lambda _: "It is red.")
    daemon.poll(CHECK_INTERVAL)
    assert (daemon.runs, here.ledger.status(ref).stage) == (2, Stage.HITL)


def test_polls_that_wait_ask_once_in_five_minutes_for_all(here: WorkerEnvironment) -> None:
    refs = [here.desk.hub.issue() for _ in range(3)]
    open_pull(here, ", ".join(f"fixes #{ref.number}" for ref in refs))
    for ref in refs:
        here.desk.hub.world.label(ref, "mulligan", "wes")
    daemon = Daemon(here)
    for _ in range(3):
        daemon.poll(CHECK_INTERVAL)
    here.desk.requests()
    for _ in range(9):
        daemon.poll()
    asked = here.desk.requests()
    assert asked.count("POST /graphql") == 0
    assert not [each for each in asked if "/issues/" in each and "comments" not in each]
    daemon.poll()
    assert here.desk.requests().count("POST /graphql") == 1


def test_one_that_is_opened_meanwhile_keeps_the_commit(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    daemon = Daemon(here)
    daemon.meanwhile = True
    daemon.poll()
    status = here.ledger.status(ref)
    assert (daemon.runs, status.stage, status.is_kept) == (1, Stage.READY, True)
    assert [meta.outcome for meta in here.ledger.history(ref)] == [Outcome.SUCCEEDED]
    (theirs,) = here.desk.hub.world.pulls_of(NAME)
    assert f"/pull/{theirs.number}" in told(here, ref)
    assert here.pushed(ref) is None
    daemon.poll(CHECK_INTERVAL)
    here.desk.hub.world.close(IssueRef(NAME, theirs.number), "ann")
    daemon.poll(CHECK_INTERVAL)
    assert (daemon.runs, here.ledger.status(ref).stage) == (1, Stage.REVIEW)
    assert len(here.ledger.history(ref)) == 1


def test_a_command_publishes_what_was_kept(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    daemon = Daemon(here)
    daemon.meanwhile = True
    daemon.poll()
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")
    daemon.poll()
    assert (daemon.runs, here.ledger.status(ref).stage) == (1, Stage.REVIEW)


@pytest.mark.parametrize("fault", [Fault(500), Fault(404)])
def test_what_cannot_be_asked_starts_nothing(here: WorkerEnvironment, fault: Fault) -> None:
    ref = here.desk.hub.issue()
    open_pull(here, f"Fixes #{ref.number}")
    here.desk.hub.world.label(ref, "mulligan", "wes")
    here.desk.client.has_graphql.set()
    here.desk.hub.world.faults = lambda _, path: fault if path == "/graphql" else None
    context = here.context(fix_the_bug)
    assert Worker(context).visit(ref).problem
    assert here.ledger.history(ref) == ()


def test_a_server_without_graphql_knows_of_none(here: WorkerEnvironment) -> None:
    here.desk.hub.world.graphql = False
    ref = here.desk.hub.issue()
    open_pull(here, f"Fixes #{ref.number}")
    here.desk.hub.world.label(ref, "mulligan", "wes")
    Worker(here.context(fix_the_bug)).visit(ref)
    assert len(here.ledger.history(ref)) == 1
