"""What people say about a pull request: reviews, comments on lines, and answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.simulator.bare import Bare
from mulligan.simulator.records import Doer, Issue, Pull, Repository, Review, ReviewComment
from mulligan.simulator.refused import Refused, Resource, invalid, not_found

VERDICTS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
HUNK_LINES = 4


@dataclass(frozen=True, slots=True)
class Note:
    """What is said about one line of a file, as it is in the pull request's head."""

    path: str
    line: int
    body: str
    side: str = "RIGHT"


def submit_review(
    by: Doer, issue: Issue, pull: Pull, said: tuple[str, str], notes: Sequence[Note] = ()
) -> Review:
    """Submit a review, `said` its event and its body; nobody may judge their own pull request."""
    event, body = said
    if event not in VERDICTS:
        raise invalid(Resource.REVIEW, "event")
    if by.user == issue.author and event != "COMMENT":
        words = {"APPROVE": "approve", "REQUEST_CHANGES": "request changes on"}
        raise Refused(
            422,
            "Unprocessable Entity",
            [f"Can not {words[event]} your own pull request"],
        )
    if event != "APPROVE" and not body.strip() and not notes:
        raise Refused(422, "Unprocessable Entity", ["body can't be blank"])
    now = by.stamps.now()
    review = Review(by.stamps.id(), by.user, VERDICTS[event], body, pull.head_sha, now)
    pull.reviews.append(review)
    pull.notes += [_comment(by, pull, review, note) for note in notes]
    pull.reviewers = [user for user in pull.reviewers if user != by.user]
    issue.updated_at = now
    return review


def lines_of(repository: Repository, pull: Pull, path: str) -> list[str] | None:
    """Read a file as it is in the pull request's head; None where it has none of that name."""
    bare = Bare(repository.bare)
    files = [entry.sha for entry in bare.entries(pull.head_sha, path) if entry.path == path]
    return bare.read(files[0]).decode(errors="replace").splitlines() if files else None


def _comment(by: Doer, pull: Pull, review: Review, note: Note) -> ReviewComment:
    lines = lines_of(by.repository, pull, note.path) or []
    first = max(1, note.line - HUNK_LINES + 1)
    shown = lines[first - 1 : note.line]
    span = f"@@ -{first},{len(shown)} +{first},{len(shown)} @@"
    return ReviewComment(
        id=by.stamps.id(),
        review=review.id,
        author=by.user,
        body=note.body,
        path=note.path,
        line=note.line,
        side=note.side,
        hunk="\n".join([span, *(f" {line}" for line in shown)]),
        commit_id=pull.head_sha,
        created_at=review.submitted_at,
    )


def reply(by: Doer, issue: Issue, pull: Pull, to: int, body: str) -> ReviewComment:
    """Answer the first comment of a thread; GitHub makes a review of its own for it."""
    first = next((one for one in pull.notes if one.id == to and not one.in_reply_to), None)
    if first is None:
        raise not_found()
    if not body.strip():
        raise Refused(422, "Unprocessable Entity", ["body can't be blank"])
    review = submit_review(by, issue, pull, ("COMMENT", "answered"))
    answer = ReviewComment(
        id=by.stamps.id(),
        review=review.id,
        author=by.user,
        body=body,
        path=first.path,
        line=first.line,
        side=first.side,
        hunk=first.hunk,
        commit_id=first.commit_id,
        created_at=review.submitted_at,
        in_reply_to=first.id,
    )
    pull.notes.append(answer)
    return answer
