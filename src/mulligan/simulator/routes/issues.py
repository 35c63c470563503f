"""Issues: list, open, read, change, assign, lock."""

from collections.abc import Callable, Mapping
from datetime import datetime

from mulligan.domain.issue import Permission
from mulligan.simulator import shapes
from mulligan.simulator.call import Call
from mulligan.simulator.issues import (
    add_labels,
    assign,
    edit,
    open_issue,
    set_labels,
    set_lock,
    set_state,
    unassign,
)
from mulligan.simulator.records import Doer, Issue, User
from mulligan.simulator.refused import Resource, invalid, no_rights
from mulligan.simulator.reply import Reply

ORDERS: dict[str, Callable[[Issue], tuple[datetime | int, int]]] = {
    "created": lambda issue: (issue.created_at, issue.number),
    "updated": lambda issue: (issue.updated_at, issue.number),
    "comments": lambda issue: (len(issue.comments), issue.number),
}


def listing(call: Call) -> Reply:
    """List issues and pull requests, newest first unless asked otherwise."""
    call.world.follow_branches(call.repository())
    query, since = call.query, call.since()
    found = [one for one in call.repository().visible() if _wanted(query, since, one)]
    order = ORDERS.get(query.get("sort", ""), ORDERS["created"])
    found.sort(key=order, reverse=query.get("direction") != "asc")
    place = call.place
    return call.page(found, lambda issue: shapes.issue(place, issue))


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


def create(call: Call) -> Reply:
    """Open an issue; labels and assignees of one who may not set them are dropped silently."""
    by, fields = call.doer(Permission.READ), call.fields
    labels, people = fields.names("labels"), fields.names("assignees")
    issue = open_issue(by, fields.required("title"), fields.text("body"))
    if by.may(Permission.TRIAGE):
        add_labels(by, issue, labels or [])
        assign(by, issue, _users(call, people))
    shape = shapes.issue(call.place, issue, whole=True)
    return Reply(201, shape, {"location": f"{call.place.api}/issues/{issue.number}"})


def read(call: Call) -> Reply:
    """Show an issue."""
    call.world.follow_branches(call.repository())
    return Reply(200, shapes.issue(call.place, call.issue(), whole=True))


def change(call: Call) -> Reply:
    """Change title, body, state, labels or assignees."""
    by, issue, fields = call.doer(Permission.READ), call.issue(), call.fields
    own = by.user == issue.author
    state = fields.text("state")
    if not own and not by.may(Permission.TRIAGE):
        raise no_rights()
    if state not in {None, "open", "closed"}:
        raise invalid(Resource.ISSUE, "state")
    if own or by.may(Permission.WRITE):
        edit(by, issue, fields.text("title"), fields.text("body"))
    if by.may(Permission.TRIAGE):
        _set_lists(call, by, issue)
    if state == "open" or state == "closed":  # noqa: PLR1714 - a set does not narrow the type
        set_state(by, issue, state, fields.text("state_reason"))
    return Reply(200, shapes.issue(call.place, issue, whole=True))


def _set_lists(call: Call, by: Doer, issue: Issue) -> None:
    labels, people = call.fields.names("labels"), call.fields.names("assignees")
    if labels is not None:
        set_labels(by, issue, labels)
    if people is not None:
        wanted = _users(call, people)
        unassign(by, issue, [user for user in issue.assignees if user not in wanted])
        assign(by, issue, wanted)


def add_assignees(call: Call) -> Reply:
    """Assign people."""
    by, issue = call.doer(Permission.TRIAGE), call.issue()
    assign(by, issue, _users(call, call.fields.names("assignees")))
    return Reply(201, shapes.issue(call.place, issue, whole=True))


def remove_assignees(call: Call) -> Reply:
    """Take people off."""
    by, issue = call.doer(Permission.TRIAGE), call.issue()
    unassign(by, issue, _users(call, call.fields.names("assignees")))
    return Reply(200, shapes.issue(call.place, issue, whole=True))


def lock(call: Call) -> Reply:
    """Lock the conversation."""
    set_lock(call.doer(Permission.TRIAGE), call.issue(), locked=True)
    return Reply(204)


def unlock(call: Call) -> Reply:
    """Unlock the conversation."""
    set_lock(call.doer(Permission.TRIAGE), call.issue(), locked=False)
    return Reply(204)


def _users(call: Call, logins: list[str] | None) -> list[User]:
    users = call.world.users
    return [users[login.lower()] for login in logins or [] if login.lower() in users]


ISSUES = "/repos/{owner}/{repo}/issues"
ROUTES = (
    ("GET", ISSUES, listing),
    ("POST", ISSUES, create),
    ("GET", f"{ISSUES}/{{number}}", read),
    ("PATCH", f"{ISSUES}/{{number}}", change),
    ("POST", f"{ISSUES}/{{number}}/assignees", add_assignees),
    ("DELETE", f"{ISSUES}/{{number}}/assignees", remove_assignees),
    ("PUT", f"{ISSUES}/{{number}}/lock", lock),
    ("DELETE", f"{ISSUES}/{{number}}/lock", unlock),
)
