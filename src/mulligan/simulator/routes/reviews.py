"""Reviews of pull requests, comments on their lines, and answers to those."""

from mulligan.domain.issue import Permission
from mulligan.simulator import git_shapes
from mulligan.simulator.call import Call
from mulligan.simulator.reply import Reply
from mulligan.simulator.reviews import reply, submit_review


def listing(call: Call) -> Reply:
    """List the submitted reviews, oldest first."""
    place, (issue, pull) = call.place, call.pull()
    return call.page(pull.reviews, lambda review: git_shapes.review(place, issue, review))


def submit(call: Call) -> Reply:
    """Submit a review; comments on lines are written in the world only."""
    by, (issue, pull), fields = call.doer(Permission.READ), call.pull(), call.fields
    said = (fields.text("event") or "", fields.text("body") or "")
    return Reply(200, git_shapes.review(call.place, issue, submit_review(by, issue, pull, said)))


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
