"""The primary rate limit: so many requests an hour for each user. Pure but for the clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

WINDOW = timedelta(hours=1)
ANONYMOUS_LIMIT = 60
CORE, GRAPHQL = "core", "graphql"
"""What is counted apart."""


@dataclass(slots=True)
class Window:
    """What one user has used since the window opened."""

    limit: int
    resets_at: datetime
    used: int = 0
    resource: str = CORE

    @property
    def remaining(self) -> int:
        """Tell how many requests are left."""
        return max(0, self.limit - self.used)

    @property
    def numbers(self) -> dict[str, int]:
        """Give the numbers as GitHub reports them; `reset` is in Unix seconds."""
        return {
            "limit": self.limit,
            "used": self.used,
            "remaining": self.remaining,
            "reset": round(self.resets_at.timestamp()),
        }

    @property
    def headers(self) -> dict[str, str]:
        """Give the same as headers of an answer."""
        numbers = {f"x-ratelimit-{name}": str(value) for name, value in self.numbers.items()}
        return {**numbers, "x-ratelimit-resource": self.resource}


@dataclass(slots=True)
class Meter:
    """Counts requests by user; `limit` may be changed at any time."""

    clock: Callable[[], datetime]
    limit: int = 5000
    windows: dict[tuple[str, str], Window] = field(default_factory=dict[tuple[str, str], Window])

    def window(self, login: str, resource: str = CORE) -> Window:
        """Give the user's window of now; an empty login is everybody without a token."""
        key, now = (login, resource), self.clock()
        window = self.windows.get(key)
        if window is None or window.resets_at <= now:
            window = self.windows[key] = Window(0, now + WINDOW, resource=resource)
        window.limit = self.limit if login else min(self.limit, ANONYMOUS_LIMIT)
        return window
