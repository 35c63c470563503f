"""Reviews of pull requests, comments on their lines, and answers to those."""

from mulligan.domain.issue import Permission
from mulligan.simulator import git_shapes
from mulligan.simulator.call import Call
from mulligan.simulator.fields import Fields
from mulligan.simulator.records import Pull, Repository
from mulligan.simulator.refused import Refused
from mulligan.simulator.reply import Reply
from mulligan.simulator.reviews import Note, lines_of, reply, submit_review


def listing(call: Call) -> Reply:
    """List the submitted reviews, oldest first."""
    place, (issue, pull) = call.place, call.pull()
    return call.page(pull.reviews, lambda review: git_shapes.review(place, issue, review))


def submit(call: Call) -> Reply:
    """Submit a review, with its comments on lines; all of it or, with a 422, nothing."""
    by, (issue, pull), fields = call.doer(Permission.READ), call.pull(), call.fields
    said = (fields.text("event") or "", fields.text("body") or "")
    written = [_note(by.repository, pull, part) for part in fields.parts("comments")]
    done = submit_review(by, issue, pull, said, written)
    return Reply(200, git_shapes.review(call.place, issue, done))


def _note(repository: Repository, pull: Pull, part: Fields) -> Note:
    """Read a comment on a line that the head has; of `position`, the old way, nothing is known."""
    path, words = part.required("path"), part.required("body")
    line, side = part.number("line") or 0, part.text("side") or "RIGHT"
    lines = lines_of(repository, pull, path)
    if lines is None:
        raise Refused(422, "Unprocessable Entity", ["Path could not be resolved"])
    if not 1 <= line <= len(lines):
        raise Refused(422, "Unprocessable Entity", ["Line could not be resolved"])
    return Note(path, line, words, side)


def notes(call: Call) -> Reply:
    """List the comments on lines, of all reviews, oldest first."""
    place, (issue, pull) = call.place, call.pull()
    return call.page(pull.notes, lambda note: git_shapes.review_comment(place, issue, note))


def answer(call: Call) -> Reply:
    """Answer a comment on a line."""
    by, (issue, pull), fields = call.doer(Permission.READ), call.pull(), call.fields
    to = call.params["comment"]
    done = reply(by, issue, pull, int(to) if to.isdecimal() else 0, fields.required("body"))
    return Reply(201, git_shapes.review_comment(call.place, issue, done))


ONE = "/repos/{owner}/{repo}/pulls/{number}"
ROUTES = (
    ("GET", f"{ONE}/reviews", listing),
    ("POST", f"{ONE}/reviews", submit),
    ("GET", f"{ONE}/comments", notes),
    ("POST", f"{ONE}/comments/{{comment}}/replies", answer),
)
