"""Two installations share a login, and a person may too: what was done tells who did it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.daemon.explain import explain
from mulligan.daemon.once import run_once
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import IssueRef, Stage
from mulligan.storage.database import open_database
from mulligan.storage.leases import SqlLeases
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.usage import SqlUsageStore
from world.behaviours import AgentInput, Behaviour
from world.ledgers import migrated
from world.simulated import NAME
from world.trackers import BOT, FrozenClock
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

READY, RUNNING, REVIEW, HITL = "mulligan", "mulligan:running", "mulligan:review", "mulligan:hitl"
TAKEN_OFF = "Its label was removed."


@dataclass(frozen=True)
class Two:
    """Installations that have GitHub and the login in common, and nothing else."""

    one: WorkerEnvironment
    other: WorkerEnvironment

    def labels(self, ref: IssueRef) -> list[str]:
        return self.one.labels(ref)

    def pulls(self) -> list[str]:
        found = self.one.desk.hub.world.pulls_of(NAME)
        return [pull.pull.head_ref for pull in found if pull.pull]

    def escalations(self, ref: IssueRef) -> int:
        return sum("<!-- mulligan:hitl" in text for text in self.one.said(ref))


@pytest.fixture
def here(tmp_path: Path) -> Generator[Two]:
    with (
        worker_environment(tmp_path, database=True) as one,
        _beside(one, tmp_path / "other") as other,
    ):
        yield Two(one, other)


@contextmanager
def _beside(one: WorkerEnvironment, directory: Path) -> Generator[WorkerEnvironment]:
    directory.mkdir()
    with open_database(migrated(directory / "mulligan.db")) as database:
        clock = FrozenClock(one.desk.clock.time + timedelta(milliseconds=7))
        yield replace(
            one,
            directory=directory,
            ledger=SqlLedger(database, clock),
            leases=SqlLeases(database, clock),
            accounts=SqlUsageStore(database),
        )


def do(here: WorkerEnvironment, agent: Behaviour = fix_the_bug) -> None:
    run_once((NAME,), here.context(agent))


def fail(given: AgentInput) -> int:
    return 1


def never(given: AgentInput) -> None:
    pytest.fail("The agent ran again.")


def settles(here: Two, agent: Behaviour) -> Behaviour:
    """Give an agent during whose work the other installation comes to its own end."""

    def work(given: AgentInput) -> int | None:
        do(here.other, agent)
        fix_the_bug(given)
        return 1 if agent is fail else None

    return work


@pytest.mark.parametrize(("agent", "label"), [(fix_the_bug, REVIEW), (fail, HITL)])
def test_what_the_other_settled_meanwhile_is_left_to_it(
    here: Two, agent: Behaviour, label: str
) -> None:
    here.one.policy["max_issue_attempts"] = 1
    ref = here.one.desk.ready()
    do(here.one, settles(here, agent))
    assert here.labels(ref) == [label]
    assert here.pulls() == ([ref.branch] if agent is fix_the_bug else [])
    assert here.escalations(ref) == (agent is fail)
    status = here.one.ledger.status(ref)
    assert (status.stage, status.elsewhere) == (Stage.RESOLVED, True)
    assert TAKEN_OFF not in status.reason
    told = explain(ref, here.one.context(never), None).summary
    assert "another installation" in told.casefold()
    said = here.one.said(ref)
    do(here.one, never)
    do(here.other, never)
    assert here.labels(ref) == [label]
    assert here.one.said(ref) == said


def test_the_other_settles_what_waits_here(here: Two) -> None:
    ref = here.one.desk.ready()
    here.one.lines["setup"] = lambda _: "The network is away."
    here.one.policy["setup"] = ["setup"]
    do(here.one)
    here.one.policy.clear()
    assert here.one.ledger.status(ref).due
    here.one.desk.clock.time += timedelta(minutes=1)
    do(here.other)
    do(here.one, never)
    assert here.labels(ref) == [REVIEW]
    assert here.one.ledger.status(ref).elsewhere


def test_a_wait_that_begins_does_not_take_the_others_label_off(here: Two) -> None:
    ref = here.one.desk.ready()
    here.one.policy["setup"] = ["setup"]

    def set_up(_: Path) -> str:
        here.one.policy.clear()
        here.other.lines.clear()
        do(here.other)
        return "The network is away."

    here.one.lines["setup"] = set_up
    do(here.one)
    assert here.labels(ref) == [REVIEW]


@pytest.mark.parametrize("move", ["off", "off and closed"])
@pytest.mark.parametrize("waits", [True, False])
def test_a_person_with_the_same_login_still_withdraws(here: Two, *, waits: bool, move: str) -> None:
    ref, world = here.one.desk.ready(by=BOT), here.one.desk.hub.world

    def work(given: AgentInput) -> int:
        if not waits:
            world.unlabel(ref, READY, BOT)
        return 1

    Worker(here.one.context(work), max_attempts=1).visit(ref)
    if waits:
        world.unlabel(ref, READY, BOT)
    if move == "off and closed":
        world.close(ref, BOT)
    do(here.one, never)
    status = here.one.ledger.status(ref)
    assert (status.stage, status.elsewhere, here.labels(ref)) == (Stage.RESOLVED, False, [])
    assert status.reason == TAKEN_OFF or move == "off and closed"


@pytest.mark.parametrize("begin", [fix_the_bug, fail])
def test_a_new_request_of_a_person_with_the_same_login_is_withdrawn_too(
    here: Two, begin: Behaviour
) -> None:
    here.one.policy["max_issue_attempts"] = 1
    ref, world = here.one.desk.ready(by=BOT), here.one.desk.hub.world
    do(here.one, begin)
    world.label(ref, READY, BOT)

    def work(given: AgentInput) -> int:
        world.unlabel(ref, READY, BOT)
        return 1

    do(here.one, work)
    status = here.one.ledger.status(ref)
    assert (status.reason, status.elsewhere, here.labels(ref)) == (TAKEN_OFF, False, [])


def test_a_label_put_on_again_is_for_the_one_whose_pull_request_is_open(here: Two) -> None:
    ref = here.one.desk.ready()
    do(here.one, settles(here, fix_the_bug))
    here.one.desk.hub.advance_one_second()
    here.one.desk.hub.world.label(ref, READY, "wes")
    do(here.one, never)
    assert here.one.ledger.status(ref).epoch == 1
    assert "has opened" in explain(ref, here.one.context(never), None).summary
    do(here.other, lambda given: given.write("src/tool.py", "X = 3\n"))
    do(here.one, never)
    assert here.labels(ref) == [REVIEW]
    assert here.pulls() == [ref.branch]
    assert here.other.ledger.status(ref).epoch == 2


def test_a_command_is_for_the_one_whose_pull_request_is_open(here: Two) -> None:
    ref = here.one.desk.ready()
    do(here.one, settles(here, fix_the_bug))
    here.one.desk.hub.advance_one_second()
    here.one.desk.hub.world.comment(ref, "/mulligan fix: Make it three.", "wes")
    do(here.one, never)
    do(here.other, lambda given: given.write("src/tool.py", "X = 3\n"))
    assert here.labels(ref) == [REVIEW]
    assert here.one.ledger.status(ref).pending == ()


def test_once_the_pull_request_is_closed_either_may_take_it_up(here: Two) -> None:
    ref, world = here.one.desk.ready(), here.one.desk.hub.world
    do(here.one, settles(here, fix_the_bug))
    (pull,) = world.pulls_of(NAME)
    world.close(IssueRef(NAME, pull.number), "wes")
    do(here.other)
    assert here.labels(ref) == []
    do(here.one, never)
    here.one.desk.hub.advance_one_second()
    world.label(ref, READY, "wes")
    do(here.one)
    do(here.other, never)
    assert here.labels(ref) == [REVIEW]
    assert here.one.ledger.status(ref).epoch == 2


def test_after_a_command_too_the_other_may_come_first(here: Two) -> None:
    here.one.policy["max_issue_attempts"] = 1
    ref = here.one.desk.ready()
    do(here.one, settles(here, fail))
    assert here.labels(ref) == [HITL]
    here.one.desk.hub.advance_one_second()
    here.one.desk.hub.world.comment(ref, "/mulligan retry", "wes")
    do(here.one, settles(here, fix_the_bug))
    assert (here.labels(ref), here.pulls()) == ([REVIEW], [ref.branch])
    assert here.escalations(ref) == 1
    assert here.one.ledger.status(ref).elsewhere


def test_a_new_request_after_the_other_asked_a_person_may_be_taken_up_here(here: Two) -> None:
    here.one.policy["max_issue_attempts"] = 1
    ref = here.one.desk.ready()
    do(here.one, settles(here, fail))
    here.one.desk.hub.advance_one_second()
    here.one.desk.hub.world.label(ref, READY, "wes")
    do(here.one)
    assert here.labels(ref) == [REVIEW]
    assert not here.one.ledger.status(ref).elsewhere


@pytest.mark.parametrize("by", ["github-actions[bot]", "wes"])
def test_who_moves_the_label_on_does_not_matter(here: Two, by: str) -> None:
    """The Action has another login, and a person may move an issue along a board."""
    ref, world = here.one.desk.ready(), here.one.desk.hub.world
    if by not in world.users:
        world.add_user(by, "Bot")

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        world.label(ref, HITL, by)
        world.unlabel(ref, READY, by)
        world.unlabel(ref, RUNNING, by)

    do(here.one, work)
    assert here.labels(ref) == [HITL]
    assert here.pulls() == []
    assert here.one.ledger.status(ref).elsewhere
