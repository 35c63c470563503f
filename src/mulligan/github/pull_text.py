"""Mulligan's part of a pull request's text, and what people wrote around or instead of it. Pure.

Two invisible lines mark the part. The last one holds the checksums of the title and the text that
Mulligan wrote: whatever differs from them is a person's. The checksums are in the text itself, so
one request writes both, and they outlive the ledger. Only people who may edit the text anyway can
forge them.
"""

import re
from dataclasses import dataclass
from hashlib import sha256

from mulligan.domain.issue import MARKER, IssueRef
from mulligan.github.messages import UNVERIFIED

CHECKSUM_CHARS = 12

START = re.compile(rf"^{re.escape(MARKER)}text [^\n]* -->\n", re.MULTILINE)

END = re.compile(rf"\n*{re.escape(MARKER)}pull-request \S+ by=(\w+) title=(\w+) text=(\w+) -->")


AUTHOR = re.compile(rf"{re.escape(MARKER)}pull-request \S+ by=(\w+)(?: title=\w+ text=\w+)? -->")
"""The last line, also as it was before it held checksums."""


@dataclass(frozen=True, slots=True)
class PullText:
    """The title and the text of a pull request; `kept`: a person's text is in place of ours."""

    title: str
    body: str
    kept: bool = False


def new_text(title: str, text: str, ref: IssueRef, instance: str) -> PullText:
    """Return the title, and the text with its marks, for a pull request that Mulligan opens."""
    return PullText(title, _marked(text, ref, instance, (_checksum(title), _checksum(text))))


def updated_text(now: PullText, title: str, text: str, ref: IssueRef) -> PullText:
    """Bring a pull request up to date, but keep what a person changed since Mulligan wrote it.

    Text outside the marks stays. So does the whole part if somebody edited it, and everything if
    the marks are gone. A title that somebody changed stays, without the mark of unverified work
    once the work is verified.
    """
    body = now.body.replace("\r\n", "\n")
    end = next(reversed(list(END.finditer(body))), None)
    start = START.search(body, 0, end.start() + 1) if end else None
    if end is None or start is None:
        return PullText(_verified(now.title, title), now.body, kept=True)
    instance, title_sum, text_sum = end.groups()
    is_title_ours = _checksum(now.title) == title_sum
    written = body[start.end() : end.start()]
    is_text_ours = _checksum(written) == text_sum
    sums = (
        _checksum(title) if is_title_ours else title_sum,
        _checksum(text) if is_text_ours else text_sum,
    )
    part = _marked(text if is_text_ours else written, ref, instance, sums)
    return PullText(
        title if is_title_ours else _verified(now.title, title),
        f"{body[: start.start()]}{part}{body[end.end() :]}",
        kept=not is_text_ours,
    )


def opened_by(body: str) -> str | None:
    """Return the installation that a text names as its author, if any."""
    found = AUTHOR.search(body)
    return found[1] if found else None


def _verified(now: str, wanted: str) -> str:
    return now if wanted.startswith(UNVERIFIED) else now.removeprefix(UNVERIFIED)


def _marked(text: str, ref: IssueRef, instance: str, sums: tuple[str, str]) -> str:
    start = f"{MARKER}text {ref}: Mulligan updates the text below, down to its last line. -->"
    end = f"{MARKER}pull-request {ref} by={instance} title={sums[0]} text={sums[1]} -->"
    return f"{start}\n{text}\n\n{end}"


def _checksum(text: str) -> str:
    return sha256(text.strip().encode()).hexdigest()[:CHECKSUM_CHARS]
