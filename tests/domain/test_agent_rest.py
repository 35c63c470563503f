"""How long an agent rests after its account or its program failed (OUTCOME-6)."""

from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.agent_rest import last_rest, rest_after, rest_sentence
from mulligan.domain.result import Rest, RestKind

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 4, 12, tzinfo=UTC)


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def found(kind: RestKind, minutes: int = 0, account: str = "a", words: str = "Why.") -> Rest:
    moment = at(minutes)
    return Rest(kind=kind, since=moment, at=moment, until=moment, words=words, account=account)


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        (RestKind.REFUSED, [60, 60, 60]),
        (RestKind.LIMITED, [5, 10, 20, 40, 60, 60, 60]),
        (RestKind.UNREACHABLE, [5, 10, 20]),
        (RestKind.NOT_STARTED, [5, 10, 20]),
        (RestKind.ASKED, [0, 0]),
    ],
)
def test_the_waits_grow_to_an_hour(kind: RestKind, waits: list[int]) -> None:
    before: Rest | None = None
    for number, minutes in enumerate(waits, start=1):
        before = rest_after(found(kind), before)
        assert (before.count, before.until) == (number, at(minutes))


def test_a_rest_that_goes_on_keeps_its_beginning_and_its_first_words() -> None:
    first = rest_after(found(RestKind.LIMITED, words="resets in 3h"), None)
    second = rest_after(found(RestKind.LIMITED, 5, words="resets in 2h"), first)
    assert (second.since, second.at, second.words) == (NOON, at(5), "resets in 3h")
    asked = rest_after(found(RestKind.ASKED, 5), rest_after(found(RestKind.ASKED), None))
    assert asked.since == at(5)


@pytest.mark.parametrize(
    "other", [found(RestKind.LIMITED, 5, account="b"), found(RestKind.REFUSED, 5)]
)
def test_another_cause_or_account_begins_anew(other: Rest) -> None:
    first = rest_after(found(RestKind.LIMITED), None)
    second = rest_after(other, rest_after(first, first))
    assert (second.count, second.since) == (1, at(5))


def test_a_longer_wait_that_the_service_asks_for_counts() -> None:
    for minutes, until in ((1, 5), (90, 90)):
        rest = rest_after(found(RestKind.LIMITED), None, timedelta(minutes=minutes))
        assert rest.until == at(until)


def test_the_latest_run_counts_and_a_rest_from_its_end() -> None:
    rest = found(RestKind.LIMITED, 10)
    assert last_rest([]) is None
    assert last_rest([(at(0), rest), (at(5), None)]) == rest
    assert last_rest([(at(0), rest), (at(11), None)]) is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (RestKind.REFUSED, "Why. Mulligan tries it every hour, and at once after"),
        (RestKind.LIMITED, "Why. Mulligan tries it after waits that grow to an hour, and"),
        (RestKind.ASKED, "asked the agent 'x' to wait until 2025-03-04 12:00:00 UTC"),
    ],
)
def test_a_rest_says_why_and_what_ends_it(kind: RestKind, words: str) -> None:
    assert words in rest_sentence("x", found(kind))
