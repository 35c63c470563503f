"""What to do about a request that GitHub refused: who can make it succeed (GITHUB-5). Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum


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


TABLE = (
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
"""GitHub's refusals; the first row that fits counts, and any other needs a person.

Source: https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api and public
reports. Rate limits, 401, 403, 404, 410 and 5xx have their own errors (answers.py).
"""


def remedy_of(status: int, request: str, words: str) -> Remedy:
    """Return who can make a refused request succeed; `request` is its verb and path."""
    for row in TABLE:
        is_asked = re.search(row.request, request)
        if status == row.status and is_asked and re.search(row.words, words, re.IGNORECASE):
            return row.remedy
    return Remedy.PERSON
