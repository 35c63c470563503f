"""Read pull requests: Mulligan's own, their state, reviews and CI runs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import structlog

from mulligan.domain.errors import DeniedError, UnavailableError
from mulligan.domain.events import Remark
from mulligan.domain.feedback import BODY_CHARS, CODE_CHARS, CheckRun, OpenPull, PullState, Review
from mulligan.domain.in_hand import Closers, ClosingPull
from mulligan.domain.issue import BRANCH_PREFIX, IssueRef
from mulligan.domain.status import IssueStatus
from mulligan.github.answers import DeletedError, NotFoundError, not_found
from mulligan.github.authorization import TrustReader
from mulligan.github.check_run import KEY
from mulligan.github.client import Client
from mulligan.github.graphql import CLOSERS, CloserShape, closers_query
from mulligan.github.pull_text import opened_by
from mulligan.github.shapes import (
    ANNOTATIONS,
    CHECK_RUN,
    CHECK_RUNS,
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
"""The `mergeable_state` of a pull request that lacks only an update of its branch.

REST does not document the values; they are those of GraphQL's MergeStateStatus.
"""

CHANGES_REQUESTED = "CHANGES_REQUESTED"

DISMISSED = "DISMISSED"

FEEDBACK_STATES = frozenset({CHANGES_REQUESTED, "COMMENTED"})
"""States of reviews whose text is feedback; approvals are not."""

OPINIONS = frozenset({CHANGES_REQUESTED, "APPROVED", DISMISSED})
"""States of reviews that replace the reviewer's earlier opinion; comments do not.

See https://docs.github.com/en/graphql/reference/objects#pullrequest, `latestOpinionatedReviews`.
"""

ACTIONS_APP = "github-actions"
"""The app whose check runs are jobs, with the same ids."""

STATUS_APP = "status"
"""Stands for the app of a commit status, which has none."""

PENDING_STATE = "pending"


def read_pull(client: Client, repository: str, number: int) -> PullShape:
    """Read a pull request; UnconfirmedError if GitHub does not find it."""
    try:
        return client.read(PULL, f"/repos/{repository}/pulls/{number}")
    except NotFoundError as error:
        raise not_found(f"the pull request {repository}#{number}") from error


def find_open(client: Client, ref: IssueRef) -> PullShape | None:
    """Return the open pull request of the issue's branch; if there are several, the oldest."""
    return min(_open_from(client, ref), key=lambda pull: pull.number, default=None)


def _open_from(client: Client, ref: IssueRef) -> list[PullShape]:
    """Return the open pull requests, of anybody, that come from the issue's branch."""
    owner = ref.repository.partition("/")[0]
    query = {"head": f"{owner}:{ref.branch}", "state": "open"}
    pulls = client.read_all(PULLS, f"/repos/{ref.repository}/pulls", query)
    return [belongs(pull, ref) for pull in pulls if is_from(pull, ref)]


def find_published(client: Client, ref: IssueRef, status: IssueStatus) -> PullShape | None:
    """Return the open pull request of the issue's branch, or a closed one of the same request.

    Mulligan may have ended right after it opened it, and somebody may have closed or merged it
    before Mulligan recorded it (PUBLISH-2).
    """
    owner = ref.repository.partition("/")[0]
    query = {"head": f"{owner}:{ref.branch}", "state": "all"}
    pulls = client.read_all(PULLS, f"/repos/{ref.repository}/pulls", query)
    ours = [belongs(pull, ref) for pull in pulls if is_from(pull, ref)]
    found = [pull for pull in ours if pull.state == "open" or _is_unrecorded(pull, status)]
    return min(found, key=lambda pull: (pull.state != "open", pull.number), default=None)


def _is_unrecorded(pull: PullShape, status: IssueStatus) -> bool:
    """Return whether this installation opened it for the request without recording it."""
    if status.pull.number is not None or opened_by(pull.body or "") != status.instance:
        return False
    at = status.request.at
    return bool(at and pull.created_at and pull.created_at >= at)


def find_any(client: Client, repository: str, branch: str) -> PullShape | None:
    """Return the newest pull request of a branch, open or closed."""
    query = {"head": f"{repository.partition('/')[0]}:{branch}", "state": "all"}
    found = client.read_all(PULLS, f"/repos/{repository}/pulls", query)
    ours = (each for each in found if each.head.ref == branch)
    return max(ours, key=lambda pull: pull.number, default=None)


def closers(client: Client, repository: str, numbers: Sequence[int]) -> Mapping[int, Closers]:
    """Read the open pull requests that close each issue, by closing keyword or by hand.

    Those of Mulligan's own branch of the issue do not count. A server without this field, or
    without GraphQL, reports none.
    """
    owner, _, name = repository.partition("/")
    variables = {"owner": owner, "name": name}
    try:
        answer = client.query(CLOSERS, closers_query(numbers), variables, repository)
    except NotFoundError as error:
        log.info("closing_pull_requests_not_read", repository=repository, reason=str(error))
        return {}
    return {
        found.number: Closers(
            tuple(
                ClosingPull(each.number, each.url, _login_of(each), each.is_draft)
                for each in found.closing.nodes
                if each.state == "OPEN" and not _is_own_branch(each, repository, found.number)
            ),
            found.updated_at,
        )
        for found in answer.data.repository.values()
    }


def _login_of(pull: CloserShape) -> str:
    return pull.author.account.login if pull.author else "a deleted account"


def _is_own_branch(pull: CloserShape, repository: str, number: int) -> bool:
    is_here = pull.head is not None and pull.head.name.casefold() == repository.casefold()
    return is_here and pull.branch == f"{BRANCH_PREFIX}{number}"


def opened_elsewhere(client: Client, ref: IssueRef, status: IssueStatus) -> str:
    """Return a sentence about another installation's pull request for the request, or ""."""
    found = find_open(client, ref)
    if found is None or not is_elsewhere(found, status):
        return ""
    return f"Another installation of Mulligan has opened {found.html_url}"


def is_elsewhere(pull: PullShape, status: IssueStatus) -> bool:
    """Return whether another installation opened it after the epoch's authorising act."""
    by = opened_by(pull.body or "")
    if by in {None, status.instance} or pull.number == status.pull.number:
        return False
    return not pull.created_at or not status.request.at or pull.created_at >= status.request.at


def is_from(pull: PullShape, ref: IssueRef) -> bool:
    """Return whether its branch is the issue's, in this repository and not in a fork."""
    where = pull.head.repo.full_name if pull.head.repo else ""
    return pull.head.ref == ref.branch and where.casefold() == ref.repository.casefold()


def belongs(pull: PullShape, ref: IssueRef) -> PullShape:
    if not leads_to(pull.url, f"/repos/{ref.repository}/pulls/{pull.number}"):
        raise UnavailableError(
            f"GitHub gave a pull request of another repository for {ref} ({pull.url}); if the "
            "repository was renamed, write the new name in the configuration."
        )
    return pull


class GitHubPulls:
    """Implements the port PullRequests with GitHub's REST API."""

    def __init__(self, client: Client, trust: TrustReader, own_login: Callable[[], str]) -> None:
        self._client = client
        self._trust = trust
        self._own_login = own_login

    def list_open(self, repository: str) -> Sequence[OpenPull]:
        query = {"state": "open", "sort": "created", "direction": "asc"}
        found = self._client.read_all(PULLS, f"/repos/{repository}/pulls", query)
        return [
            OpenPull(
                pull.number,
                pull.head.ref,
                pull.head.sha,
                pull.updated_at,
                pull.base.ref if pull.base else "",
            )
            for pull in found
            if pull.updated_at and _is_own(pull, repository)
        ]

    def state(self, ref: IssueRef, number: int) -> PullState:
        try:
            pull = read_pull(self._client, ref.repository, number)
        except DeletedError:
            return PullState(is_open=False)
        into = pull.base.repo.default_branch if pull.base and pull.base.repo else ""
        return PullState(
            is_open=pull.state == "open",
            is_merged=pull.merged_at is not None,
            into_default=pull.base is None or pull.base.ref == into,
            is_draft=pull.draft,
            is_behind=pull.mergeable_state == BEHIND_STATE,
            base=pull.base.ref if pull.base else "",
        )

    def of_branch(self, ref: IssueRef) -> Sequence[int]:
        path = f"/repos/{ref.repository}/pulls"
        bases = self._client.read_all(PULLS, path, {"base": ref.branch, "state": "open"})
        onto = {each.number for each in bases if each.base and each.base.ref == ref.branch}
        return sorted({each.number for each in _open_from(self._client, ref)} | onto)

    def of_people(self, ref: IssueRef) -> Sequence[int]:
        found = _open_from(self._client, ref)
        return [each.number for each in found if opened_by(each.body or "") is None]

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        """Omit approvals: they have an effect on the reviewer's earlier reviews only."""
        path = f"/repos/{ref.repository}/pulls/{number}"
        found = self._client.read_all(REVIEWS, f"{path}/reviews")
        gone = withdrawn_reviews(found)
        asks = {one.id for one in found if one.state == CHANGES_REQUESTED} - gone
        wanted = [one for one in found if one.id in gone or (asks and one.state in FEEDBACK_STATES)]
        reviews = [
            _review(one.user, one, one.submitted_at, is_withdrawn=one.id in gone)
            for one in wanted
            if one.user and one.submitted_at and self._is_trusted(ref, one.user, one)
        ]
        if not any(one.id in asks for one in reviews):
            return [one for one in reviews if one.withdrawn]
        notes = self._client.read_all(NOTES, f"{path}/comments")
        reviews = [one if one.withdrawn else _with_notes(one, notes) for one in reviews]
        return sorted(reviews, key=lambda one: one.id)

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        return check_runs_of(self._client, ref.repository, head_sha)

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        return check_log(self._client, ref.repository, run)

    def _is_trusted(self, ref: IssueRef, who: Account, review: ReviewShape) -> bool:
        own = who.login.casefold() == self._own_login().casefold()
        at = review.submitted_at
        return not own and bool(at) and not self._trust.check_act(ref.repository, who, at)


def _is_own(pull: PullShape, repository: str) -> bool:
    where = pull.head.repo.full_name if pull.head.repo else ""
    own = where.casefold() == repository.casefold()
    listed = leads_to(pull.url, f"/repos/{repository}/pulls/{pull.number}")
    return own and listed and pull.head.ref.startswith(BRANCH_PREFIX)


def withdrawn_reviews(reviews: Sequence[ReviewShape]) -> frozenset[int]:
    """Return the reviews that no longer request changes: each person's latest opinion counts.

    A dismissed review keeps its time, and replaces the reviewer's earlier ones all the same.
    """
    times = [(one.submitted_at, one.id, one) for one in reviews if one.submitted_at]
    gone, standing = set[int](), dict[str, list[int]]()
    for _, number, one in sorted(times, key=lambda each: each[:2]):
        if one.user is None or one.state not in OPINIONS:
            continue
        before = standing.setdefault(one.user.login.casefold(), [])
        if one.state == CHANGES_REQUESTED:
            before.append(number)
            continue
        gone.update(before, [number] if one.state == DISMISSED else [])
        before.clear()
    return frozenset(gone)


def _review(who: Account, found: ReviewShape, at: datetime, *, is_withdrawn: bool) -> Review:
    body = found.body[:BODY_CHARS]
    whole = Remark(author=who.login, body=body, review=found.id)
    return Review(
        id=found.id,
        author=who.login,
        author_id=who.id,
        at=at,
        requests_changes=found.state == CHANGES_REQUESTED,
        remarks=(whole,) if body.strip() and not is_withdrawn else (),
        withdrawn=is_withdrawn,
    )


def _with_notes(review: Review, notes: Sequence[NoteShape]) -> Review:
    return replace(review, remarks=(*review.remarks, *_remarks(review, notes)))


def _remarks(review: Review, notes: Sequence[NoteShape]) -> Iterator[Remark]:
    for note in notes:
        if note.review == review.id and note.user and note.user.login == review.author:
            yield Remark(
                author=review.author,
                review=review.id,
                body=note.body[:BODY_CHARS],
                path=note.path,
                line=note.line or note.original_line,
                side=note.side or "RIGHT",
                # A diff hunk ends with the line of the comment.
                code=note.diff_hunk[-CODE_CHARS:],
                thread=note.in_reply_to_id or note.id,
            )


def check_runs_of(client: Client, repository: str, sha: str) -> tuple[CheckRun, ...]:
    """Return check runs of others and statuses of a commit; free if the answer is unchanged."""
    commit = f"/repos/{repository}/commits/{sha}"
    found = client.read_all(CHECK_RUNS, f"{commit}/check-runs")
    checks = (each for each in found if not each.external_id.startswith(KEY))
    statuses = client.read_all(STATUSES, f"{commit}/status")
    return (*map(_of_check, checks), *map(_of_status, statuses))


def check_log(client: Client, repository: str, run: CheckRun) -> bytes:
    """Return the output of a job's failed steps; for others, or an expired log, the summary."""
    if run.app == STATUS_APP:
        return run.said.encode()
    if run.app == ACTIONS_APP:
        try:
            return failed_steps(client.download(f"/repos/{repository}/actions/jobs/{run.id}/logs"))
        except (DeniedError, NotFoundError):
            # GitHub deletes logs after a while, and reading them needs another permission.
            return _said(client, repository, run)
    return _said(client, repository, run)


STAMP = re.compile(rb"^(?:\xef\xbb\xbf)?\d{4}-\d\d-\d\dT[\d:.]+Z ", re.MULTILINE)
STEP = re.compile(rb"^(?:##\[group\]Run |Post job cleanup\.)", re.MULTILINE)
STEP_HEAD = re.compile(
    rb"##\[group\](Run [^\n]*+\n)(?:(?!##\[endgroup\])[^\n]*+\n)*+##\[endgroup\]\r?\n"
)
STEP_END = re.compile(rb"^##\[error\]Process completed with exit code \d+\.\r?\n?", re.MULTILINE)


def failed_steps(job: bytes) -> bytes:
    """Keep the output of a job's failed steps; all of it if no step reports an error.

    The rest is GitHub's own: its preparation of the machine, and the steps before and after.
    """
    job = STAMP.sub(b"", job)
    starts = [found.start() for found in STEP.finditer(job)]
    steps = (job[start:end] for start, end in pairwise([*starts, len(job)]))
    failed = [STEP_HEAD.sub(rb"\1", step, count=1) for step in steps if b"\n##[error]" in step]
    return STEP_END.sub(b"", b"".join(failed)) or job


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
    conclusion, at = (found.conclusion, found.completed_at) if done else (None, found.started_at)
    return CheckRun(found.id, app, found.name, conclusion, suite=suite, at=at)


def _of_status(found: StatusShape) -> CheckRun:
    done = None if found.state == PENDING_STATE else found.state
    return CheckRun(
        found.id, STATUS_APP, found.context, done, found.description, at=found.updated_at
    )


def _annotation(found: AnnotationShape) -> str:
    level = "error" if found.annotation_level == "failure" else found.annotation_level
    return f"{found.path}:{found.start_line}: {level}: {found.message}"
