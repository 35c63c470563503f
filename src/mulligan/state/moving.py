"""Move issues between a ledger of this machine and the ref, so that counts and history go along."""

from collections.abc import Sequence
from dataclasses import replace

from mulligan.domain.events import Recorded
from mulligan.errors import UsageError
from mulligan.state.ledger import SqlLedger
from mulligan.state.lines import Snapshot, bounded, read_lines, write_lines
from mulligan.state.ref import StateRef


def pull(ref: StateRef, repository: str, ledger: SqlLedger) -> list[str]:
    """Take over the issues of which the ref knows something newer; name them."""
    stored, moved = _at_rest(ref.read(), ledger), list[str]()
    for issue, text in stored.issues.items():
        events = read_lines(issue, text)
        if issue.repository == repository and _is_newer(events, ledger.events(issue)):
            ledger.adopt(issue, events)
            moved.append(str(issue))
    return moved


def push(ref: StateRef, repository: str, ledger: SqlLedger) -> list[str]:
    """Hand over the issues of which the ledger knows something newer; name them."""
    stored = _at_rest(ref.read(), ledger)
    issues, moved = dict(stored.issues), list[str]()
    for status in ledger.statuses():
        issue, events = status.issue, ledger.events(status.issue)
        there = read_lines(issue, stored.issues.get(issue, b""))
        if issue.repository == repository and _is_newer(events, there):
            text = write_lines(events, ledger.redactor)
            issues[issue] = bounded(issue, text, ledger.redactor)
            moved.append(str(issue))
    if moved:
        ref.write(replace(stored, issues=issues), stored)
    return moved


def _is_newer(events: Sequence[Recorded], other: Sequence[Recorded]) -> bool:
    """Tell whether one record of an issue goes on where the other ends."""
    return bool(events) and (not other or events[-1].at > other[-1].at)


def _at_rest(stored: Snapshot, ledger: SqlLedger) -> Snapshot:
    now = ledger.clock.now()
    for issue, tenure in stored.tenures.items():
        if tenure.is_good(now):
            message = f"{tenure.worker} works on {issue} now; wait for that run to end."
            raise UsageError(message)
    return stored
