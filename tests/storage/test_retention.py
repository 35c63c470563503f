"""Of an old issue a remnant stays in the ledger, put in the place of all else at once."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from mulligan.domain.command import Verb
from mulligan.domain.events import (
    AttemptStarted,
    Authorised,
    CommandReceived,
    Event,
    Forgotten,
    HumanResponded,
    IssueSeen,
    Published,
    Resolution,
    Resolved,
    ReviewReceived,
    StoodDown,
)
from mulligan.domain.issue import CommentAct, IssueRef, ReviewAct, Stage
from mulligan.domain.recorded_effects import CommentsRead, Pushed
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.retention import SqlRetentionStore
from mulligan.storage.usage import SqlUsageStore
from world.ledgers import ISSUES, START, open_ledger_at, rebuild

REF, OTHER, THIRD = ISSUES
LATER = START + timedelta(days=1)
PUSHED = Pushed(branch=REF.branch, head_sha="c0ffee")
PULL = Published(pull_request="https://x.example/pull/7", number=7, head_sha="c0ffee")
RESOLVED = Resolved(
    resolution=Resolution.MERGED,
    reason="Its pull request was merged.",
    total_attempts=2,
    total_duration_ms=1,
)
LIFE: tuple[Event, ...] = (
    IssueSeen(title="Mend it"),
    Authorised(act="labeled:7", actor="ada", act_at=START),
    AttemptStarted(attempt=2, number=2, worker="here"),
    PUSHED,
    PULL,
    RESOLVED,
    CommentsRead(read_to=9),
)


@pytest.fixture
def ledger(tmp_path: Path) -> Generator[SqlLedger]:
    with open_ledger_at(tmp_path / "ledger.db") as made:
        yield made


@pytest.fixture
def attic(ledger: SqlLedger) -> SqlRetentionStore:
    return SqlRetentionStore(ledger.database, ledger.clock)


def live(ledger: SqlLedger, ref: IssueRef, *events: Event) -> None:
    for event in events:
        ledger.append(ref, event)


def spend(ledger: SqlLedger, ref: IssueRef) -> None:
    run = Run(ref, 2, 0, START)
    SqlUsageStore(ledger.database).record(run, AgentFacts(kind="x", cost_usd=1))


def test_a_remnant_holds_what_the_next_request_needs(
    ledger: SqlLedger, attic: SqlRetentionStore
) -> None:
    live(ledger, REF, *LIFE)
    live(ledger, OTHER, *LIFE)
    spend(ledger, REF)
    known = ledger.status(REF).known_since
    assert list(attic.outdated(LATER)) == [REF, OTHER]
    assert attic.forget(REF, LATER)
    (kept,) = ledger.events(REF)
    assert kept.event == Forgotten(
        reason=RESOLVED.reason,
        number=2,
        act="labeled:7",
        known_since=known,
        epochs=1,
        pull_request="https://x.example/pull/7",
        effects=(PUSHED, CommentsRead(read_to=9)),
    )
    assert kept.seq > max(each.seq for each in ledger.events(OTHER))
    assert SqlUsageStore(ledger.database).usage_of_attempt(REF, 2) == {}
    assert list(attic.outdated(LATER)) == [OTHER]
    assert len(ledger.events(OTHER)) == len(LIFE)


def test_a_remnant_is_folded_as_it_is_stored(ledger: SqlLedger, attic: SqlRetentionStore) -> None:
    live(ledger, REF, *LIFE)
    before = ledger.status(REF)
    attic.forget(REF, LATER)
    status = ledger.status(REF)
    rebuild(ledger)
    assert ledger.status(REF) == status
    assert (status.epoch, status.number, status.stage) == (0, 2, Stage.RESOLVED)
    assert status.instance == before.instance
    assert status.effects == before.effects
    assert ledger.comments_read_to(REF.repository) == 9


def test_what_people_said_up_to_then_counts_as_heard(
    ledger: SqlLedger, attic: SqlRetentionStore
) -> None:
    review = ReviewReceived(reviews=(7,), author="ada", author_id=1, at=START, remarks=())
    command = CommandReceived(key="comment:9", command=Verb.STATUS, actor="ada", at=START)
    answer = HumanResponded(key="comment:9", command=Verb.STATUS, actor="ada", answer="Well.")
    live(ledger, REF, *LIFE[:5], review, command, answer, RESOLVED)
    assert attic.forget(REF, LATER)
    handled = ledger.status(REF).handled
    assert all(each in handled for each in (ReviewAct(7), ReviewAct(3), CommentAct(9)))
    assert not any(each in handled for each in (ReviewAct(8), CommentAct(10)))
    assert attic.forget(REF, LATER) is False


def test_what_is_not_over_is_kept(ledger: SqlLedger, attic: SqlRetentionStore) -> None:
    live(ledger, REF, *LIFE[:-2])
    live(ledger, OTHER, *LIFE[:-2], StoodDown(reason="Unlabelled; its pull request is open."))
    live(ledger, THIRD, IssueSeen(title="New"))
    assert not any(attic.forget(ref, LATER) for ref in ISSUES)
    assert len(ledger.events()) == 5 + 6 + 1


def test_what_happens_meanwhile_keeps_an_issue(ledger: SqlLedger, attic: SqlRetentionStore) -> None:
    live(ledger, REF, *LIFE)
    before = ledger.events(REF)[-2].at + timedelta(microseconds=1)
    assert list(attic.outdated(before)) == [REF]
    ledger.append(REF, IssueSeen(title="Another"))
    assert list(attic.outdated(before)) == []
    assert not attic.forget(REF, before)


def test_that_comments_were_read_does_not_make_a_remnant_old_again(
    ledger: SqlLedger, attic: SqlRetentionStore
) -> None:
    live(ledger, REF, *LIFE)
    attic.forget(REF, LATER)
    ledger.append(REF, CommentsRead(read_to=12))
    assert list(attic.outdated(LATER + timedelta(days=400))) == []
    assert ledger.comments_read_to(REF.repository) == 12


def test_a_transaction_that_fails_leaves_everything(
    ledger: SqlLedger, attic: SqlRetentionStore
) -> None:
    live(ledger, REF, *LIFE)
    spend(ledger, REF)
    failing = "CREATE TRIGGER no BEFORE UPDATE ON issues BEGIN SELECT RAISE(ABORT, 'no'); END"
    with ledger.database.write() as connection:
        connection.execute(text(failing))
    with pytest.raises(IntegrityError, match="no"):
        attic.forget(REF, LATER)
    assert len(ledger.events(REF)) == len(LIFE)
    assert SqlUsageStore(ledger.database).usage_of_attempt(REF, 2)
