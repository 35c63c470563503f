"""Pull requests and their reviews: list, open, change, merge, review, reply."""

from collections.abc import Callable
from datetime import datetime

from github_simulator import json_shapes
from github_simulator.bare_repository import BareRepository
from github_simulator.issues import edit, set_state
from github_simulator.pulls import (
    RIGHT,
    LineComment,
    PullRequestDraft,
    compute_mergeable,
    dismiss,
    head_branch,
    is_behind,
    merge,
    open_pull,
    reopen,
    reply,
    request_reviews,
    require_line,
    retarget,
    start_of,
    submit_review,
    withdraw_requests,
)
from github_simulator.records import Actor, Issue, Permission, Pull, Repository
from github_simulator.reply import ErrorReply, Reply, Resource, Shape, invalid
from github_simulator.request import ApiCall, Fields

PULLS = "/repos/{owner}/{repo}/pulls"

ONE = f"{PULLS}/{{number}}"

ORDERS: dict[str, Callable[[Issue], tuple[datetime, int]]] = {
    "created": lambda issue: (issue.created_at, issue.number),
    "updated": lambda issue: (issue.updated_at, issue.number),
}

NO_ACCESS = "Resource not accessible by personal access token"


# Pull requests.


def pull_requests(call: ApiCall) -> Reply:
    """List pull requests; like GitHub, filter by `head` only in the form `owner:branch`."""
    place, query = call.urls, call.query
    call.world.follow_branches(place.repository)
    head, base, state = query.get("head", ""), query.get("base"), query.get("state", "open")
    branch = head_branch(place.repository, head) if ":" in head else None
    found = [
        (issue, issue.pull)
        for issue in place.repository.visible()
        if issue.pull
        and state in {issue.state, "all"}
        and base in {None, "", issue.pull.base_ref}
        and branch in {None, issue.pull.head_ref}
    ]
    sort = query.get("sort", "created")
    order = ORDERS.get(sort, ORDERS["created"])
    descending = query.get("direction", "desc" if sort == "created" else "asc") == "desc"
    found.sort(key=lambda pair: order(pair[0]), reverse=descending)
    return call.page(found, lambda pair: json_shapes.pull(place, *pair))


def create(call: ApiCall) -> Reply:
    """Open a pull request; its head is in the same repository, which needs write permission."""
    by, fields = call.actor(Permission.WRITE, forbidden), call.fields
    asked = PullRequestDraft(
        fields.required("title"),
        fields.required("head"),
        fields.required("base"),
        fields.text("body"),
        fields.flag("draft"),
        fields.flag("maintainer_can_modify"),
    )
    shape = _whole(call, *open_pull(by, asked))
    return Reply(201, shape, {"location": str(shape["url"])})


def read(call: ApiCall) -> Reply:
    """Show a pull request; `mergeable` is null until it has been computed."""
    issue, pull = call.pull()
    if issue.state == "open":
        compute_mergeable(call.repository(), pull)
    return Reply(200, _whole(call, issue, pull))


def change(call: ApiCall) -> Reply:
    """Change title, body, base or state."""
    (issue, pull), fields = call.pull(), call.fields
    by, state, base = _author_or_writer(call, issue), fields.text("state"), fields.text("base")
    if state not in {None, "open", "closed"}:
        raise invalid(Resource.PULL, "state")
    if base and base not in BareRepository(by.repository.bare).branches():
        raise invalid(Resource.PULL, "base")
    edit(by, issue, fields.text("title"), fields.text("body"))
    if base:
        retarget(by, issue, pull, base)
    if state == "open":
        reopen(by, issue, pull)
    if state == "closed":
        set_state(by, issue, "closed")
    return Reply(200, _whole(call, issue, pull))


def merge_it(call: ApiCall) -> Reply:
    """Merge; 409 if the head is not the expected one, 405 if it cannot be merged."""
    by, (issue, pull), fields = call.actor(Permission.WRITE, forbidden), call.pull(), call.fields
    method = fields.text("merge_method") or "merge"
    if method == "rebase":
        raise ErrorReply(405, "Rebase merges are not allowed on this repository.")
    if fields.text("sha") not in {None, pull.head_sha}:
        raise ErrorReply(409, "Head branch was modified. Review and try the merge again.")
    parts = [fields.text("commit_title"), fields.text("commit_message")]
    message = "\n\n".join(part for part in parts if part)
    sha = merge(by, issue, pull, message, squash=method == "squash")
    done = "Pull Request successfully merged"
    return Reply(200, {"sha": sha, "merged": True, "message": done})


def request_reviewers(call: ApiCall) -> Reply:
    """Request reviews; teams are not supported."""
    by, (issue, pull), fields = call.actor(Permission.WRITE, forbidden), call.pull(), call.fields
    logins = [*(fields.names("reviewers") or []), *(fields.names("team_reviewers") or [])]
    request_reviews(by, issue, pull, [call.world.users.get(login.lower()) for login in logins])
    return Reply(201, json_shapes.pull(call.urls, issue, pull))


def remove_reviewers(call: ApiCall) -> Reply:
    """Remove requested reviewers; teams are not supported."""
    by, (issue, pull), fields = call.actor(Permission.WRITE, forbidden), call.pull(), call.fields
    logins = fields.names("reviewers") or []
    withdraw_requests(by, issue, pull, [call.world.users.get(login.lower()) for login in logins])
    return Reply(200, json_shapes.pull(call.urls, issue, pull))


def forbidden() -> ErrorReply:
    """Return the error for a token that may not do this."""
    return ErrorReply(403, NO_ACCESS)


def _whole(call: ApiCall, issue: Issue, pull: Pull) -> Shape:
    bare = BareRepository(call.repository().bare)
    start = start_of(call.repository(), pull)
    news = json_shapes.Mergeability(
        bare.count_ahead(pull.base_sha, pull.head_sha), is_behind(call.repository(), pull)
    )
    return json_shapes.pull_details(
        call.urls, issue, pull, news, bare.changes(start, pull.head_sha)
    )


def _author_or_writer(call: ApiCall, issue: Issue) -> Actor:
    by = call.actor(Permission.READ)
    if by.user != issue.author and not by.may(Permission.WRITE):
        raise forbidden()
    return by


# Reviews.


def reviews(call: ApiCall) -> Reply:
    """List the submitted reviews, oldest first."""
    place, (issue, pull) = call.urls, call.pull()
    return call.page(pull.reviews, lambda review: json_shapes.review(place, issue, review))


def submit(call: ApiCall) -> Reply:
    """Submit a review with its line comments; with a 422, nothing is submitted."""
    by, (issue, pull), fields = call.actor(Permission.READ), call.pull(), call.fields
    review = (fields.text("event") or "", fields.text("body") or "")
    written = [_note(by.repository, pull, part) for part in fields.parts("comments")]
    done = submit_review(by, issue, pull, review, written)
    return Reply(200, json_shapes.review(call.urls, issue, done))


def dismiss_review(call: ApiCall) -> Reply:
    """Dismiss a review."""
    by, (issue, pull) = call.actor(Permission.WRITE, forbidden), call.pull()
    call.fields.required("message")
    number = call.params["review"]
    done = dismiss(by, issue, pull, int(number) if number.isdecimal() else 0)
    return Reply(200, json_shapes.review(call.urls, issue, done))


def _note(repository: Repository, pull: Pull, part: Fields) -> LineComment:
    """Return a comment on a line of the diff; the older `position` is not supported."""
    path, words, line = part.required("path"), part.required("body"), part.number("line") or 0
    note = LineComment(path, line, words, part.text("side") or RIGHT)
    return require_line(repository, pull, note)


def notes(call: ApiCall) -> Reply:
    """List the line comments of all reviews, oldest first."""
    place, (issue, pull) = call.urls, call.pull()
    return call.page(pull.notes, lambda note: json_shapes.review_comment(place, issue, note))


def answer(call: ApiCall) -> Reply:
    """Reply to a comment on a line."""
    by, (issue, pull), fields = call.actor(Permission.READ), call.pull(), call.fields
    to = call.params["comment"]
    done = reply(by, issue, pull, int(to) if to.isdecimal() else 0, fields.required("body"))
    return Reply(201, json_shapes.review_comment(call.urls, issue, done))


ROUTES = (
    ("GET", PULLS, pull_requests),
    ("POST", PULLS, create),
    ("GET", ONE, read),
    ("PATCH", ONE, change),
    ("PUT", f"{ONE}/merge", merge_it),
    ("POST", f"{ONE}/requested_reviewers", request_reviewers),
    ("DELETE", f"{ONE}/requested_reviewers", remove_reviewers),
    ("GET", f"{ONE}/reviews", reviews),
    ("POST", f"{ONE}/reviews", submit),
    ("PUT", f"{ONE}/reviews/{{review}}/dismissals", dismiss_review),
    ("GET", f"{ONE}/comments", notes),
    ("POST", f"{ONE}/comments/{{comment}}/replies", answer),
)
