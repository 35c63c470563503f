"""Make a finding out of what is known of it. Pure."""

import re

from mulligan.domain.result import Finding
from mulligan.verification.digest.hints import hint_for
from mulligan.verification.digest.locations import Place

SUMMARY_CHARS = 100
WHERE_CHARS = 60
LONG_LINE, BEFORE_WORD = 300, 60
LOUD = re.compile(r"error|fail|fatal|panic|exception|denied|not found|abort", re.IGNORECASE)
MESSAGE_CHARS = 1000
ID_CHARS = 300


def finding(
    message: str,
    place: Place | None = None,
    *,
    test_id: str | None = None,
    code: str | None = None,
) -> Finding:
    """Fill in the summary and the hint; cut what is too long."""
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    where = _end_of(test_id or (str(place) if place else ""))
    told = f"{code} {first}" if code and code not in first else first
    summary = ": ".join(part for part in (where, told) if part) or "failed"
    return Finding(
        summary=clip(" ".join(summary.split()), SUMMARY_CHARS),
        message=clip(message.strip(), MESSAGE_CHARS),
        file=place.file if place else None,
        line=place.line if place else None,
        column=place.column if place else None,
        code=code,
        test_id=clip(test_id, ID_CHARS) if test_id else None,
        hint=hint_for(message),
    )


def telling_part(line: str) -> str:
    """Leave out the beginning of a very long line where it says nothing of a failure."""
    line = " ".join(line.split())
    found = LOUD.search(line, LONG_LINE) if len(line) > LONG_LINE else None
    if found is None or LOUD.search(line, 0, LONG_LINE):
        return line
    return f"…{line[found.start() - BEFORE_WORD :]}"


def _end_of(where: str) -> str:
    """Leave room for the message: of a long path or id, its end tells more."""
    return where if len(where) <= WHERE_CHARS else f"…{where[1 - WHERE_CHARS :]}"


def clip(text: str, size: int) -> str:
    """Cut a text to a number of characters, with a mark where something is gone."""
    return text if len(text) <= size else text[: max(0, size - 1)] + "…" * (size > 0)
