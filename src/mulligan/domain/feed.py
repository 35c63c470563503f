"""How far a ledger can be read without missing what is still being written. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

PATIENCE = timedelta(seconds=10)
"""How long a number may be missing before it is taken for one that nobody has any more."""


def settled(numbers: Iterable[tuple[int, datetime]], after: int, now: datetime) -> int:
    """Give the last number, from `after` on, below which nothing can appear any more.

    A database may hand out numbers in one order and make the events seen in another, so behind a
    gap nothing is read as long as what stands there is recent. Older gaps are what retention, or a
    transaction that was rolled back, has left.
    """
    upto = after
    for number, at in numbers:
        if number > upto + 1 and now - at < PATIENCE:
            break
        upto = number
    return upto
