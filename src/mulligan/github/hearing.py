"""Read the commands that people give in comments, on issues and pull requests (SPEC H4, T5)."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from mulligan.domain.command import Heard, Spoken
from mulligan.domain.issue import IssueRef
from mulligan.errors import UnavailableError, WorldError
from mulligan.github.answers import MovedError, NotFoundError
from mulligan.github.client import Client
from mulligan.github.comments import Comments
from mulligan.github.shapes import ANYTHING, COMMENTS, Account, CommentShape
from mulligan.github.trust import TrustReader
from mulligan.text.commands import parse

NEWEST_FIRST = {"sort": "created", "direction": "desc"}
PLACE = re.compile(r"/repos/(?P<repository>[^/]+/[^/]+)/issues/(?P<number>\d+)$")

Enough = Callable[[Sequence[CommentShape]], bool]

log = structlog.get_logger()


class Hearing:
    """Reads the comments of a repository, the newest first, as far back as is asked.

    The first page is one request, always the same, so that it costs nothing while nobody speaks.
    """

    def __init__(self, client: Client, trust: TrustReader, comments: Comments) -> None:
        self._client = client
        self._trust = trust
        self._comments = comments

    def hear(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> Heard:
        """Give the commands in comments that are newer than id `after`, and not before `since`.

        What is edited, a bot's or Mulligan's own is passed over, and so is what is said by people
        who are not trusted now. Where that cannot be read, the rest is left for the next time.
        """

        def is_old(comment: CommentShape) -> bool:
            return comment.id <= after or comment.created_at < since

        def enough(page: Sequence[CommentShape]) -> bool:
            return any(map(is_old, page))

        found = self._written(repository, enough, places)
        new = {one.id: one for one in found if not is_old(one) and not self._comments.is_own(one)}
        commands, read_to = list[Spoken](), after
        for _, comment in sorted(new.items()):
            try:
                spoken = self._spoken(repository, comment)
            except UnavailableError as error:
                log.warning("command_not_judged", comment=comment.html_url, reason=str(error))
                break
            commands += [spoken] if spoken else []
            read_to = comment.id
        return Heard(tuple(commands), read_to)

    def _written(
        self, repository: str, enough: Enough, places: Sequence[IssueRef]
    ) -> list[CommentShape]:
        """Read what was written last, or where the server does not list that, all in `places`."""
        path = f"/repos/{repository}/issues/comments"
        try:
            return self._client.read_all(COMMENTS, path, NEWEST_FIRST, enough)
        except NotFoundError:
            return [comment for ref in places for comment in self._on(ref)]

    def _on(self, ref: IssueRef) -> list[CommentShape]:
        """Read what was written in one place; nothing where that is gone."""
        try:
            return self._comments.on(ref)
        except (NotFoundError, MovedError):
            return []

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Acknowledge a comment; a refusal is only logged."""
        path = f"/repos/{repository}/issues/comments/{comment}/reactions"
        try:
            self._client.write(ANYTHING, "POST", path, {"content": reaction})
        except WorldError as error:
            log.info("not_acknowledged", comment=comment, reason=str(error))

    def _spoken(self, repository: str, comment: CommentShape) -> Spoken | None:
        user, command = comment.user, parse(comment.body or "")
        if user is None or command is None or user.is_bot or comment.is_edited:
            return None
        place = PLACE.search(comment.issue_url)
        if place is None or place["repository"].casefold() != repository.casefold():
            return None
        if not self._may(repository, user):
            return None
        return Spoken(
            number=int(place["number"]),
            comment=comment.id,
            command=command,
            actor=user.login,
            at=comment.created_at,
            actor_id=user.id,
            on_pull_request="/pull/" in comment.html_url,
        )

    def _may(self, repository: str, who: Account) -> bool:
        """Tell whether an account is trusted; UnavailableError where that cannot be read now."""
        try:
            return self._trust.check(repository, who) is None
        except UnavailableError:
            raise
        except WorldError as error:
            log.warning("command_refused", repository=repository, reason=str(error))
            return False
