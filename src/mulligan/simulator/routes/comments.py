"""Comments on issues and pull requests, and reactions."""

from mulligan.domain.issue import Permission
from mulligan.simulator import shapes
from mulligan.simulator.call import Call
from mulligan.simulator.issues import add_comment, edit_comment, react
from mulligan.simulator.records import Comment, Doer, Issue, Reaction
from mulligan.simulator.refused import Refused, no_rights, not_found
from mulligan.simulator.reply import Reply


def of_issue(call: Call) -> Reply:
    """List the comments of an issue, oldest first."""
    place, issue, since = call.place, call.issue(), call.since()
    found = [one for one in issue.comments if since is None or one.updated_at >= since]
    return call.page(found, lambda comment: shapes.comment(place, issue, comment))


def of_repository(call: Call) -> Reply:
    """List the comments of all issues; `direction` means nothing without `sort`."""
    place, since = call.place, call.since()
    found = [
        (issue, comment)
        for issue in place.repository.visible()
        for comment in issue.comments
        if since is None or comment.updated_at >= since
    ]
    found.sort(key=lambda pair: pair[1].id)
    if call.query.get("sort") == "updated":
        found.sort(key=lambda pair: pair[1].updated_at)
    if call.query.get("sort") and call.query.get("direction") == "desc":
        found.reverse()
    return call.page(found, lambda pair: shapes.comment(place, *pair))


def create(call: Call) -> Reply:
    """Write a comment; a locked conversation takes them from writers only."""
    by, issue = call.doer(Permission.READ), call.issue()
    if issue.locked and not by.may(Permission.WRITE):
        raise Refused(403, "Unable to create comment because issue is locked.")
    comment = add_comment(by, issue, call.fields.text("body") or "")
    shape = shapes.comment(call.place, issue, comment)
    return Reply(201, shape, {"location": str(shape["url"])})


def read(call: Call) -> Reply:
    """Show a comment."""
    return Reply(200, shapes.comment(call.place, *_find(call)))


def change(call: Call) -> Reply:
    """Change a comment, one's own or as a writer anybody's."""
    issue, comment = _find(call)
    edit_comment(_may_change(call, comment), comment, call.fields.text("body") or "")
    return Reply(200, shapes.comment(call.place, issue, comment))


def delete(call: Call) -> Reply:
    """Delete a comment."""
    issue, comment = _find(call)
    _may_change(call, comment)
    issue.comments.remove(comment)
    return Reply(204)


def _find(call: Call) -> tuple[Issue, Comment]:
    for issue in call.repository().visible():
        for comment in issue.comments:
            if comment.id == call.number:
                return issue, comment
    raise not_found()


def _may_change(call: Call, comment: Comment) -> Doer:
    by = call.doer(Permission.READ)
    if by.user != comment.author and not by.may(Permission.WRITE):
        raise no_rights()
    return by


def reactions(call: Call) -> Reply:
    """List the reactions to a comment or an issue."""
    kind = call.query.get("content")
    found = [one for one in _reactions(call) if kind in {None, one.content}]
    return call.page(found, lambda reaction: shapes.reaction(call.base, reaction))


def add_reaction(call: Call) -> Reply:
    """React; 200 instead of 201 where the user did so before."""
    by, found = call.doer(Permission.READ), _reactions(call)
    reaction, new = react(by, found, call.fields.required("content"))
    return Reply(201 if new else 200, shapes.reaction(call.base, reaction))


def remove_reaction(call: Call) -> Reply:
    """Take one's own reaction back."""
    by, found = call.doer(Permission.READ), _reactions(call)
    for reaction in found:
        if str(reaction.id) == call.params["reaction"] and reaction.user == by.user:
            found.remove(reaction)
            return Reply(204)
    raise not_found()


def _reactions(call: Call) -> list[Reaction]:
    if "/issues/comments/" in call.path:
        return _find(call)[1].reactions
    return call.issue().reactions


ISSUES = "/repos/{owner}/{repo}/issues"
ROUTES = (
    ("GET", f"{ISSUES}/comments", of_repository),
    ("GET", f"{ISSUES}/comments/{{number}}", read),
    ("PATCH", f"{ISSUES}/comments/{{number}}", change),
    ("DELETE", f"{ISSUES}/comments/{{number}}", delete),
    ("GET", f"{ISSUES}/comments/{{number}}/reactions", reactions),
    ("POST", f"{ISSUES}/comments/{{number}}/reactions", add_reaction),
    ("DELETE", f"{ISSUES}/comments/{{number}}/reactions/{{reaction}}", remove_reaction),
    ("GET", f"{ISSUES}/{{number}}/reactions", reactions),
    ("POST", f"{ISSUES}/{{number}}/reactions", add_reaction),
    ("DELETE", f"{ISSUES}/{{number}}/reactions/{{reaction}}", remove_reaction),
    ("GET", f"{ISSUES}/{{number}}/comments", of_issue),
    ("POST", f"{ISSUES}/{{number}}/comments", create),
)
