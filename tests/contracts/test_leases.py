"""Any leases let at most one worker have an issue, and none for longer than it lives (Leases)."""

import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest

from mulligan.domain.errors import LeaseLostError
from mulligan.domain.events import AttemptStarted, IssueSeen
from mulligan.domain.issue import IssueRef, Lease
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Leases, Ledger
from mulligan.storage.database import open_database
from mulligan.storage.git_ref import RefLedger
from mulligan.storage.leases import LEASE_TIME, SqlLeases
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from world.ledgers import ISSUES, url_for
from world.stores import ref_session
from world.trackers import FrozenClock

REF, OTHER, THIRD = ISSUES
MOMENT = timedelta(microseconds=1)
CLAIM = """
import sys
from mulligan.domain.issue import IssueRef
from mulligan.storage.database import open_database
from mulligan.storage.leases import SqlLeases
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
with open_database(sys.argv[1]) as database:
    leases = SqlLeases(database, SystemClock())
    print("ready", flush=True)
    sys.stdin.readline()
    lease = leases.claim(IssueRef("octo/one", 1), sys.argv[2])
    print(lease.worker if lease else "refused", flush=True)
    sys.stdin.readline()
"""
"""A process of its own that claims an issue when it is told to, and ends when it is told again."""


@dataclass(frozen=True)
class Office:
    """Leases with the ledger that looks at them, and the clock by which they run out."""

    leases: Leases
    ledger: Ledger
    clock: FrozenClock

    def pass_time(self, time: timedelta) -> None:
        self.clock.time += time

    def claimed(self, ref: IssueRef = REF, worker: str = "one") -> Lease:
        lease = self.leases.claim(ref, worker)
        assert lease
        return lease


@pytest.fixture(params=["sqlite", "postgres", "memory", "ref"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Office]:
    clock = FrozenClock()
    if request.param == "memory":
        leases = MemoryLeases(clock)
        yield Office(leases, MemoryLedger(clock, leases), clock)
        return
    if request.param == "ref":
        with ref_session(tmp_path, clock, lease=LEASE_TIME) as book:
            yield Office(book, RefLedger(book), clock)
        return
    with open_database(url_for(request, tmp_path)) as database:
        yield Office(SqlLeases(database, clock), SqlLedger(database, clock), clock)


def test_an_issue_is_for_one_worker(office: Office) -> None:
    lease = office.claimed(REF, "one")
    assert (lease.issue, lease.worker) == (REF, "one")
    assert office.leases.holds(lease)
    assert office.leases.claim(REF, "two") is None
    assert office.leases.claim(REF, "one") is None
    assert office.leases.holds(lease)


def test_issues_are_claimed_one_by_one(office: Office) -> None:
    leases = [office.claimed(ref, worker) for ref, worker in zip(ISSUES, "abc", strict=True)]
    assert all(map(office.leases.holds, leases))
    office.leases.release(leases[0])
    assert [*map(office.leases.holds, leases)] == [False, True, True]


def test_a_lease_ends_at_its_time_and_not_before(office: Office) -> None:
    lease = office.claimed()
    office.pass_time(LEASE_TIME - MOMENT)
    assert office.leases.holds(lease)
    assert office.leases.holder(REF) == "one"
    assert office.leases.claim(REF, "two") is None
    office.pass_time(MOMENT)
    assert not office.leases.holds(lease)
    assert office.leases.holder(REF) is None
    assert office.claimed(REF, "two").fence > lease.fence


def test_a_lease_that_is_renewed_lives_on(office: Office) -> None:
    lease = office.claimed()
    for _ in range(3):
        office.pass_time(LEASE_TIME - MOMENT)
        assert office.leases.renew(lease)
    assert office.leases.claim(REF, "two") is None
    office.pass_time(LEASE_TIME - MOMENT)
    assert office.leases.holds(lease)
    office.pass_time(MOMENT)
    assert not office.leases.holds(lease)


def test_a_lease_that_ran_out_is_not_renewed_even_if_nobody_took_it(office: Office) -> None:
    lease = office.claimed()
    office.pass_time(LEASE_TIME)
    assert not office.leases.renew(lease)
    assert not office.leases.holds(lease)


def test_the_one_who_lost_a_lease_does_the_next_no_harm(office: Office) -> None:
    lost = office.claimed(REF, "one")
    office.pass_time(LEASE_TIME)
    lease = office.claimed(REF, "two")
    assert not office.leases.renew(lost)
    office.leases.release(lost)
    assert office.leases.holds(lease)
    assert office.leases.claim(REF, "one") is None


def test_a_lease_is_given_back_once(office: Office) -> None:
    lease = office.claimed()
    office.leases.release(lease)
    assert not office.leases.holds(lease)
    assert not office.leases.renew(lease)
    again = office.claimed(REF, "two")
    office.leases.release(lease)
    assert office.leases.holds(again)


def test_the_fence_of_an_issue_only_grows(office: Office) -> None:
    fences = list[int]()
    for turn in range(6):
        lease = office.claimed(REF, "one")
        fences.append(lease.fence)
        match turn % 3:
            case 0:
                office.leases.release(lease)
            case 1:
                office.leases.release_all()
            case _:
                office.pass_time(LEASE_TIME)
    assert fences == sorted(set(fences))


def test_leases_of_the_dead_are_forgotten(office: Office) -> None:
    leases = [office.claimed(REF), office.claimed(OTHER)]
    office.leases.release_all()
    assert not any(map(office.leases.holds, leases))
    assert not any(map(office.leases.renew, leases))
    assert office.claimed(REF, "two")


def test_there_may_be_nothing_to_forget(office: Office) -> None:
    office.leases.release_all()
    assert office.claimed()


def test_no_more_issues_are_held_than_all_workers_may(office: Office) -> None:
    first = office.leases.claim(REF, "one", most=2)
    assert first
    assert office.leases.claim(OTHER, "two", most=2)
    assert office.leases.claim(THIRD, "three", most=2) is None
    assert office.leases.holder(THIRD) is None
    assert office.leases.claim(THIRD, "three", most=3)
    office.leases.release(first)
    assert office.leases.claim(REF, "one", most=2) is None
    assert office.leases.claim(REF, "one")


def test_a_lease_that_ran_out_counts_no_more(office: Office) -> None:
    assert office.leases.claim(REF, "one", most=1)
    office.pass_time(LEASE_TIME - MOMENT)
    assert office.leases.claim(OTHER, "two", most=1) is None
    office.pass_time(MOMENT)
    assert office.leases.claim(OTHER, "two", most=1)


LOSSES: list[Callable[[Office, Lease], object]] = [
    lambda office, lease: office.leases.release(lease),
    lambda office, lease: office.leases.release_all(),
    lambda office, lease: office.pass_time(LEASE_TIME),
    lambda office, lease: (office.pass_time(LEASE_TIME), office.claimed(REF, "two")),
]


@pytest.mark.parametrize("lose", LOSSES, ids=["released", "forgotten", "run out", "taken over"])
def test_nothing_is_written_under_a_lost_lease(
    office: Office, lose: Callable[[Office, Lease], object]
) -> None:
    lease = office.claimed()
    ledger = office.ledger.with_lease(lease)
    status = ledger.append(REF, IssueSeen(title="Mend it"))
    lose(office, lease)
    with pytest.raises(LeaseLostError, match="octo/one#1"):
        ledger.append(REF, AttemptStarted(attempt=1, number=1, worker="one"))
    assert ledger.status(REF) == office.ledger.status(REF) == status
    assert [each.event for each in office.ledger.events()] == [IssueSeen(title="Mend it")]


def test_the_ledger_under_a_lease_is_the_same_ledger(office: Office) -> None:
    office.ledger.append(OTHER, IssueSeen(title="Another"))
    ledger = office.ledger.with_lease(office.claimed())
    status = ledger.append(REF, IssueSeen(title="Mend it"))
    assert isinstance(status, IssueStatus)
    assert ledger.status(REF) == office.ledger.status(REF) == status
    assert list(ledger.statuses()) == list(office.ledger.statuses())
    assert list(ledger.events(after=1)) == list(office.ledger.events(REF))
    assert ledger.history(REF) == ()


def test_the_next_lease_writes_where_the_last_one_left(office: Office) -> None:
    lost = office.ledger.with_lease(office.claimed())
    lost.append(REF, IssueSeen(title="Mend it"))
    office.pass_time(LEASE_TIME)
    lease = office.claimed(REF, "two")
    for ledger in (office.ledger.with_lease(lease), lost.with_lease(lease)):
        ledger.append(REF, IssueSeen(title="Mend it well"))
    with pytest.raises(LeaseLostError):
        lost.append(REF, IssueSeen(title="Mend it badly"))
    assert office.ledger.status(REF).text.title == "Mend it well"


def test_of_eight_threads_that_claim_at_once_one_wins(office: Office) -> None:
    barrier = Barrier(8)

    def claim(worker: int) -> list[Lease | None]:
        found = list[Lease | None]()
        for number in range(1, 6):
            barrier.wait(240)
            found.append(office.leases.claim(IssueRef("octo/race", number), f"{worker}"))
        return found

    with ThreadPoolExecutor(8) as pool:
        rounds = [*zip(*pool.map(claim, range(8)), strict=True)]
    winners = [[lease for lease in each if lease] for each in rounds]
    assert [len(each) for each in winners] == [1] * 5
    assert all(office.leases.holds(lease) for (lease,) in winners)


def test_of_eight_threads_with_room_for_three_three_win(office: Office) -> None:
    barrier = Barrier(8)

    def claim(worker: int) -> Lease | None:
        barrier.wait(240)
        return office.leases.claim(IssueRef("octo/race", worker + 1), f"{worker}", most=3)

    with ThreadPoolExecutor(8) as pool:
        assert len([lease for lease in pool.map(claim, range(8)) if lease]) == 3


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.deep)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_for(request, tmp_path)


def test_of_two_processes_on_one_database_one_wins(url: str) -> None:
    open_database(url).close()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIM, url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("claim\n")
        process.stdin.flush()
    said = [process.communicate("end\n", timeout=240)[0].strip() for process in processes]
    assert said in (["one", "refused"], ["refused", "two"])


def test_a_worker_hears_of_itself(office: Office) -> None:
    assert list(office.leases.heartbeat("one")) == ["one"]


def test_workers_that_share_a_database_hear_of_each_other_while_they_are_there(
    postgres_url: str,
) -> None:
    clock = FrozenClock()
    with open_database(postgres_url) as first, open_database(postgres_url) as second:
        one, two = SqlLeases(first, clock), SqlLeases(second, clock)
        assert list(one.heartbeat("one")) == ["one"]
        assert list(two.heartbeat("two")) == ["one", "two"]
        clock.time += LEASE_TIME - MOMENT
        assert list(two.heartbeat("two")) == ["one", "two"]
        clock.time += MOMENT
        assert list(one.present()) == ["two"]
        assert list(two.heartbeat("two")) == ["two"]
