"""Pull requests: list, open, read, change, merge; who is asked for a review."""

from collections.abc import Callable
from datetime import datetime

from mulligan.domain.issue import Permission
from mulligan.simulator import git_shapes, shapes
from mulligan.simulator.bare import Bare
from mulligan.simulator.call import Call
from mulligan.simulator.issues import edit, set_state
from mulligan.simulator.pulls import (
    Proposal,
    head_branch,
    is_behind,
    look_whether_mergeable,
    merge,
    open_pull,
    reopen,
    request_reviews,
)
from mulligan.simulator.records import Doer, Issue, Pull
from mulligan.simulator.refused import Refused, Resource, invalid, not_found
from mulligan.simulator.reply import Reply
from mulligan.simulator.shapes import Shape

ORDERS: dict[str, Callable[[Issue], tuple[datetime, int]]] = {
    "created": lambda issue: (issue.created_at, issue.number),
    "updated": lambda issue: (issue.updated_at, issue.number),
}
NO_ACCESS = "Resource not accessible by personal access token"


def forbidden() -> Refused:
    """Say that the token may not do this."""
    return Refused(403, NO_ACCESS)


def listing(call: Call) -> Reply:
    """List pull requests; `head` is a filter only when written `owner:branch`, as on GitHub."""
    place, query = call.place, call.query
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
    return call.page(found, lambda pair: git_shapes.pull(place, *pair))


def create(call: Call) -> Reply:
    """Open a pull request; its head is in the same repository, so that takes write access."""
    by, fields = call.doer(Permission.WRITE, forbidden), call.fields
    asked = Proposal(
        fields.required("title"),
        fields.required("head"),
        fields.required("base"),
        fields.text("body"),
        fields.flag("draft"),
        fields.flag("maintainer_can_modify"),
    )
    shape = _whole(call, *open_pull(by, asked))
    return Reply(201, shape, {"location": str(shape["url"])})


def read(call: Call) -> Reply:
    """Show a pull request; `mergeable` is null until it has been computed."""
    issue, pull = call.pull()
    if issue.state == "open":
        look_whether_mergeable(call.repository(), pull)
    return Reply(200, _whole(call, issue, pull))


def change(call: Call) -> Reply:
    """Change title, body, base or state."""
    (issue, pull), fields = call.pull(), call.fields
    by, state, base = _author_or_writer(call, issue), fields.text("state"), fields.text("base")
    if state not in {None, "open", "closed"}:
        raise invalid(Resource.PULL, "state")
    if base and base not in Bare(by.repository.bare).branches():
        raise invalid(Resource.PULL, "base")
    edit(by, issue, fields.text("title"), fields.text("body"))
    pull.base_ref = base or pull.base_ref
    if state == "open":
        reopen(by, issue, pull)
    if state == "closed":
        set_state(by, issue, "closed")
    return Reply(200, _whole(call, issue, pull))


def is_merged(call: Call) -> Reply:
    """Tell by the status alone whether it was merged."""
    if call.pull()[1].merged_at is None:
        raise not_found()
    return Reply(204)


def merge_it(call: Call) -> Reply:
    """Merge; 409 where the head is not what the caller believes, 405 where it cannot be done."""
    by, (issue, pull), fields = call.doer(Permission.WRITE, forbidden), call.pull(), call.fields
    method = fields.text("merge_method") or "merge"
    if method == "rebase":
        raise Refused(405, "Rebase merges are not allowed on this repository.")
    if fields.text("sha") not in {None, pull.head_sha}:
        raise Refused(409, "Head branch was modified. Review and try the merge again.")
    said = [fields.text("commit_title"), fields.text("commit_message")]
    message = "\n\n".join(part for part in said if part)
    sha = merge(by, issue, pull, message, squash=method == "squash")
    done = "Pull Request successfully merged"
    return Reply(200, {"sha": sha, "merged": True, "message": done})


def reviewers(call: Call) -> Reply:
    """List who was asked for a review and has not given one."""
    _, pull = call.pull()
    return Reply(
        200, {"users": [shapes.user(call.base, one) for one in pull.reviewers], "teams": []}
    )


def request_reviewers(call: Call) -> Reply:
    """Ask people for a review; teams are not known here."""
    by, (issue, pull), fields = call.doer(Permission.WRITE, forbidden), call.pull(), call.fields
    logins = [*(fields.names("reviewers") or []), *(fields.names("team_reviewers") or [])]
    request_reviews(by, issue, pull, [call.world.users.get(login.lower()) for login in logins])
    return Reply(201, git_shapes.pull(call.place, issue, pull))


def remove_reviewers(call: Call) -> Reply:
    """Take back requests for a review."""
    call.doer(Permission.WRITE, forbidden)
    issue, pull = call.pull()
    gone = {login.lower() for login in call.fields.names("reviewers") or []}
    pull.reviewers = [user for user in pull.reviewers if user.login.lower() not in gone]
    return Reply(200, git_shapes.pull(call.place, issue, pull))


def commits(call: Call) -> Reply:
    """List the commits that would be merged, oldest first."""
    place, (_, pull) = call.place, call.pull()
    found = Bare(place.repository.bare).commits(f"{pull.base_sha}..{pull.head_sha}")
    return call.page(found[::-1], lambda commit: git_shapes.commit(place, commit))


def files(call: Call) -> Reply:
    """List the files that would change."""
    place, (_, pull) = call.place, call.pull()
    bare = Bare(place.repository.bare)
    start = bare.common(pull.base_sha, pull.head_sha) or pull.base_sha
    found = bare.changes(start, pull.head_sha)
    return call.page(found, lambda one: git_shapes.changed_file(place, pull.head_sha, one))


def _whole(call: Call, issue: Issue, pull: Pull) -> Shape:
    bare = Bare(call.repository().bare)
    start = bare.common(pull.base_sha, pull.head_sha) or pull.base_sha
    news = git_shapes.News(
        bare.ahead(pull.base_sha, pull.head_sha), is_behind(call.repository(), pull)
    )
    return git_shapes.whole_pull(call.place, issue, pull, news, bare.changes(start, pull.head_sha))


def _author_or_writer(call: Call, issue: Issue) -> Doer:
    by = call.doer(Permission.READ)
    if by.user != issue.author and not by.may(Permission.WRITE):
        raise forbidden()
    return by


PULLS = "/repos/{owner}/{repo}/pulls"
ONE = f"{PULLS}/{{number}}"
ROUTES = (
    ("GET", PULLS, listing),
    ("POST", PULLS, create),
    ("GET", ONE, read),
    ("PATCH", ONE, change),
    ("GET", f"{ONE}/merge", is_merged),
    ("PUT", f"{ONE}/merge", merge_it),
    ("GET", f"{ONE}/requested_reviewers", reviewers),
    ("POST", f"{ONE}/requested_reviewers", request_reviewers),
    ("DELETE", f"{ONE}/requested_reviewers", remove_reviewers),
    ("GET", f"{ONE}/commits", commits),
    ("GET", f"{ONE}/files", files),
)
