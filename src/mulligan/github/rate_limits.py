"""Track GitHub's rate limits: metrics, and the backoff of each token (GITHUB-1)."""

import re
import threading
from http import HTTPStatus
from weakref import WeakValueDictionary

from mulligan.github.retries import DEFAULT_LIMIT_SECONDS
from mulligan.github.shapes import Answer

RESOURCE = re.compile(r"[a-z_]{1,40}")

MAX_RESOURCES = 16
"""Limit of metric series; GitHub has about ten resources."""

MAX_DEFAULT_BACKOFF = 900.0

MAX_BACKOFF = 3700.0
"""Maximum in seconds: a primary limit resets within an hour, so a longer wait is an error."""


class RateLimitMetrics:
    """The rate limits in this process's last answers, for any token."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self.refused = False
        """Whether GitHub rejected the token in the last answer (401)."""

    @property
    def remaining(self) -> dict[str, int]:
        """Return the requests left, by GitHub's name of the limit."""
        return dict(self._left)

    def read(self, answer: Answer) -> None:
        """Record the limits in an answer's headers."""
        self.refused = answer.status == HTTPStatus.UNAUTHORIZED
        resource = answer.headers.get("x-ratelimit-resource", "")
        remaining = answer.headers.get("x-ratelimit-remaining", "")
        has_room = resource in self._left or len(self._left) < MAX_RESOURCES
        if RESOURCE.fullmatch(resource) and remaining.isdecimal() and has_room:
            self._left[resource] = int(remaining)


class Backoff:
    """The wait of one token after a rate limit; `now` is a monotonic clock in seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._without_time = 0

    def begin(self, now: float, seconds: float | None) -> None:
        """Begin or extend the wait: for `asked` seconds, or for a minute, doubled each time."""
        with self._lock:
            if seconds is None:
                if now < self._until:
                    return  # refusals that arrive together count once
                seconds = min(DEFAULT_LIMIT_SECONDS * 2.0**self._without_time, MAX_DEFAULT_BACKOFF)
                self._without_time += 1
            self._until = max(self._until, now + min(seconds, MAX_BACKOFF))

    def remaining(self, now: float) -> float:
        """Return the seconds left to wait, or 0."""
        with self._lock:
            return max(0.0, self._until - now)

    def reset(self, now: float) -> None:
        """Restart the doubling at a minute, since GitHub answered."""
        with self._lock:
            if now >= self._until:
                self._without_time = 0


class Backoffs:
    """The backoffs of a process, one for each token and address, while in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[tuple[str, str | None], Backoff] = WeakValueDictionary()

    def of(self, address: str, token: str | None) -> Backoff:
        """Return the backoff of a token."""
        with self._lock:
            return self._known.setdefault((address, token), Backoff())
