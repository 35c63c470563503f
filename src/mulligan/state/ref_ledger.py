"""The ledger and the leases of a run whose state lasts on a ref of the repository (SPEC 18)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mulligan.domain.events import BaselineRecorded, Event, Recorded
from mulligan.domain.issue import IssueRef
from mulligan.domain.lease import Lease, lost
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.state.book import Book

UNTIL_LATER = frozenset(
    {
        *("issue_seen", "authorised", "worktree_reset", "agent_started", "agent_finished"),
        *("check_finished", "baseline_recorded", "fix_round_started", "review_finished"),
        *("retry_context_assembled", "attempt_context_truncated", "attempt_context_delivered"),
    }
)
"""Events that last with the next one that does: by themselves they change nothing outside."""


@dataclass(frozen=True, slots=True)
class RefLeases:
    """The port Leases over a ref; an expired lease is free to be claimed by another run."""

    book: Book

    def claim(self, ref: IssueRef, worker: str, most: int | None = None) -> Lease | None:
        """Take an issue for a while; None where another run holds it, or `most` are held."""
        return self.book.claim(ref, worker, most)

    def renew(self, lease: Lease) -> bool:
        """Hold it for as long again; False where it was lost."""
        return self.book.renew(lease)

    def holds(self, lease: Lease) -> bool:
        """Tell whether the lease is still good; from then on every other run knows of it."""
        return self.book.holds(lease)

    def release(self, lease: Lease) -> None:
        """Give it back; one that was lost is left alone."""
        self.book.release(lease)

    def holder(self, ref: IssueRef) -> str | None:
        """Name the worker that is on an issue, if one is; takes nothing."""
        with self.book.lock:
            tenure = self.book.tenures().get(ref)
            return tenure.worker if tenure and tenure.is_good(self.book.clock.now()) else None

    def forget(self) -> None:
        """End every lease, when it is known that no run is alive."""
        self.book.forget()

    def attend(self, worker: str) -> Sequence[str]:
        """Name the one run that is known of: each is over before anybody would count it."""
        return (worker,)


@dataclass(frozen=True, slots=True)
class RefLedger:
    """The port Ledger over a ref: kept in a database of this run, and pushed when it must last."""

    book: Book
    lease: Lease | None = None

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        """Record an event; what others must know of is on the ref when this returns."""
        book = self.book
        with book.lock:
            if self.lease and not book.is_good(self.lease):
                raise lost(self.lease)
            status = book.ledger.append(ref, event)
            book.note(ref, book.ledger.events(ref)[-1])
            if event.kind not in UNTIL_LATER:
                book.save()
                if self.lease and not book.is_good(self.lease):
                    raise lost(self.lease)
        return status

    def under(self, lease: Lease) -> "RefLedger":
        """Give the same ledger, whose `append` raises LeaseLostError once the lease is lost."""
        return replace(self, lease=lease)

    def status(self, ref: IssueRef) -> IssueStatus:
        """Say where an issue stands; one never seen stands at epoch 0."""
        return self.book.ledger.status(ref)

    def statuses(self) -> Sequence[IssueStatus]:
        """Say where every known issue stands, by repository and number."""
        return self.book.ledger.statuses()

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        """Give the completed attempts of all epochs, oldest first."""
        return self.book.ledger.history(ref)

    def events(
        self, ref: IssueRef | None = None, after: int = 0, most: int | None = None
    ) -> Sequence[Recorded]:
        """Give the events of one issue, or of all, with `seq` above `after`; the `most` first."""
        return self.book.ledger.events(ref, after, most)

    def newest(self) -> int:
        """Give the highest `seq` there is; 0 for none."""
        return self.book.ledger.newest()

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        """Give what was recorded last under a key, for whichever issue of the repository."""
        return self.book.ledger.baseline(repository, key)
