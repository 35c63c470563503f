"""GitHub's rate limits: what answers say of them, and the backoff of a token (SPEC E7)."""

import re
import threading
from http import HTTPStatus
from weakref import WeakValueDictionary

from mulligan.github.answers import DEFAULT_LIMIT_SECONDS, Answer

RESOURCE = re.compile(r"[a-z_]{1,40}")

MAX_RESOURCES = 16
"""GitHub has about ten; each becomes a series of a metric."""

MAX_DEFAULT_BACKOFF = 900.0

MAX_BACKOFF = 3700.0
"""Seconds; a primary limit opens again within an hour, and more is not believed."""


class RateLimitMetrics:
    """One for a process; as the last answer had it, whichever token it was for."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self.refused = False
        """Whether the last answer was that the token is not good."""

    @property
    def remaining(self) -> dict[str, int]:
        """Give how many requests are left in the window, by GitHub's name of the limit."""
        return dict(self._left)

    def read(self, answer: Answer) -> None:
        """Take down what an answer says."""
        self.refused = answer.status == HTTPStatus.UNAUTHORIZED
        resource = answer.headers.get("x-ratelimit-resource", "")
        remaining = answer.headers.get("x-ratelimit-remaining", "")
        has_room = resource in self._left or len(self._left) < MAX_RESOURCES
        if RESOURCE.fullmatch(resource) and remaining.isdecimal() and has_room:
            self._left[resource] = int(remaining)


class Backoff:
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
                asked = min(DEFAULT_LIMIT_SECONDS * 2.0**self._untold, MAX_DEFAULT_BACKOFF)
                self._untold += 1
            self._until = max(self._until, now + min(asked, MAX_BACKOFF))

    def remaining(self, now: float) -> float:
        """Give the seconds that are left of it; 0 where there is none."""
        with self._lock:
            return max(0.0, self._until - now)

    def reset(self, now: float) -> None:
        """Hear that GitHub answers again."""
        with self._lock:
            if now >= self._until:
                self._untold = 0


class Backoffs:
    """The pauses of a process, one for each token at each address, while anybody uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[tuple[str, str | None], Backoff] = WeakValueDictionary()

    def of(self, address: str, token: str | None) -> Backoff:
        """Give the one pause of a token."""
        with self._lock:
            return self._known.setdefault((address, token), Backoff())
