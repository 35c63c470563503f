"""For how long GitHub has not found something that decides about an issue (GITHUB-3). Pure."""

from datetime import datetime, timedelta

from mulligan.domain.recorded_effects import NotFoundSince
from mulligan.domain.status import IssueStatus

TOLD_AFTER = timedelta(minutes=10)
"""After this time a queued issue shows what GitHub does not find; outages pass sooner."""

HELD_AFTER = timedelta(hours=24)
"""After this time an issue is held: Mulligan asks again every `HELD_INTERVAL`."""

HELD_INTERVAL = timedelta(hours=1)


def absent_since(status: IssueStatus, what: str) -> datetime | None:
    """Return since when GitHub has not found something; None if it did at the last visit."""
    found = (each for each in status.effects.all(NotFoundSince) if each.what == what)
    return next((each.since for each in found), None)


def absences(status: IssueStatus) -> tuple[NotFoundSince, ...]:
    """List what GitHub did not find at the last visit to an issue."""
    return tuple(each for each in status.effects.all(NotFoundSince) if each.since)


def absence_reason(absence: NotFoundSince) -> str:
    """Say what an issue waits for that GitHub does not find."""
    return (
        f"GitHub has not found {absence.what} since {absence.since:%Y-%m-%d %H:%M} UTC; check that "
        "it exists, and that Mulligan's token may read it. Work begins when GitHub finds it."
    )
