"""The one status comment of an issue: whose it is, and how often it is written (SPEC H5, E4)."""

import re
from datetime import datetime
from threading import Lock

import structlog

from mulligan.domain.case import Case
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import BETWEEN_EDITS
from mulligan.errors import WorldError
from mulligan.github.comments import Comments
from mulligan.github.messages import status_comment, status_marker
from mulligan.github.parts import MARKER
from mulligan.github.shapes import CommentShape
from mulligan.ports import Clock

log = structlog.get_logger()


class StatusComments:
    """Keeps the status comments up to date; the same for all threads."""

    def __init__(self, comments: Comments, clock: Clock) -> None:
        self._comments = comments
        self._clock = clock
        self._edited: dict[IssueRef, tuple[datetime, str]] = {}
        self._lock = Lock()

    def update(self, case: Case, known: str | None) -> str | None:
        """Write it, and give its id; `known` is what the ledger has.

        None where that is put off: it was changed a moment ago, or says what passes in a moment.
        """
        ref = case.issue.ref
        if known and not self._may_edit(case):
            return None
        try:
            text = status_comment(case, self._of_another(case, known))
            mine = known or self._without_a_name(ref)
            return str(self._comments.keep_one(ref, status_marker(case), text, mine).id)
        except WorldError:
            self._edited.pop(ref, None)
            raise

    def _may_edit(self, case: Case) -> bool:
        """Tell whether it may be changed now, and take it as changed then; for any thread."""
        ref, now, text = case.issue.ref, self._clock.now(), status_comment(case)
        with self._lock:
            last, said = self._edited.get(ref, (now - BETWEEN_EDITS, ""))
            if said == text:
                return True
            if _passes(case) or last <= now < last + BETWEEN_EDITS:
                return False
            self._edited[ref] = (now, text)
            return True

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


def _passes(case: Case) -> bool:
    """Tell whether it has only now come to a stage that another may follow in a moment."""
    status = case.status
    waits = status.due or status.reason or status.paused_by
    queued = status.stage is Stage.READY and not waits
    return (queued or status.stage is Stage.RUNNING) and not status.is_late
