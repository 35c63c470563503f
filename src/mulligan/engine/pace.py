"""How often GitHub may be polled, so that its limit on requests is kept (SPEC E2). Pure."""

from datetime import timedelta

MOST_A_MINUTE = 600
"""Requests that one token may send; GitHub's secondary limit counts unchanged answers as well."""

FOR_ONE_POLL = 3
"""Requests for one repository: its list, and room for further pages and for issues at work."""


def stretched(interval: timedelta, repositories: int, requests: int = FOR_ONE_POLL) -> timedelta:
    """Give the time between two polls: `interval`, or as much as all repositories need."""
    return max(interval, timedelta(minutes=1) * repositories * requests / MOST_A_MINUTE)
