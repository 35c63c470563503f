"""The state of one run: a database restored from the ref, what is new since, and its claims."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mulligan.domain.events import Recorded
from mulligan.domain.issue import IssueRef
from mulligan.domain.lease import Lease
from mulligan.domain.retention import needs_commit
from mulligan.errors import UnavailableError
from mulligan.ports import Clock
from mulligan.state.ledger import SqlLedger
from mulligan.state.lines import (
    Snapshot,
    Tenure,
    bounded,
    outdated,
    read_lines,
    write_lines,
)
from mulligan.state.ref import MovedError, StateRef
from mulligan.text.redact import Redactor

LEASE = timedelta(minutes=2)
"""How long a run is believed alive after it was heard last."""
MOST_READS = 20
"""How often the state is read again in a row because others were faster."""
WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds between the tries to reach GitHub."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease of this run; others know of it once it is `told`."""

    lease: Lease
    expires: datetime
    told: bool = False

    @property
    def tenure(self) -> Tenure:
        """Give it as it is stored."""
        return Tenure(self.lease.fence, self.lease.worker, self.expires)


class Book:
    """What this run knows; safe for threads. Nothing of it lasts before `save`.

    A claim is told to others with the first thing that lasts, or before the first effect. A run
    whose claim was overtaken loses what it has recorded of the issue since.
    """

    def __init__(
        self,
        ref: StateRef,
        ledger: SqlLedger,
        clock: Clock,
        redactor: Redactor | None = None,
        lease: timedelta = LEASE,
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self.lock = threading.RLock()
        self._ref = ref
        self._redactor = redactor or Redactor()
        self._time = lease
        self._base = Snapshot()
        self._dropped: frozenset[IssueRef] = frozenset()
        self._fresh: dict[IssueRef, list[Recorded]] = {}
        self._claims: dict[IssueRef, Claim] = {}
        self._fences: dict[IssueRef, int] = {}
        self._ended: set[IssueRef] = set()

    def restore(self) -> None:
        """Read what the ref holds, and let go of what is not needed any more."""
        with self.lock:
            self.refresh()
            if stored := self._base.issues:
                events = {ref: read_lines(ref, text) for ref, text in stored.items()}
                sizes = {ref: len(text) for ref, text in stored.items()}
                self._dropped = outdated(events, sizes, self.clock.now())

    def refresh(self) -> None:
        """Take over what others have written since; what is new here stays on top of it."""
        with self.lock:
            if self._ref.tip() == self._base.sha:
                return
            before, self._base = self._base, self._ref.read()
            for ref in {*before.issues, *self._base.issues}:
                if before.issues.get(ref) != self._base.issues.get(ref):
                    self._adopt(ref)

    def note(self, ref: IssueRef, recorded: Recorded) -> None:
        """Remember an event that was recorded here; it lasts from the next `save` on."""
        with self.lock:
            self._fresh.setdefault(ref, []).append(recorded)

    def save(self) -> None:
        """Make all that is new last; a claim that another run has overtaken is given up."""
        with self.lock:
            for wait in (*WAITS, None):
                try:
                    self._write()
                except UnavailableError:
                    if wait is None:
                        raise
                    time.sleep(wait)
                else:
                    return

    def _write(self) -> None:
        for _ in range(MOST_READS):
            self._give_up_what_was_overtaken()
            try:
                self._base = self._ref.write(self._next(), self._base)
            except MovedError:
                self.refresh()
            else:
                self._saved()
                return
        message = "Mulligan's state is written by too many at once; it is tried again later."
        raise UnavailableError(message)

    def claim(self, ref: IssueRef, worker: str, most: int | None) -> Lease | None:
        """Take an issue, as far as the ref shows now; None where another run has it."""
        with self.lock:
            self.refresh()
            now = self.clock.now()
            held = [each for each, tenure in self.tenures().items() if tenure.is_good(now)]
            if ref in held or (most is not None and len(held) >= most):
                return None
            known = self.tenures().get(ref, Tenure(0)).fence
            self._fences[ref] = max(known, self._fences.get(ref, 0)) + 1
            lease = Lease(ref, worker, self._fences[ref])
            self._claims[ref] = Claim(lease, now + self._time)
            self._ended.discard(ref)
            return lease

    def is_good(self, lease: Lease) -> bool:
        """Tell whether a lease of this run is good, as far as it knows."""
        with self.lock:
            found = self._claims.get(lease.issue)
            mine = found and found.lease == lease and lease.issue not in self._ended
            return bool(found and mine and found.expires > self.clock.now())

    def holds(self, lease: Lease) -> bool:
        """Tell whether a lease is good and others know of it, so that effects may follow."""
        with self.lock:
            if self.is_good(lease) and not self._claims[lease.issue].told:
                self.save()
            return self.is_good(lease)

    def renew(self, lease: Lease) -> bool:
        """Hold it for as long again; others are told when half of its time is over."""
        with self.lock:
            if not self.is_good(lease):
                return False
            found, now = self._claims[lease.issue], self.clock.now()
            if found.expires - now > self._time / 2:
                return True
            self._claims[lease.issue] = replace(found, expires=now + self._time, told=False)
            return self.holds(lease)

    def release(self, lease: Lease) -> None:
        """Give it back; one that was lost is left alone, and one that nobody knows of forgotten."""
        with self.lock:
            found = self._claims.get(lease.issue)
            if found is None or found.lease != lease:
                return
            if not found.told and not self._fresh.get(lease.issue):
                del self._claims[lease.issue]
                return
            self._ended.add(lease.issue)
            self.save()

    def forget(self) -> None:
        """End every lease, when it is known that no run is alive."""
        with self.lock:
            self.refresh()
            now = self.clock.now()
            for ref, tenure in self.tenures().items():
                self._claims[ref] = Claim(Lease(ref, tenure.worker, tenure.fence), now)
            self._ended = set(self._claims)
            if self._ended:
                self.save()

    def needs_commit(self, ref: IssueRef) -> bool:
        """Tell, as the ref shows now, whether a verified commit of an issue is still of use."""
        with self.lock:
            self.refresh()
            tenure = self.tenures().get(ref)
            at_work = tenure is not None and tenure.is_good(self.clock.now())
            return at_work or needs_commit(self.ledger.status(ref))

    def tenures(self) -> Mapping[IssueRef, Tenure]:
        """Say who works on what, as far as this run knows."""
        mine = {
            ref: Tenure(claim.lease.fence) if ref in self._ended else claim.tenure
            for ref, claim in self._claims.items()
        }
        return {**self._base.tenures, **mine}

    def _next(self) -> Snapshot:
        """Put what is new on top of what the ref holds."""
        new = {
            ref: bounded(ref, self._base.issues.get(ref, b"") + self._lines(events), self._redactor)
            for ref, events in self._fresh.items()
        }
        going = self._dropped - set(new) - set(self._claims)
        issues = {ref: text for ref, text in self._base.issues.items() if ref not in going} | new
        tenures = {ref: each for ref, each in self.tenures().items() if ref not in going}
        return Snapshot(None, issues, tenures)

    def _lines(self, events: Iterable[Recorded]) -> bytes:
        return write_lines(events, self._redactor)

    def _saved(self) -> None:
        self._fresh.clear()
        kept = {ref: each for ref, each in self._claims.items() if ref not in self._ended}
        self._claims = {ref: replace(claim, told=True) for ref, claim in kept.items()}
        self._ended.clear()

    def _give_up_what_was_overtaken(self) -> None:
        """Let go of claims that another run has overtaken, and of what was recorded under them."""
        for ref, claim in [*self._claims.items()]:
            tenure = self._base.tenures.get(ref, Tenure(0))
            mine = tenure.worker in {"", claim.lease.worker} and tenure.fence == claim.lease.fence
            if tenure.fence >= claim.lease.fence and not mine:
                del self._claims[ref]
                self._ended.discard(ref)
                self._fresh.pop(ref, None)
                self._adopt(ref)

    def _adopt(self, ref: IssueRef) -> None:
        stored = read_lines(ref, self._base.issues.get(ref, b""))
        self.ledger.adopt(ref, [*stored, *self._fresh.get(ref, [])])
