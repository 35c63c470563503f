"""What GitHub's answers say besides what was asked: requests that are left, and a bad token."""

import re
from http import HTTPStatus

from mulligan.github.answers import Answer

RESOURCE = re.compile(r"[a-z_]{1,40}")
MOST_RESOURCES = 16
"""GitHub has about ten; each becomes a series of a metric."""


class Gauges:
    """One for a process; as the last answer had it, whichever token it was for."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self.refused = False
        """Whether the last answer was that the token is not good."""

    @property
    def left(self) -> dict[str, int]:
        """Give how many requests are left in the window, by GitHub's name of the limit."""
        return dict(self._left)

    def read(self, answer: Answer) -> None:
        """Take down what an answer says."""
        self.refused = answer.status == HTTPStatus.UNAUTHORIZED
        resource = answer.headers.get("x-ratelimit-resource", "")
        remaining = answer.headers.get("x-ratelimit-remaining", "")
        has_room = resource in self._left or len(self._left) < MOST_RESOURCES
        if RESOURCE.fullmatch(resource) and remaining.isdecimal() and has_room:
            self._left[resource] = int(remaining)
