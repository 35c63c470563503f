"""Helpers for tests of the ledger: a ticking clock, fast databases, and arbitrary events."""

import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from types import UnionType
from typing import Annotated, TypeVar, Union, get_args, get_origin

import pytest
from hypothesis import strategies as st

from mulligan.domain.attempt import SHUTDOWN
from mulligan.domain.events import EVENT_TYPES, AttemptCompleted, Event, RecordedEvent
from mulligan.domain.fold import advance
from mulligan.domain.issue import Act, CommentAct, ConsoleAct, IssueRef, LabelAct, UnknownAct
from mulligan.domain.outcome import Outcome, Record
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Ledger, Listener
from mulligan.storage.database import open_database, reproject
from mulligan.storage.git_ref import RefLedger
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.memory import MemoryLedger

START = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
R = TypeVar("R", bound=Record)
ISSUES = (IssueRef("octo/one", 1), IssueRef("octo/one", 12), IssueRef("octo/two", 1))


@dataclass
class TickingClock:
    """A clock on which every look takes a second."""

    at: datetime = START
    _lock: Lock = field(default_factory=Lock)

    def now(self) -> datetime:
        with self._lock:
            self.at += timedelta(seconds=1)
            return self.at

    def backoff(self, step: int) -> timedelta:
        return timedelta(minutes=step)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def url_for(request: pytest.FixtureRequest, directory: Path) -> str:
    """Give a database for a fixture's parameter: "postgres", or else a file."""
    if request.param != "postgres":
        return migrated(directory / "ledger.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


def migrated(path: Path) -> str:
    """Put an empty ledger there, and give its URL; to migrate one takes five times as long."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_empty())
    return url_of(path)


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as scratch:
        path = Path(scratch, "ledger.db")
        open_database(url_of(path)).close()
        return path.read_bytes()


@contextmanager
def open_ledger_at(path: Path) -> Generator[SqlLedger]:
    with open_ledger_url(url_of(path) if path.exists() else migrated(path)) as ledger:
        yield ledger


@contextmanager
def open_ledger_url(url: str) -> Generator[SqlLedger]:
    with open_database(url) as database:
        yield SqlLedger(database, TickingClock())


@contextmanager
def opened_copy(template: Path, copy: Path) -> Generator[SqlLedger]:
    """Open a fresh copy of a database that was migrated once."""
    for suffix in ("", "-wal", "-shm"):
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(template, copy)
    with open_ledger_at(copy) as ledger:
        yield ledger


def with_listener(ledger: Ledger, listener: Listener) -> Ledger:
    """Return the same ledger; `listener` alone is called with each event it has recorded."""
    assert isinstance(ledger, SqlLedger | RefLedger | MemoryLedger)
    return replace(ledger, listener=listener)


def folded(ledger: Ledger, ref: IssueRef) -> IssueStatus:
    """Fold an issue's recorded events by hand."""
    status = IssueStatus(ref)
    for recorded in ledger.events(ref):
        status = advance(status, recorded.event, recorded.at)
    return status


def all_folded(recorded: Iterator[RecordedEvent]) -> list[IssueStatus]:
    """Fold everything that was recorded, by issue."""
    found: dict[IssueRef, IssueStatus] = {}
    for each in recorded:
        before = found.get(each.issue, IssueStatus(each.issue))
        found[each.issue] = advance(before, each.event, each.at)
    return [found[ref] for ref in sorted(found)]


def completed(
    ref: IssueRef, number: int, outcome: Outcome = Outcome.CHECKS_FAILED
) -> AttemptCompleted:
    meta = WorkerResultMeta(
        issue=str(ref),
        epoch=1,
        attempt=number,
        number=number,
        outcome=outcome,
        error="1 of 3 checks failed",
        failure_reason=SHUTDOWN if outcome is Outcome.INTERRUPTED else "tests failed",
        started_at=START,
        finished_at=START + timedelta(minutes=number),
    )
    return AttemptCompleted(meta=meta)


MOMENTS = st.datetimes(
    min_value=START.replace(year=2000, tzinfo=None),
    max_value=START.replace(year=2100, tzinfo=None),
    timezones=st.sampled_from([UTC]),
)
PLAIN: dict[object, st.SearchStrategy[object]] = {
    datetime: MOMENTS,
    int: st.integers(-(2**31), 2**31 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=20),
    bool: st.booleans(),
    type(None): st.none(),
    Act: st.sampled_from([LabelAct(7), CommentAct(9), ConsoleAct("now"), UnknownAct("x")]),
}
"""Numbers that are stored exactly; JSON has no NaN."""


def events() -> st.SearchStrategy[Event]:
    """Any event with any content, even if it makes no sense after the earlier ones."""
    return st.one_of(*map(_record, EVENT_TYPES))


def _record(kind: type[R]) -> st.SearchStrategy[R]:
    fields = {name: field.annotation for name, field in kind.model_fields.items()}
    return st.builds(kind, **{name: _value(what) for name, what in fields.items()})


def _value(what: object) -> st.SearchStrategy[object]:
    if get_origin(what) is Annotated:
        return _value(get_args(what)[0])
    if what in PLAIN:
        return PLAIN[what]
    if isinstance(what, type) and issubclass(what, Record):
        return _record(what)
    if get_origin(what) is tuple:
        return st.lists(_value(get_args(what)[0]), max_size=2).map(tuple)
    if get_origin(what) is dict:
        value = PLAIN.get(get_args(what)[1], PLAIN[str] | PLAIN[int])
        return st.dictionaries(st.text(max_size=5), value, max_size=2)
    if isinstance(what, UnionType) or get_origin(what) is Union:
        return st.one_of(*map(_value, get_args(what)))
    if isinstance(what, type) and issubclass(what, StrEnum):
        return st.sampled_from(list(what))
    return st.sampled_from(get_args(what))


def rebuild(ledger: SqlLedger) -> None:
    """Fold every status again from the events."""
    with ledger.database.write() as connection:
        reproject(connection)
