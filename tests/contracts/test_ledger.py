"""Any ledger keeps every event, in order, and says where each issue stands (port Ledger)."""

import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.events import (
    AttemptStarted,
    Authorised,
    BaselineRecorded,
    Decided,
    Event,
    IssueSeen,
    LearningsAccepted,
    LearningsDropped,
    NotedFact,
    RetryScheduled,
)
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome, Retry
from mulligan.domain.recorded_effects import WorkPushed
from mulligan.domain.status import IssueStatus, Phase
from mulligan.implement.ports import Ledger
from mulligan.storage.git_ref import RefLedger
from mulligan.storage.memory import MemoryLedger
from world.ledgers import (
    ISSUES,
    START,
    TickingClock,
    all_folded,
    completed,
    folded,
    open_ledger_url,
    url_for,
    with_listener,
)
from world.stores import ref_session

REF, OTHER, THIRD = ISSUES
AUTHORISED = Authorised(act="labeled:7", actor="ada", act_at=START)
STARTED = AttemptStarted(attempt=1, number=1, worker="here")


@pytest.fixture(params=["sqlite", "postgres", "memory", "ref"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger(TickingClock())
        return
    if request.param == "ref":
        with ref_session(tmp_path, TickingClock()) as book:
            yield RefLedger(book)
        return
    with open_ledger_url(url_for(request, tmp_path)) as kept:
        yield kept


def test_an_issue_never_seen_stands_at_epoch_0(ledger: Ledger) -> None:
    assert ledger.status(REF) == IssueStatus(REF)
    assert ledger.history(REF) == ()
    assert list(ledger.events(REF)) == []
    assert list(ledger.statuses()) == []
    assert ledger.last_seq() == 0


def test_the_status_after_an_event_is_given_back_and_kept(ledger: Ledger) -> None:
    ledger.append(REF, IssueSeen(title="Mend it"))
    ledger.append(REF, AUTHORISED)
    status = ledger.append(REF, STARTED)
    assert (status.text.title, status.stage, status.phase) == (
        "Mend it",
        Stage.RUNNING,
        Phase.ATTEMPTING,
    )
    assert (status.epoch, status.attempt, status.request.at) == (1, 1, START)
    assert ledger.status(REF) == status


def test_a_decision_and_its_time_are_kept_exactly(ledger: Ledger) -> None:
    ledger.append(REF, Decided(decision=Retry(reason="Again.", backoff_step=2)))
    due = START + timedelta(microseconds=1)
    ledger.append(REF, RetryScheduled(due=due, reason="Again."))
    status = ledger.status(REF)
    assert status.decision == Retry(reason="Again.", backoff_step=2)
    assert status.due == due


def test_a_listener_hears_every_event_once_it_is_recorded(ledger: Ledger) -> None:
    heard = list[tuple[IssueStatus, Event]]()

    def listen(status: IssueStatus, event: Event) -> None:
        assert ledger.status(status.issue) == status
        heard.append((status, event))

    heeded = with_listener(ledger, listen)
    heeded.append(REF, AUTHORISED)
    assert heeded.restore(OTHER, [AUTHORISED, STARTED])
    assert not heeded.restore(OTHER, [STARTED])
    assert not heeded.restore(THIRD, [])
    assert [(status.issue, event) for status, event in heard] == [
        (REF, AUTHORISED),
        (OTHER, STARTED),
    ]


def test_issues_are_listed_by_repository_and_number(ledger: Ledger) -> None:
    for ref in (THIRD, OTHER, REF):
        ledger.append(ref, IssueSeen(title=str(ref)))
    assert [status.issue for status in ledger.statuses()] == [REF, OTHER, THIRD]
    assert [status.text.title for status in ledger.statuses()] == [str(REF), str(OTHER), str(THIRD)]


def test_the_history_is_that_of_one_issue_oldest_first(ledger: Ledger) -> None:
    for number in (1, 2, 3):
        ledger.append(REF, AttemptStarted(attempt=number, number=number, worker="here"))
        ledger.append(REF, completed(REF, number))
    ledger.append(OTHER, completed(OTHER, 1, Outcome.SUCCEEDED))
    assert ledger.history(REF) == tuple(completed(REF, number).meta for number in (1, 2, 3))


def test_an_attempt_that_is_recorded_again_counts_as_the_last_record_says(ledger: Ledger) -> None:
    for number, outcome in ((1, Outcome.CHECKS_FAILED), (2, Outcome.SUCCEEDED)):
        ledger.append(REF, completed(REF, number, outcome))
    status = ledger.append(REF, completed(REF, 2, Outcome.INTERRUPTED))
    assert [meta.outcome for meta in ledger.history(REF)] == [
        Outcome.CHECKS_FAILED,
        Outcome.INTERRUPTED,
    ]
    assert (status.phase, status.outcome) == (Phase.COMPLETED, Outcome.INTERRUPTED)


def test_every_event_is_recorded_with_its_place_and_its_time(ledger: Ledger) -> None:
    for event in (IssueSeen(title="Mend it"), AUTHORISED, STARTED):
        ledger.append(REF, event)
    recorded = ledger.events(REF)
    assert [each.event for each in recorded] == [IssueSeen(title="Mend it"), AUTHORISED, STARTED]
    assert [each.seq for each in recorded] == [1, 2, 3]
    assert [(each.issue, each.epoch, each.attempt) for each in recorded] == [
        (REF, 0, None),
        (REF, 1, None),
        (REF, 1, 1),
    ]
    assert [each.at - START for each in recorded] == [timedelta(seconds=n) for n in (1, 2, 3)]


def test_events_can_be_followed(ledger: Ledger) -> None:
    for ref in (REF, OTHER, REF, OTHER):
        ledger.append(ref, IssueSeen(title=str(ref)))
    assert [each.seq for each in ledger.events()] == [1, 2, 3, 4]
    assert [each.seq for each in ledger.events(after=2)] == [3, 4]
    assert [each.seq for each in ledger.events(REF, after=1)] == [3]
    assert list(ledger.events(after=4)) == []
    assert [each.seq for each in ledger.events(after=1, most=2)] == [2, 3]
    assert ledger.last_seq() == 4


def test_repositories_with_the_same_number_are_told_apart(ledger: Ledger) -> None:
    ledger.append(REF, STARTED)
    assert ledger.status(THIRD) == IssueStatus(THIRD)
    assert list(ledger.events(THIRD)) == []


@pytest.mark.parametrize(
    "text", ["l\xf6tf\u00e9 \U0001f3cc", "a\x00b\r\n\u2028", "'; DROP TABLE events;--"]
)
def test_any_text_is_kept_as_it_is(ledger: Ledger, text: str) -> None:
    ledger.append(REF, IssueSeen(title=text))
    assert ledger.status(REF).text.title == text
    assert ledger.events(REF)[0].event == IssueSeen(title=text)


def test_half_a_character_does_not_stop_the_ledger(ledger: Ledger) -> None:
    ledger.append(REF, AUTHORISED.model_copy(update={"actor": "caf\udce9"}))
    assert ledger.status(REF).request.actor == "caf?"
    assert ledger.status(REF).request.at == START
    assert ledger.status(REF) == folded(ledger, REF)


@contextmanager
def switching_often() -> Generator[None]:
    """Let threads take turns as often as they can, so that what is not guarded shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_eight_threads_lose_nothing_of_one_another(ledger: Ledger) -> None:
    # What is pushed costs a tenth of a second each time.
    turns = 3 if isinstance(ledger, RefLedger) else 10

    def work(thread: int) -> None:
        own = IssueRef("octo/own", thread + 1)
        for turn in range(turns):
            ledger.append(own, IssueSeen(title=f"{turn}"))
            done = WorkPushed(attempt=10 * thread + turn, git_ref="x")
            ledger.append(REF, done)
            assert done in ledger.status(REF).effects.done

    with switching_often(), ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(ledger.status(REF).effects.done) == 8 * turns
    recorded = ledger.events()
    assert [each.seq for each in recorded] == list(range(1, 16 * turns + 1))
    assert sorted(each.at for each in recorded) == [each.at for each in recorded]
    assert list(ledger.statuses()) == all_folded(iter(recorded))


def test_a_baseline_is_found_by_its_key_for_every_issue_of_the_repository(ledger: Ledger) -> None:
    first = BaselineRecorded(key="a" * 64, start_sha="c0ffee", name="tests", check=None)
    later, other = (
        first.model_copy(update={"start_sha": "decaf"}),
        first.model_copy(update={"key": "b" * 64}),
    )
    for event in (first, later, other):
        ledger.append(REF, event)
    assert ledger.baseline(REF.repository, "a" * 64) == later
    assert ledger.baseline(REF.repository, "b" * 64) == other
    assert ledger.baseline(REF.repository, "c" * 64) is None
    assert ledger.baseline("octo/elsewhere", "a" * 64) is None


def test_what_a_repository_learned_is_found_in_order(ledger: Ledger) -> None:
    fact = NotedFact(text="a", number=1, noted_at=START)
    accepted, dropped = LearningsAccepted(facts=(fact,)), LearningsDropped(facts=("a",))
    for ref, event in ((REF, accepted), (OTHER, STARTED), (THIRD, accepted), (OTHER, dropped)):
        ledger.append(ref, event)
    found = [(each.issue, each.event) for each in ledger.learnings(REF.repository)]
    assert found == [(REF, accepted), (OTHER, dropped)]
    assert [each.issue for each in ledger.learnings(THIRD.repository)] == [THIRD]
    assert [*ledger.learnings("octo/unknown")] == []
    assert ledger.status(REF) == replace(IssueStatus(REF), known_since=ledger.events(REF)[0].at)
