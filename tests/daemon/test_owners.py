"""Two installations on one repository: one works, the other stands back until the first stops."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.daemon.cleanup import RetentionPlan, clean_up
from mulligan.daemon.daemon import Daemon, Runtime
from mulligan.daemon.lease_guard import under_lease
from mulligan.daemon.once import run_once
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import StandsBackError
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.ownership import LAPSE, RENEWAL
from mulligan.implement.ports import BotContext
from mulligan.sandbox.cancellation import Cancellation
from mulligan.storage.database import Database, open_database
from mulligan.storage.leases import SqlLeases
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.owner_ref import Installation, RefOwners
from mulligan.storage.sightings import SqlSightings
from mulligan.storage.usage import SqlUsageStore
from world.behaviours import AgentInput, Behaviour
from world.ledgers import migrated
from world.owners import OwnedRemote
from world.processes import wait_until
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@dataclass
class Installed:
    """An installation: a ledger of its own, and a daemon."""

    name: str
    here: WorkerEnvironment
    owners: RefOwners
    agent: Behaviour = fix_the_bug
    woken: list[IssueRef] = field(default_factory=list[IssueRef])

    @property
    def context(self) -> BotContext:
        return replace(self.here.context(self.agent, self.name), owners=self.owners)

    def start(self) -> "Iterator[None]":
        """Run a daemon that polls and visits each time the iterator is advanced."""
        context = self.context
        runtimes = [Runtime((NAME,), context, Worker(context))]
        daemon = Daemon(lambda: runtimes.pop() if runtimes else None)
        while True:
            woken = list[IssueRef]()
            daemon.poll(woken.extend)
            for ref in woken:
                daemon.visit(ref)
            yield

    def runs(self, ref: IssueRef) -> list[Outcome]:
        return [meta.outcome for meta in self.here.ledger.history(ref)]

    def stage(self, ref: IssueRef) -> Stage:
        return self.here.ledger.status(ref).stage


@dataclass
class Two:
    """Installations that have GitHub in common, and nothing else."""

    one: Installed
    other: Installed
    remote: OwnedRemote

    def wait(self, time: timedelta) -> None:
        self.one.here.desk.clock.time += time
        self.one.here.desk.hub.advance_one_second()

    @property
    def pulls(self) -> list[str]:
        found = self.one.here.desk.hub.world.pulls_of(NAME)
        return [pull.pull.head_ref for pull in found if pull.pull]


@pytest.fixture
def here(tmp_path: Path) -> Generator[Two]:
    with (
        worker_environment(tmp_path) as made,
        _installed("one", made, tmp_path) as one,
        _installed("other", made, tmp_path) as other,
    ):
        yield Two(one, other, OwnedRemote(made.desk.hub.bare, made.desk.clock))


@contextmanager
def _installed(name: str, shared: WorkerEnvironment, directory: Path) -> Generator[Installed]:
    with open_database(migrated(directory / name / "mulligan.db")) as database:
        clock = shared.desk.clock
        own = replace(
            shared,
            directory=directory / name,
            ledger=SqlLedger(database, clock),
            # So long that only the owner's record can be lost here.
            leases=SqlLeases(database, clock, timedelta(days=1000)),
            accounts=SqlUsageStore(database),
        )
        yield Installed(name, own, _owners(name, shared, database))


def _owners(
    name: str, shared: WorkerEnvironment, database: Database, *, take_over: bool = False
) -> RefOwners:
    clock = shared.desk.clock
    sightings = SqlSightings(database, clock)
    remote = OwnedRemote(shared.desk.hub.bare, clock)
    return remote.owners(Installation(name, sightings, clock, take_over=take_over))


def never(given: AgentInput) -> None:
    pytest.fail("This installation must not run an agent.")


def test_the_second_does_nothing_and_says_so_once(
    here: Two, capfd: pytest.CaptureFixture[str]
) -> None:
    ref = here.one.here.desk.ready()
    one, other = here.one.start(), here.other.start()
    here.other.agent = never
    next(one)
    assert here.one.stage(ref) is Stage.REVIEW
    later = here.one.here.desk.ready()
    here.one.here.desk.hub.world.comment(ref, "/mulligan status", "wes")
    written = here.one.here.writes()
    for _ in range(10):
        next(other)
        here.wait(RENEWAL)
        here.one.owners.renew()
    assert (here.one.here.writes(), here.other.here.ledger.statuses()) == (written, [])
    next(one)
    assert here.one.stage(later) is Stage.REVIEW
    next(other)
    logged = capfd.readouterr()
    assert (logged.out + logged.err).count("another installation of Mulligan (one)") == 1
    assert [back.owner for back in here.other.owners.standing_back()] == ["one"]


def test_without_work_nobody_owns_anything(here: Two) -> None:
    one, other = here.one.start(), here.other.start()
    for _ in range(3):
        next(one)
        next(other)
    assert here.remote.tip() == ""


class KilledError(Exception):
    """Mulligan is killed."""


def kill(given: AgentInput) -> None:
    raise KilledError


def test_who_was_killed_is_replaced_after_five_minutes(here: Two) -> None:
    ref = here.one.here.desk.ready()
    here.one.agent = kill
    Worker(here.one.context, max_attempts=1).visit(ref)
    other = here.other.start()
    for _ in range(5):
        next(other)
        assert here.other.runs(ref) == []
        here.wait(RENEWAL)
    next(other)
    assert here.other.stage(ref) is Stage.REVIEW
    assert here.pulls == [ref.branch]
    assert here.remote.stored() == {"mulligan": "other"}
    # The first one starts again, and finds that it has nothing to say any more.
    here.one.agent = never
    written = here.one.here.writes()
    again = here.one.start()
    for _ in range(5):
        here.other.owners.renew()
        next(again)
        here.wait(RENEWAL)
    assert here.one.here.writes() == written


def test_who_wakes_after_it_was_replaced_does_nothing_more(here: Two) -> None:
    ref = here.one.here.desk.ready()
    other = here.other.start()

    def freeze(given: AgentInput) -> None:
        given.write("src/tool.py", "X = 3  # too late\n")
        next(other)
        here.wait(LAPSE)
        next(other)

    here.one.agent = freeze
    visit = Worker(here.one.context, max_attempts=1).visit(ref)
    assert visit.skipped
    assert here.other.stage(ref) is Stage.REVIEW
    assert here.pulls == [ref.branch]
    assert here.one.here.pushed(ref) == here.other.here.ledger.history(ref)[-1].head_sha
    said = here.one.here.said(ref)
    run_once((NAME,), here.one.context)
    assert here.one.here.said(ref) == said


def test_nothing_is_pushed_by_who_was_replaced_a_moment_ago(here: Two) -> None:
    """Its own record is still recent enough for a comment, but not for a push."""
    ref = here.one.here.desk.ready()

    def be_replaced(given: AgentInput) -> None:
        given.write("src/tool.py", "X = 3\n")
        replace_owners(here).require(NAME)

    here.one.agent = be_replaced
    visit = Worker(here.one.context, max_attempts=1).visit(ref)
    assert visit.skipped
    assert "another installation" in visit.skipped
    assert (here.one.here.pushed(ref), here.pulls) == (None, [])


def replace_owners(here: Two) -> RefOwners:
    """Give the other installation what `--take-over` gives it."""
    ledger = here.other.here.ledger
    assert isinstance(ledger, SqlLedger)
    return _owners("other", here.one.here, ledger.database, take_over=True)


def test_who_takes_over_follows_what_it_did_not_know(here: Two) -> None:
    """A ledger that knows other issues of the repository is as good as a lost one for the rest."""
    known = here.one.here.desk.ready()
    here.one.here.desk.hub.world.comment(known, "Thank you!", "wes")
    for _ in range(2):
        run_once((NAME,), here.other.context)
    assert here.other.here.ledger.comments_read_to(NAME)
    here.other.owners.release()
    assert here.other.stage(known) is Stage.REVIEW
    ref = here.one.here.desk.ready()
    here.one.agent = fix_the_bug
    run_once((NAME,), here.one.context)
    assert here.one.stage(ref) is Stage.REVIEW
    here.other.agent = never
    other = here.other.start()
    next(other)
    assert here.other.here.ledger.status(ref).known_since is None
    here.wait(LAPSE)
    next(other)
    assert here.other.stage(ref) is Stage.REVIEW
    here.one.here.desk.hub.world.close(here_pull(here, ref), "wes")
    next(other)
    assert here.other.stage(ref) is Stage.RESOLVED


def here_pull(here: Two, ref: IssueRef) -> IssueRef:
    found = here.one.here.desk.hub.world.pulls_of(NAME)
    (number,) = [each.number for each in found if each.pull and each.pull.head_ref == ref.branch]
    return IssueRef(NAME, number)


def test_a_single_pass_and_a_single_issue_stand_back_too(here: Two) -> None:
    ref = here.one.here.desk.ready()
    run_once((NAME,), here.one.context)
    here.other.agent = never
    waiting = here.one.here.desk.ready()
    done = run_once((NAME,), here.other.context)
    assert (done.visits, done.problems) == ((), ())
    assert [("(one)" in each, "--take-over" in each) for each in done.paused] == [(True, True)]
    visit = Worker(here.other.context, max_attempts=1).visit(waiting)
    assert (visit.attempts, visit.skipped) == (0, done.paused[0])
    assert here.one.stage(ref) is Stage.REVIEW


def test_who_stands_back_still_cleans_up_at_home(here: Two) -> None:
    ref = here.one.here.desk.ready()
    context = here.one.context
    run_once((NAME,), context)
    here.one.here.desk.hub.world.close(here_pull(here, ref), "wes")
    here.one.here.desk.hub.world.close(ref, "wes")
    run_once((NAME,), context)
    assert here.one.stage(ref) is Stage.RESOLVED
    here.one.owners.release()
    here.other.owners.require(NAME)
    here.wait(timedelta(days=400))
    assert clean_up(context, Worker(context), RetentionPlan()) == {}
    assert not context.artifacts.attempts()


def test_no_agent_starts_for_who_was_replaced_a_moment_ago(here: Two) -> None:
    here.one.owners.require(NAME)
    replace_owners(here).require(NAME)
    here.one.agent = never
    ref, written = here.one.here.desk.ready(), here.one.here.writes()
    visit = Worker(here.one.context, max_attempts=1).visit(ref)
    assert (visit.attempts, here.one.here.writes()) == (0, written)
    assert here.one.here.ledger.status(ref).known_since is None


def test_a_write_after_the_loss_is_refused(here: Two) -> None:
    ref = here.one.here.desk.ready()
    with Worker(here.one.context).claim_lease(ref) as context:
        assert context
        here.wait(RENEWAL * 2)
        replace_owners(here).require(NAME)
        with pytest.raises(StandsBackError):
            context.writer.react(NAME, 1, "eyes")
        assert context.ledger.status(ref).stage is Stage.READY


def test_an_attempt_is_stopped_when_another_installation_takes_over(here: Two) -> None:
    ref, context, stop = here.one.here.desk.ready(), here.one.context, Cancellation()
    context.owners.require(NAME)
    lease = context.leases.claim(ref, context.worker)
    assert lease
    with under_lease(lease, context, stop, timedelta(milliseconds=50)):
        replace_owners(here).require(NAME)
        here.wait(RENEWAL * 2)
        wait_until(lambda: isinstance(stop.reason, StandsBackError))


def test_a_command_on_an_unknown_issue_is_left_to_the_owner(here: Two) -> None:
    here.one.owners.require(NAME)
    hub = here.one.here.desk.hub
    hub.world.comment(hub.issue(), "/mulligan retry", "wes")
    written = here.one.here.writes()
    next(here.other.start())
    assert (here.one.here.writes(), here.other.here.ledger.statuses()) == (written, [])


def test_nobody_is_woken_for_the_work_of_another_installation(here: Two) -> None:
    here.one.owners.require(NAME)
    ref, woken, context = here.one.here.desk.ready(), list[IssueRef](), here.other.context
    runtimes = [Runtime((NAME,), context, Worker(context))]
    daemon = Daemon(lambda: runtimes.pop() if runtimes else None)
    daemon.poll(woken.extend)
    assert woken == []
    here.one.owners.release()
    daemon.poll(woken.extend)
    assert woken == [ref]


def test_who_starts_again_owns_what_waits_for_a_person(here: Two) -> None:
    here.one.agent = lambda _given: 0
    ref, one = here.one.here.desk.ready(), here.one.start()
    for _ in range(2):
        next(one)
        here.wait(RENEWAL)
    assert here.one.stage(ref) is Stage.HITL
    here.one.owners.release()
    assert here.remote.stored() == {}
    next(here.one.start())
    assert here.remote.stored() == {"mulligan": "one"}
