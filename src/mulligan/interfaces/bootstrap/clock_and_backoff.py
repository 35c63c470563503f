"""The time of this machine, and chance for waits: both have their one home here."""

import random
from datetime import UTC, datetime, timedelta

FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(minutes=15)
MIN_JITTER_SHARE = 0.8
MAX_STEPS = 10


class SystemClock:
    """The port Clock."""

    def now(self) -> datetime:
        """Give the time, in UTC."""
        return datetime.now(UTC)

    def backoff(self, step: int) -> timedelta:
        """Give min(30 s · 2^(k-1), 15 min), less up to a fifth, so that waits spread out."""
        longest = min(FIRST_WAIT * 2 ** min(step - 1, MAX_STEPS), LONGEST_WAIT)
        return longest * random.uniform(MIN_JITTER_SHARE, 1)  # noqa: S311 - a wait, not a secret
