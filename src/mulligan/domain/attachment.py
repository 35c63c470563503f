"""Pictures and files that people attached to an issue (TRUST-6). Pure."""

from enum import StrEnum

from mulligan.domain.outcome import Record

MOST_ATTACHMENTS = 20
"""How many attachments of an issue an agent gets; the first ones count."""

MOST_BYTES = 5 * 1024 * 1024
"""Limit of one attachment; Anthropic's API takes no larger picture."""

MOST_PIXELS = 8000
"""Limit of a picture's width and height; Anthropic's API refuses a request with a larger one."""


class Withheld(StrEnum):
    """Why an agent does not get an attachment."""

    TOO_MANY = "too_many"
    TOO_LARGE = "too_large"
    TOO_WIDE = "too_wide"
    UNREADABLE = "unreadable"
    NOT_FOUND = "not_found"
    NOT_SENT = "not_sent"
    NO_TIME = "no_time"


class Attachment(Record):
    """An attachment by its `address` without a query; either `name` is set, or `withheld` is.

    `name` is its artifact in the attempt's directory, and `sha256` (hex) is of that file.
    """

    address: str
    name: str = ""
    sha256: str = ""
    withheld: Withheld | None = None
