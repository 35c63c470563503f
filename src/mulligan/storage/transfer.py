"""Move issues between ledgers, or to the state ref, with their counts and history."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from mulligan.domain.errors import UsageError
from mulligan.domain.events import RecordedEvent
from mulligan.domain.issue import IssueRef
from mulligan.domain.spending import Run
from mulligan.storage.git_ref import (
    Snapshot,
    StateRef,
    confirmed,
    read_lines,
    shortened,
    write_lines,
)
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.serialization import folded
from mulligan.storage.usage import SqlUsageStore

ReadMark = Callable[[IssueRef, str], str]
"""Reads the mark in a status comment, by its id; see RefSession.confirm."""


def import_from_ref(
    ref: StateRef, repository: str, ledger: SqlLedger, read_mark: ReadMark
) -> list[str]:
    """Import the issues whose record on the ref is newer and confirmed; return a report.

    Their attempts' usage counts for its day here, too.
    """
    stored = _at_rest(ref.read(), ledger).issues
    newer, doubted = list[tuple[IssueRef, Sequence[RecordedEvent]]](), list[str]()
    for issue, text in stored.items():
        events = read_lines(issue, text)
        if issue.repository != repository or not _is_newer(events, ledger.events(issue)):
            continue
        comment = folded(issue, events).effects.status_comment
        if believed := confirmed(text, read_mark(issue, comment) if comment else ""):
            newer.append((issue, read_lines(issue, believed)))
        else:
            doubted.append(f"{issue} was left out: {NOT_CONFIRMED}")
    return [*(str(issue) for issue in _adopt(newer, ledger)), *doubted]


NOT_CONFIRMED = (
    "its status comment does not confirm what the ref holds. It is restored from GitHub when "
    "Mulligan works on it."
)


def import_from_ledger(source: SqlLedger, ledger: SqlLedger) -> list[IssueRef]:
    """Import the issues whose record in another ledger is newer; return their names."""
    known = (status.issue for status in source.statuses())
    return _adopt(((issue, source.events(issue)) for issue in known), ledger)


def _adopt(
    records: Iterable[tuple[IssueRef, Sequence[RecordedEvent]]], ledger: SqlLedger
) -> list[IssueRef]:
    """Take over the records that are newer, and count their usage; return their issues."""
    moved = list[IssueRef]()
    for issue, events in records:
        if _is_newer(events, ledger.events(issue)):
            ledger.adopt(issue, events)
            moved.append(issue)
    count_spending(ledger, SqlUsageStore(ledger.database, ledger.redactor), moved)
    return moved


def count_spending(ledger: SqlLedger, accounts: SqlUsageStore, issues: Iterable[IssueRef]) -> None:
    """Count usage from elsewhere for its day, from the records of the attempts."""
    for issue in issues:
        for meta in ledger.history(issue):
            usages = {0: meta.agent, **{each.number: each.usage for each in meta.fix_rounds}}
            for fix_round, usage in usages.items():
                if usage:
                    agent = usage.name or usage.kind
                    run = Run(issue, meta.number, fix_round, meta.started_at, agent)
                    accounts.record(run, usage)


def export_to_ref(
    ref: StateRef, repository: str, ledger: SqlLedger, _read_mark: ReadMark
) -> list[str]:
    """Export the issues whose record in the ledger is newer; return their names."""
    stored = _at_rest(ref.read(), ledger)
    issues, moved = dict(stored.issues), list[str]()
    for status in ledger.statuses():
        issue, events = status.issue, ledger.events(status.issue)
        existing = read_lines(issue, stored.issues.get(issue, b""))
        if issue.repository == repository and _is_newer(events, existing):
            text = write_lines(events, ledger.redactor)
            issues[issue] = shortened(issue, text, ledger.redactor, keep_round=True)
            moved.append(str(issue))
    if moved:
        ref.write(replace(stored, issues=issues), stored)
    return moved


def _is_newer(events: Sequence[RecordedEvent], other: Sequence[RecordedEvent]) -> bool:
    """Return whether one record of an issue continues after the end of the other."""
    return bool(events) and (not other or events[-1].at > other[-1].at)


def _at_rest(stored: Snapshot, ledger: SqlLedger) -> Snapshot:
    now = ledger.clock.now()
    for issue, tenure in stored.leases.items():
        if tenure.is_good(now):
            raise UsageError(f"{tenure.worker} is working on {issue}; wait until that run ends.")
    return stored
