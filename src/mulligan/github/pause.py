"""A limit of GitHub's holds for a token, whichever thread or client met it (SPEC E7)."""

import threading
from weakref import WeakValueDictionary

UNTOLD = 60.0
"""Seconds to wait where GitHub asks for a rest and does not say how long; its docs ask for that."""
LONGEST_UNTOLD = 900.0
LONGEST = 3700.0
"""Seconds; a primary limit opens again within an hour, and more is not believed."""


class Pause:
    """Until when one token is to be left alone; `now` is any clock in seconds that only grows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._untold = 0

    def begin(self, now: float, asked: float | None) -> None:
        """Begin, or go on for longer: for as long as `asked`, else ever longer from a minute on."""
        with self._lock:
            if asked is None:
                if now < self._until:
                    return  # answers that come together are one refusal
                asked = min(UNTOLD * 2.0**self._untold, LONGEST_UNTOLD)
                self._untold += 1
            self._until = max(self._until, now + min(asked, LONGEST))

    def left(self, now: float) -> float:
        """Give the seconds that are left of it; 0 where there is none."""
        with self._lock:
            return max(0.0, self._until - now)

    def over(self, now: float) -> None:
        """Hear that GitHub answers again."""
        with self._lock:
            if now >= self._until:
                self._untold = 0


class Pauses:
    """The pauses of a process, one for each token at each address, while anybody uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[tuple[str, str | None], Pause] = WeakValueDictionary()

    def of(self, address: str, token: str | None) -> Pause:
        """Give the one pause of a token."""
        with self._lock:
            return self._known.setdefault((address, token), Pause())
