"""What every account of what agents use does, in memory and on the disk."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts, Rest, RestKind
from mulligan.domain.spending import Run, Spent
from mulligan.implement.ports import UsageStore
from mulligan.storage.database import open_database
from mulligan.storage.usage import MemoryUsageStore, SqlUsageStore
from mulligan.text.redact import Redactor
from world.ledgers import url_for, url_of

ONE, TWO, ELSEWHERE = IssueRef("o/r", 1), IssueRef("o/r", 2), IssueRef("o/s", 1)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
TODAY = NOON.date()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def accounts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UsageStore]:
    if request.param == "memory":
        yield MemoryUsageStore()
        return
    with open_database(url_for(request, tmp_path)) as database:
        yield SqlUsageStore(database)


def run(ref: IssueRef, number: int = 1, fix_round: int = 0, began: datetime = NOON) -> Run:
    return Run(ref, number, fix_round, began)


def used(usd: float | None, tokens: int | None = None) -> AgentFacts:
    return AgentFacts(kind="command", cost_usd=usd, input_tokens=tokens, session_id="s")


def test_nothing_was_used_before_anybody_said_so(accounts: UsageStore) -> None:
    assert (accounts.used_on(TODAY), accounts.usage_of_attempt(ONE, 1)) == ({}, {})


def test_what_a_run_says_later_replaces_what_it_said(accounts: UsageStore) -> None:
    for usd, tokens in ((0.1, 10), (0.25, 30), (0.25, 30)):
        accounts.record(run(ONE), used(usd, tokens))
    assert accounts.used_on(TODAY) == {"o/r": Spent(0.25, 30)}
    assert accounts.usage_of_attempt(ONE, 1) == {0: used(0.25, 30)}


def test_runs_add_up_to_the_cent_by_repository(accounts: UsageStore) -> None:
    for number in range(1, 11):
        accounts.record(run(ONE, number), used(0.1, 1))
    accounts.record(run(TWO), used(0.000001))
    accounts.record(run(ELSEWHERE), used(None, 5))
    assert accounts.used_on(TODAY) == {"o/r": Spent(1.000001, 10), "o/s": Spent(None, 5)}


def test_a_run_counts_for_the_day_in_utc_on_which_it_began(accounts: UsageStore) -> None:
    late = datetime(2025, 3, 1, 23, 59, tzinfo=timezone(timedelta(hours=-2)))
    accounts.record(run(ONE, began=late), used(1))
    assert accounts.used_on(TODAY) == {}
    assert accounts.used_on(date(2025, 3, 2)) == {"o/r": Spent(1.0)}


def test_the_rounds_of_an_attempt_are_told_apart_and_in_order(accounts: UsageStore) -> None:
    for fix_round in (2, 0, 1):
        accounts.record(run(ONE, 3, fix_round), used(fix_round))
    accounts.record(run(ONE, 4), used(9))
    found = accounts.usage_of_attempt(ONE, 3)
    assert [*found] == [0, 1, 2]
    assert [usage.cost_usd for usage in found.values()] == [0, 1, 2]


def after(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def rested(minutes: int, count: int = 1) -> AgentFacts:
    rest = Rest(
        kind=RestKind.LIMITED,
        since=NOON,
        at=after(minutes),
        until=after(minutes + 5),
        count=count,
        words="A limit.",
        account="a1",
    )
    return used(None).model_copy(update={"rest": rest})


def test_the_last_run_of_an_agent_says_whether_it_rests(accounts: UsageStore) -> None:
    assert accounts.rest("claude") is None
    accounts.record(Run(ONE, 1, 0, NOON, "claude"), rested(1))
    accounts.record(Run(ONE, 2, 0, after(2), "x"), used(1))
    assert accounts.rest("claude") == rested(1).rest
    assert accounts.rest("x") is None
    accounts.record(Run(TWO, 1, 0, after(6), "claude"), rested(7, 2))
    assert accounts.rest("claude") == rested(7, 2).rest
    accounts.record(Run(TWO, 2, 0, after(20), "claude"), used(1))
    assert accounts.rest("claude") is None


def test_a_run_that_began_during_a_longer_one_does_not_hide_its_rest(accounts: UsageStore) -> None:
    accounts.record(Run(ONE, 1, 0, NOON, "claude"), used(1))
    accounts.record(Run(TWO, 1, 0, after(5), "claude"), used(1))
    accounts.record(Run(ONE, 1, 0, NOON, "claude"), rested(10))
    assert accounts.rest("claude") == rested(10).rest


def test_what_is_on_the_disk_is_there_again_and_holds_no_secret(tmp_path: Path) -> None:
    url = url_of(tmp_path / "mulligan.db")
    with open_database(url) as database:
        accounts = SqlUsageStore(database, Redactor(("hunter2hunter2",)))
        told = used(0.25).model_copy(update={"last_activity": "echo hunter2hunter2"})
        accounts.record(run(ONE), told)
    with open_database(url) as database:
        (found,) = SqlUsageStore(database).usage_of_attempt(ONE, 1).values()
    assert found.cost_usd == 0.25
    assert "hunter2" not in (found.last_activity or "")
