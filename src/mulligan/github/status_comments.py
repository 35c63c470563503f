"""The one status comment of an issue: whose it is, and how often it is written (SPEC H5, E4)."""

import re
from datetime import datetime, timedelta

import structlog

from mulligan.domain.case import Case
from mulligan.domain.issue import IssueRef, Stage
from mulligan.github.comments import Comments
from mulligan.github.messages import status_comment, status_marker
from mulligan.github.parts import MARKER
from mulligan.github.shapes import CommentShape
from mulligan.ports import Clock

QUIET = timedelta(seconds=15)
"""How soon after the last one another edit may only say that an attempt runs."""

log = structlog.get_logger()


class StatusComments:
    """Keeps the status comments up to date; the same for all threads."""

    def __init__(self, comments: Comments, clock: Clock) -> None:
        self._comments = comments
        self._clock = clock
        self._edited: dict[IssueRef, datetime] = {}

    def update(self, case: Case, known: str | None) -> str:
        """Write it, and give its id; `known` is what the ledger has.

        That an attempt runs is left out shortly after the last edit, for another follows; where
        the issue comes to rest is written at once.
        """
        ref, now = case.issue.ref, self._clock.now()
        last = self._edited.get(ref)
        is_soon = last is not None and last <= now < last + QUIET
        if known and is_soon and case.status.stage is Stage.RUNNING:
            return known
        other = self._of_another(case, known)
        text = status_comment(case, other)
        mine = known or self._without_a_name(ref)
        written = self._comments.keep_one(ref, status_marker(case), text, mine)
        self._edited[ref] = now
        return str(written.id)

    def _of_another(self, case: Case, known: str | None) -> str:
        """Find where another installation tells how it stands; empty where none does."""
        for comment, by in self._found(case.issue.ref):
            if by and by != case.status.instance and str(comment.id) != known:
                log.warning("another_installation", comment=comment.html_url)
                return comment.html_url
        return ""

    def _without_a_name(self, ref: IssueRef) -> str | None:
        """Find the one that an earlier version wrote, which named no installation."""
        return next((str(comment.id) for comment, by in self._found(ref) if not by), None)

    def _found(self, ref: IssueRef) -> list[tuple[CommentShape, str]]:
        start = rf"{re.escape(MARKER)}status {re.escape(str(ref))}(?: by=(?P<by>\w+))? -->"
        found = [
            (comment, re.search(start, comment.body or "", re.IGNORECASE))
            for comment in self._comments.on(ref)
            if self._comments.is_own(comment)
        ]
        return [(comment, match["by"] or "") for comment, match in found if match]
