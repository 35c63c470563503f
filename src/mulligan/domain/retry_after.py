"""Read the Retry-After header of an HTTP response (RFC 9110, 10.2.3). Pure."""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

MAX_DIGITS = 9


def seconds_asked(headers: Mapping[str, str]) -> float | None:
    """Read `Retry-After`, a number of seconds or a date; None without a valid one.

    A date is relative to the service's own clock, the `Date` header. Header names are in lower
    case.
    """
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value[:MAX_DIGITS])
    until, sent = date_in(value), date_in(headers.get("date"))
    return max(0.0, (until - sent).total_seconds()) if until and sent else None


def date_in(text: str | None) -> datetime | None:
    """Parse an HTTP date; None if it is invalid or has no time zone."""
    try:
        found = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    return found if found and found.tzinfo else None
