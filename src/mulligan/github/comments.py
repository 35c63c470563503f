"""Comments on an issue: the status comment, replies, and people's commands."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

import structlog

from mulligan.domain.command import CommandBatch, CommentCommand
from mulligan.domain.errors import UnavailableError, UnconfirmedError, WorldError
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.restoration import StatusRecord, record_of
from mulligan.domain.status import STATUS_EDIT_INTERVAL
from mulligan.github.answers import DeletedError, MovedError, NotFoundError
from mulligan.github.authorization import TrustReader
from mulligan.github.client import Client
from mulligan.github.marks import begins_with, head, said
from mulligan.github.messages import status_comment, status_marker
from mulligan.github.shapes import COMMENT, COMMENTS, Account, CommentShape, leads_to, same_text
from mulligan.implement.ports import Clock
from mulligan.text.commands import parse

log = structlog.get_logger()

NEWEST_FIRST_QUERY = {"sort": "created", "direction": "desc"}

ISSUE_URL = re.compile(r"/repos/(?P<repository>[^/]+/[^/]+)/issues/(?P<number>\d+)$")

Enough = Callable[[Sequence[CommentShape]], bool]


class Comments:
    """Reads comments, and keeps one comment of each kind up to date (STATUS-1, PUBLISH-1)."""

    def __init__(self, client: Client, own_login: Callable[[], str]) -> None:
        self._client = client
        self._own_login = own_login

    def list_on(self, ref: IssueRef) -> list[CommentShape]:
        """Return all comments of an issue, oldest first."""
        path = f"/repos/{ref.repository}/issues/{ref.number}/comments"
        found = self._client.read_all(COMMENTS, path)
        for comment in found:
            _belongs(comment, ref)
        return sorted(found, key=lambda comment: comment.id)

    def is_own(self, comment: CommentShape, marker: str = "") -> bool:
        """Return whether Mulligan wrote it: both its head and its author must match."""
        text = comment.body or ""
        if comment.user is None or not head(text) or not begins_with(text, marker):
            return False
        return comment.user.login.casefold() == self._own_login().casefold()

    def upsert(
        self,
        ref: IssueRef,
        marker: str,
        text: str,
        known: str | None = None,
        listed: Sequence[CommentShape] | None = None,
    ) -> CommentShape:
        """Create or update the one comment with this marker; `known` is its id in the ledger.

        Of several, update the oldest. Write nothing if the text is the same. `listed` are all
        comments of the issue, if they were read a moment ago.
        """
        text = self._client.as_sent(text)
        listed = self.list_on(ref) if listed is None else listed
        found = next((each for each in listed if str(each.id) == known), None)
        # A list may lack what was written a moment ago.
        found = found or self._by_id(ref, known) or self._own_in(listed, marker)
        if found is None:
            return self._write(ref, marker, text)
        if same_text(found.body, text):
            return found
        return self.edit(ref, found.id, text)

    def _by_id(self, ref: IssueRef, known: str | None) -> CommentShape | None:
        if known is None or not known.isdecimal():
            return None
        try:
            return _belongs(self._read(ref, int(known)), ref)
        except NotFoundError:
            return None

    def _read(self, ref: IssueRef, comment: int) -> CommentShape:
        return self._client.read(COMMENT, f"/repos/{ref.repository}/issues/comments/{comment}")

    def _own_in(self, listed: Sequence[CommentShape], marker: str) -> CommentShape | None:
        return next((found for found in listed if self.is_own(found, marker)), None)

    def _write(self, ref: IssueRef, marker: str, text: str) -> CommentShape:
        path = f"/repos/{ref.repository}/issues/{ref.number}/comments"
        try:
            written = self._client.write(COMMENT, "POST", path, {"body": text})
        except UnavailableError:
            # After a failed request, the comment may exist all the same (PUBLISH-2).
            if found := self._own_in(self.list_on(ref), marker):
                return found
            raise
        return _belongs(written, ref)

    def revise(self, ref: IssueRef, comment: int, change: Callable[[str], str]) -> None:
        """Edit a comment of Mulligan if `change` gives another text, and it was not deleted."""
        with suppress(NotFoundError, DeletedError):
            now = _belongs(self._read(ref, comment), ref)
            text = now.body or ""
            wanted = change(text) if self.is_own(now) else text
            if not same_text(text, wanted):
                self.edit(ref, comment, wanted)

    def edit(self, ref: IssueRef, comment: int, text: str) -> CommentShape:
        """Edit a comment of Mulligan; NotFoundError if it was deleted."""
        text = self._client.as_sent(text)
        path = f"/repos/{ref.repository}/issues/comments/{comment}"
        try:
            edited = self._client.write(COMMENT, "PATCH", path, {"body": text})
        except UnavailableError:
            edited = self._read(ref, comment)
            if not same_text(edited.body, text):
                raise
        return _belongs(edited, ref)


def _belongs(comment: CommentShape, ref: IssueRef) -> CommentShape:
    if not leads_to(comment.issue_url, f"/repos/{ref.repository}/issues/{ref.number}"):
        raise UnavailableError(
            f"GitHub gave a comment of another issue for {ref} ({comment.issue_url}); if the "
            "repository was renamed, write the new name in the configuration."
        )
    return comment


@dataclass(frozen=True, slots=True)
class OwnComment:
    """A comment of Mulligan: its id in REST, and in GraphQL, where it is the `node`."""

    id: str
    node: str


class StatusComments:
    """Keeps the status comments up to date, with links to a `dashboard`; shared by all threads."""

    def __init__(self, clock: Clock, dashboard: str = "") -> None:
        self._clock = clock
        self._dashboard = dashboard
        self._edited: dict[IssueRef, tuple[datetime, str]] = {}
        self._recorded: dict[IssueRef, StatusRecord] = {}
        self._alone: dict[IssueRef, tuple[OwnComment, int]] = {}
        self._lock = Lock()

    def update(self, case: IssueContext, known: str | None, comments: Comments) -> str | None:
        """Create or update the status comment and return its id; `known` is the id in the ledger.

        Return None if the update is delayed: the last one is too recent, or the state is transient.
        The record that decides after a loss of the ledger is never delayed (RESTORE-2).
        """
        ref = case.issue.ref
        said = self._edited.get(ref, (None, ""))[1]
        if known and not self._may_edit(case):
            return None
        try:
            is_new = said != status_comment(case)
            written = (is_new and self._edit_alone(case, known, comments)) or self._upsert(
                case, known, comments
            )
        except WorldError:
            self._edited.pop(ref, None)
            raise
        self._recorded[ref] = record_of(case).settled
        return written

    def edit_at_once(
        self, case: IssueContext, known: str | None, edit: Callable[[OwnComment, str], bool]
    ) -> bool:
        """Edit the known comment with `edit`, if `update` would edit it without reading others.

        `edit` returns whether it did. If not, call `update`.
        """
        ref = case.issue.ref
        said, comment = self._edited.get(ref, (None, ""))[1], self._alone_on(case, known)
        if not comment or said == status_comment(case) or not self._may_edit(case):
            return False
        if not edit(comment, self._text(case)):
            self._edited.pop(ref, None)
            return False
        self._recorded[ref] = record_of(case).settled
        return True

    def _alone_on(self, case: IssueContext, known: str | None) -> OwnComment | None:
        """Return the known comment, if no other came since this wrote it."""
        comment, count = self._alone.get(case.issue.ref, (None, -1))
        is_known = comment is not None and comment.id == known
        return comment if is_known and count == case.issue.comment_count else None

    def _edit_alone(self, case: IssueContext, known: str | None, comments: Comments) -> str:
        """Edit the known comment without reading the others, if none came since this wrote it.

        Return its id, or "" if the comments must be read.
        """
        comment = self._alone_on(case, known)
        if comment is None:
            return ""
        try:
            return str(comments.edit(case.issue.ref, int(comment.id), self._text(case)).id)
        except NotFoundError:
            return ""

    def _upsert(self, case: IssueContext, known: str | None, comments: Comments) -> str:
        ref, marker = case.issue.ref, status_marker(case)
        listed = [] if case.issue.comment_count == 0 else comments.list_on(ref)
        found = _status_comments(ref, listed, comments)
        other = _of_another(case, known, found)
        unnamed = next((str(comment.id) for comment, by in found if not by), None)
        text = self._text(case, other)
        written = comments.upsert(ref, marker, text, known or unnamed, listed)
        self._alone.pop(ref, None)
        if not other:
            count = len({written.id, *(each.id for each in listed)})
            self._alone[ref] = (OwnComment(str(written.id), written.node_id), count)
        return str(written.id)

    def _text(self, case: IssueContext, other: str = "") -> str:
        return status_comment(case, other, self._dashboard)

    def _may_edit(self, case: IssueContext) -> bool:
        """Return whether the comment may be edited now, and if so, record the edit; thread-safe."""
        ref, now, text = case.issue.ref, self._clock.now(), status_comment(case)
        is_recorded = self._recorded.get(ref) == record_of(case).settled
        with self._lock:
            last, shown = self._edited.get(ref, (now - STATUS_EDIT_INTERVAL, ""))
            if shown == text:
                return True
            if is_recorded and (_passes(case) or last <= now < last + STATUS_EDIT_INTERVAL):
                return False
            self._edited[ref] = (now, text)
            return True


def _of_another(
    case: IssueContext, known: str | None, found: Sequence[tuple[CommentShape, str]]
) -> str:
    """Return the URL of another installation's status comment, or an empty string."""
    for comment, by in found:
        if by and by != case.status.instance and str(comment.id) != known:
            log.warning("another_installation", comment=comment.html_url)
            return comment.html_url
    return ""


def _status_comments(
    ref: IssueRef, listed: Sequence[CommentShape], comments: Comments
) -> list[tuple[CommentShape, str]]:
    """List the status comments with their installations; an earlier version named none."""
    own = (comment for comment in listed if comments.is_own(comment))
    found = [(comment, said(comment.body or "", "status", ref, r"by=(\w+)")) for comment in own]
    return [(comment, by) for comment, by in found if by is not None]


def _passes(case: IssueContext) -> bool:
    """Return whether the stage is transient: another may follow in a moment."""
    status = case.status
    waits = status.due or status.reason or status.paused_by
    queued = status.stage is Stage.READY and not waits
    runs = status.stage is Stage.RUNNING and not status.publication_delay
    return (queued or runs) and not status.has_deferred_comment


class CommandReader:
    """Reads the comments of a repository, newest first.

    The first page is always the same request, so that its ETag makes it free while nothing changes.
    """

    def __init__(self, client: Client, trust: TrustReader, comments: Comments) -> None:
        self._client = client
        self._trust = trust
        self._comments = comments

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        """Return the commands in comments newer than id `after` and not older than `since`.

        Skip edited comments, those by bots or Mulligan itself, and those by untrusted people. If a
        permission cannot be read, the next call reads that comment and the later ones again.
        """

        def is_old(comment: CommentShape) -> bool:
            return comment.id <= after or comment.created_at < since

        def enough(page: Sequence[CommentShape]) -> bool:
            return any(map(is_old, page))

        found = self._recent_comments(repository, enough, places)
        new = {one.id: one for one in found if not is_old(one) and not self._comments.is_own(one)}
        commands, read_to, is_complete = list[CommentCommand](), after, True
        for _, comment in sorted(new.items()):
            try:
                command_read = self._command_in(repository, comment)
            except UnavailableError as error:
                log.warning("command_not_judged", comment=comment.html_url, reason=str(error))
                is_complete = False
                if isinstance(error, UnconfirmedError):
                    # An account that GitHub does not find does not keep others from being read.
                    continue
                break
            commands += [command_read] if command_read else []
            read_to = comment.id if is_complete else read_to
        return CommandBatch(tuple(commands), read_to)

    def _recent_comments(
        self, repository: str, enough: Enough, places: Sequence[IssueRef]
    ) -> list[CommentShape]:
        """Return the newest comments; those in `places` if the server lists none by repository."""
        path = f"/repos/{repository}/issues/comments"
        try:
            return self._client.read_all(COMMENTS, path, NEWEST_FIRST_QUERY, enough)
        except NotFoundError:
            return [comment for ref in places for comment in self._on(ref)]

    def _on(self, ref: IssueRef) -> list[CommentShape]:
        """Return the comments of one issue; none if it was deleted, transferred or not found."""
        try:
            return self._comments.list_on(ref)
        except (NotFoundError, DeletedError, MovedError):
            return []

    def _command_in(self, repository: str, comment: CommentShape) -> CommentCommand | None:
        user, command = comment.user, parse(comment.body or "")
        if user is None or command is None or user.is_bot or comment.is_edited:
            return None
        place = ISSUE_URL.search(comment.issue_url)
        if place is None or place["repository"].casefold() != repository.casefold():
            return None
        if not self._is_trusted(repository, user, comment.created_at):
            return None
        return CommentCommand(
            number=int(place["number"]),
            comment=comment.id,
            command=command,
            actor=user.login,
            at=comment.created_at,
            actor_id=user.id,
            on_pull_request="/pull/" in comment.html_url,
        )

    def _is_trusted(self, repository: str, who: Account, at: datetime) -> bool:
        """Return whether an account is trusted; UnavailableError if that cannot be read."""
        try:
            return not self._trust.check_act(repository, who, at)
        except UnavailableError:
            raise
        except WorldError as error:
            log.warning("command_refused", repository=repository, reason=str(error))
            return False
