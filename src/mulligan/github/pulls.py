"""Pull requests: Mulligan's own, opened and updated; reviews, ends and CI runs, read."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import structlog

from mulligan.config.policy import PullRequestSettings
from mulligan.domain.errors import DeniedError, UnavailableError, WorldError
from mulligan.domain.events import Remark
from mulligan.domain.feedback import BODY_CHARS, CODE_CHARS, CheckRun, OpenPull, PullState, Review
from mulligan.domain.issue import BRANCH_PREFIX, IssueRef
from mulligan.domain.issue_context import IssueContext, PullRequest
from mulligan.domain.status import IssueStatus
from mulligan.github.answers import AlreadyExistsError, NotFoundError, TransientError
from mulligan.github.authorization import TrustReader
from mulligan.github.client import Client
from mulligan.github.comments import Comments
from mulligan.github.graphql import READY, READY_MUTATION
from mulligan.github.markdown_parts import MARKER, marker
from mulligan.github.messages import draft_body, draft_title, pull_request_body, pull_request_title
from mulligan.github.shapes import (
    ANNOTATIONS,
    ANYTHING,
    CHECK_RUN,
    CHECK_RUNS,
    ISSUE,
    NOTE,
    NOTES,
    PULL,
    PULLS,
    REVIEWS,
    STATUSES,
    Account,
    AnnotationShape,
    CheckRunShape,
    NoteShape,
    PullShape,
    ReviewShape,
    StatusShape,
    leads_to,
)

log = structlog.get_logger()


BEHIND_STATE = "behind"
"""What GitHub calls a pull request whose base wants branches up to date, and that only lacks that.

REST does not list the words; they are those of GraphQL's MergeStateStatus.
"""

CHANGES_REQUESTED = "CHANGES_REQUESTED"

SUBMITTED_STATES = frozenset({CHANGES_REQUESTED, "COMMENTED"})
"""States of reviews whose text is feedback; approvals are not."""

ACTIONS_APP = "github-actions"
"""The app whose check runs are jobs, with the same ids."""

STATUS_APP = "status"
"""Stands for the app of a commit status, which has none."""

PENDING_STATE = "pending"


class PullRequestWriter:
    """Opens and updates pull requests; never opens a second one for a branch."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def open(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Open the pull request of the issue's branch, or bring the open one up to date."""
        texts = {"title": pull_request_title(case), "body": pull_request_body(case)}
        found = self._open_or_update(case, base_branch, texts, draft=settings.draft)
        if _is_elsewhere(found, case.status):
            return PullRequest(found.number, found.html_url, elsewhere=True)
        was_ours = case.status.draft_of or case.status.left_draft
        left_draft = ""
        if found.draft and was_ours and not settings.draft:
            left_draft = self._end_draft(found, case.issue.ref)
        self._decorate(found, case, settings)
        return PullRequest(found.number, found.html_url, left_draft)

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        """Open a draft with unverified work, or mark the open pull request as unverified."""
        texts = {"title": draft_title(case), "body": draft_body(case)}
        found = self._open_or_update(case, base_branch, texts, draft=True)
        elsewhere = _is_elsewhere(found, case.status)
        return PullRequest(found.number, found.html_url, elsewhere=elsewhere)

    def opened_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Say that another installation has opened one for the epoch's request, if it has."""
        found = self._find(ref)
        if found is None or not _is_elsewhere(found, status):
            return None
        return f"Another installation of Mulligan has opened {found.html_url}"

    def _open_or_update(
        self, case: IssueContext, base_branch: str, texts: dict[str, str], *, draft: bool
    ) -> PullShape:
        """Have a pull request there that says these texts; another installation's is left alone."""
        ref = case.issue.ref
        wanted = {name: self._client.as_sent(text) for name, text in texts.items()}
        found = self._find(ref)
        if found is None:
            created = {"head": ref.branch, "base": base_branch, "draft": draft}
            found = self._create(ref, {**wanted, **created})
        # If people removed the marker, the text is theirs and is not updated.
        ours = MARKER in (found.body or "") and not _is_elsewhere(found, case.status)
        if ours and not _says(found, wanted):
            found = self._update(found, ref, wanted)
        return found

    def _end_draft(self, pull: PullShape, ref: IssueRef) -> str:
        """Mark a draft as ready for review; say why it stays one, where it cannot be."""
        path = f"/repos/{ref.repository}/pulls/{pull.number}"
        try:
            self._client.mutate(READY, READY_MUTATION, {"pull": pull.node_id}, ref.repository)
        except NotFoundError:
            return "This server has no GraphQL, by which alone a draft is ended."
        except WorldError as error:
            # A failed answer does not mean that it did not happen (SPEC E7).
            if not self._client.read(PULL, path).draft:
                return ""
            if isinstance(error, TransientError):
                raise
            return str(error)
        return ""

    def _find(self, ref: IssueRef) -> PullShape | None:
        """Return the open pull request of the branch; of several the oldest."""
        owner = ref.repository.partition("/")[0]
        query = {"head": f"{owner}:{ref.branch}", "state": "open"}
        pulls = self._client.read_all(PULLS, f"/repos/{ref.repository}/pulls", query)
        ours = [_belongs(pull, ref) for pull in pulls if _is_from(pull, ref)]
        return min(ours, key=lambda pull: pull.number, default=None)

    def _create(self, ref: IssueRef, body: dict[str, object]) -> PullShape:
        try:
            created = self._client.write(PULL, "POST", f"/repos/{ref.repository}/pulls", body)
        except (UnavailableError, AlreadyExistsError):
            # A failed answer does not mean that it did not happen (SPEC E7).
            if found := self._find(ref):
                return found
            raise
        return _belongs(created, ref)

    def _update(self, pull: PullShape, ref: IssueRef, wanted: dict[str, str]) -> PullShape:
        path = f"/repos/{ref.repository}/pulls/{pull.number}"
        try:
            updated = self._client.write(PULL, "PATCH", path, wanted)
        except UnavailableError:
            updated = self._client.read(PULL, path)
            if not _says(updated, wanted):
                raise
        return _belongs(updated, ref)

    def _decorate(self, pull: PullShape, case: IssueContext, settings: PullRequestSettings) -> None:
        """Add labels and ask for reviews; a refusal never stops the publishing."""
        repository = case.issue.ref.repository
        there = {label.name.casefold() for label in pull.labels}
        labels = [name for name in settings.labels if name.casefold() not in there]
        if labels:
            path = f"/repos/{repository}/issues/{pull.number}/labels"
            self._try("labels", case, path, {"labels": labels})
        people = _reviewers(pull, case, settings)
        if people or settings.team_reviewers:
            path = f"/repos/{repository}/pulls/{pull.number}/requested_reviewers"
            asked = {"reviewers": people, "team_reviewers": list(settings.team_reviewers)}
            self._try(
                "reviewers", case, path, {who: names for who, names in asked.items() if names}
            )

    def _try(self, what: str, case: IssueContext, path: str, body: object) -> None:
        try:
            self._client.write(ANYTHING, "POST", path, body)
        except WorldError as error:
            log.warning("left_out", what=what, issue=str(case.issue.ref), reason=str(error))


def _is_elsewhere(pull: PullShape, status: IssueStatus) -> bool:
    """Tell whether another installation opened it after the act that this one works for."""
    by = re.search(rf"{re.escape(MARKER)}pull-request \S+ by=(\w+) -->", pull.body or "")
    if by is None or by[1] == status.instance or pull.number == status.pull_number:
        return False
    return not pull.created_at or not status.act_at or pull.created_at >= status.act_at


def _reviewers(pull: PullShape, case: IssueContext, settings: PullRequestSettings) -> list[str]:
    """List whom to ask: as configured, else who put the label on; GitHub refuses the author."""
    status = case.status
    by_person = status.act.startswith(("labeled:", "comment:"))
    asker = (status.actor,) if by_person else ()
    author = pull.user.login.casefold() if pull.user else ""
    done = {author, *(account.login.casefold() for account in pull.requested_reviewers)}
    return [
        login
        for login in settings.reviewers or asker
        if login.casefold() not in done and not login.endswith("[bot]")
    ]


def _is_from(pull: PullShape, ref: IssueRef) -> bool:
    """Tell whether it comes from the issue's branch here; a fork may have one of that name too."""
    where = pull.head.repo.full_name if pull.head.repo else ""
    return pull.head.ref == ref.branch and where.casefold() == ref.repository.casefold()


def _belongs(pull: PullShape, ref: IssueRef) -> PullShape:
    if not leads_to(pull.url, f"/repos/{ref.repository}/pulls/{pull.number}"):
        message = (
            f"GitHub gave a pull request of another repository for {ref} ({pull.url}); if the "
            "repository was renamed, write the new name in the configuration."
        )
        raise UnavailableError(message)
    return pull


def _says(pull: PullShape, wanted: dict[str, str]) -> bool:
    body = (pull.body or "").replace("\r\n", "\n").strip()
    return pull.title == wanted["title"] and body == wanted["body"]


class GitHubPulls:
    """The port PullRequests over GitHub's REST API."""

    def __init__(self, client: Client, trust: TrustReader, own_login: Callable[[], str]) -> None:
        self._client = client
        self._trust = trust
        self._own_login = own_login
        self._comments = Comments(client, own_login)

    def list_open(self, repository: str) -> Sequence[OpenPull]:
        """List the open pull requests of Mulligan's branches; free while nothing changed."""
        query = {"state": "open", "sort": "created", "direction": "asc"}
        found = self._client.read_all(PULLS, f"/repos/{repository}/pulls", query)
        return [
            OpenPull(pull.number, pull.head.ref, pull.head.sha, pull.updated_at)
            for pull in found
            if pull.updated_at and _is_own(pull, repository)
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
            is_behind=pull.mergeable_state == BEHIND_STATE,
        )

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        """Read the submitted reviews of trusted people, with their remarks, oldest first."""
        path = f"/repos/{ref.repository}/pulls/{number}"
        found = self._client.read_all(REVIEWS, f"{path}/reviews")
        submitted = [(one.user, one) for one in found if one.user and one.state in SUBMITTED_STATES]
        trusted = [(who, one) for who, one in submitted if self._is_trusted(ref, who)]
        if not any(one.state == CHANGES_REQUESTED for _, one in trusted):
            return ()
        notes = self._client.read_all(NOTES, f"{path}/comments")
        reviews = [
            _review(who, one, one.submitted_at, notes) for who, one in trusted if one.submitted_at
        ]
        return sorted(reviews, key=lambda one: one.id)

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        """Read what runs, or ran, on a commit; free of charge while nothing changed."""
        return check_runs_of(self._client, ref.repository, head_sha)

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        """Fetch the end of what a failed check printed, or else what it says of itself."""
        return check_log(self._client, ref.repository, run)

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
        return str(self._comments.upsert(place, named, f"{named}\n{text}").id)

    def close_issue(self, ref: IssueRef) -> None:
        """Close an issue whose pull request went to a branch that does not close it."""
        path = f"/repos/{ref.repository}/issues/{ref.number}"
        if self._client.read(ISSUE, path).state == "open":
            body = {"state": "closed", "state_reason": "completed"}
            self._client.write(ISSUE, "PATCH", path, body)

    def _answered(self, ref: IssueRef, number: int, thread: int, text: str) -> NoteShape | None:
        own = self._own_login().casefold()
        notes = self._client.read_all(NOTES, f"/repos/{ref.repository}/pulls/{number}/comments")
        return next((note for note in notes if _review_says(note, thread, own, text)), None)

    def _is_trusted(self, ref: IssueRef, who: Account) -> bool:
        own = who.login.casefold() == self._own_login().casefold()
        return not own and self._trust.check(ref.repository, who) is None


def _is_own(pull: PullShape, repository: str) -> bool:
    where = pull.head.repo.full_name if pull.head.repo else ""
    here = where.casefold() == repository.casefold()
    listed = leads_to(pull.url, f"/repos/{repository}/pulls/{pull.number}")
    return here and listed and pull.head.ref.startswith(BRANCH_PREFIX)


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
        requests_changes=found.state == CHANGES_REQUESTED,
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


def _review_says(note: NoteShape, thread: int, own: str, text: str) -> bool:
    by_us = note.user is not None and note.user.login.casefold() == own
    body = note.body.replace("\r\n", "\n").strip()
    return by_us and note.in_reply_to_id == thread and body == text.strip()


def check_runs_of(client: Client, repository: str, sha: str) -> tuple[CheckRun, ...]:
    """Read check runs and statuses of a commit; free of charge while nothing changed."""
    commit = f"/repos/{repository}/commits/{sha}"
    checks = client.read_all(CHECK_RUNS, f"{commit}/check-runs")
    statuses = client.read_all(STATUSES, f"{commit}/status")
    return (*map(_of_check, checks), *map(_of_status, statuses))


def check_log(client: Client, repository: str, run: CheckRun) -> bytes:
    """Fetch the end of a job's log; of other checks, and where it is gone, what they say."""
    if run.app == STATUS_APP:
        return run.said.encode()
    if run.app == ACTIONS_APP:
        try:
            return client.download(f"/repos/{repository}/actions/jobs/{run.id}/logs")
        except DeniedError:
            # Logs are kept for a while, and to read them takes a right of its own.
            return _said(client, repository, run)
    return _said(client, repository, run)


def _said(client: Client, repository: str, run: CheckRun) -> bytes:
    path = f"/repos/{repository}/check-runs/{run.id}"
    output = client.read(CHECK_RUN, path).output
    notes = client.read_all(ANNOTATIONS, f"{path}/annotations")
    parts = [output.title, *map(_annotation, notes), output.summary, output.text]
    return "\n".join(part for part in parts if part).encode()


def _of_check(found: CheckRunShape) -> CheckRun:
    app = found.app.slug if found.app else ""
    done = found.status == "completed"
    suite = found.check_suite.id if found.check_suite else 0
    return CheckRun(found.id, app, found.name, found.conclusion if done else None, suite=suite)


def _of_status(found: StatusShape) -> CheckRun:
    done = None if found.state == PENDING_STATE else found.state
    return CheckRun(found.id, STATUS_APP, found.context, done, found.description)


def _annotation(found: AnnotationShape) -> str:
    level = "error" if found.annotation_level == "failure" else found.annotation_level
    return f"{found.path}:{found.start_line}: {level}: {found.message}"
