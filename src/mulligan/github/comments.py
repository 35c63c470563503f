"""Comments on an issue: those that Mulligan wrote are found by id, or by marker and author."""

from collections.abc import Callable

from mulligan.domain.issue import IssueRef
from mulligan.errors import UnavailableError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client
from mulligan.github.parts import MARKER
from mulligan.github.shapes import COMMENT, COMMENTS, CommentShape, leads_to


class Comments:
    """Reads comments, and keeps one of each kind up to date (SPEC H5, O5)."""

    def __init__(self, client: Client, own_login: Callable[[], str]) -> None:
        self._client = client
        self._own_login = own_login

    def on(self, ref: IssueRef) -> list[CommentShape]:
        """Read all comments of an issue, oldest first."""
        found = self._client.read_all(COMMENTS, _path(ref))
        for comment in found:
            _belongs(comment, ref)
        return sorted(found, key=lambda comment: comment.id)

    def is_own(self, comment: CommentShape, marker: str = MARKER) -> bool:
        """Tell whether Mulligan wrote it: its marker *and* its login, so nobody can pretend."""
        if comment.user is None or marker.casefold() not in (comment.body or "").casefold():
            return False
        return comment.user.login.casefold() == self._own_login().casefold()

    def keep_one(
        self, ref: IssueRef, marker: str, text: str, known: str | None = None
    ) -> CommentShape:
        """Make the one comment with this marker say `text`; `known` is its id, if it is on record.

        Of two the oldest stays. Nothing is written where nothing would change.
        """
        text = self._client.as_sent(text)
        found = self._by_id(ref, known) or self._by_marker(ref, marker)
        if found is None:
            return self._write(ref, marker, text)
        if _same(found.body, text):
            return found
        return self._edit(found, ref, text)

    def _by_id(self, ref: IssueRef, known: str | None) -> CommentShape | None:
        if known is None or not known.isdecimal():
            return None
        try:
            return _belongs(self._client.read(COMMENT, _path_of(ref, int(known))), ref)
        except NotFoundError:
            return None

    def _by_marker(self, ref: IssueRef, marker: str) -> CommentShape | None:
        return next((found for found in self.on(ref) if self.is_own(found, marker)), None)

    def _write(self, ref: IssueRef, marker: str, text: str) -> CommentShape:
        try:
            written = self._client.write(COMMENT, "POST", _path(ref), {"body": text})
        except UnavailableError:
            # A failed answer does not mean that it did not happen (SPEC E7).
            if found := self._by_marker(ref, marker):
                return found
            raise
        return _belongs(written, ref)

    def _edit(self, comment: CommentShape, ref: IssueRef, text: str) -> CommentShape:
        path = _path_of(ref, comment.id)
        try:
            edited = self._client.write(COMMENT, "PATCH", path, {"body": text})
        except UnavailableError:
            edited = self._client.read(COMMENT, path)
            if not _same(edited.body, text):
                raise
        return _belongs(edited, ref)


def _path(ref: IssueRef) -> str:
    return f"/repos/{ref.repository}/issues/{ref.number}/comments"


def _path_of(ref: IssueRef, comment: int) -> str:
    return f"/repos/{ref.repository}/issues/comments/{comment}"


def _belongs(comment: CommentShape, ref: IssueRef) -> CommentShape:
    if not leads_to(comment.issue_url, f"/repos/{ref.repository}/issues/{ref.number}"):
        message = (
            f"GitHub gave a comment of another issue for {ref} ({comment.issue_url}); if the "
            "repository was renamed, write the new name in the configuration."
        )
        raise UnavailableError(message)
    return comment


def _same(body: str | None, text: str) -> bool:
    return (body or "").replace("\r\n", "\n").strip() == text.strip()
