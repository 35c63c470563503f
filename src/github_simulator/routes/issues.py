"""Issues with their labels, comments, reactions, events and timeline."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from github_simulator import json_shapes
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
    set_labels,
    set_lock,
    set_state,
    unassign,
)
from github_simulator.records import Actor, Comment, Event, Issue, Label, Permission, Reaction, User
from github_simulator.reply import ErrorReply, Reply, Resource, Shape, forbidden, invalid, not_found
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
        and query.get("creator", issue.author.login).lower() == issue.author.login.lower()
        and _assigned(query.get("assignee", ""), issue)
    )


def _assigned(asked: str, issue: Issue) -> bool:
    match asked:
        case "":
            return True
        case "*":
            return bool(issue.assignees)
        case "none":
            return not issue.assignees
        case login:
            return login.lower() in {user.login.lower() for user in issue.assignees}


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
    return Reply(200, json_shapes.issue(call.urls, call.issue(), whole=True))


def change(call: ApiCall) -> Reply:
    """Change title, body, state, labels or assignees."""
    by, issue, fields = call.actor(Permission.READ), call.issue(), call.fields
    own = by.user == issue.author
    state = fields.text("state")
    if not own and not by.may(Permission.TRIAGE):
        raise forbidden()
    if state not in {None, "open", "closed"}:
        raise invalid(Resource.ISSUE, "state")
    if own or by.may(Permission.WRITE):
        edit(by, issue, fields.text("title"), fields.text("body"))
    if by.may(Permission.TRIAGE):
        _set_lists(call, by, issue)
    if state == "open" or state == "closed":  # noqa: PLR1714 - a set does not narrow the type
        set_state(by, issue, state, fields.text("state_reason"))
    return Reply(200, json_shapes.issue(call.urls, issue, whole=True))


def _set_lists(call: ApiCall, by: Actor, issue: Issue) -> None:
    labels, people = call.fields.names("labels"), call.fields.names("assignees")
    if labels is not None:
        set_labels(by, issue, labels)
    if people is not None:
        wanted = _users(call, people)
        unassign(by, issue, [user for user in issue.assignees if user not in wanted])
        assign(by, issue, wanted)


def add_assignees(call: ApiCall) -> Reply:
    """Assign people."""
    by, issue = call.actor(Permission.TRIAGE), call.issue()
    assign(by, issue, _users(call, call.fields.names("assignees")))
    return Reply(201, json_shapes.issue(call.urls, issue, whole=True))


def remove_assignees(call: ApiCall) -> Reply:
    """Unassign people."""
    by, issue = call.actor(Permission.TRIAGE), call.issue()
    unassign(by, issue, _users(call, call.fields.names("assignees")))
    return Reply(200, json_shapes.issue(call.urls, issue, whole=True))


def lock(call: ApiCall) -> Reply:
    """Lock the conversation."""
    set_lock(call.actor(Permission.TRIAGE), call.issue(), locked=True)
    return Reply(204)


def unlock(call: ApiCall) -> Reply:
    """Unlock the conversation."""
    set_lock(call.actor(Permission.TRIAGE), call.issue(), locked=False)
    return Reply(204)


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


def read_repository_label(call: ApiCall) -> Reply:
    """Show a label."""
    return Reply(200, json_shapes.label(call.urls, _label(call)))


def change_repository_label(call: ApiCall) -> Reply:
    """Change a label's name, colour or description."""
    by, label, fields = call.actor(Permission.WRITE, not_found), _label(call), call.fields
    name, color = fields.text("new_name") or label.name, fields.text("color") or label.color
    taken = by.repository.label(name)
    if taken and taken is not label:
        raise invalid(Resource.LABEL, "name", "already_exists")
    if not COLOR.fullmatch(color):
        raise invalid(Resource.LABEL, "color")
    label.name, label.color = name, color
    description = fields.text("description")
    label.description = label.description if description is None else description
    return Reply(200, json_shapes.label(call.urls, label))


def delete_repository_label(call: ApiCall) -> Reply:
    """Delete a label from the repository and all issues."""
    by, label = call.actor(Permission.WRITE, not_found), _label(call)
    delete_label(by, label)
    return Reply(204)


def issue_labels(call: ApiCall) -> Reply:
    """List the labels of an issue."""
    place = call.urls
    return call.page(call.issue().labels, lambda label: json_shapes.label(place, label))


def add_issue_labels(call: ApiCall) -> Reply:
    """Add labels to an issue."""
    issue = call.issue()
    add_labels(call.actor(Permission.TRIAGE), issue, _asked(call))
    return _labels_of(call, issue)


def replace_issue_labels(call: ApiCall) -> Reply:
    """Replace the labels of an issue."""
    issue = call.issue()
    set_labels(call.actor(Permission.TRIAGE), issue, _asked(call))
    return _labels_of(call, issue)


def remove_issue_label(call: ApiCall) -> Reply:
    """Remove a label from an issue."""
    issue = call.issue()
    remove_label(call.actor(Permission.TRIAGE), issue, call.params["name"])
    return _labels_of(call, issue)


def clear_issue_labels(call: ApiCall) -> Reply:
    """Remove all labels from an issue."""
    set_labels(call.actor(Permission.TRIAGE), call.issue(), [])
    return Reply(204)


def _asked(call: ApiCall) -> list[str]:
    """Return the requested labels, from an object or, as GitHub still accepts, a bare list."""
    value = parse(call.body)
    if isinstance(value, list):
        return names(value)
    asked = Fields.read(call.body).names("labels")
    if asked is None:
        raise invalid(Resource.LABEL, "labels", "missing_field")
    return asked


def _label(call: ApiCall) -> Label:
    label = call.repository().label(call.params["name"])
    if label is None:
        raise not_found()
    return label


def _labels_of(call: ApiCall, issue: Issue) -> Reply:
    return Reply(200, [json_shapes.label(call.urls, label) for label in issue.labels])


# Comments and reactions.


def issue_comments(call: ApiCall) -> Reply:
    """List the comments of an issue, oldest first."""
    place, issue, since = call.urls, call.issue(), call.since()
    found = [one for one in issue.comments if since is None or one.updated_at >= since]
    return call.page(found, lambda comment: json_shapes.comment(place, issue, comment))


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
    """List the reactions to a comment or an issue."""
    kind = call.query.get("content")
    found = [one for one in _reactions(call) if kind in {None, one.content}]
    return call.page(found, lambda reaction: json_shapes.reaction(call.base, reaction))


def add_reaction(call: ApiCall) -> Reply:
    """Add a reaction; 200 instead of 201 if the user already has one."""
    by, found = call.actor(Permission.READ), _reactions(call)
    reaction, new = react(by, found, call.fields.required("content"))
    return Reply(201 if new else 200, json_shapes.reaction(call.base, reaction))


def remove_reaction(call: ApiCall) -> Reply:
    """Remove one's own reaction."""
    by, found = call.actor(Permission.READ), _reactions(call)
    for reaction in found:
        if str(reaction.id) == call.params["reaction"] and reaction.user == by.user:
            found.remove(reaction)
            return Reply(204)
    raise not_found()


def _reactions(call: ApiCall) -> list[Reaction]:
    if "/issues/comments/" in call.path:
        return _comment(call)[1].reactions
    return call.issue().reactions


# Events and the timeline.


def issue_events(call: ApiCall) -> Reply:
    """List the events of an issue, oldest first."""
    place = call.urls
    return call.page(call.issue().events, lambda event: json_shapes.event(place, event))


def repository_events(call: ApiCall) -> Reply:
    """List the events of all issues, newest first, each with its issue."""
    return call.page(_all_events(call), lambda pair: _with_issue(call, *pair))


def read_event(call: ApiCall) -> Reply:
    """Show an event."""
    for issue, event in _all_events(call):
        if event.id == call.number:
            return Reply(200, _with_issue(call, issue, event))
    raise not_found()


def timeline(call: ApiCall) -> Reply:
    """List events and comments of an issue together, oldest first."""
    place, issue = call.urls, call.issue()
    entries = [(event.id, json_shapes.event(place, event)) for event in issue.events]
    entries += [(one.id, json_shapes.commented(place, issue, one)) for one in issue.comments]
    # Ids are assigned in order of time.
    entries.sort(key=lambda entry: entry[0])
    return call.page(entries, lambda entry: entry[1])


def _all_events(call: ApiCall) -> list[tuple[Issue, Event]]:
    issues = call.repository().visible()
    pairs = [(issue, event) for issue in issues for event in issue.events]
    return sorted(pairs, key=lambda pair: pair[1].id, reverse=True)


def _with_issue(call: ApiCall, issue: Issue, event: Event) -> Shape:
    place = call.urls
    return {**json_shapes.event(place, event), "issue": json_shapes.issue(place, issue)}


ROUTES = (
    ("GET", f"{ISSUES}/comments", repository_comments),
    ("GET", f"{ISSUES}/comments/{{number}}", read_comment),
    ("PATCH", f"{ISSUES}/comments/{{number}}", change_comment),
    ("DELETE", f"{ISSUES}/comments/{{number}}", delete_comment),
    ("GET", f"{ISSUES}/comments/{{number}}/reactions", comment_reactions),
    ("POST", f"{ISSUES}/comments/{{number}}/reactions", add_reaction),
    ("DELETE", f"{ISSUES}/comments/{{number}}/reactions/{{reaction}}", remove_reaction),
    ("GET", f"{ISSUES}/{{number}}/reactions", comment_reactions),
    ("POST", f"{ISSUES}/{{number}}/reactions", add_reaction),
    ("DELETE", f"{ISSUES}/{{number}}/reactions/{{reaction}}", remove_reaction),
    ("GET", f"{ISSUES}/{{number}}/comments", issue_comments),
    ("POST", f"{ISSUES}/{{number}}/comments", create_comment),
    ("GET", f"{ISSUES}/events", repository_events),
    ("GET", f"{ISSUES}/events/{{number}}", read_event),
    ("GET", f"{ISSUES}/{{number}}/events", issue_events),
    ("GET", f"{ISSUES}/{{number}}/timeline", timeline),
    ("GET", f"{REPO}/labels", repository_labels),
    ("POST", f"{REPO}/labels", create_repository_label),
    ("GET", f"{REPO}/labels/{{name:path}}", read_repository_label),
    ("PATCH", f"{REPO}/labels/{{name:path}}", change_repository_label),
    ("DELETE", f"{REPO}/labels/{{name:path}}", delete_repository_label),
    ("GET", f"{ISSUES}/{{number}}/labels", issue_labels),
    ("POST", f"{ISSUES}/{{number}}/labels", add_issue_labels),
    ("PUT", f"{ISSUES}/{{number}}/labels", replace_issue_labels),
    ("DELETE", f"{ISSUES}/{{number}}/labels", clear_issue_labels),
    ("DELETE", f"{ISSUES}/{{number}}/labels/{{name:path}}", remove_issue_label),
    ("GET", ISSUES, listing),
    ("POST", ISSUES, create),
    ("GET", f"{ISSUES}/{{number}}", read),
    ("PATCH", f"{ISSUES}/{{number}}", change),
    ("POST", f"{ISSUES}/{{number}}/assignees", add_assignees),
    ("DELETE", f"{ISSUES}/{{number}}/assignees", remove_assignees),
    ("PUT", f"{ISSUES}/{{number}}/lock", lock),
    ("DELETE", f"{ISSUES}/{{number}}/lock", unlock),
)
