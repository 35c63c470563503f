"""Issues with their labels, comments, reactions and events."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from github_simulator import json_shapes
from github_simulator.body_html import with_body_html
from github_simulator.issues import (
    NEW_LABEL_COLOR,
    add_comment,
    add_labels,
    assign,
    create_label,
    delete_label,
    edit,
    edit_comment,
    open_issue,
    react,
    remove_label,
    set_state,
    unassign,
)
from github_simulator.records import Actor, Comment, Issue, Permission, User
from github_simulator.reply import ErrorReply, Reply, Resource, forbidden, invalid, not_found
from github_simulator.request import ApiCall, Fields, names, parse

REPO = "/repos/{owner}/{repo}"

ISSUES = f"{REPO}/issues"

ORDERS: dict[str, Callable[[Issue], tuple[datetime | int, int]]] = {
    "created": lambda issue: (issue.created_at, issue.number),
    "updated": lambda issue: (issue.updated_at, issue.number),
    "comments": lambda issue: (len(issue.comments), issue.number),
}

COLOR = re.compile(r"[0-9a-fA-F]{6}")


# Issues.


def listing(call: ApiCall) -> Reply:
    """List issues and pull requests, newest first by default."""
    call.world.follow_branches(call.repository())
    query, since = call.query, call.since()
    found = [one for one in call.repository().visible() if _wanted(query, since, one)]
    order = ORDERS.get(query.get("sort", ""), ORDERS["created"])
    found.sort(key=order, reverse=query.get("direction") != "asc")
    place = call.urls
    return call.page(found, lambda issue: json_shapes.issue(place, issue))


def _wanted(query: Mapping[str, str], since: datetime | None, issue: Issue) -> bool:
    carried = {name.lower() for name in issue.label_names}
    asked = {name.strip().lower() for name in query.get("labels", "").split(",") if name.strip()}
    return (
        query.get("state", "open") in {issue.state, "all"}
        and asked <= carried
        and (since is None or issue.updated_at >= since)
    )


def create(call: ApiCall) -> Reply:
    """Open an issue; silently drop labels and assignees from users who may not set them."""
    by, fields = call.actor(Permission.READ), call.fields
    labels, people = fields.names("labels"), fields.names("assignees")
    issue = open_issue(by, fields.required("title"), fields.text("body"))
    if by.may(Permission.TRIAGE):
        add_labels(by, issue, labels or [])
        assign(by, issue, _users(call, people))
    shape = json_shapes.issue(call.urls, issue, whole=True)
    return Reply(201, shape, {"location": f"{call.urls.api}/issues/{issue.number}"})


def read(call: ApiCall) -> Reply:
    """Show an issue."""
    call.world.follow_branches(call.repository())
    shape = json_shapes.issue(call.urls, call.issue(), whole=True)
    return Reply(200, with_body_html(shape, call.headers.get("accept", ""), call.base))


def change(call: ApiCall) -> Reply:
    """Change title, body or state."""
    by, issue, fields = call.actor(Permission.READ), call.issue(), call.fields
    own = by.user == issue.author
    state = fields.text("state")
    if not own and not by.may(Permission.TRIAGE):
        raise forbidden()
    if state not in {None, "open", "closed"}:
        raise invalid(Resource.ISSUE, "state")
    if own or by.may(Permission.WRITE):
        edit(by, issue, fields.text("title"), fields.text("body"))
    if state == "open" or state == "closed":  # noqa: PLR1714 - a set does not narrow the type
        set_state(by, issue, state, fields.text("state_reason"))
    return Reply(200, json_shapes.issue(call.urls, issue, whole=True))


def add_assignees(call: ApiCall) -> Reply:
    """Assign people."""
    by, issue = call.actor(Permission.TRIAGE), call.issue()
    assign(by, issue, _users(call, call.fields.names("assignees")))
    return Reply(201, json_shapes.issue(call.urls, issue, whole=True))


def remove_assignees(call: ApiCall) -> Reply:
    """Remove assignees."""
    by, issue = call.actor(Permission.TRIAGE), call.issue()
    unassign(by, issue, _users(call, call.fields.names("assignees")))
    return Reply(200, json_shapes.issue(call.urls, issue, whole=True))


def _users(call: ApiCall, logins: list[str] | None) -> list[User]:
    users = call.world.users
    return [users[login.lower()] for login in logins or [] if login.lower() in users]


# Labels.


def repository_labels(call: ApiCall) -> Reply:
    """List the repository's labels."""
    place = call.urls
    return call.page(place.repository.labels, lambda label: json_shapes.label(place, label))


def create_repository_label(call: ApiCall) -> Reply:
    """Create a label; 404 for a user without write permission."""
    by, fields = call.actor(Permission.WRITE, not_found), call.fields
    color = fields.text("color") or NEW_LABEL_COLOR
    if not COLOR.fullmatch(color):
        raise invalid(Resource.LABEL, "color")
    label = create_label(by, fields.text("name") or "", color, fields.text("description"))
    shape = json_shapes.label(call.urls, label)
    return Reply(201, shape, {"location": str(shape["url"])})


def delete_repository_label(call: ApiCall) -> Reply:
    """Delete a label from the repository and all issues; 404 as for its creation."""
    by = call.actor(Permission.WRITE, not_found)
    label = by.repository.label(call.params["name"])
    if label is None:
        raise not_found()
    delete_label(by, label)
    return Reply(204)


def add_issue_labels(call: ApiCall) -> Reply:
    """Add labels to an issue."""
    issue = call.issue()
    add_labels(call.actor(Permission.TRIAGE), issue, _asked(call))
    return _labels_of(call, issue)


def remove_issue_label(call: ApiCall) -> Reply:
    """Remove a label from an issue."""
    issue = call.issue()
    remove_label(call.actor(Permission.TRIAGE), issue, call.params["name"])
    return _labels_of(call, issue)


def _asked(call: ApiCall) -> list[str]:
    """Return the requested labels, from an object or, as GitHub still accepts, a bare list."""
    value = parse(call.body)
    if isinstance(value, list):
        return names(value)
    asked = Fields.read(call.body).names("labels")
    if asked is None:
        raise invalid(Resource.LABEL, "labels", "missing_field")
    return asked


def _labels_of(call: ApiCall, issue: Issue) -> Reply:
    return Reply(200, [json_shapes.label(call.urls, label) for label in issue.labels])


# Comments and reactions.


def issue_comments(call: ApiCall) -> Reply:
    """List the comments of an issue, oldest first."""
    place, issue, since = call.urls, call.issue(), call.since()
    found = [one for one in issue.comments if since is None or one.updated_at >= since]
    accept = call.headers.get("accept", "")
    return call.page(
        found,
        lambda comment: with_body_html(
            json_shapes.comment(place, issue, comment), accept, place.base
        ),
    )


def repository_comments(call: ApiCall) -> Reply:
    """List the comments of all issues; GitHub ignores `direction` without `sort`."""
    place, since = call.urls, call.since()
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
    return call.page(found, lambda pair: json_shapes.comment(place, *pair))


def create_comment(call: ApiCall) -> Reply:
    """Create a comment; only users with write permission can comment on a locked conversation."""
    by, issue = call.actor(Permission.READ), call.issue()
    if issue.locked and not by.may(Permission.WRITE):
        raise ErrorReply(403, "Unable to create comment because issue is locked.")
    comment = add_comment(by, issue, call.fields.text("body") or "")
    shape = json_shapes.comment(call.urls, issue, comment)
    return Reply(201, shape, {"location": str(shape["url"])})


def read_comment(call: ApiCall) -> Reply:
    """Show a comment."""
    return Reply(200, json_shapes.comment(call.urls, *_comment(call)))


def change_comment(call: ApiCall) -> Reply:
    """Change a comment: one's own, or anybody's with write permission."""
    issue, comment = _comment(call)
    edit_comment(_may_change(call, comment), comment, call.fields.text("body") or "")
    return Reply(200, json_shapes.comment(call.urls, issue, comment))


def delete_comment(call: ApiCall) -> Reply:
    """Delete a comment."""
    issue, comment = _comment(call)
    _may_change(call, comment)
    issue.comments.remove(comment)
    return Reply(204)


def _comment(call: ApiCall) -> tuple[Issue, Comment]:
    for issue in call.repository().visible():
        for comment in issue.comments:
            if comment.id == call.number:
                return issue, comment
    raise not_found()


def _may_change(call: ApiCall, comment: Comment) -> Actor:
    by = call.actor(Permission.READ)
    if by.user != comment.author and not by.may(Permission.WRITE):
        raise forbidden()
    return by


def comment_reactions(call: ApiCall) -> Reply:
    """List the reactions to a comment."""
    kind = call.query.get("content")
    found = [one for one in _comment(call)[1].reactions if kind in {None, one.content}]
    return call.page(found, lambda reaction: json_shapes.reaction(call.base, reaction))


def add_reaction(call: ApiCall) -> Reply:
    """Add a reaction; 200 instead of 201 if the user already has one."""
    by, found = call.actor(Permission.READ), _comment(call)[1].reactions
    reaction, new = react(by, found, call.fields.required("content"))
    return Reply(201 if new else 200, json_shapes.reaction(call.base, reaction))


# Dependencies, in one repository.


def blockers(call: ApiCall) -> Reply:
    """List the issues that block an issue."""
    place = call.urls
    return call.page(call.issue().blocked_by, lambda issue: json_shapes.issue(place, issue))


# Events.


def issue_events(call: ApiCall) -> Reply:
    """List the events of an issue, oldest first."""
    place = call.urls
    return call.page(call.issue().events, lambda event: json_shapes.event(place, event))


ROUTES = (
    ("GET", f"{ISSUES}/comments", repository_comments),
    ("GET", f"{ISSUES}/comments/{{number}}", read_comment),
    ("PATCH", f"{ISSUES}/comments/{{number}}", change_comment),
    ("DELETE", f"{ISSUES}/comments/{{number}}", delete_comment),
    ("GET", f"{ISSUES}/comments/{{number}}/reactions", comment_reactions),
    ("POST", f"{ISSUES}/comments/{{number}}/reactions", add_reaction),
    ("GET", f"{ISSUES}/{{number}}/comments", issue_comments),
    ("POST", f"{ISSUES}/{{number}}/comments", create_comment),
    ("GET", f"{ISSUES}/{{number}}/dependencies/blocked_by", blockers),
    ("GET", f"{ISSUES}/{{number}}/events", issue_events),
    ("GET", f"{REPO}/labels", repository_labels),
    ("POST", f"{REPO}/labels", create_repository_label),
    ("DELETE", f"{REPO}/labels/{{name:path}}", delete_repository_label),
    ("POST", f"{ISSUES}/{{number}}/labels", add_issue_labels),
    ("DELETE", f"{ISSUES}/{{number}}/labels/{{name:path}}", remove_issue_label),
    ("GET", ISSUES, listing),
    ("POST", ISSUES, create),
    ("GET", f"{ISSUES}/{{number}}", read),
    ("PATCH", f"{ISSUES}/{{number}}", change),
    ("POST", f"{ISSUES}/{{number}}/assignees", add_assignees),
    ("DELETE", f"{ISSUES}/{{number}}/assignees", remove_assignees),
)
