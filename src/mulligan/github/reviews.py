"""Pull requests that are open: what trusted people say there, and what became of them (P3, P6)."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from mulligan.domain.ci import CheckRun
from mulligan.domain.feedback import BODY_CHARS, CODE_CHARS, OpenPull, PullState, Remark, Review
from mulligan.domain.issue import IssueRef
from mulligan.errors import UnavailableError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client
from mulligan.github.comments import Comments
from mulligan.github.parts import marker
from mulligan.github.runs import log_of, runs_on
from mulligan.github.shapes import (
    ISSUE,
    NOTE,
    NOTES,
    PULL,
    PULLS,
    REVIEWS,
    Account,
    NoteShape,
    PullShape,
    ReviewShape,
    leads_to,
)
from mulligan.github.trust import TrustReader

BRANCHES = "mulligan/issue-"
BEHIND = "behind"
"""What GitHub calls a pull request whose base wants branches up to date, and that only lacks that.

REST does not list the words; they are those of GraphQL's MergeStateStatus.
"""
OBJECTS = "CHANGES_REQUESTED"
SUBMITTED = frozenset({OBJECTS, "COMMENTED"})
"""States of reviews whose words are feedback; who approves asks for nothing."""


class GitHubPulls:
    """The port PullRequests over GitHub's REST API."""

    def __init__(self, client: Client, trust: TrustReader, own_login: Callable[[], str]) -> None:
        self._client = client
        self._trust = trust
        self._own_login = own_login
        self._comments = Comments(client, own_login)

    def listed(self, repository: str) -> Sequence[OpenPull]:
        """List the open pull requests of Mulligan's branches; free while nothing changed."""
        query = {"state": "open", "sort": "created", "direction": "asc"}
        found = self._client.read_all(PULLS, f"/repos/{repository}/pulls", query)
        return [
            OpenPull(pull.number, pull.head.ref, pull.head.sha, pull.updated_at)
            for pull in found
            if pull.updated_at and _is_ours(pull, repository)
        ]

    def state(self, ref: IssueRef, number: int) -> PullState:
        """Read a pull request itself; one that is gone counts as closed."""
        try:
            pull = self._client.read(PULL, f"/repos/{ref.repository}/pulls/{number}")
        except NotFoundError:
            return PullState(is_open=False)
        into = pull.base.repo.default_branch if pull.base and pull.base.repo else ""
        return PullState(
            is_open=pull.state == "open",
            is_merged=pull.merged_at is not None,
            into_default=pull.base is None or pull.base.ref == into,
            is_draft=pull.draft,
            is_behind=pull.mergeable_state == BEHIND,
        )

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        """Read the submitted reviews of trusted people, with their remarks, oldest first."""
        path = f"/repos/{ref.repository}/pulls/{number}"
        found = self._client.read_all(REVIEWS, f"{path}/reviews")
        submitted = [(one.user, one) for one in found if one.user and one.state in SUBMITTED]
        heard = [(who, one) for who, one in submitted if self._is_heard(ref, who)]
        if not any(one.state == OBJECTS for _, one in heard):
            return ()
        notes = self._client.read_all(NOTES, f"{path}/comments")
        reviews = [
            _review(who, one, one.submitted_at, notes) for who, one in heard if one.submitted_at
        ]
        return sorted(reviews, key=lambda one: one.id)

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        """Read what runs, or ran, on a commit; free of charge while nothing changed."""
        return runs_on(self._client, ref.repository, head_sha)

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        """Fetch the end of what a failed check printed, or else what it says of itself."""
        return log_of(self._client, ref.repository, run)

    def answer(self, ref: IssueRef, number: int, thread: int, text: str) -> str:
        """Answer a comment on a line, once for each text; give the id of the answer."""
        text = self._client.as_sent(text)
        if found := self._answered(ref, number, thread, text):
            return str(found.id)
        path = f"/repos/{ref.repository}/pulls/{number}/comments/{thread}/replies"
        try:
            written = self._client.write(NOTE, "POST", path, {"body": text})
        except UnavailableError:
            # A failed answer does not mean that it did not happen (SPEC E7).
            if found := self._answered(ref, number, thread, text):
                return str(found.id)
            raise
        return str(written.id)

    def answer_review(self, ref: IssueRef, number: int, review: int, text: str) -> str:
        """Answer a review in one comment on the pull request; give the comment's id."""
        named = marker("answer", ref, f"review={review}")
        place = IssueRef(ref.repository, number)
        return str(self._comments.keep_one(place, named, f"{named}\n{text}").id)

    def close_issue(self, ref: IssueRef) -> None:
        """Close an issue whose pull request went to a branch that does not close it."""
        path = f"/repos/{ref.repository}/issues/{ref.number}"
        if self._client.read(ISSUE, path).state == "open":
            body = {"state": "closed", "state_reason": "completed"}
            self._client.write(ISSUE, "PATCH", path, body)

    def _answered(self, ref: IssueRef, number: int, thread: int, text: str) -> NoteShape | None:
        own = self._own_login().casefold()
        notes = self._client.read_all(NOTES, f"/repos/{ref.repository}/pulls/{number}/comments")
        return next((note for note in notes if _says(note, thread, own, text)), None)

    def _is_heard(self, ref: IssueRef, who: Account) -> bool:
        own = who.login.casefold() == self._own_login().casefold()
        return not own and self._trust.check(ref.repository, who) is None


def _is_ours(pull: PullShape, repository: str) -> bool:
    where = pull.head.repo.full_name if pull.head.repo else ""
    here = where.casefold() == repository.casefold()
    listed = leads_to(pull.url, f"/repos/{repository}/pulls/{pull.number}")
    return here and listed and pull.head.ref.startswith(BRANCHES)


def _review(who: Account, found: ReviewShape, at: datetime, notes: Sequence[NoteShape]) -> Review:
    on_lines = tuple(_remarks(who, found.id, notes))
    # Where there are comments on lines, their answers say what was done.
    whole = Remark(
        author=who.login, body=found.body[:BODY_CHARS], review=0 if on_lines else found.id
    )
    return Review(
        id=found.id,
        author=who.login,
        author_id=who.id,
        at=at,
        objects=found.state == OBJECTS,
        remarks=(whole, *on_lines) if found.body.strip() else on_lines,
    )


def _remarks(who: Account, review: int, notes: Sequence[NoteShape]) -> Iterator[Remark]:
    for note in notes:
        if note.review == review and note.user and note.user.login == who.login:
            yield Remark(
                author=who.login,
                body=note.body[:BODY_CHARS],
                path=note.path,
                line=note.line or note.original_line,
                side=note.side or "RIGHT",
                # A hunk ends with the line that it is about.
                code=note.diff_hunk[-CODE_CHARS:],
                thread=note.in_reply_to_id or note.id,
            )


def _says(note: NoteShape, thread: int, own: str, text: str) -> bool:
    by_us = note.user is not None and note.user.login.casefold() == own
    body = note.body.replace("\r\n", "\n").strip()
    return by_us and note.in_reply_to_id == thread and body == text.strip()
