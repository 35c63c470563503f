"""Decide which requests to GitHub are sent again, and what time GitHub asks to wait. Pure.

The client counts the attempts and waits (`client.py: RetrySettings`).
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from mulligan.domain.errors import UnavailableError
from mulligan.domain.retry_after import date_in, seconds_asked
from mulligan.github.shapes import Answer

REPEATS = 2
"""How often a request is sent again that was answered 404, or was refused for a moment.

GitHub's replicas disagree at times. A client that retries less repeats it less."""

DEFAULT_LIMIT_SECONDS = 60.0
"""Seconds to wait if a rate-limited response has no Retry-After, as GitHub's docs recommend."""

RATE_LIMIT_PHRASES = (
    "rate limit",
    "secondary limit",
    "abuse detection",
    "retry your request again later",
)

GRAPHQL_LIMIT = "RATE_LIMITED"
"""The type of GraphQL's error for a rate limit."""

GRAPHQL_FAILURE = "Something went wrong"
"""Beginning of GraphQL's message about a server error."""

DELETED_DOWNLOAD = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
"""Statuses of a storage that no longer has a file; any other failure of a download may pass."""


class TransientError(UnavailableError):
    """A temporary error; a retry may succeed. `wait` is GitHub's Retry-After in seconds, if any."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Remedy(StrEnum):
    """Who can make a refused request succeed."""

    TIME = "time"
    """It passes by itself: the same request succeeds a moment later."""
    MULLIGAN = "mulligan"
    """Mulligan sent what GitHub can never accept: a bug."""
    PERSON = "person"
    """A person must change a permission, a rule or a text."""


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """A row of the table: a status, patterns of the request and of GitHub's words, the remedy."""

    status: int
    request: str
    words: str
    remedy: Remedy


REFUSALS = (
    # Right after a push, the API may not see the branch yet.
    RefusalRow(
        422,
        r"POST .*/pulls$",
        r"\bhead\b.*\b(?:invalid|missing)|(?:head|base) sha can't be blank|no commits between",
        Remedy.TIME,
    ),
    # Limits on the creation of content, which come without the headers of a rate limit.
    RefusalRow(422, "", r"submitted too quickly|try again|timed? ?out", Remedy.TIME),
    # Another request changes the same object at this moment.
    RefusalRow(409, "", "", Remedy.TIME),
    RefusalRow(422, "", r"is too long|problems parsing json", Remedy.MULLIGAN),
    RefusalRow(400, "", r"problems parsing json|body should be a json", Remedy.MULLIGAN),
    RefusalRow(413, "", "", Remedy.MULLIGAN),
)
"""GitHub's refusals; the first row that fits counts, and any other needs a person (GITHUB-5).

Source: https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api and public
reports. Rate limits, 401, 403, 404, 410 and 5xx have their own errors (answers.py).
"""


def remedy_of(answer: Answer, request: str) -> Remedy:
    """Return who can make a refused request succeed; `request` is its verb and path."""
    words = ": ".join(answer.sentences)
    for row in REFUSALS:
        is_asked = re.search(row.request, request)
        if answer.status == row.status and is_asked and re.search(row.words, words, re.IGNORECASE):
            return row.remedy
    return Remedy.PERSON


def is_limit(answer: Answer) -> bool:
    """Return whether the answer is a rate limit (GITHUB-1)."""
    if answer.status != HTTPStatus.FORBIDDEN:
        return answer.status == HTTPStatus.TOO_MANY_REQUESTS
    headers = answer.headers
    spent = headers.get("x-ratelimit-remaining") == "0"
    return spent or "retry-after" in headers or answer.says(*RATE_LIMIT_PHRASES)


def retry_after(answer: Answer) -> float | None:
    """Return the seconds that GitHub asks to wait, by its own clock; None if it gives no time."""
    headers = answer.headers
    if (seconds := seconds_asked(headers)) is not None:
        return seconds
    sent, reset = date_in(headers.get("date")), headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal() and sent:
        return max(0.0, float(reset) - sent.timestamp()) + 1
    return None


def is_server_failure(answer: Answer) -> bool:
    """Return whether a server failed or had no time for the request (GITHUB-1)."""
    early = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY}
    return answer.status in early or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR


def may_pass(answer: Answer, request: str) -> bool:
    """Return whether a refusal passes by itself: the table says so, or the API did not send it.

    The API refuses in JSON. A page comes from a server before it, and is no lack of a permission.
    """
    if answer.status < HTTPStatus.BAD_REQUEST or is_server_failure(answer):
        return False
    if answer.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return False
    return answer.refusal is None or remedy_of(answer, request) is Remedy.TIME


def is_repeated_at_once(answer: Answer, request: str, *, is_write: bool) -> bool:
    """Return whether to send a request again at once, before anybody sees the answer.

    A request that was not found (GITHUB-3), or was refused for a moment (GITHUB-5), did nothing:
    a write may be sent again. A read that was refused for a moment waits as after a server error.
    """
    if answer.status == HTTPStatus.NOT_FOUND:
        return True
    return is_write and not is_limit(answer) and may_pass(answer, request)


def is_retriable(error: BaseException, longest_wait: float) -> bool:
    """Return whether a read is sent again after an error, if no wait is above `longest_wait`."""
    return isinstance(error, TransientError) and (error.wait or 0) <= longest_wait
