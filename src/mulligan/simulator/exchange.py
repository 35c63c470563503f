"""What was asked of the simulated GitHub, and what it answered. Pure."""

from collections.abc import Mapping
from typing import NamedTuple


class Request(NamedTuple):
    """One request that was answered; `counted` is whether it cost the user's rate limit."""

    method: str
    path: str
    status: int
    counted: bool


class Exchange(NamedTuple):
    """A request with all that was sent, and its answer."""

    request: Request
    query: Mapping[str, str]
    sent: bytes
    answered: bytes
