"""Read the clock, and compute the wait after an infrastructure failure."""

import random
from datetime import UTC, datetime, timedelta

FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(minutes=15)
MIN_JITTER_SHARE = 0.8
MAX_STEPS = 10


class SystemClock:
    """Implements the port Clock with this machine's time; all random waits come from here."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def backoff(self, step: int) -> timedelta:
        """Return the wait before retry k = `step`: min(30 s · 2^(k-1), 15 min), less up to 20 %."""
        longest = min(FIRST_WAIT * 2 ** min(step - 1, MAX_STEPS), LONGEST_WAIT)
        return longest * random.uniform(MIN_JITTER_SHARE, 1)  # noqa: S311 - a wait, not a secret
