"""Decide which issues are due, which of them goes first, and which may start (DAEMON-3). Pure.

A fleet keeps this order in PostgreSQL, and its repositories take turns: `storage/jobs.py: WAIT`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus, Phase


def is_due(status: IssueStatus | None, now: datetime) -> bool:
    """Return whether an issue is idle and its wait is over; an unknown issue is due."""
    if status is None:
        return True
    due = status.due is None or status.due <= now
    return due and status.phase is Phase.IDLE


def priority_rank(carried: Iterable[str], priority: Sequence[str]) -> int:
    """Return the rank of an issue's most urgent priority label; 0 comes first, case is ignored."""
    names = {name.casefold() for name in carried}
    ranks = (rank for rank, label in enumerate(priority) if label.casefold() in names)
    return next(ranks, len(priority))


def most_urgent_first(
    oldest_first: Iterable[tuple[IssueRef, Collection[str]]], priority: Sequence[str]
) -> list[IssueRef]:
    """Sort issues, given with their labels, by priority label and then by age; each once."""
    ranked = sorted(oldest_first, key=lambda found: priority_rank(found[1], priority))
    return list(dict.fromkeys(ref for ref, _ in ranked))


def in_order(
    labelled: Iterable[IssueRef], commanded: Iterable[IssueRef], reviewed: Iterable[IssueRef]
) -> list[IssueRef]:
    """Return a repository's due issues, each once.

    Those with the label come first, in the order of `most_urgent_first`, then those that a command
    requested, then those whose pull request got feedback, in the order of their numbers.
    """
    return list(dict.fromkeys([*labelled, *commanded, *sorted(reviewed)]))


def may_start(
    waiting: Iterable[IssueRef],
    running: Collection[IssueRef],
    concurrency: int,
    per_repository: int,
) -> Iterator[IssueRef]:
    """Yield the waiting issues that may start beside the running ones, within both limits.

    An issue whose repository has no free place lets those of other repositories go first.
    """
    busy, free = Counter(ref.repository for ref in running), concurrency - len(running)
    for ref in waiting:
        if free <= 0:
            return
        if busy[ref.repository] < per_repository:
            busy[ref.repository] += 1
            free -= 1
            yield ref
